//! Changes of dictionaries on several devices, and moves of the bounds between their ranges.

use std::ops::Range;

use warpset_gpu::{DeviceSlice, Stream};
use warpset_primitives::merge::MAX_RUNS;
use warpset_primitives::reduce::ByKeyKernels;
use warpset_primitives::sharded::{divide_with, ranges};
use warpset_primitives::sort::{By, sort_pairs_async};

use super::{ShardedDictionary, starts};
use crate::element::units;
use crate::error::one_per_key;
use crate::gpu::device_run::{DeviceElements, Piece};
use crate::gpu::host_transfer::Batch;
use crate::gpu::query::range_chunks::element_bytes;
use crate::gpu::update::batch;
use crate::gpu::{CombinedValue, DeviceKey, DeviceValue, Dictionary, wide_values};
use crate::policy::MergePolicy;
use crate::{Error, Operator};

/// Keys of the first batch from which the bounds are chosen.
const SAMPLES: usize = 1 << 12;
/// Fewest elements per device for which bounds move.
pub(super) const LEAST: u64 = if cfg!(test) { 1 << 5 } else { 1 << 16 };

/// Sorted elements of a batch on the device where it lies.
type Run<K, V> = DeviceElements<<K as DeviceKey>::Stored, V>;
/// Dictionaries that share levels with the parts, and the bounds between these.
type Saved<K, V, P> = (Vec<K>, Vec<Dictionary<K, V, P>>);

/// Changes.
impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> ShardedDictionary<K, V, P> {
    /// Inserts one value per key and replaces existing values. The last one of equal keys counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        if let Some(only) = self.shards.only() {
            return only.insert_bulk(keys, values);
        }
        let runs = self.runs_of_shares(keys, |brought, stream, keys, first| {
            brought.insertions(stream, keys, &values[first..first + keys.len()])
        })?;
        self.change(&runs, insert)
    }

    /// Removes keys, whether or not they have values.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        if let Some(only) = self.shards.only() {
            return only.remove_bulk(keys);
        }
        let runs = self.runs_of_shares(keys, |brought, stream, keys, _| {
            brought.insertions::<K, ()>(stream, keys, units(keys.len()))
        })?;
        self.change(&runs, remove)
    }

    /// Removes the keys with a flag in `removed`, and inserts the others with their values. A key that is both removed
    /// and inserted is removed, wherever in the batch.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless all three are of one length; [`Error::Gpu`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        if let Some(only) = self.shards.only() {
            return only.update_bulk(keys, values, removed);
        }
        let (mut kept, mut new, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for ((&key, &value), &removed) in keys.iter().zip(values).zip(removed) {
            if removed {
                gone.push(key);
            } else {
                kept.push(key);
                new.push(value);
            }
        }
        self.whole(|this| {
            this.insert_bulk(&kept, &new)?;
            this.remove_bulk(&gone)
        })
    }

    /// Inserts batches of keys, each on one of the devices with its values; for values `()` pass empty slices. Of equal
    /// keys the last one of the last batch counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of a device that has no part.
    pub fn insert_each_device(
        &mut self,
        batches: &[DeviceSlice<'_, K::Stored>],
        values: &[DeviceSlice<'_, V::Stored>],
    ) -> Result<(), Error> {
        self.check_batches(batches, values)?;
        if self.shards.only().is_some() {
            return self.whole(|this| {
                let mut all = batches.iter().zip(values);
                all.try_for_each(|(&keys, &values)| this.shards.parts_mut()[0].insert_device(keys, values))
            });
        }
        // SAFETY: keys and values are borrowed until the work has finished.
        let runs =
            self.runs_of_batches(batches, |i, stream| unsafe { batch::insertions(stream, batches[i], values[i]) })?;
        self.change(&runs, insert)
    }

    /// Removes batches of keys, each on one of the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`]; memory of a device that has no part.
    pub fn remove_each_device(&mut self, batches: &[DeviceSlice<'_, K::Stored>]) -> Result<(), Error> {
        // SAFETY: keys are borrowed until the work has finished; values of size zero take no memory.
        let runs = self.runs_of_batches(batches, |i, stream| unsafe {
            batch::insertions::<_, ()>(stream, batches[i], batches[i].slice(..0).cast()?)
        })?;
        self.change(&runs, remove)
    }

    /// Drops tombstones and stale elements; answers do not change. Waits.
    ///
    /// # Errors
    /// [`Error::Gpu`]; then some devices may have dropped theirs.
    pub fn cleanup(&mut self) -> Result<(), Error> {
        self.shards.each_mut(|_, part| part.cleanup()).map(drop)
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.whole(|this| this.shards.each_mut(|_, part| part.clear()).map(drop))
    }

    /// Moves the bounds so that each device has its share: an equal one, unless a device has too little memory. Changes
    /// do so by themselves when a device holds more than 1.5 times its share.
    ///
    /// # Errors
    /// [`Error::Gpu`]; answers do not change.
    pub fn balance(&mut self) -> Result<(), Error> {
        self.cleanup()?;
        let (lens, total) = (self.resident_lens(), self.resident_len());
        if total < lens.len() as u64 {
            return Ok(());
        }
        let shares = self.shares(total)?;
        let runs = self.shards.each(|_, part| part.live_run())?;
        let pieces_of = |share: &Range<u64>| {
            let mut first = 0;
            let pieces = runs.iter().map(|run| {
                let (start, end) = (share.start.max(first), share.end.min(first + run.len as u64));
                let piece = (&**run, (start.max(first) - first) as usize..end.saturating_sub(first) as usize);
                first += run.len as u64;
                piece
            });
            pieces.filter(|(_, range)| range.start < range.end).collect::<Vec<Piece<'_, _, _>>>()
        };
        let mut bounds = Vec::new();
        for share in &shares[1..] {
            // No share is empty, as there are at least as many elements as devices.
            let (run, range) = &pieces_of(share)[0];
            bounds.push(run.keys().slice(range.start..range.start + 1).to_vec()?[0]);
        }
        let bounds = K::from_stored(bounds);
        self.whole(|this| {
            this.shards.each_mut(|place, part| {
                let pieces = pieces_of(&shares[place]);
                let made = part.waiting(|stream| DeviceElements::gathered(stream, &pieces))?;
                part.set_live(made)
            })?;
            this.shards.router = bounds;
            Ok(())
        })
    }

    /// Runs a change that is applied to all parts or to none.
    fn whole(&mut self, change: impl FnOnce(&mut Self) -> Result<(), Error>) -> Result<(), Error> {
        let parts = self.shards.parts().iter().map(|part| part.with_policy(part.policy)).collect();
        let before: Saved<K, V, P> = (self.shards.router.clone(), parts);
        change(self).inspect_err(|_| {
            self.shards.router = before.0;
            self.shards.parts_mut().iter_mut().zip(before.1).for_each(|(part, before)| *part = before);
        })
    }

    /// Sorts the shares of a batch in host memory on all devices. `sort` gets the first place of its keys.
    fn runs_of_shares<W: DeviceValue>(
        &self,
        keys: &[K],
        sort: impl Fn(&mut Batch, &Stream, &[K], usize) -> Result<Run<K, W>, Error> + Sync,
    ) -> Result<Vec<Run<K, W>>, Error> {
        let runs = self.devices().each(|place, device| {
            let (first, keys) = self.shards.share(keys, place);
            if keys.is_empty() {
                return Ok(None);
            }
            let mut brought = Batch::default();
            device.waiting(|stream| sort(&mut brought, stream, keys, first)).map(Some)
        });
        runs.into_iter().filter_map(Result::transpose).collect()
    }

    /// Sorts batches in device memory where they lie. `sort` gets the number of a batch.
    fn runs_of_batches<W: DeviceValue>(
        &self,
        batches: &[DeviceSlice<'_, K::Stored>],
        sort: impl Fn(usize, &Stream) -> Result<Run<K, W>, Error> + Sync,
    ) -> Result<Vec<Run<K, W>>, Error> {
        let place =
            |batch: &DeviceSlice<'_, K::Stored>| self.shards.place_of(batch.device(), "a change of a dictionary");
        let places = batches.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
        let runs = self.devices().each(|place, device| {
            let own = (0..batches.len()).filter(|&i| places[i] == place && !batches[i].is_empty());
            own.map(|i| Ok((i, device.waiting(|stream| sort(i, stream))?))).collect::<Result<Vec<_>, Error>>()
        });
        let mut runs: Vec<_> = runs.into_iter().collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
        runs.sort_by_key(|&(i, _)| i);
        Ok(runs.into_iter().map(|(_, run)| run).collect())
    }

    /// Checks that each batch has values on its device, which has a part.
    fn check_batches(
        &self,
        batches: &[DeviceSlice<'_, K::Stored>],
        values: &[DeviceSlice<'_, V::Stored>],
    ) -> Result<(), Error> {
        one_per_key(batches.len(), "batches of values", values.len())?;
        batches.iter().zip(values).try_for_each(|(&keys, &values)| {
            let place = self.shards.place_of(keys.device(), "a change of a dictionary")?;
            self.shards.parts()[place].check_batch(keys, values)
        })
    }

    /// Changes each part by the pieces of the runs that it owns, the oldest first; moves the bounds if that is due.
    fn change<W: DeviceValue>(
        &mut self,
        runs: &[Run<K, W>],
        change: impl Fn(&mut Dictionary<K, V, P>, &[Piece<'_, K::Stored, W>]) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        if runs.is_empty() {
            return Ok(());
        }
        self.whole(|this| {
            if this.resident_len() == 0 {
                this.shards.router = this.sampled(runs)?;
            }
            let bounds = K::stored(&this.shards.router).into_owned();
            let cut = |run: &Run<K, W>| {
                run.keys.device().waiting(|stream| {
                    let bounds = stream.from_slice(&bounds)?;
                    Ok(ranges(stream, &starts(stream, run.keys(), bounds.as_slice())?, run.len)?)
                })
            };
            let cuts = runs.iter().map(cut).collect::<Result<Vec<_>, Error>>()?;
            this.shards.each_mut(|place, part| {
                let pieces = runs.iter().zip(&cuts).map(|(run, cuts)| (run, cuts[place].clone()));
                let pieces: Vec<_> = pieces.filter(|(_, range)| !range.is_empty()).collect();
                pieces.chunks(MAX_RUNS).try_for_each(|pieces| change(part, pieces))
            })?;
            Ok(())
        })?;
        // The change is complete. If the move fails, the next change tries again.
        let _ = self.balance_if_due();
        Ok(())
    }

    fn balance_if_due(&mut self) -> Result<(), Error> {
        if self.is_uneven()? {
            self.cleanup()?;
            if self.is_uneven()? {
                self.balance()?;
            }
        }
        Ok(())
    }

    /// Whether a device holds more than 1.5 times its share.
    fn is_uneven(&self) -> Result<bool, Error> {
        let (lens, total) = (self.resident_lens(), self.resident_len());
        let count = lens.len() as u64;
        let is_above = |len: u64, share: u64| 2 * len > 3 * share;
        // Equal shares need no driver call.
        if total < LEAST * count || !lens.iter().any(|&len| is_above(len, total / count)) {
            return Ok(false);
        }
        let shares = self.shares(total)?;
        Ok(lens.iter().zip(shares).any(|(&len, share)| is_above(len, share.end - share.start)))
    }

    /// Divides this number of elements among the devices. A merge takes as much memory again as the elements.
    fn shares(&self, elements: u64) -> Result<Vec<Range<u64>>, Error> {
        Ok(divide_with(self.devices(), elements, 2 * element_bytes::<K, V>(), &self.resident_lens())?)
    }

    /// Chooses bounds from a sample of a batch.
    fn sampled<W: DeviceValue>(&self, runs: &[Run<K, W>]) -> Result<Vec<K>, Error> {
        let total: usize = runs.iter().map(|run| run.len).sum();
        let step = total.div_ceil(SAMPLES);
        let mut sample = Vec::new();
        for run in runs {
            let n = run.len.div_ceil(step);
            let some = run.keys.device().waiting(|stream| {
                let mut addresses = stream.alloc_uninit::<u64>(n)?;
                let mut out = stream.alloc_uninit::<K::Stored>(n)?;
                let first = wide_values::address_of(run.keys());
                // SAFETY: the addresses are those of every `step`th key of the run, which nothing writes; the rest is
                // new and has a place for each of them.
                unsafe {
                    let distance = (step * size_of::<K>()) as u64;
                    wide_values::write_progression(stream, first, distance, addresses.as_mut_slice())?;
                    wide_values::copy(stream, addresses.as_slice(), first, out.as_mut_slice())?;
                }
                let mut some = vec![K::MIN; n];
                K::download(stream, out.as_slice(), &mut some)?;
                Ok::<_, Error>(some)
            })?;
            sample.extend(some);
        }
        sample.sort_unstable();
        sample.dedup();
        let shares = self.shares(total as u64)?;
        let place = |first: u64| (first as u128 * sample.len() as u128 / total as u128) as usize;
        Ok(shares[1..].iter().map(|share| sample[place(share.start).min(sample.len() - 1)]).collect())
    }
}

/// Updates that combine with existing values.
impl<K: DeviceKey, V: CombinedValue, P: MergePolicy> ShardedDictionary<K, V, P> {
    /// Combines values with the stored ones, as [`Dictionary::upsert_bulk`] does.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn upsert_bulk<O: Operator<Value = V> + ByKeyKernels<K::Stored>>(
        &mut self,
        keys: &[K],
        values: &[V],
    ) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        if let Some(only) = self.shards.only() {
            return only.upsert_bulk::<O>(keys, values);
        }
        let runs = self.runs_of_shares(keys, |brought, stream, keys, first| {
            let (keys, values) = brought.bring::<K, V>(stream, keys, &values[first..first + keys.len()])?;
            // SAFETY: the transferred batch stays allocated until the stream has been waited for.
            unsafe { in_order::<K, V>(stream, keys, values) }
        })?;
        self.change(&runs, upsert::<O, K, V, P>)
    }

    /// Combines batches of keys, each on one of the devices with its values, in their order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of a device that has no part.
    pub fn upsert_each_device<O: Operator<Value = V> + ByKeyKernels<K::Stored>>(
        &mut self,
        batches: &[DeviceSlice<'_, K::Stored>],
        values: &[DeviceSlice<'_, V>],
    ) -> Result<(), Error> {
        self.check_batches(batches, values)?;
        // SAFETY: keys and values are borrowed until the work has finished.
        let runs =
            self.runs_of_batches(batches, |i, stream| unsafe { in_order::<K, V>(stream, batches[i], values[i]) })?;
        self.change(&runs, upsert::<O, K, V, P>)
    }
}

/// Inserts pieces of runs into a part.
fn insert<K: DeviceKey, V: DeviceValue, P: MergePolicy>(
    part: &mut Dictionary<K, V, P>,
    pieces: &[Piece<'_, K::Stored, V>],
) -> Result<(), Error> {
    part.update(len_of(pieces), |_, stream| {
        // The newest first.
        let copied = pieces.chunks(1).rev().map(|piece| DeviceElements::gathered(stream, piece));
        DeviceElements::merged(stream, copied.collect::<Result<Vec<_>, Error>>()?)
    })
}

/// Removes the keys of pieces from a part.
fn remove<K: DeviceKey, V: DeviceValue, P: MergePolicy>(
    part: &mut Dictionary<K, V, P>,
    pieces: &[Piece<'_, K::Stored, ()>],
) -> Result<(), Error> {
    part.update(len_of(pieces), |_, stream| {
        let all = DeviceElements::gathered(stream, pieces)?;
        // SAFETY: the keys are freed in stream order.
        unsafe { batch::removals(stream, all.keys()) }
    })
}

/// Combines the values of pieces, in their order, with those of a part.
fn upsert<O: Operator<Value = V> + ByKeyKernels<K::Stored>, K: DeviceKey, V: CombinedValue, P: MergePolicy>(
    part: &mut Dictionary<K, V, P>,
    pieces: &[Piece<'_, K::Stored, V>],
) -> Result<(), Error> {
    let all = part.waiting(|stream| DeviceElements::gathered(stream, pieces))?;
    part.upsert_device::<O>(all.keys(), all.values())
}

fn len_of<K, V: DeviceValue>(pieces: &[Piece<'_, K, V>]) -> usize {
    pieces.iter().map(|(_, range)| range.len()).sum()
}

/// Queues the sort by key of a batch whose equal keys keep their order.
///
/// # Safety
/// The contract of [`batch::insertions`].
unsafe fn in_order<K: DeviceKey, V: CombinedValue>(
    stream: &Stream,
    keys: DeviceSlice<'_, K::Stored>,
    values: DeviceSlice<'_, V>,
) -> Result<Run<K, V>, Error> {
    let mut sorted = DeviceElements::uninit(stream, keys.len(), false)?;
    let (to_keys, to_values, _) = sorted.parts_mut::<V>()?;
    // SAFETY: there is a place per key, in new memory; the rest is the contract of this function.
    unsafe { sort_pairs_async(stream, keys, values, to_keys, to_values, By::ascending())? };
    Ok(sorted)
}
