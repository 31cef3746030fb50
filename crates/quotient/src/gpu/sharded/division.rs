//! Division of filters and maplets among devices, by the highest bits of fingerprints.

use warpset_base::filter::same_length;
use warpset_core::bits::lowest;
use warpset_core::hash::permute;
use warpset_gpu::{Device, Devices};
use warpset_primitives::sharded::{By, MAX_OWNERS, Route, Sharded};

use crate::cpu::fingerprint_source::{Each, stored};
use crate::gpu::{DeviceKeys, DeviceSlotKind, exact, hashing};
use crate::slot_kind::Copies;
use crate::{Error, Layout, cpu};

/// Division of the fingerprints of a layout by their highest bits.
#[derive(Clone, Copy)]
pub(crate) struct Division {
    /// The whole.
    pub(crate) layout: Layout,
    /// Bits of a hash that say which part it belongs to.
    pub(crate) prefix_bits: u32,
}

impl Division {
    /// Divides a layout among as many devices as the largest power of two allows.
    pub(crate) fn new(devices: &Devices, layout: Layout) -> Division {
        // Each part has at least one quotient bit, and may store a fingerprint.
        let most = (layout.quotient_bits() - 1).min(layout.limit().ilog2());
        Division { layout, prefix_bits: devices.all().len().min(MAX_OWNERS).ilog2().min(most) }
    }

    /// Makes each part on its device; `keys` is the layout of the keys.
    pub(crate) fn parts<F: Send>(
        &self,
        devices: &Devices,
        keys: &Layout,
        make: impl Fn(u64, &Device) -> Result<F, Error> + Sync,
    ) -> Result<Sharded<F>, Error> {
        let bits = self.prefix_bits;
        let bounds: Vec<u64> = (1..1 << bits).map(|part| part << (64 - bits)).collect();
        let (by, seed) =
            if keys.exact { (By::Permutation, permute::spread_of(keys.seed())) } else { (By::Hash, keys.seed()) };
        let route = Route { by, seed, bits: keys.fingerprint_bits(), dropped: bits };
        Sharded::new(&devices.at_most(1 << bits), hashing(keys), route, &bounds, |place, device| {
            make(place as u64, device)
        })
    }

    /// Whether several parts hold exact keys of this layout.
    pub(crate) fn is_exact(&self, keys: &Layout) -> bool {
        keys.exact && self.prefix_bits > 0
    }

    /// Refuses batches with a key that an exact layout has no fingerprint for, before any of them is applied. A single
    /// part checks a single batch itself.
    pub(crate) fn expect_fits<F: Send + Sync, B: DeviceKeys>(
        &self,
        keys: &Layout,
        shards: &Sharded<F>,
        batches: &[B],
    ) -> Result<(), Error> {
        if !keys.exact || self.prefix_bits == 0 && batches.len() == 1 {
            return Ok(());
        }
        shards.check_batches(batches, &[])?;
        let checked = shards.each(|place, _| {
            let device = &shards.devices().all()[place];
            let mut own = batches.iter().filter(|batch| batch.device() == device);
            own.try_for_each(|&batch| exact::expect_fits(keys, batch))
        });
        checked.map(drop)
    }

    /// Returns the part of a filter at a place.
    pub(crate) fn part_of<S: DeviceSlotKind>(
        &self,
        filter: &cpu::QuotientFilter<S>,
        place: u64,
    ) -> Result<cpu::QuotientFilter<S>, Error> {
        let (layout, rest_bits) = (self.layout.part(self.prefix_bits), self.rest_bits());
        let prefix = place.checked_shl(rest_bits).unwrap_or(0);
        cpu::QuotientFilter::from_given(layout, |first| {
            let all = Each(stored::<S, Copies>(filter.view(), 0).read_from(prefix | first));
            let own = all.map(|copies| (copies.fingerprint ^ prefix, copies.copies));
            own.take_while(|(fingerprint, _)| *fingerprint <= lowest(rest_bits))
        })
    }

    /// Lays out the fingerprints of all parts as one filter.
    pub(crate) fn joined<S: DeviceSlotKind>(
        &self,
        mut parts: Vec<cpu::QuotientFilter<S>>,
    ) -> Result<cpu::QuotientFilter<S>, Error> {
        if self.prefix_bits == 0 {
            return Ok(parts.remove(0));
        }
        let rest_bits = self.rest_bits();
        cpu::QuotientFilter::from_given(self.layout, |first| {
            let begun = (first >> rest_bits) as usize;
            parts.iter().enumerate().skip(begun).flat_map(move |(place, part)| {
                let first = if place == begun { first & lowest(rest_bits) } else { 0 };
                let all = Each(stored::<S, Copies>(part.view(), 0).read_from(first));
                all.map(move |copies| ((place as u64) << rest_bits | copies.fingerprint, copies.copies))
            })
        })
    }

    /// Returns the bits of a fingerprint of a part.
    fn rest_bits(&self) -> u32 {
        self.layout.fingerprint_bits() - self.prefix_bits
    }
}

/// Changes the parts of a structure by batches of keys, each on one of the devices, with slices of values or without:
/// a single part by the keys themselves, others by hashes. Evaluates to the sum of the changes.
macro_rules! change_each {
    ($shards:expr, $batches:expr $(, $all:expr)?; |$part:ident, $keys:ident $(, $values:ident)?| $change:expr) => {{
        let (shards, batches) = (&mut $shards, $batches);
        $(same_length(batches.len(), $all.len())?;)?
        let all: &[DeviceSlice<'_, u64>] = [$($all,)? &[]][0];
        shards.check_batches(batches, all)?;
        match shards.only() {
            Some($part) => batches.iter().enumerate().try_fold(0, |sum, (_i, &$keys)| {
                $(let $values = all[_i];)?
                Ok(sum + $change?)
            }),
            None => shards.change_each(batches, all, |$part, hashes, _values| {
                let $keys = hashes.cast::<Hashed>()?;
                $(let $values = _values;)?
                $change
            }),
        }
    }};
}
pub(crate) use change_each;

/// Refuses structures of other numbers of parts, or on other devices.
pub(crate) fn same_devices<F>(one: &Sharded<F>, other: &Sharded<F>, operation: &'static str) -> Result<(), Error> {
    let (one, other) = (one.devices().all(), other.devices().all());
    same_length(one.len(), other.len())?;
    Ok(one.iter().zip(other).try_for_each(|(own, other)| own.expect_same(other, operation))?)
}
