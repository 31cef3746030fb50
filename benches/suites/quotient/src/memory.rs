//! Bytes per item (Table I): the remainders that the paper's three error rates take, at the paper's load of 0.75 and at
//! higher ones.

use warpset::bloom::SplitBlockBloom;
use warpset::quotient::{Container, StandardBuilder};

use super::subject::{Change, Filter, Kind};
use super::{ABSENT, INSERTED, Point, Size, as_expected, keys};
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Makes the step; the number of slots does not matter.
pub fn step(quotient_bits: u32) -> Step {
    Step::new("quotient: bytes per item", move |session| {
        // In the paper: one, two and three bytes per slot.
        for (remainder_bits, error) in [(5, 0.03), (13, 1e-4), (21, 5e-7)] {
            for load in [0.75, 0.9, 0.95] {
                let size = Size { remainder_bits, quotient_bits };
                let inserted = keys(INSERTED, size.keys(load));
                let packed =
                    [Kind::Bulk(Container::Packed), Kind::Bulk(Container::Bytes), Kind::RankSelect, Kind::Qfilter];
                for kind in packed {
                    let filter = session.pool(Threads::All).install(|| kind.filled(size, &inserted))?;
                    push(session, kind, Point { study: "memory", size, load }, error, (&filter, &inserted))?;
                }
            }
            // The rate itself, whatever remainder it takes: what the packed form allows beyond the paper.
            let n = Size::of(quotient_bits).keys(0.9);
            let inserted = keys(INSERTED, n);
            let layout = StandardBuilder::with_capacity(n as u64).fpr(error).max_load(0.9).layout()?;
            let size = Size { quotient_bits: layout.quotient_bits(), remainder_bits: layout.remainder_bits() };
            let point = Point { study: "memory", size, load: 0.9 };
            let packed = Kind::Bulk(Container::Packed);
            let filter = session.pool(Threads::All).install(|| packed.filled(size, &inserted))?;
            push(session, packed, point, error, (&filter, &inserted))?;
            let mut bloom = Filter::Bloom(SplitBlockBloom::builder(n as u64).fpr(error).build()?);
            session.pool(Threads::All).install(|| bloom.change(Change::Insert, &inserted))?;
            push(session, Kind::Bloom, point, error, (&bloom, &inserted))?;
        }
        let rate = |row: &Record| format!("{:e}", row.number("error_rate").unwrap_or_default());
        let cell = |row: &Record| {
            let bytes = row.bits_per_item.unwrap_or_default() / 8.0;
            format!("{bytes:.2} (r = {})", row.number("remainder_bits").unwrap_or_default())
        };
        let wanted = |row: &Record| row.number("load") == Some(0.9);
        session.show("memory", "Bytes per item by error rate, at a load of 0.9 (Table I)", wanted, rate, cell);
        Ok(())
    })
    .except_quick()
}

/// Adds the row of a filter of `inserted`.
fn push(
    session: &mut Session,
    kind: Kind,
    point: Point,
    error: f64,
    (filter, inserted): (&Filter, &[u32]),
) -> anyhow::Result<()> {
    let absent = keys(ABSENT, 1 << 20);
    let count = |keys: &[u32]| session.pool(Threads::All).install(|| filter.count(keys));
    let (found, yes) = (count(inserted)?, count(&absent)?);
    let fits = filter.fpr(point.size).is_none_or(|fpr| as_expected(yes, fpr * absent.len() as f64));
    let mut row = point.row("memory", inserted.len(), 0.0).by(kind.name(), kind.is_peer()).param("error_rate", error);
    (row.seconds, row.items_per_second) = (None, None);
    row.bits_per_item = Some(8.0 * filter.bytes() as f64 / inserted.len() as f64);
    row.fpr = Some(yes as f64 / absent.len() as f64);
    session.add(&Target::Cpu, Threads::All, row, found == inserted.len() && fits);
    Ok(())
}
