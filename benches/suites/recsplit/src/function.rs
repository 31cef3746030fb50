//! Keys, and functions that number them.

use super::peer_key::PeerKey;

/// Key that every crate takes.
pub trait Key: warpset_mphf::Key + PeerKey + Copy {
    /// Name of the keys, for the rows.
    const KIND: &'static str;
    /// Returns this key once `zero` is known, so that a query waits for the number of the previous one.
    fn after(self, zero: u64) -> Self;
}

impl Key for u64 {
    const KIND: &'static str = "u64";

    #[inline]
    fn after(self, zero: u64) -> u64 {
        self ^ zero
    }
}

impl Key for &[u8] {
    const KIND: &'static str = "string";

    #[inline]
    fn after(self, zero: u64) -> Self {
        &self[zero as usize..]
    }
}

/// A finished function, ours or a peer's.
pub trait Function<K>: Send + Sync {
    /// Returns the size, if the function reports it.
    fn bits_per_key(&self) -> Option<f64>;
    /// Returns the space of the list of buckets, if the function has one.
    fn list_bits_per_key(&self) -> Option<f64> {
        None
    }
    /// Returns the bound of its numbers, and the most keys that share a number, for that many keys.
    fn numbers(&self, keys: usize) -> (usize, u8) {
        (keys, 1)
    }
    /// Asks for the keys one by one.
    fn each(&self, keys: &[K], numbers: &mut [u64]);
    /// Asks for each key once the number of the one before is known: by [`chain`].
    fn chain(&self, keys: &[K], numbers: &mut [u64]);
    /// Asks for the keys together; false if it cannot.
    fn batch(&self, _keys: &[K], _numbers: &mut [u64]) -> bool {
        false
    }
}

/// Looks up the numbers of the keys, each after the answer to the one before.
#[inline]
pub fn chain<K: Key>(keys: &[K], numbers: &mut [u64], get: impl Fn(&K) -> u64) {
    let mut zero = 0;
    for (key, number) in keys.iter().zip(numbers) {
        *number = get(&key.after(zero));
        // Always zero, but the compiler does not know.
        zero = std::hint::black_box(*number >> 63);
    }
}
