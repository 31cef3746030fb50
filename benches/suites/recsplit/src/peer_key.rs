//! Requirements of other crates on a key: most of them for the crates that only feature `peers` compiles.

use std::fmt::Debug;
use std::hash::Hash;

#[cfg(feature = "peers")]
use {
    dsi_progress_logger::no_logging,
    ptr_hash::hash::{KeyHasher, StrongerIntHash, Xxh3},
    sux::{func::phastr::PHastR, utils::ToSig},
};

/// Requirements of the crates on a key.
#[cfg(not(feature = "peers"))]
pub trait PeerKey: Hash + Debug + Clone + Send + Sync {}

#[cfg(not(feature = "peers"))]
impl<K: Hash + Debug + Clone + Send + Sync> PeerKey for K {}

/// Requirements of the crates on a key.
#[cfg(feature = "peers")]
pub trait PeerKey: Hash + Debug + Clone + Send + Sync {
    /// The hash for `ptr_hash`.
    type PtrHasher: KeyHasher<Self> + Send;
    /// The key as `sux` sees it.
    type Sux: ToSig<[u64; 1]> + Sync + ?Sized;
    /// Converts the key to the type for `sux`.
    fn sux(&self) -> &Self::Sux;
    /// Builds PHastR.
    fn phastr(keys: &[Self]) -> anyhow::Result<PHastR<Self::Sux>>;
}

#[cfg(feature = "peers")]
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

#[cfg(feature = "peers")]
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
