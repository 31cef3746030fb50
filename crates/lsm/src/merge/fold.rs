//! Merge of pieces of runs by one thread: always the two neighbours that are shortest together.

use std::hint::select_unpredictable;
use std::ops::Range;

use super::resize;
use crate::run::Run;
use crate::{OrderedKey, Value};

/// Reusable scratch memory of a merging task.
pub(crate) struct Folder<K, V> {
    /// Intermediate results and spare buffers.
    buffers: Vec<Buffer<K, V>>,
    /// Result of [`Folder::fold`].
    result: Buffer<K, V>,
    flags: Vec<u8>,
}

struct Buffer<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
    /// Bytes that are not zero for tombstones; empty if there is no tombstone.
    flags: Vec<u8>,
}

impl<K, V> Default for Buffer<K, V> {
    fn default() -> Self {
        Buffer { keys: Vec::new(), values: Vec::new(), flags: Vec::new() }
    }
}

impl<K, V> Default for Folder<K, V> {
    fn default() -> Self {
        Folder { buffers: Vec::new(), result: Buffer::default(), flags: Vec::new() }
    }
}

/// Largest number of elements that are inserted one by one.
const FEW: usize = 48;

/// Run or intermediate result that is still to be merged.
enum Piece<'a, K, V> {
    Run(Run<'a, K, V>),
    Merged(Buffer<K, V>),
}

impl<K: OrderedKey, V: Value> Piece<'_, K, V> {
    fn len(&self) -> usize {
        match self {
            Piece::Run(run) => run.len(),
            Piece::Merged(buffer) => buffer.keys.len(),
        }
    }

    fn keys(&self) -> &[K] {
        match self {
            Piece::Run(run) => run.keys,
            Piece::Merged(buffer) => &buffer.keys,
        }
    }

    fn values(&self) -> &[V] {
        match self {
            Piece::Run(run) => run.values,
            Piece::Merged(buffer) => &buffer.values,
        }
    }

    /// Returns one flag per element, in `scratch` unless the flags exist already.
    fn flags<'s>(&'s self, scratch: &'s mut Vec<u8>) -> &'s [u8] {
        match self {
            Piece::Run(run) => {
                flags_of(run, scratch);
                scratch
            }
            Piece::Merged(buffer) => &buffer.flags,
        }
    }
}

/// Expands the bits of a run to bytes.
fn flags_of<K: OrderedKey, V: Value>(run: &Run<'_, K, V>, flags: &mut Vec<u8>) {
    flags.clear();
    if run.has_tombstones() {
        flags.extend((0..run.len()).map(|i| u8::from(run.is_tombstone(i))));
    } else {
        flags.resize(run.len(), 0);
    }
}

impl<K: OrderedKey, V: Value> Folder<K, V> {
    /// Merges the pieces, the newest first, into `keys` and `values`, which have a place for each element. Calls
    /// `flagged` with the folder, which then has the flags of tombstones, unless no piece can have a tombstone.
    pub(crate) fn fold_into(
        &mut self,
        pieces: &[Run<'_, K, V>],
        keys: &mut [K],
        values: &mut [V],
        flagged: impl FnOnce(&Self),
    ) {
        if let ([piece], false) = (pieces, pieces.iter().any(Run::has_tombstones)) {
            keys.copy_from_slice(piece.keys);
            values.copy_from_slice(piece.values);
            return;
        }
        if pieces.iter().any(Run::has_tombstones) {
            self.fold(pieces);
            keys.copy_from_slice(&self.result.keys);
            values.copy_from_slice(&self.result.values);
            flagged(self);
            return;
        }
        let pieces = self.fold_to_two(pieces, false);
        if let [a, b] = &pieces[..] {
            let a = Side { keys: a.keys(), values: a.values(), flags: &[] };
            let b = Side { keys: b.keys(), values: b.values(), flags: &[] };
            merge_two::<K, V, false>(a, b, keys, values, &mut []);
        }
        self.take_back(pieces);
    }

    /// Returns one byte per element of the last result, not zero for tombstones; empty if no element can be one.
    pub(crate) fn flags(&self) -> &[u8] {
        &self.result.flags
    }

    /// Returns the live elements of the pieces.
    pub(crate) fn live(&mut self, pieces: &[Run<'_, K, V>]) -> (&[K], &[V]) {
        self.fold(pieces);
        let Buffer { keys, values, flags } = &mut self.result;
        let kept = keep_live(keys, values, flags);
        (&self.result.keys[..kept], &self.result.values[..kept])
    }

    /// Writes the live elements of the pieces to `keys` and `values`, which have a place for each element of the
    /// pieces, and returns their number. Places after these hold unspecified items.
    pub(crate) fn live_into(&mut self, pieces: &[Run<'_, K, V>], keys: &mut [K], values: &mut [V]) -> usize {
        if pieces.iter().any(Run::has_tombstones) {
            let (live_keys, live_values) = self.live(pieces);
            keys[..live_keys.len()].copy_from_slice(live_keys);
            values[..live_keys.len()].copy_from_slice(live_values);
            return live_keys.len();
        }
        self.fold_into(pieces, keys, values, |_| {});
        keep_live(keys, values, &[])
    }

    /// Merges all pieces into `result`.
    fn fold(&mut self, pieces: &[Run<'_, K, V>]) {
        let with_flags = pieces.iter().any(Run::has_tombstones);
        let len = pieces.iter().map(Run::len).sum();
        let mut result = std::mem::take(&mut self.result);
        resize(&mut result.keys, len);
        resize(&mut result.values, len);
        resize(&mut result.flags, if with_flags { len } else { 0 });
        match pieces {
            [] => {}
            [piece] => {
                result.keys.copy_from_slice(piece.keys);
                result.values.copy_from_slice(piece.values);
                if with_flags {
                    flags_of(piece, &mut result.flags);
                }
            }
            _ if len <= FEW => insert_in_order(pieces, &mut result),
            _ => {
                let two = self.fold_to_two(pieces, with_flags);
                if let [a, b] = &two[..] {
                    self.merge(a, b, &mut result, with_flags);
                }
                self.take_back(two);
            }
        }
        self.result = result;
    }

    /// Merges neighbours until at most two pieces are left.
    fn fold_to_two<'a>(&mut self, runs: &[Run<'a, K, V>], with_flags: bool) -> Vec<Piece<'a, K, V>> {
        let mut pieces: Vec<Piece<'a, K, V>> = runs.iter().map(|&run| Piece::Run(run)).collect();
        while pieces.len() > 2 {
            let lengths = pieces.windows(2).map(|two| two[0].len() + two[1].len());
            let (at, len) = lengths.enumerate().min_by_key(|&(_, len)| len).unwrap_or_default();
            let mut buffer = self.buffers.pop().unwrap_or_default();
            resize(&mut buffer.keys, len);
            resize(&mut buffer.values, len);
            resize(&mut buffer.flags, if with_flags { len } else { 0 });
            self.merge(&pieces[at], &pieces[at + 1], &mut buffer, with_flags);
            let merged = std::mem::replace(&mut pieces[at], Piece::Merged(buffer));
            let other = pieces.remove(at + 1);
            self.take_back([merged, other]);
        }
        pieces
    }

    fn merge(&mut self, a: &Piece<'_, K, V>, b: &Piece<'_, K, V>, out: &mut Buffer<K, V>, with_flags: bool) {
        if !with_flags {
            let a = Side { keys: a.keys(), values: a.values(), flags: &[] };
            let b = Side { keys: b.keys(), values: b.values(), flags: &[] };
            merge_two::<K, V, false>(a, b, &mut out.keys, &mut out.values, &mut []);
            return;
        }
        let mut of_b = Vec::new();
        let a = Side { keys: a.keys(), values: a.values(), flags: a.flags(&mut self.flags) };
        let b = Side { keys: b.keys(), values: b.values(), flags: b.flags(&mut of_b) };
        merge_two::<K, V, true>(a, b, &mut out.keys, &mut out.values, &mut out.flags);
    }

    /// Takes back the buffers of merged pieces.
    fn take_back<'a>(&mut self, pieces: impl IntoIterator<Item = Piece<'a, K, V>>)
    where
        K: 'a,
        V: 'a,
    {
        self.buffers.extend(pieces.into_iter().filter_map(|piece| match piece {
            Piece::Run(_) => None,
            Piece::Merged(buffer) => Some(buffer),
        }));
    }
}

/// Moves the live elements to the front and returns their number: the first one of equal keys, unless its flag is set.
/// `flags` is empty if none is set.
fn keep_live<K: OrderedKey, V: Value>(keys: &mut [K], values: &mut [V], flags: &[u8]) -> usize {
    let all_live = |keys: &[K]| keys.windows(2).position(|two| two[0] == two[1]).map_or(keys.len(), |copy| copy + 1);
    let first = if flags.is_empty() { all_live(keys) } else { 0 };
    let (mut kept, mut last) = (first, first.checked_sub(1).map(|last| keys[last]));
    for i in first..keys.len() {
        let (key, value) = (keys[i], values[i]);
        let keep = last != Some(key) && (flags.is_empty() || flags[i] == 0);
        last = Some(key);
        (keys[kept], values[kept]) = (key, value);
        kept += usize::from(keep);
    }
    kept
}

/// Inserts few elements one by one, in the order of the pieces.
fn insert_in_order<K: OrderedKey, V: Value>(pieces: &[Run<'_, K, V>], out: &mut Buffer<K, V>) {
    let mut len = 0;
    for piece in pieces {
        for (i, (&key, &value)) in piece.keys.iter().zip(piece.values).enumerate() {
            let flag = u8::from(piece.is_tombstone(i));
            let mut to = len;
            while to > 0 && out.keys[to - 1] > key {
                (out.keys[to], out.values[to]) = (out.keys[to - 1], out.values[to - 1]);
                if !out.flags.is_empty() {
                    out.flags[to] = out.flags[to - 1];
                }
                to -= 1;
            }
            (out.keys[to], out.values[to]) = (key, value);
            if !out.flags.is_empty() {
                out.flags[to] = flag;
            }
            len += 1;
        }
    }
}

/// One of two runs to merge: slices of one length; `flags` is empty if there are none.
struct Side<'a, K, V> {
    keys: &'a [K],
    values: &'a [V],
    flags: &'a [u8],
}

/// Merges two runs, `a` first where keys are equal; the outputs have the length of both together.
#[inline]
fn merge_two<K: OrderedKey, V: Value, const FLAGS: bool>(
    a: Side<'_, K, V>,
    b: Side<'_, K, V>,
    keys: &mut [K],
    values: &mut [V],
    flags: &mut [u8],
) {
    let (a_values, b_values) = (&a.values[..a.keys.len()], &b.values[..b.keys.len()]);
    assert!(keys.len() == a.keys.len() + b.keys.len() && values.len() == keys.len());
    assert!(!FLAGS || a.flags.len() == a.keys.len() && b.flags.len() == b.keys.len() && flags.len() == keys.len());
    // Elements that are still to be merged, from both ends: two independent chains of comparisons.
    let (mut i, mut j) = (0, 0);
    let (mut i_end, mut j_end) = (a.keys.len(), b.keys.len());
    loop {
        let steps = (i_end - i).min(j_end - j) / 2;
        if steps == 0 {
            break;
        }
        for _ in 0..steps {
            // SAFETY: each step takes at most two elements from each side, which has at least `2 * steps` left, so all
            // four places are inside their sides. Every side has a value and, if `FLAGS`, a flag per key, and the
            // outputs have a place per element, by the assertions.
            unsafe {
                // Compilers make branches, which are guessed wrong half of the time, of choices between items.
                let mut take = |from_a: bool, i: usize, j: usize, to: usize| {
                    let key = select_unpredictable(from_a, a.keys.as_ptr().add(i), b.keys.as_ptr().add(j));
                    *keys.get_unchecked_mut(to) = *key;
                    let value = select_unpredictable(from_a, a_values.as_ptr().add(i), b_values.as_ptr().add(j));
                    *values.get_unchecked_mut(to) = *value;
                    if FLAGS {
                        let flag = select_unpredictable(from_a, a.flags.as_ptr().add(i), b.flags.as_ptr().add(j));
                        *flags.get_unchecked_mut(to) = *flag;
                    }
                };
                let from_a = a.keys.get_unchecked(i) <= b.keys.get_unchecked(j);
                take(from_a, i, j, i + j);
                i += usize::from(from_a);
                j += usize::from(!from_a);
                let from_a = a.keys.get_unchecked(i_end - 1) > b.keys.get_unchecked(j_end - 1);
                take(from_a, i_end - 1, j_end - 1, i_end + j_end - 1);
                i_end -= usize::from(from_a);
                j_end -= usize::from(!from_a);
            }
        }
    }
    let mut copy = |from: &Side<'_, K, V>, places: Range<usize>, to: usize| {
        let to = to..to + places.len();
        keys[to.clone()].copy_from_slice(&from.keys[places.clone()]);
        values[to.clone()].copy_from_slice(&from.values[places.clone()]);
        if FLAGS {
            flags[to].copy_from_slice(&from.flags[places]);
        }
    };
    // One side has at most one element left, whose place a search finds.
    if i_end - i == 1 {
        let place = j + b.keys[j..j_end].partition_point(|&key| key < a.keys[i]);
        copy(&b, j..place, i + j);
        j = place;
    } else if j_end - j == 1 {
        let place = i + a.keys[i..i_end].partition_point(|&key| key <= b.keys[j]);
        copy(&a, i..place, i + j);
        copy(&b, j..j_end, place + j);
        (i, j) = (place, j_end);
    }
    copy(&a, i..i_end, i + j);
    copy(&b, j..j_end, i_end + j);
}
