//! The crates that take long to compile: feature `peers`.

use mem_dbg::{MemSize, SizeFlags};
use ph::phast::{self, Params, SeedOnly, bits_per_seed_to_100_bucket_size};
use ph::seeds::Bits8;
use ph::{BuildDefaultSeededHasher, GetSize, fmph};
use ptr_hash::bucket_fn::BucketFn;
use ptr_hash::pack::Packed;
use ptr_hash::{CompactPtrHash, DefaultPtrHash, PtrHash, PtrHashParams};
use sux::func::phastr::PHastR;

use super::super::function::{Function, Key, chain};
use super::super::peer_key::PeerKey;
use super::{Built, function};
use bench_frame::machine;

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
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 5] = [Peer::PHastR, Peer::PHast, Peer::Fmph, Peer::PtrHash, Peer::PtrHashCompact];

    /// Returns name and version.
    pub fn name(self) -> String {
        let name = |package: &str, function: &str| format!("{package} {}{function}", machine::version(package));
        match self {
            Peer::PHastR => name("sux", " PHastR"),
            Peer::PHast => name("ph", " PHast"),
            Peer::Fmph => name("ph", " fmph"),
            Peer::PtrHash => name("ptr_hash", ""),
            Peer::PtrHashCompact => name("ptr_hash", " compact"),
        }
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
        })
    }
}

/// Keys per batch of lookups, in crates with batches.
const BATCH: usize = 32;

function!([] phast::Function<Bits8>, |this, key| this.get(key) as u64,);
function!([] fmph::Function, |this, key| this.get(key).unwrap_or(u64::MAX),);
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
