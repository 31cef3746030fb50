//! Maplets against maps from fingerprints to values: one body for every backend.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpset_core::bits::lowest;
use warpset_core::hash::mix;
#[cfg(feature = "gpu")]
use warpset_gpu::testing::{devices, is_sanitized, sized};

#[cfg(feature = "gpu")]
use super::gpu;
use super::{Maplet, MapletBuilder, MapletLayout};
use crate::{BitOr, Builder, Duplicates, Error, Filter, Max, Min, RankSelect, Sum};

mod api;

/// Operator by number.
#[derive(Clone, Copy, Debug)]
enum By {
    Sum,
    Min,
    Max,
    BitOr,
}

impl By {
    fn combine(self, a: u64, b: u64) -> u64 {
        match self {
            By::Sum => a.wrapping_add(b),
            By::Min => a.min(b),
            By::Max => a.max(b),
            By::BitOr => a | b,
        }
    }
}

/// Runs a method with the operator.
macro_rules! by {
    ($by:expr, |$operator:ident| $body:expr) => {
        by!(@ $by, $operator, $body, Sum Min Max BitOr)
    };
    (@ $by:expr, $operator:ident, $body:expr, $($name:ident)*) => {
        match $by {
            $(By::$name => {
                type $operator = $name<u64>;
                $body
            })*
        }
    };
}

/// Operations that every backend has.
trait Backend: Sized {
    fn of_host(&self, host: Maplet) -> Self;
    fn host(&self) -> Maplet;
    fn rebuilt(&self, keys: &[u64], values: &[u64]) -> Result<Self, Error>;
    fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<u64, Error>;
    fn upsert(&mut self, by: By, keys: &[u64], values: &[u64]) -> Result<u64, Error>;
    fn remove(&mut self, keys: &[u64]) -> Result<u64, Error>;
    fn merge(&mut self, other: &Self) -> Result<(), Error>;
    fn merge_by(&mut self, by: By, other: &Self) -> Result<(), Error>;
    fn resize(&mut self, doubles: bool) -> Result<(), Error>;
    fn get(&self, keys: &[u64]) -> Vec<Option<u64>>;
}

/// Implements the operations by methods that maplets have on every backend, and the other ones.
macro_rules! backend {
    ($maplet:ty { $($own:item)* }) => {
        impl Backend for $maplet {
            fn insert(&mut self, keys: &[u64], values: &[u64]) -> Result<u64, Error> {
                self.insert_bulk(keys, values)
            }
            fn merge(&mut self, other: &Self) -> Result<(), Error> {
                self.merge(other)
            }
            fn merge_by(&mut self, by: By, other: &Self) -> Result<(), Error> {
                by!(by, |O| self.merge_by::<O>(other))
            }
            fn resize(&mut self, doubles: bool) -> Result<(), Error> {
                if doubles { self.double() } else { self.halve() }
            }
            $($own)*
        }
    };
}

backend!(Maplet {
    fn of_host(&self, host: Maplet) -> Maplet {
        host
    }
    fn host(&self) -> Maplet {
        self.clone()
    }
    fn rebuilt(&self, keys: &[u64], values: &[u64]) -> Result<Maplet, Error> {
        MapletBuilder::with_layout(*self.layout()).build_from(keys, values)
    }
    fn upsert(&mut self, by: By, keys: &[u64], values: &[u64]) -> Result<u64, Error> {
        by!(by, |O| self.upsert_bulk::<O, _, _>(keys, values))
    }
    fn remove(&mut self, keys: &[u64]) -> Result<u64, Error> {
        self.remove_bulk(keys)
    }
    fn get(&self, keys: &[u64]) -> Vec<Option<u64>> {
        self.get_bulk(keys)
    }
});

#[cfg(feature = "gpu")]
backend!(gpu::Maplet {
    fn of_host(&self, host: Maplet) -> gpu::Maplet {
        host.to_device(self.device()).unwrap()
    }
    fn host(&self) -> Maplet {
        self.to_host().unwrap()
    }
    fn rebuilt(&self, keys: &[u64], values: &[u64]) -> Result<gpu::Maplet, Error> {
        let builder = MapletBuilder::with_layout(*self.layout()).on(self.device());
        let built = builder.build_from(keys, values)?;
        let [keys, values] = [keys, values].map(|items| self.device().from_slice(items).unwrap());
        assert!(builder.build_from_device(keys.as_slice(), values.as_slice())?.host() == built.host());
        Ok(built)
    }
    fn upsert(&mut self, by: By, keys: &[u64], values: &[u64]) -> Result<u64, Error> {
        let [keys, values] = [keys, values].map(|items| self.device().from_slice(items).unwrap());
        by!(by, |O| self.upsert_device::<O, _>(keys.as_slice(), values.as_slice()))
    }
    fn remove(&mut self, keys: &[u64]) -> Result<u64, Error> {
        let keys = self.device().from_slice(keys).unwrap();
        self.remove_device(keys.as_slice())
    }
    fn get(&self, keys: &[u64]) -> Vec<Option<u64>> {
        let values = self.get_bulk(keys).unwrap();
        let on_device = self.device().from_slice(keys).unwrap();
        let mut found = self.device().from_slice(&vec![7u64; keys.len()]).unwrap();
        self.get_device(on_device.as_slice(), found.as_mut_slice()).unwrap();
        let found = found.to_vec().unwrap().into_iter();
        assert!(found.map(|value| (value != gpu::Maplet::ABSENT).then_some(value)).eq(values.iter().copied()));
        self.check_other_lookups(&on_device, &values);
        let (places, all) = self.values_device(on_device.as_slice()).unwrap();
        let (places, all, host) = (places.to_vec().unwrap(), all.to_vec().unwrap(), self.host());
        let mut at = 0;
        for (&key, &place) in keys.iter().zip(&places) {
            let values = host.values(key);
            let end = (at + values.len()).min(all.len());
            assert_eq!((place as usize, &all[at..end]), (at, &values[..]), "{:?}", host.layout());
            at += values.len();
        }
        assert_eq!(at, all.len());
        assert!(keys.iter().take(3).all(|&key| self.values(key).unwrap() == host.values(key)));
        values
    }
});

#[cfg(feature = "gpu")]
warpset_simt::kernel! {
    /// Looks up keys as kernels of other crates do.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key.
    /// - `words`: those of the maplet; `keys`: `n`; neither is written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone.
    pub unsafe fn maplet_asked(
        words: warpset_simt::Global<u64>, maplet: gpu::MapletQuery, keys: warpset_simt::Global<u64>, n: usize,
        out: warpset_simt::GlobalMut<u64>,
    ) {
        let i = warpset_simt::thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`; the words are those of the maplet.
            unsafe { out.write(i, maplet.get(words, keys.read(i)).unwrap_or(gpu::Maplet::ABSENT)) };
        }
    }
}

#[cfg(feature = "gpu")]
impl gpu::Maplet {
    /// Checks lookups under stencils and, on the emulator, by a kernel of this crate.
    fn check_other_lookups(&self, keys: &warpset_gpu::DeviceVec<u64>, values: &[Option<u64>]) {
        let (device, n) = (self.device(), keys.len());
        let selected = |i: usize| i % 3 != 1;
        let wanted = |selects: bool| -> Vec<u64> {
            let value = |(i, &value): (usize, &Option<u64>)| value.filter(|_| !selects || selected(i));
            values.iter().enumerate().map(|of| value(of).unwrap_or(gpu::Maplet::ABSENT)).collect()
        };
        let bytes: Vec<u8> = (0..n).map(|i| u8::from(selected(i))).collect();
        let bits: Vec<u64> =
            bytes.chunks(64).map(|some| some.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit))).collect();
        let (bytes, bits) = (device.from_slice(&bytes).unwrap(), device.from_slice(&bits).unwrap());
        for stencil in [warpset_gpu::batch::Stencil::from(&bytes), (&bits).into()] {
            let mut found = device.alloc_zeroed::<u64>(n).unwrap();
            self.get_if_device(keys.as_slice(), stencil, found.as_mut_slice()).unwrap();
            assert_eq!(found.to_vec().unwrap(), wanted(true));
        }
        if device.is_emulator() && n > 0 {
            let mut found = device.alloc_zeroed::<u64>(n).unwrap();
            let (words, maplet, asked, out) = (self.words().global(), self.query(), keys.global(), found.global_mut());
            // SAFETY: there is a word per key, and all are borrowed until the stream has been waited for.
            device
                .waiting(|stream| unsafe {
                    let config = warpset_gpu::LaunchConfig::new(n.div_ceil(64) as u32, 64);
                    maplet_asked { words, maplet, keys: asked, n, out }.launch(stream, config)
                })
                .unwrap();
            assert_eq!(found.to_vec().unwrap(), wanted(false));
        }
    }
}

/// Values of each fingerprint, ascending.
#[derive(Clone, Default)]
struct Model(BTreeMap<u64, Vec<u64>>);

impl Model {
    fn insert(&mut self, layout: &MapletLayout, fingerprint: u64, value: u64) {
        let values = self.0.entry(fingerprint).or_default();
        values.push(value);
        values.sort();
        if layout.keys().duplicates() == Duplicates::Dropped {
            values.dedup();
        }
    }

    fn upsert(&mut self, layout: &MapletLayout, by: By, batch: &[(u64, u64)]) {
        let mut brought = BTreeMap::<u64, Vec<u64>>::new();
        batch.iter().for_each(|&(fingerprint, value)| brought.entry(fingerprint).or_default().push(value));
        for (fingerprint, values) in brought {
            let stored = self.0.entry(fingerprint).or_default();
            let all = stored.iter().chain(&values).copied().reduce(|a, b| by.combine(a, b)).unwrap();
            *stored = vec![all & lowest(layout.value_bits())];
        }
    }

    fn len(&self) -> u64 {
        self.0.values().map(|values| values.len() as u64).sum()
    }
}

/// Step of a test; the keys select from a few.
#[derive(Clone, Debug)]
enum Step {
    Insert(Vec<(u64, u64)>),
    Upsert(By, Vec<(u64, u64)>),
    Remove(Vec<u64>),
    Merge(Vec<(u64, u64)>, u32),
    MergeBy(By, Vec<(u64, u64)>, u32),
    Resize(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pairs = || prop::collection::vec((0..60u64, any::<u64>()), 0..40);
    let by = || prop::sample::select(vec![By::Sum, By::Min, By::Max, By::BitOr]);
    let step = prop_oneof![
        3 => pairs().prop_map(Step::Insert),
        3 => (by(), pairs()).prop_map(|(by, pairs)| Step::Upsert(by, pairs)),
        2 => prop::collection::vec(0..80u64, 0..30).prop_map(Step::Remove),
        1 => (pairs(), 0..3u32).prop_map(|(pairs, longer)| Step::Merge(pairs, longer)),
        1 => (by(), pairs(), 0..3u32).prop_map(|(by, pairs, longer)| Step::MergeBy(by, pairs, longer)),
        1 => any::<bool>().prop_map(Step::Resize),
    ];
    prop::collection::vec(step, 1..8)
}

/// Bits of quotient, remainder and value, and the setting for duplicates.
fn shapes() -> impl Strategy<Value = (u32, u32, u32, Duplicates)> {
    let duplicates = prop::sample::select(vec![Duplicates::Dropped, Duplicates::Kept, Duplicates::Counted]);
    let bits =
        prop::sample::select(vec![(1u32, 1u32, 1u32), (3, 2, 3), (5, 3, 8), (6, 10, 16), (7, 1, 5), (8, 20, 36)]);
    (bits, duplicates).prop_map(|((q, r, v), duplicates)| (q, r, v, duplicates))
}

fn empty((q, r, v, duplicates): (u32, u32, u32, Duplicates)) -> Maplet {
    Builder::<RankSelect>::with_bits(q, r).max_load(0.99).duplicates(duplicates).values(v).build().unwrap()
}

/// Checks a maplet against the model, and every query of the host.
fn check(maplet: &impl Backend, model: &Model, asked: &[u64]) {
    let host = maplet.host();
    let layout = *host.layout();
    let all: Vec<(u64, u64)> = model.0.iter().flat_map(|(&f, values)| values.iter().map(move |&v| (f, v))).collect();
    assert!(host.pairs().eq(all.iter().copied()), "{:?} {all:?}", host.pairs().collect::<Vec<_>>());
    assert_eq!(host.len(), all.len() as u64);
    let of = |key: u64| model.0.get(&layout.keys().fingerprint(key).unwrap()).cloned().unwrap_or_default();
    let firsts: Vec<Option<u64>> = asked.iter().map(|&key| of(key).first().copied()).collect();
    assert_eq!(maplet.get(asked), firsts);
    assert_eq!(host.get_bulk(asked), firsts);
    let found: Vec<bool> = firsts.iter().map(Option::is_some).collect();
    assert_eq!(host.contains_bulk(asked).unwrap(), found);
    for (&key, &first) in asked.iter().zip(&firsts) {
        let counts = host.value_counts(key);
        let copies = counts.iter().flat_map(|&(value, copies)| std::iter::repeat_n(value, copies as usize));
        assert!(copies.eq(of(key)) && host.get(key) == first);
        assert!(host.values(key).into_iter().eq(counts.iter().map(|count| count.0)));
    }
    assert!(Maplet::from_bytes(&host.to_bytes()).unwrap() == host);
    let pairs: Vec<u64> = host.pairs().map(|(fingerprint, value)| layout.join(fingerprint, value)).collect();
    let rebuilt = crate::QuotientFilter::<RankSelect>::from_fingerprints(layout.pairs(), &pairs).unwrap();
    assert!(rebuilt.words() == host.words());
}

/// Applies the steps to a maplet and to the model.
fn behaves_like_map(mut maplet: impl Backend, steps: Vec<Step>) {
    let mut model = Model::default();
    let asked: Vec<u64> = (0..100).collect();
    for step in steps {
        let layout = *maplet.host().layout();
        let (keys, values) = match &step {
            Step::Insert(pairs) | Step::Upsert(_, pairs) | Step::Merge(pairs, _) | Step::MergeBy(_, pairs, _) => {
                pairs.iter().map(|&(key, value)| (key, value & lowest(layout.value_bits()))).unzip()
            }
            Step::Remove(keys) => (keys.clone(), Vec::new()),
            Step::Resize(_) => (Vec::new(), Vec::new()),
        };
        let of = |key: &u64| layout.keys().fingerprint(*key).unwrap();
        let (before, mut after): (Model, Model) = (model.clone(), model.clone());
        let batch: Vec<(u64, u64)> = keys.iter().map(of).zip(values.iter().copied()).collect();
        let mut other = maplet.of_host(maplet.host());
        let done = match step {
            Step::Insert(_) => {
                batch.iter().for_each(|&(fingerprint, value)| after.insert(&layout, fingerprint, value));
                maplet.insert(&keys, &values).map(|added| assert_eq!(added, after.len() - before.len()))
            }
            Step::Upsert(by, _) => {
                after.upsert(&layout, by, &batch);
                let new = after.0.len() - before.0.len();
                maplet.upsert(by, &keys, &values).map(|added| assert_eq!(added, new as u64))
            }
            Step::Remove(_) => {
                after.0.retain(|fingerprint, _| !keys.iter().any(|key| of(key) == *fingerprint));
                maplet.remove(&keys).map(|removed| assert_eq!(removed, before.len() - after.len()))
            }
            Step::Merge(_, longer) | Step::MergeBy(_, _, longer) => {
                let (keys_layout, bits) = (layout.keys(), layout.value_bits());
                let (q, r) = (7, keys_layout.fingerprint_bits() + longer);
                let Some(r) = r.checked_sub(q).filter(|&r| r > 0 && r + q + bits <= 64) else { continue };
                other = other.of_host(empty((q, r, bits, keys_layout.duplicates()))).rebuilt(&keys, &values).unwrap();
                let theirs: Vec<(u64, u64)> =
                    other.host().pairs().map(|(fingerprint, value)| (fingerprint >> longer, value)).collect();
                if let Step::MergeBy(by, ..) = step {
                    after.upsert(&layout, by, &theirs);
                    maplet.merge_by(by, &other)
                } else {
                    theirs.iter().for_each(|&(fingerprint, value)| after.insert(&layout, fingerprint, value));
                    maplet.merge(&other)
                }
            }
            Step::Resize(doubles) => maplet.resize(doubles),
        };
        model = match done {
            Ok(()) => after,
            Err(error) => {
                assert!(
                    matches!(
                        error,
                        Error::Full { .. }
                            | Error::OverflowRegionFull { .. }
                            | Error::CannotDouble { .. }
                            | Error::CannotHalve { .. }
                            | Error::InvalidValueBits { .. }
                    ) || matches!(error, Error::CountedValues if layout.keys().is_counted()),
                    "{error}"
                );
                before
            }
        };
        check(&maplet, &model, &asked);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn on_the_host(shape in shapes(), steps in steps(), threads in 1usize..3) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| behaves_like_map(empty(shape), steps));
    }
}

#[cfg(feature = "gpu")]
proptest! {
    #![proptest_config(ProptestConfig::with_cases(if is_sanitized() { 2 } else { 24 }))]

    #[test]
    fn on_devices(shape in shapes(), steps in steps(), schedule in any::<u64>()) {
        for device in devices(schedule) {
            behaves_like_map(empty(shape).to_device(&device).unwrap(), steps.clone());
        }
    }
}

/// Keys and values of a filter at its limit; runs cross blocks.
fn many(layout: &MapletLayout, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let keys: Vec<u64> = (0..layout.keys().limit() / 2).map(|i| mix(i, seed)).collect();
    let values = keys.iter().map(|&key| mix(key, 1) & lowest(layout.value_bits())).collect();
    (keys, values)
}

/// Fills a maplet in two batches, updates half of it, and empties it.
fn fills_and_empties(mut maplet: impl Backend) {
    let layout = *maplet.host().layout();
    let mut model = Model::default();
    let fingerprints =
        |keys: &[u64]| -> Vec<u64> { keys.iter().map(|&key| layout.keys().fingerprint(key).unwrap()).collect() };
    let (keys, values) = many(&layout, 3);
    let (more, more_values) = many(&layout, 4);
    for (keys, values) in [(&keys, &values), (&more, &more_values)] {
        maplet.insert(keys, values).unwrap();
        fingerprints(keys).into_iter().zip(values).for_each(|(f, &value)| model.insert(&layout, f, value));
    }
    check(&maplet, &model, &keys);
    assert!(maplet.of_host(maplet.host()).rebuilt(&keys, &values).is_ok());
    let full = maplet.host();
    let too_many: Vec<u64> = (0..layout.keys().limit()).map(|i| mix(i, 9)).collect();
    assert!(matches!(
        maplet.insert(&too_many, &too_many.iter().map(|_| 1).collect::<Vec<_>>()),
        Err(Error::Full { .. })
    ));
    assert!(maplet.host() == full);
    if !layout.keys().is_counted() {
        for by in [By::Sum, By::Max] {
            maplet.upsert(by, &more, &more_values).unwrap();
            let batch: Vec<(u64, u64)> = fingerprints(&more).into_iter().zip(more_values.iter().copied()).collect();
            model.upsert(&layout, by, &batch);
            check(&maplet, &model, &more[..100.min(more.len())]);
        }
        // A batch that is large beside the maplet, without and with fingerprints of several values.
        for by in [By::Sum, By::BitOr] {
            let (all, values) = ([&keys[..], &more].concat(), [&values[..], &more_values].concat());
            maplet.upsert(by, &all, &values).unwrap();
            model.upsert(&layout, by, &fingerprints(&all).into_iter().zip(values).collect::<Vec<_>>());
            check(&maplet, &model, &keys[..100.min(keys.len())]);
        }
    }
    let (some, rest) = more.split_at(more.len() / 50);
    for keys in [some, rest, &keys] {
        maplet.remove(keys).unwrap();
        fingerprints(keys).iter().for_each(|fingerprint| drop(model.0.remove(fingerprint)));
        check(&maplet, &model, keys);
    }
    assert!(maplet.host().is_empty() && maplet.host() == MapletBuilder::with_layout(layout).build().unwrap());
}

const SHAPES: [(u32, u32, u32, Duplicates); 5] = [
    (11, 9, 8, Duplicates::Dropped),
    (11, 4, 1, Duplicates::Kept),
    (10, 20, 31, Duplicates::Dropped),
    (9, 13, 16, Duplicates::Kept),
    (10, 9, 3, Duplicates::Counted),
];

#[test]
fn full_maplets_on_the_host() {
    for shape in SHAPES {
        fills_and_empties(empty(shape));
    }
    // Parts of a filter are laid out by several threads.
    fills_and_empties(empty((16, 12, 8, Duplicates::Dropped)));
}

#[cfg(feature = "gpu")]
#[test]
fn full_maplets_on_devices() {
    for device in devices(5) {
        let large = (sized(&device, 10, 10, 17), 12, 8, Duplicates::Kept);
        for shape in SHAPES.into_iter().chain([large]).step_by(sized(&device, 1, 4, 1)) {
            fills_and_empties(empty(shape).to_device(&device).unwrap());
        }
    }
}
