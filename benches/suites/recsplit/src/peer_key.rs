//! What other crates need of a key: most of it for those that only feature `peers` compiles.

use std::fmt::Debug;
use std::hash::Hash;

#[cfg(feature = "peers")]
use {
    dsi_progress_logger::no_logging,
    ptr_hash::hash::{KeyHasher, StrongerIntHash, Xxh3},
    sux::{func::phastr::PHastR, utils::ToSig},
};

/// What the crates need of a key.
#[cfg(not(feature = "peers"))]
pub trait PeerKey: Hash + Debug + Clone + Send + Sync {}

#[cfg(not(feature = "peers"))]
impl<K: Hash + Debug + Clone + Send + Sync> PeerKey for K {}

/// What the crates need of a key.
#[cfg(feature = "peers")]
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
