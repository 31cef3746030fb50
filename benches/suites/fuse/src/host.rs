//! Filters in host memory: built, and asked one by one and in batches for keys that are no members. `xorf` has no
//! batches; its row for them is its loop.

use bench_frame::input::keys::KeySpace;
use warpset::bloom::{Filter as _, Insert, SplitBlockBloom};
use warpset::fuse::{Arity, BinaryFuse, Builder, Form, Width};
use warpset::quotient::RankSelectQuotientFilter;
use xorf::{BinaryFuse8, BinaryFuse16, BinaryFuse32, Filter as _};

use super::{SEED, plausible, row};
use bench_frame::clock::Effort;
use bench_frame::machine;
use bench_frame::suite::{Session, Step, Target, Threads};

/// Number of lookups.
const ASKED: usize = 1 << 21;

/// Makes one step per size and width.
pub fn steps(effort: Effort) -> Vec<Step> {
    let sizes: &[usize] = match effort {
        Effort::Quick => &[1_000_000],
        Effort::Standard => &[100_000, 1_000_000, 10_000_000],
        Effort::Full => &[100_000, 1_000_000, 10_000_000, 100_000_000],
    };
    let mut steps = Vec::new();
    for &n in sizes {
        let mut add = |what: &str, measure: fn(&mut Session, &[u64], &[u64]) -> anyhow::Result<()>| {
            steps.push(Step::new(format!("fuse: {n} keys, {what}"), move |session| {
                let stream = |i| KeySpace::new(SEED).stream(i);
                let asked = if session.effort == Effort::Quick { ASKED / 4 } else { ASKED };
                measure(session, &stream(0).u64_keys(n), &stream(1).u64_keys(asked))
            }));
        };
        add("8 bits", measure_width::<u8>);
        add("other filters", other_filters);
        if effort != Effort::Quick {
            add("16 bits", measure_width::<u16>);
            add("32 bits", measure_width::<u32>);
        }
    }
    steps
}

/// Measures our filters of other kinds, at the rate of one byte.
fn other_filters(session: &mut Session, keys: &[u64], others: &[u64]) -> anyhow::Result<()> {
    measure(session, &SplitBlock, 8, keys, others)?;
    measure(session, &RankSelect, 8, keys, others)
}

fn measure_width<F: Width>(session: &mut Session, keys: &[u64], others: &[u64]) -> anyhow::Result<()> {
    for form in [Form::OneGraph, Form::Sharded] {
        for arity in [Arity::Three, Arity::Four] {
            measure(session, &BinaryFuse::<F>::builder().form(form).arity(arity), F::BITS, keys, others)?;
        }
    }
    match F::BITS {
        8 => measure(session, &Xorf::<BinaryFuse8>(Default::default()), 8, keys, others),
        16 => measure(session, &Xorf::<BinaryFuse16>(Default::default()), 16, keys, others),
        _ => measure(session, &Xorf::<BinaryFuse32>(Default::default()), 32, keys, others),
    }
}

/// Who builds.
trait Subject: Sync {
    type Filter: Asked;
    /// Returns the name in rows, and whether it is a peer.
    fn name(&self) -> (String, bool);
    /// Builds with the threads of the current pool.
    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter>;
    /// Whether more threads help.
    fn is_parallel(&self) -> bool {
        true
    }
}

/// Lookups of a filter.
trait Asked: Send + Sync {
    fn bytes(&self) -> usize;
    /// Returns the expected rate of false positives; `None` if it is not known exactly.
    fn rate(&self) -> Option<f64>;
    fn one_by_one(&self, keys: &[u64], answers: &mut [bool]);
    fn together(&self, keys: &[u64], answers: &mut [bool]) -> anyhow::Result<()>;
}

impl<F: Width> Subject for Builder<F> {
    type Filter = BinaryFuse<F>;

    fn name(&self) -> (String, bool) {
        let layout = self.layout(1).expect("one key");
        let arity = if layout.arity() == Arity::Three { "three" } else { "four" };
        let form = if layout.form() == Form::OneGraph { "one graph" } else { "sharded" };
        (format!("{form}, {arity}-wise, {} bits", F::BITS), false)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<BinaryFuse<F>> {
        Ok(self.build_from(keys)?)
    }
}

macro_rules! asks_ours {
    ($([$($generics:tt)*] $filter:ty, |$this:ident| $rate:expr;)*) => {$(
        impl<$($generics)*> Asked for $filter {
            fn bytes(&self) -> usize {
                self.memory_bytes() as usize
            }
            fn rate(&self) -> Option<f64> {
                let $this = self;
                $rate
            }
            fn one_by_one(&self, keys: &[u64], answers: &mut [bool]) {
                keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.contains(key));
            }
            fn together(&self, keys: &[u64], answers: &mut [bool]) -> anyhow::Result<()> {
                Ok(self.contains_bulk_into(keys, answers)?)
            }
        }
    )*};
}
asks_ours! {
    [F: Width] BinaryFuse<F>, |filter| Some(filter.fpr());
    [] SplitBlockBloom, |_filter| None;
    [] RankSelectQuotientFilter, |filter| Some(filter.fpr());
}

/// Our split-block Bloom filter of the rate of one byte.
struct SplitBlock;

impl Subject for SplitBlock {
    type Filter = SplitBlockBloom;

    fn name(&self) -> (String, bool) {
        ("split-block Bloom filter".into(), false)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<SplitBlockBloom> {
        let mut filter = SplitBlockBloom::builder(keys.len() as u64).fpr(1.0 / 256.0).build()?;
        filter.insert_bulk(keys)?;
        Ok(filter)
    }
}

/// Our rank-and-select quotient filter of the rate of one byte.
struct RankSelect;

impl Subject for RankSelect {
    type Filter = RankSelectQuotientFilter;

    fn name(&self) -> (String, bool) {
        ("rank-and-select quotient filter".into(), false)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<RankSelectQuotientFilter> {
        Ok(RankSelectQuotientFilter::builder(keys.len() as u64).fpr(1.0 / 256.0).build_from(keys)?)
    }
}

/// A filter of `xorf`.
struct Xorf<F>(std::marker::PhantomData<fn() -> F>);

macro_rules! xorf {
    ($($filter:ident: $width:ty;)*) => {$(
        impl Subject for Xorf<$filter> {
            type Filter = $filter;

            fn name(&self) -> (String, bool) {
                (format!("xorf {} {}", machine::version("xorf"), stringify!($filter)), true)
            }

            fn build(&self, keys: &[u64]) -> anyhow::Result<$filter> {
                $filter::try_from(keys).map_err(anyhow::Error::msg)
            }

            fn is_parallel(&self) -> bool {
                false
            }
        }

        impl Asked for $filter {
            fn bytes(&self) -> usize {
                size_of_val(&*self.fingerprints)
            }
            fn rate(&self) -> Option<f64> {
                Some((-f64::from(<$width>::BITS)).exp2())
            }
            fn one_by_one(&self, keys: &[u64], answers: &mut [bool]) {
                keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.contains(key));
            }
            fn together(&self, keys: &[u64], answers: &mut [bool]) -> anyhow::Result<()> {
                self.one_by_one(keys, answers);
                Ok(())
            }
        }
    )*};
}
xorf! {
    BinaryFuse8: u8;
    BinaryFuse16: u16;
    BinaryFuse32: u32;
}

/// Builds a filter of `keys` and asks it for `others`, which are no members.
fn measure<S: Subject>(
    session: &mut Session,
    subject: &S,
    width: u32,
    keys: &[u64],
    others: &[u64],
) -> anyhow::Result<()> {
    let (name, is_peer) = subject.name();
    for &threads in session.threads(subject.is_parallel()) {
        let (build, filter) = session.made(threads, || subject.build(keys))?;
        let (mut members, mut answers, mut batch) =
            (vec![false; keys.len()], vec![false; others.len()], vec![false; others.len()]);
        filter.one_by_one(keys, &mut members);
        let mut times = vec![("build", keys.len(), build)];
        if threads == Threads::One {
            let seconds = session.time(threads, &mut answers, |answers| {
                filter.one_by_one(others, answers);
                Ok(())
            })?;
            times.push(("contains, one by one", others.len(), seconds));
        } else {
            filter.one_by_one(others, &mut answers);
        }
        let seconds = session.time(threads, &mut batch, |batch| filter.together(others, batch))?;
        times.push(("contains, batch", others.len(), seconds));
        let passed = answers.iter().filter(|&&answer| answer).count();
        let right = members.iter().all(|&member| member)
            && batch == answers
            && filter.rate().is_none_or(|rate| plausible(passed, others.len(), rate));
        for (operation, n, seconds) in times {
            let mut row = row(operation, n, seconds, width, keys.len()).by(name.clone(), is_peer);
            row.fpr = Some(passed as f64 / others.len() as f64);
            row.bits_per_item = Some(8.0 * filter.bytes() as f64 / keys.len() as f64);
            session.add(&Target::Cpu, threads, row, right);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_record::Record;

    #[test]
    fn ours_stand_beside_those_of_xorf() {
        let step = Step::new("filters", |session| {
            let stream = |i| KeySpace::new(SEED).stream(i).u64_keys(20_000);
            measure_width::<u8>(session, &stream(0), &stream(1))?;
            measure_width::<u16>(session, &stream(0), &stream(1))?;
            other_filters(session, &stream(0), &stream(1))
        });
        let rows = Session::rows_of(vec![step]);
        for operation in ["build", "contains, one by one", "contains, batch"] {
            let of = |row: &&Record| row.operation == operation && row.number("threads") == Some(1.0);
            let found: Vec<&Record> = rows.iter().filter(of).collect();
            assert_eq!(found.len(), 12, "{operation}");
            assert!(found.iter().all(|row| row.checked));
            let ours = found.iter().find(|row| row.name() == "one graph, three-wise, 8 bits").unwrap();
            assert!(ours.peer_ratio.is_some(), "{operation}");
        }
    }
}
