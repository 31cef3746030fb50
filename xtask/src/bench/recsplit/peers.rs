//! Other crates' minimal perfect hash functions, run in the same process on the same keys.
//!
//! Byte strings are hashed with XXH3 or wyhash where a crate leaves the choice: its fastest hash, gxhash, would have to be
//! compiled for this very processor.

use std::fmt::Debug;
use std::hash::Hash;

use dsi_progress_logger::no_logging;
use mem_dbg::{MemSize, SizeFlags};
use ph::phast::{self, Params, SeedOnly, bits_per_seed_to_100_bucket_size};
use ph::seeds::Bits8;
use ph::{BuildDefaultSeededHasher, GetSize, fmph};
use ptr_hash::bucket_fn::BucketFn;
use ptr_hash::hash::{KeyHasher, StrongerIntHash, Xxh3};
use ptr_hash::pack::Packed;
use ptr_hash::{CompactPtrHash, DefaultPtrHash, PtrHash, PtrHashParams};
use sux::func::phastr::PHastR;
use sux::utils::ToSig;

use super::super::machine;
use super::measure::{Function, Key, chain};

/// A crate, and one of its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `sux`: PHastR, the default parameters.
    PHastR,
    /// `ph`: PHast, 8 bits per seed.
    PHast,
    /// `ph`: fingerprinting, one bit array per level.
    Fmph,
    /// `ptr_hash`, the default parameters.
    PtrHash,
    /// `ptr_hash`, the smallest parameters.
    PtrHashCompact,
    /// `boomphf`, gamma 1.7.
    Boomphf,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 6] =
        [Peer::PHastR, Peer::PHast, Peer::Fmph, Peer::PtrHash, Peer::PtrHashCompact, Peer::Boomphf];

    /// Name and version.
    pub fn name(self) -> String {
        let name = |package: &str, function: &str| format!("{package} {}{function}", machine::version(package));
        match self {
            Peer::PHastR => name("sux", " PHastR"),
            Peer::PHast => name("ph", " PHast"),
            Peer::Fmph => name("ph", " fmph"),
            Peer::PtrHash => name("ptr_hash", ""),
            Peer::PtrHashCompact => name("ptr_hash", " compact"),
            Peer::Boomphf => name("boomphf", ""),
        }
    }

    /// Nanoseconds for each key, roughly: to leave it out where there is no time.
    pub fn nanoseconds_per_key(self) -> f64 {
        if self == Peer::PHast { 900.0 } else { 200.0 }
    }

    /// Builds with the threads of the current pool.
    pub fn build<'a, K: Key + 'a>(self, keys: &[K]) -> anyhow::Result<Box<dyn Function<K> + 'a>> {
        let (n, threads) = (keys.len() as f64, rayon::current_num_threads());
        Ok(match self {
            Peer::PHastR => {
                let function = K::phastr(keys)?;
                let bits = Some(function.mem_size(SizeFlags::default()) as f64 * 8.0 / n);
                Box::new(Built { function, bits })
            }
            Peer::PHast => {
                let params = Params::new(Bits8, bits_per_seed_to_100_bucket_size(8));
                let hasher = BuildDefaultSeededHasher::default();
                let function = phast::Function::with_slice_p_threads_hash_sc(keys, &params, threads, hasher, SeedOnly);
                let bits = Some(function.size_bytes() as f64 * 8.0 / n);
                Box::new(Built { function, bits })
            }
            Peer::Fmph => {
                let function = fmph::Function::from_slice_with_conf(keys, fmph::BuildConf::mt(threads > 1));
                let bits = Some(function.size_bytes() as f64 * 8.0 / n);
                Box::new(Built { function, bits })
            }
            Peer::PtrHash => {
                let function = <DefaultPtrHash<K::PtrHasher, K>>::new(keys, PtrHashParams::default());
                let (pilots, remap) = function.bits_per_element();
                Box::new(Built { function, bits: Some(pilots + remap) })
            }
            Peer::PtrHashCompact => {
                let function = <CompactPtrHash<K::PtrHasher, K>>::new(keys, PtrHashParams::default_compact());
                let (pilots, remap) = function.bits_per_element();
                Box::new(Built { function, bits: Some(pilots + remap) })
            }
            Peer::Boomphf if threads == 1 => Box::new(Built { function: boomphf::Mphf::new(GAMMA, keys), bits: None }),
            Peer::Boomphf => Box::new(Built { function: boomphf::Mphf::new_parallel(GAMMA, keys, None), bits: None }),
        })
    }
}

/// Memory over keys of `boomphf`, as its documentation recommends.
const GAMMA: f64 = 1.7;

/// What the crates need of a key.
pub trait PeerKey: Hash + Debug + Clone + Send + Sync {
    /// The hash for `ptr_hash`.
    type PtrHasher: KeyHasher<Self> + Send;
    /// The key as `sux` sees it.
    type Sux: ToSig<[u64; 1]> + Sync + ?Sized;
    /// The key as `sux` sees it.
    fn sux(&self) -> &Self::Sux;
    /// Builds PHastR.
    fn phastr(keys: &[Self]) -> anyhow::Result<PHastR<Self::Sux>>;
}

impl PeerKey for u64 {
    type PtrHasher = StrongerIntHash;
    type Sux = u64;

    #[inline]
    fn sux(&self) -> &u64 {
        self
    }

    fn phastr(keys: &[u64]) -> anyhow::Result<PHastR<u64>> {
        PHastR::try_par_new(keys, no_logging![])
    }
}

impl PeerKey for &[u8] {
    type PtrHasher = Xxh3;
    type Sux = [u8];

    #[inline]
    fn sux(&self) -> &[u8] {
        self
    }

    fn phastr(keys: &[Self]) -> anyhow::Result<PHastR<[u8]>> {
        PHastR::try_par_new(keys, no_logging![])
    }
}

/// A peer's function and its size.
struct Built<F> {
    function: F,
    bits: Option<f64>,
}

/// Keys that are asked for together, in the crates that can.
const BATCH: usize = 32;

macro_rules! function {
    ([$($generics:tt)*] $function:ty, |$this:ident, $key:ident| $get:expr, $($batch:tt)*) => {
        impl<K: Key, $($generics)*> Function<K> for Built<$function> {
            fn bits_per_key(&self) -> Option<f64> {
                self.bits
            }

            fn each(&self, keys: &[K], numbers: &mut [u64]) {
                let $this = &self.function;
                keys.iter().zip(numbers).for_each(|($key, number)| *number = $get);
            }

            fn chain(&self, keys: &[K], numbers: &mut [u64]) {
                let $this = &self.function;
                chain(keys, numbers, |$key| $get);
            }

            $($batch)*
        }
    };
}

function!([] phast::Function<Bits8>, |this, key| this.get(key) as u64,);
function!([] fmph::Function, |this, key| this.get(key).unwrap_or(u64::MAX),);
function!([] boomphf::Mphf<K>, |this, key| this.hash(key),);
function!([] PHastR<K::Sux>, |this, key| this.get(key.sux()) as u64,
    fn batch(&self, keys: &[K], numbers: &mut [u64]) -> bool {
        let (batches, rest) = keys.as_chunks::<BATCH>();
        let (in_batches, last) = numbers.split_at_mut(batches.len() * BATCH);
        for (keys, numbers) in batches.iter().zip(in_batches.as_chunks_mut::<BATCH>().0) {
            *numbers = self.function.get_batch(keys.each_ref().map(PeerKey::sux)).map(|number| number as u64);
        }
        self.each(rest, last);
        true
    }
);
function!(
    [B: BucketFn + Send, P: Packed + Send, const SINGLE_PART: bool]
    PtrHash<K, B, P, K::PtrHasher, Vec<u8>, SINGLE_PART, true>,
    |this, key| this.index(key) as u64,
    fn batch(&self, keys: &[K], numbers: &mut [u64]) -> bool {
        // The iterator has no `next`, only `fold`.
        let found = self.function.index_stream::<BATCH, _>(keys).enumerate();
        found.for_each(|(i, found)| numbers[i] = found as u64);
        true
    }
);
