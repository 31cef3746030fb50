//! Source of a device's keys during an attempt.

use std::ops::Range;

use warpset_gpu::Stream;
use warpset_gpu::batch::Hashing;

use super::buckets::Hashes;
use super::plan::AttemptError;
use super::source::Source;
use crate::Error;
use crate::progress::Meter;

/// The most keys to sort at a time: positions have 32 bits, and there is one more than keys.
const MOST_POSITIONS: u64 = u32::MAX as u64 - 1;

/// Keys of one attempt.
pub(super) struct KeyStore<'a, K> {
    pub(super) keys: &'a K,
    pub(super) hashing: Hashing,
    /// All buckets.
    pub(super) buckets: u64,
    pub(super) meter: Meter<'a>,
    /// Buckets and low halves of all keys, on one device or several, if they are kept.
    pub(super) kept: Vec<Hashes>,
}

/// Returns places for the keys, of `keys` keys, that fall in `range`: ten standard deviations above the mean.
fn room(keys: u64, range: &Range<u64>, buckets: u64) -> u64 {
    let mean = (u128::from(keys) * u128::from(range.end - range.start)).div_ceil(u128::from(buckets)) as u64;
    keys.min(mean + 10 * mean.isqrt() + 64)
}

impl<K: Source> KeyStore<'_, K> {
    /// Hashes some keys, and keeps buckets and low halves within a range of buckets. Waits.
    pub(super) fn hashed(
        &self,
        stream: &Stream,
        which: Range<usize>,
        range: Range<u64>,
        room: u64,
    ) -> Result<Hashes, Error> {
        let mut hashes = Hashes::new(stream, range, self.buckets, room as usize)?;
        self.keys.hash(which, stream, &self.hashing, &mut hashes, &self.meter)?;
        Ok(hashes)
    }

    /// Returns the keys of a range of buckets on the device of `stream`, and their number.
    pub(super) fn keys_of(&self, stream: &Stream, range: Range<u64>) -> Result<(Hashes, usize), AttemptError> {
        let n = self.keys.len();
        if self.kept.is_empty() {
            let elsewhere = self.keys.home().filter(|home| *home != stream.device());
            let there = elsewhere.map_or_else(|| Ok(stream.clone()), |home| home.new_stream())?;
            let all = if range == (0..self.buckets) { n as u64 } else { room(n as u64, &range, self.buckets) };
            let hashes = with_room(&there, all, |room| self.hashed(&there, 0..n, range.clone(), room))?;
            return if elsewhere.is_some() { together(stream, &[hashes]) } else { Ok(hashes) };
        }
        // Each device begins with its own keys, so that not all of them read from one device at a time.
        let own = self.kept.iter().position(|kept| kept.device() == stream.device()).unwrap_or(0);
        let (before, from_own) = self.kept.split_at(own);
        let part = |kept: &Hashes| {
            let there = if kept.device() == stream.device() { stream.clone() } else { kept.device().new_stream()? };
            let room = room(kept.room(), &range, self.buckets);
            with_room(&there, room, |room| kept.part(&there, range.clone(), room as usize))
        };
        let mut parts = from_own.iter().chain(before).map(part).collect::<Result<Vec<_>, _>>()?;
        match parts.pop() {
            Some(only) if parts.is_empty() && only.0.device() == stream.device() => Ok(only),
            Some(last) => {
                parts.push(last);
                together(stream, &parts)
            }
            None => Err(AttemptError::Room),
        }
    }
}

/// Runs `take` and returns its keys and their number; if the places were too few, once more with a place per key.
/// Ready-made hashes may be uneven. Waits.
fn with_room(
    stream: &Stream,
    room: u64,
    mut take: impl FnMut(u64) -> Result<Hashes, Error>,
) -> Result<(Hashes, usize), AttemptError> {
    let mut room = room;
    loop {
        if room > MOST_POSITIONS {
            return Err(AttemptError::Room);
        }
        let hashes = take(room)?;
        let count = hashes.count(stream)?;
        if count <= room {
            return Ok((hashes, count as usize));
        }
        room = count;
    }
}

/// Joins parts of one range's keys on the device of `stream`.
fn together(stream: &Stream, parts: &[(Hashes, usize)]) -> Result<(Hashes, usize), AttemptError> {
    let keys = parts.iter().map(|part| part.1).sum();
    Ok((Hashes::together(stream, parts)?, keys))
}
