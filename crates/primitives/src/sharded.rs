//! Structures divided among devices: partition, exchange and gather of batches.
//!
//! Each part of a [`Sharded`] structure owns a range of hashes. A batch lies on one of the devices, in equal or
//! unequal shares on all of them, or on the host, which sends each device an equal share. The device with a share
//! hashes its keys, groups them by owner, and notes the place of each. Each owner copies its hashes, or the words of
//! its keys (8 bytes per key), works on them as on any batch, and the source copies the answers back (one bit per key,
//! a value, or both) and reads each at its key's place. In a change values travel with keys.
//!
//! Large batches go in rounds, on two sets of streams that take turns, three for lookups of keys of the host: while the
//! owners work on one round, the source groups the next, and its hashes travel. Rounds of lookups are at least two;
//! those of changes are as few as memory allows, because most structures pay for each. An insertion into a Bloom filter
//! wants its hashes grouped by regions, which a source does once for all owners. Copies go from device to device where
//! these can access each other's memory; otherwise the driver brings them through pinned memory of the host.
//!
//! Scratch on the source, for two rounds of each batch: 8 bytes per key for each device and 4 more, since every owner
//! has a place for each key; for lookups in dictionaries of keys of 4 or 16 bytes the sort of all keys instead. On an
//! owner 8 bytes per key that it receives. Values take their own size beside that, on the source once for each device.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use warpset_base::filter::LengthMismatch;
use warpset_base::key::Hashed;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{Device, DeviceSlice, Devices, GpuError};
pub use warpset_kernels::primitives::exchange::{By, MAX_OWNERS, Route};

use crate::{DeviceFilter, Error, Result};
pub use change::{NO_VALUES, Total};
pub use received::{Received, copied, words_of};
pub use reply::Replies;
pub use route::{Routed, Router, ranges};

mod change;
mod methods;
mod received;
mod reply;
mod route;

/// Keys of a share that a lookup exchanges at a time, at most. Changes exchange twice as many.
const ROUND: usize = 1 << 26;
/// Places for the words of a round, at most: each owner has one for each key.
const PLACES: usize = 2 * ROUND;
/// Bytes of a device's memory for each place, at least: two rounds of changes with values take 160 of them.
const BYTES_PER_PLACE: usize = 512;
/// Keys of the host in a round of changes, for each device.
const HOST_ROUND: usize = 1 << 24;

/// Structure with a part on each of several devices. Every part answers for the hashes of its range, which the router
/// defines; dictionaries have a router of their own, of ranges of keys.
pub struct Sharded<F, R = Router> {
    devices: Devices,
    /// Owners of hashes or keys.
    pub router: R,
    /// Keys of a share that a lookup exchanges at a time, a multiple of 64.
    round: usize,
    /// One per device.
    parts: Vec<F>,
}

/// Part of a structure: filter of hashes in device memory.
pub trait Part: for<'k> DeviceFilter<DeviceSlice<'k, Hashed>> + Send + Sync {}

impl<F: for<'k> DeviceFilter<DeviceSlice<'k, Hashed>> + Send + Sync> Part for F {}

/// Error of an operation on parts.
pub trait Failure: From<GpuError> + From<Error> + From<LengthMismatch> + Send {}

impl<E: From<GpuError> + From<Error> + From<LengthMismatch> + Send> Failure for E {}

/// Returns the number of devices that can have a part, of `devices`, for a structure of `units` parts at most.
pub fn owners(devices: &Devices, units: u64) -> Devices {
    devices.at_most(units.min(MAX_OWNERS as u64) as usize)
}

/// Divides `units` units of `bytes` bytes among the devices: equally, unless some have too little free memory, which
/// then get fewer. Each device gets at least one unit, if there is one per device.
///
/// # Errors
/// A device that does not tell its free memory.
pub fn divide(devices: &Devices, units: u64, bytes: u64) -> Result<Vec<Range<u64>>> {
    divide_with(devices, units, bytes, &vec![0; devices.all().len()])
}

/// Divides as [`divide`] does, where the devices have `held` units already, whose memory counts as free.
///
/// # Errors
/// A device that does not tell its free memory.
pub fn divide_with(devices: &Devices, units: u64, bytes: u64, held: &[u64]) -> Result<Vec<Range<u64>>> {
    let count = devices.all().len() as u64;
    let mut room = Vec::new();
    for (place, (device, held)) in devices.all().iter().zip(held).enumerate() {
        // A part of the memory stays free for batches.
        let free = device.memory_info()?.free as u64;
        room.push((held + (free - free / 8) / bytes.max(1), place));
    }
    room.sort_unstable();
    let mut ends: Vec<u64> =
        (1..=count).map(|end| (u128::from(units) * u128::from(end) / u128::from(count)) as u64).collect();
    if units.div_ceil(count) > room[0].0 {
        // In ascending order of memory: each gets what it has room for, and the others divide the rest.
        let mut rest = units;
        for (done, &(room, place)) in room.iter().enumerate() {
            let left = count - done as u64;
            ends[place] = if left == 1 { rest } else { (rest / left).min(room.max(1)) };
            rest -= ends[place];
        }
        (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
    }
    let mut start = 0;
    Ok(ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect())
}

impl<F> Sharded<F> {
    /// Makes the parts, each on its device: part `i` owns the hashes of `route` from `bounds[i - 1]` to before
    /// `bounds[i]`.
    ///
    /// # Errors
    /// The errors of `make`, and failed allocations.
    ///
    /// # Panics
    /// Unless `bounds` has one entry less than there are devices, of [`owners`].
    pub fn new<E: From<GpuError> + Send>(
        devices: &Devices,
        hashing: Hashing,
        route: Route,
        bounds: &[u64],
        make: impl Fn(usize, &Device) -> std::result::Result<F, E> + Sync,
    ) -> std::result::Result<Self, E>
    where
        F: Send,
    {
        assert!(bounds.len() + 1 == devices.all().len() && bounds.len() < MAX_OWNERS, "a bound between any two parts");
        let made = devices.each(|place, device| Ok((device.from_slice(bounds)?, make(place, device)?)));
        let (bounds_there, parts) = made.into_iter().collect::<std::result::Result<Vec<_>, E>>()?.into_iter().unzip();
        let router = Router { hashing, route, bounds: bounds.to_vec(), bounds_there };
        Ok(Self::with_parts(devices, router, parts))
    }
}

impl<F, R> Sharded<F, R> {
    /// Joins parts, one per device.
    pub fn with_parts(devices: &Devices, router: R, parts: Vec<F>) -> Self {
        let mut this = Self { devices: devices.clone(), router, round: 0, parts };
        this.set_chunk_keys(ROUND);
        this
    }

    /// Returns the devices, one per part.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the parts in the order of their hashes.
    pub fn parts(&self) -> &[F] {
        &self.parts
    }

    /// Returns the parts in the order of their hashes, to change them.
    pub fn parts_mut(&mut self) -> &mut [F] {
        &mut self.parts
    }

    /// Returns the part, if there is a single one.
    pub fn only(&mut self) -> Option<&mut F> {
        match &mut self.parts[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Sets the number of keys of each device that a lookup exchanges at a time, half of those of a change. Rounded up
    /// to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        let devices = self.devices.all().iter().filter_map(|device| device.memory_info().ok());
        let places = devices.fold(PLACES, |places, memory| places.min(memory.total / BYTES_PER_PLACE));
        self.round = keys.clamp(1, ROUND.min(places / self.parts.len().max(1)).max(64)).next_multiple_of(64);
    }

    /// Replaces each part by what `make` makes of it.
    pub fn map<G>(self, make: impl FnMut(F) -> G) -> Sharded<G, R> {
        let Self { devices, router, round, parts } = self;
        Sharded { devices, router, round, parts: parts.into_iter().map(make).collect() }
    }

    /// Runs `work` for each part and its place, on a thread of its own.
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn each<T: Send, E: Send>(
        &self,
        work: impl Fn(usize, &F) -> std::result::Result<T, E> + Sync,
    ) -> std::result::Result<Vec<T>, E>
    where
        F: Sync,
    {
        let parts = &self.parts;
        self.devices.each(|place, _| work(place, &parts[place])).into_iter().collect()
    }

    /// Runs `work` for each part, mutable, and its place; see [`each`](Self::each).
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn each_mut<T: Send, E: Send>(
        &mut self,
        work: impl Fn(usize, &mut F) -> std::result::Result<T, E> + Sync,
    ) -> std::result::Result<Vec<T>, E>
    where
        F: Send,
    {
        each_mut(&self.devices, &mut self.parts, work)
    }

    /// Copies words of all parts to `to`, one after the other. Waits for all work on the devices.
    ///
    /// # Errors
    /// A device that fails.
    ///
    /// # Panics
    /// If `to` has fewer words.
    pub fn download<T: Pod + Send>(
        &self,
        mut to: &mut [T],
        words: impl Fn(&F) -> DeviceSlice<'_, T> + Sync,
    ) -> Result<()>
    where
        F: Sync,
    {
        let mut shares = Vec::new();
        for part in &self.parts {
            let (share, rest) = to.split_at_mut(words(part).len());
            shares.push(Mutex::new(share));
            to = rest;
        }
        self.each(|place, part| {
            let words = words(part);
            words.device().synchronize()?;
            let mut share = shares[place].lock().unwrap_or_else(PoisonError::into_inner);
            Ok::<_, Error>(words.device().new_stream()?.download(words, &mut share)?)
        })?;
        Ok(())
    }

    /// Returns the place of a device in the list.
    ///
    /// # Errors
    /// A device that has no part.
    pub fn place_of(&self, device: &Device, operation: &'static str) -> Result<usize> {
        match self.devices.all().iter().position(|own| own == device) {
            Some(place) => Ok(place),
            None => {
                self.devices.first().expect_same(device, operation)?;
                unreachable!("the first device is in the list")
            }
        }
    }

    /// Returns the share of the host's keys for the device at `place`; all but the last are multiples of 64.
    pub fn share<'k, K>(&self, keys: &'k [K], place: usize) -> (usize, &'k [K]) {
        share(&self.devices, keys, place)
    }
}

/// Divides `n` keys into rounds of equal size, a multiple of 64: `least` or more, of `most` keys or fewer.
/// Returns the number of rounds and their size.
fn rounds_of(n: usize, most: usize, least: usize) -> (usize, usize) {
    let round = n.div_ceil(n.div_ceil(most).max(least)).next_multiple_of(64).min(most);
    (n.div_ceil(round.max(1)), round)
}

/// Runs `work` for each part, mutable, and its place, on a thread of its own.
fn each_mut<F: Send, T: Send, E: Send>(
    devices: &Devices,
    parts: &mut [F],
    work: impl Fn(usize, &mut F) -> std::result::Result<T, E> + Sync,
) -> std::result::Result<Vec<T>, E> {
    let parts: Vec<_> = parts.iter_mut().map(Mutex::new).collect();
    let results = devices.each(|place, _| {
        let mut part = parts[place].lock().unwrap_or_else(PoisonError::into_inner);
        work(place, &mut part)
    });
    results.into_iter().collect()
}

/// Returns the share of the host's keys for the device at `place`, after the number of its first one.
fn share<'k, K>(devices: &Devices, keys: &'k [K], place: usize) -> (usize, &'k [K]) {
    let share = keys.len().div_ceil(devices.all().len()).next_multiple_of(64);
    let at = |place: usize| keys.len().min(share * place);
    (at(place), &keys[at(place)..at(place + 1)])
}

#[cfg(test)]
mod tests {
    use super::rounds_of;

    #[test]
    fn rounds_are_of_equal_size_and_cover_all_keys() {
        for (n, most) in
            [0, 1, 63, 64, 65, 128, 1000, 4097].into_iter().flat_map(|n| [64, 128, 1024].map(|most| (n, most)))
        {
            for least in [1, 2] {
                let (rounds, round) = rounds_of(n, most, least);
                assert!(round % 64 == 0 && round <= most && rounds * round >= n, "{n}, {most}: {rounds} of {round}");
                assert!(rounds == 0 || (rounds - 1) * round < n, "{n}, {most}: {rounds} of {round}");
                assert!(rounds >= least.min(n.div_ceil(64)), "{n}, {most}: {rounds}");
                assert!(rounds <= n.div_ceil(most).max(least), "{n}, {most}: {rounds}");
            }
        }
    }
}
