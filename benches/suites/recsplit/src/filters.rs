//! Sets of known keys: static filters, beside the binary fuse filters of the crate `xorf`.
//!
//! Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", ACM JEA 2022. They answer yes or no; ours
//! give each member a number besides.

use bench_frame::input::keys::KeySpace;
use warpset_mphf::{Filter, HashKind, Method, PlacementKind, StaticFilter};
use xorf::{BinaryFuse8, BinaryFuse16, Filter as _};

use super::variants::{SHAPES, VARIANTS};
use super::{SEED, Settings, queries};
use bench_frame::clock::Effort;
use bench_frame::machine;
use bench_frame::suite::{Session, Step, Target, Threads};
use bench_record::Record;

/// Bits of the fingerprints.
const WIDTHS: [u32; 2] = [8, 16];

/// Makes one step.
pub fn steps() -> Vec<Step> {
    vec![Step::new("recsplit: static filters", filters)]
}

fn filters(session: &mut Session) -> anyhow::Result<()> {
    let n = if session.effort == Effort::Quick { 100_000 } else { 1_000_000 };
    let (keys, others) = (KeySpace::new(SEED).stream(0).u64_keys(n), KeySpace::new(SEED).stream(2).u64_keys(n));
    for width in WIDTHS {
        for (leaf, bucket) in SHAPES {
            measure(session, Subject::Ours(Settings::new(leaf, bucket, Method::Grouped)), width, &keys, &others)?;
        }
        measure(session, Subject::Placement, width, &keys, &others)?;
        measure(session, Subject::Xorf, width, &keys, &others)?;
    }
    Ok(())
}

/// Who builds.
#[derive(Clone, Copy)]
enum Subject {
    Ours(Settings),
    Placement,
    Xorf,
}

/// Lookups of a set or filter.
trait Set: Send + Sync {
    fn bits_per_key(&self, keys: usize) -> f64;
    fn each(&self, keys: &[u64], answers: &mut [bool]);
    /// Asks for the keys together; false if it cannot.
    fn batch(&self, _keys: &[u64], _answers: &mut [bool]) -> anyhow::Result<bool> {
        Ok(false)
    }
}

impl<M: HashKind> Set for StaticFilter<M> {
    fn bits_per_key(&self, _keys: usize) -> f64 {
        self.bits_per_key()
    }

    fn each(&self, keys: &[u64], answers: &mut [bool]) {
        keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.contains(key));
    }

    fn batch(&self, keys: &[u64], answers: &mut [bool]) -> anyhow::Result<bool> {
        self.contains_bulk_into(keys, answers)?;
        Ok(true)
    }
}

macro_rules! binary_fuse {
    ($($filter:ty),*) => {$(
        impl Set for $filter {
            fn bits_per_key(&self, keys: usize) -> f64 {
                size_of_val(&*self.fingerprints) as f64 * 8.0 / keys as f64
            }

            fn each(&self, keys: &[u64], answers: &mut [bool]) {
                keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.contains(key));
            }
        }
    )*};
}
binary_fuse!(BinaryFuse8, BinaryFuse16);

impl Subject {
    /// Builds with the threads of the current pool.
    fn build(self, width: u32, keys: &[u64]) -> anyhow::Result<Box<dyn Set>> {
        Ok(match (self, width) {
            (Subject::Ours(settings), _) => Box::new(settings.filter_builder(width).build_from(keys)?),
            (Subject::Placement, _) => {
                let builder = StaticFilter::builder_of_kind(PlacementKind).width(width);
                Box::new(builder.build_from(keys)?)
            }
            (Subject::Xorf, 8) => Box::new(BinaryFuse8::try_from(keys).map_err(anyhow::Error::msg)?),
            (Subject::Xorf, _) => Box::new(BinaryFuse16::try_from(keys).map_err(anyhow::Error::msg)?),
        })
    }

    fn row(self, width: u32, operation: &str, items: usize, seconds: f64) -> Record {
        let row = Record::new("recsplit", operation, items).time(seconds).param("width", width);
        match self {
            Subject::Ours(settings) => row
                .by(format!("{}, {width}-bit fingerprints", settings.name()), false)
                .param("leaf", settings.leaf)
                .param("bucket", settings.bucket),
            Subject::Placement => row.by(format!("placement, {width}-bit fingerprints"), false),
            Subject::Xorf => row.by(format!("xorf {} BinaryFuse{width}", machine::version("xorf")), true),
        }
    }
}

/// Builds a filter of `keys` and asks it for `others`, which are no members.
fn measure(session: &mut Session, subject: Subject, width: u32, keys: &[u64], others: &[u64]) -> anyhow::Result<()> {
    let (build, filter) = session.made(Threads::One, || subject.build(width, keys))?;
    let mut members = vec![false; keys.len()];
    filter.each(keys, &mut members);
    let members = members.iter().all(|&member| member);
    let asked = &others[..others.len().min(queries(session.effort))];
    let mut answers = vec![false; asked.len()];
    let one_by_one = session.time(Threads::One, &mut answers, |answers| {
        filter.each(asked, answers);
        Ok(())
    })?;
    let passed = answers.iter().filter(|&&answer| answer).count() as f64;
    let expected = asked.len() as f64 / f64::from(width).exp2();
    // Six standard deviations.
    let mut right = members && (passed - expected).abs() < 6.0 * expected.sqrt() + 6.0;
    let mut times = vec![("filter build", keys.len(), build), ("filter query", asked.len(), one_by_one)];
    let mut batch = vec![false; asked.len()];
    if filter.batch(asked, &mut batch)? {
        right = right && batch == answers;
        let many = session.time(Threads::One, &mut batch, |answers| filter.batch(asked, answers).map(|_| ()))?;
        times.push(("filter query batch", asked.len(), many));
    }
    for (operation, items, seconds) in times {
        let row = subject.row(width, operation, items, seconds).param("input", "generated").param("key", "u64");
        let mut row = row.param("study", VARIANTS).param("keys", keys.len());
        row.fpr = Some(passed / asked.len() as f64);
        row.bits_per_item = Some(filter.bits_per_key(keys.len()));
        session.add(&Target::Cpu, Threads::One, row, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_fuse_filters_stand_beside_ours() {
        let step = Step::new("filters", |session| {
            let stream = |i| KeySpace::new(SEED).stream(i).u64_keys(20_000);
            let ours = Subject::Ours(Settings::new(8, 100, Method::Grouped));
            [8, 16].into_iter().try_for_each(|width| {
                [ours, Subject::Placement, Subject::Xorf]
                    .into_iter()
                    .try_for_each(|by| measure(session, by, width, &stream(0), &stream(2)))
            })
        });
        let rows = Session::rows_of(vec![step]);
        for width in WIDTHS {
            for operation in ["filter build", "filter query"] {
                let of = |row: &&Record| row.operation == operation && row.number("width") == Some(width.into());
                let found: Vec<&Record> = rows.iter().filter(of).collect();
                assert_eq!(found.len(), 3, "{operation}");
                assert!(found.iter().all(|row| row.checked && row.bits_per_item > Some(f64::from(width))));
                let (ours, xorf) = (&found[..2], found[2]);
                for ours in ours {
                    let is_as_small = xorf.bits_per_item < ours.bits_per_item;
                    assert_eq!(ours.peer_ratio.is_some(), is_as_small, "{operation}: ours beside {:?}", xorf.name());
                }
            }
        }
    }
}
