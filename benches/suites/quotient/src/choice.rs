//! Choice of a filter: quotient filters of both kinds and Bloom filters for the same keys at the same rate of false
//! positives.

use warpset::bloom::{BlockedBloom, RaoBloom, SplitBlockBloom};
use warpset::prelude::{Filter, Insert, Remove};
use warpset::quotient::{Builder, RankSelect, SlotKind, Standard};

use super::{ABSENT, BATCH, INSERTED, Size, keys};
use bench_frame::suite::{Session, Step, Target};
use bench_frame::table::rate as per_second;
use bench_record::Record;

/// Removal of a batch, for filters that have it.
type Removal<F> = fn(&mut F, &[u32]) -> Result<u64, <F as Filter>::Error>;

/// The study of its rows.
pub const STUDY: &str = "equal rate";
/// The rates of false positives.
const RATES: [f64; 2] = [0.01, 0.0001];
/// Load of quotient filters. Their slots are a power of two, so that other numbers of keys take up to twice the space
/// per key.
const LOAD: f64 = 0.9;

/// Makes the step; filters have the number of keys that fills that many slots to 0.9.
pub fn step(quotient_bits: u32) -> Step {
    Step::new(format!("filters at equal rates, 2^{quotient_bits} slots"), move |session| {
        let n = Size::of(quotient_bits).keys(LOAD);
        let (inserted, absent) = (keys(INSERTED, n), keys(ABSENT, n.clamp(1 << 18, 1 << 21)));
        let batch = keys(BATCH, n / 64);
        let room = (n + batch.len()) as u64;
        for rate in RATES {
            let study = Study { rate, inserted: &inserted, absent: &absent, batch: &batch };
            study.quotient::<Standard>(session, room, "standard quotient")?;
            study.quotient::<RankSelect>(session, room, "rank-and-select quotient")?;
            study.run(session, "split-block Bloom", SplitBlockBloom::builder(room).fpr(rate).build()?, None)?;
            study.run(session, "blocked Bloom", BlockedBloom::builder(room).fpr(rate).build()?, None)?;
            study.run(session, "Rao's Bloom", RaoBloom::builder(room).fpr(rate).build()?, None)?;
        }
        let one_thread = |row: &Record| row.number("threads") == Some(1.0);
        let column = |row: &Record| format!("{:e}", row.number("rate").unwrap_or_default());
        let cell = |row: &Record| row.items_per_second.map_or_else(String::new, per_second);
        session.show(STUDY, "Keys per second by rate of false positives, one thread", one_thread, column, cell);
        Ok(())
    })
}

#[derive(Clone, Copy)]
struct Study<'a> {
    rate: f64,
    inserted: &'a [u32],
    absent: &'a [u32],
    /// Inserted afterwards, and removed again.
    batch: &'a [u32],
}

impl Study<'_> {
    fn quotient<S: SlotKind>(self, session: &mut Session, room: u64, name: &str) -> anyhow::Result<()> {
        let empty = Builder::<S>::with_capacity(room).fpr(self.rate).max_load(0.95).build()?;
        self.run(session, name, empty, Some(Remove::remove_bulk::<u32>))
    }

    fn run<F: Insert + Clone + Send + Sync>(
        self,
        session: &mut Session,
        name: &str,
        empty: F,
        remove: Option<Removal<F>>,
    ) -> anyhow::Result<()> {
        let Study { inserted, absent, batch, .. } = self;
        for &threads in session.threads(true) {
            let mut filled = empty.clone();
            let fill = |filter: &mut F| filter.insert_bulk(inserted).map(|_| ()).map_err(Into::into);
            let build = session.time_change(threads, &empty, &mut filled, fill)?;
            let ask = |session: &Session, keys: &[u32]| -> anyhow::Result<(f64, usize)> {
                let mut answers = vec![false; keys.len()];
                let ask = |answers: &mut Vec<bool>| Ok(filled.contains_bulk_into(keys, answers)?);
                let seconds = session.time(threads, &mut answers, ask)?;
                Ok((seconds, answers.into_iter().filter(|yes| *yes).count()))
            };
            let (hit, found) = ask(session, inserted)?;
            let (miss, wrong) = ask(session, absent)?;
            let fpr = wrong as f64 / absent.len() as f64;
            // Rates are upper bounds; chance adds to few.
            let most = self.rate * absent.len() as f64;
            let right = found == inserted.len() && (wrong as f64) < 1.3 * most + 5.0 * most.sqrt();
            let row = |operation: &str, n: usize, seconds: f64| {
                let mut row = Record::new("quotient", operation, n).time(seconds).by(name.to_owned(), false);
                row = row.param("study", STUDY).param("rate", self.rate).param("key", "u32");
                row.bits_per_item = Some(8.0 * filled.memory_bytes() as f64 / inserted.len() as f64);
                row.fpr = Some(fpr);
                row
            };
            let mut rows = vec![row("build", inserted.len(), build), row("contains hit", inserted.len(), hit)];
            rows.push(row("contains miss", absent.len(), miss));
            let mut more = filled.clone();
            let grow = |filter: &mut F| filter.insert_bulk(batch).map(|_| ()).map_err(Into::into);
            rows.push(row("insert", batch.len(), session.time_change(threads, &filled, &mut more, grow)?));
            if let Some(remove) = remove {
                let mut less = more.clone();
                let shrink = |filter: &mut F| {
                    remove(filter, batch)?;
                    Ok(())
                };
                rows.push(row("remove", batch.len(), session.time_change(threads, &more, &mut less, shrink)?));
            }
            rows.into_iter().for_each(|row| session.add(&Target::Cpu, threads, row, right));
        }
        Ok(())
    }
}
