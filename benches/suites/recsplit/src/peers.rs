//! Other crates' minimal perfect hash functions, run in the same process on the same keys.
//!
//! Byte strings are hashed with XXH3 or wyhash where a crate leaves the choice: its fastest hash, gxhash, would have to
//! be compiled for this very processor.

#[cfg(feature = "peers")]
mod heavy;

use super::function::{Function, Key, chain};
use bench_frame::machine;

/// A crate, and one of its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `boomphf`, gamma 1.7.
    Boomphf,
    /// A crate that takes long to compile.
    #[cfg(feature = "peers")]
    Heavy(heavy::Peer),
}

impl Peer {
    /// Returns all peers of this executable.
    pub fn all() -> Vec<Peer> {
        #[cfg(feature = "peers")]
        return heavy::Peer::ALL.map(Peer::Heavy).into_iter().chain([Peer::Boomphf]).collect();
        #[cfg(not(feature = "peers"))]
        return vec![Peer::Boomphf];
    }

    /// Returns name and version.
    pub fn name(self) -> String {
        match self {
            Peer::Boomphf => format!("boomphf {}", machine::version("boomphf")),
            #[cfg(feature = "peers")]
            Peer::Heavy(peer) => peer.name(),
        }
    }

    /// Estimates the nanoseconds per key of a build, to leave out peers that take too long.
    pub fn nanoseconds_per_key(self) -> f64 {
        match self {
            #[cfg(feature = "peers")]
            Peer::Heavy(heavy::Peer::PHast) => 900.0,
            _ => 200.0,
        }
    }

    /// Whether it is measured in runs with time for only a few peers.
    pub fn is_among_the_fastest(self) -> bool {
        match self {
            Peer::Boomphf => false,
            #[cfg(feature = "peers")]
            Peer::Heavy(peer) => [heavy::Peer::PHastR, heavy::Peer::PtrHash].contains(&peer),
        }
    }

    /// Builds with the threads of the current pool.
    pub fn build<'a, K: Key + 'a>(self, keys: &[K]) -> anyhow::Result<Box<dyn Function<K> + 'a>> {
        Ok(match self {
            Peer::Boomphf => {
                let function = match rayon::current_num_threads() {
                    1 => boomphf::Mphf::new(GAMMA, keys),
                    _ => boomphf::Mphf::new_parallel(GAMMA, keys, None),
                };
                Box::new(Built { function, bits: None })
            }
            #[cfg(feature = "peers")]
            Peer::Heavy(peer) => peer.build(keys)?,
        })
    }
}

/// Memory over keys of `boomphf`, as its documentation recommends.
const GAMMA: f64 = 1.7;

/// A peer's function and its size.
struct Built<F> {
    function: F,
    bits: Option<f64>,
}

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

#[cfg(feature = "peers")]
use function;

function!([] boomphf::Mphf<K>, |this, key| this.hash(key),);
