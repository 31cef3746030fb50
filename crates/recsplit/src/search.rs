//! Searching the trial number of one node.
//!
//! Every search returns the *smallest* number that solves the node, so all of them give the same function:
//! - [`sequential`]: word by word, straight from the definition; the oracle of the tests.
//! - [`vector`]: many trials at a time, generic over [`lanes::Lanes`]; instances for AVX-512 and AVX2, chosen at run
//!   time, and for portable vectors (crate `wide`).

pub(crate) mod fit;
pub(crate) mod lanes;
pub(crate) mod sequential;
pub(crate) mod vector;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_build;

use warpset_core::recsplit::hash::{self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_SECOND};
use warpset_core::recsplit::{Level, Node, Remix, Shape};

/// How trial numbers are searched. All choices give the same function; the default is the fastest that the CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Simd {
    /// The fastest of the others on this CPU.
    #[default]
    Auto,
    /// One trial at a time, without vectors.
    Sequential,
    /// Portable vectors of eight trials (crate `wide`).
    Portable,
    /// AVX2; falls back to `Portable` where there is none.
    Avx2,
    /// AVX-512 with population count; falls back to `Avx2` where there is none.
    Avx512,
}

/// A node has no solution within its budget of trials: two of its keys have the same hash, or, far less likely than any
/// hardware fault, the trial hashes are against us. Either way the keys are looked at or hashed with another seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSolution;

/// What a search needs to know of one node.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    /// Low halves of the keys, in the order of their lowest byte for a splitting with `node.groups > 1`.
    pub keys: &'a [u64],
    pub node: &'a Node,
    /// Positions of a leaf; as many as keys unless the function is not minimal.
    pub positions: u32,
    /// Start seed of the node's level.
    pub start: u32,
    pub remix: Remix,
    /// Trials after which the search gives up.
    pub budget: u64,
}

impl Task<'_> {
    /// Bounds of a splitting's rotation groups within the keys.
    pub(crate) fn group_bounds(&self) -> [usize; 8] {
        let groups = u32::from(self.node.groups);
        let mut bounds = [self.keys.len(); 8];
        bounds[0] = 0;
        if groups > 1 {
            for group in 1..groups {
                bounds[group as usize] = self.keys.partition_point(|&key| hash::group_of(key, groups) < group);
            }
        }
        bounds
    }
}

/// The trial hash and the rotation of each group that a stored number stands for.
#[derive(Clone, Copy)]
pub(crate) struct Candidate {
    pub trial: u64,
    index: u32,
}

impl Candidate {
    #[inline(always)]
    pub(crate) fn of(number: u64, node: &Node) -> Self {
        if node.groups == 1 {
            return Self { trial: number, index: 0 };
        }
        let trial = hash::trial_of(number, u32::from(node.radix), u32::from(node.groups));
        Self { trial, index: number.wrapping_sub(trial.wrapping_mul(u64::from(node.candidates))) as u32 }
    }

    /// Rotation of `group`: a digit of the index.
    #[inline(always)]
    pub(crate) fn rotation(&self, group: u32, radix: u32) -> u32 {
        hash::rotation_of(self.index, radix, group)
    }
}

/// The child that `number` sends a key to.
#[inline]
pub(crate) fn child(low: u64, node: &Node, start: u32, remix: Remix, number: u64) -> u32 {
    let candidate = Candidate::of(number, node);
    let hash = hash::trial_hash(remix, low, start, candidate.trial);
    let radix = u32::from(node.radix);
    let rotation = candidate.rotation(hash::group_of(low, u32::from(node.groups)), radix);
    child_of_hash(hash, node, rotation)
}

/// The child that a trial hash picks under a rotation.
#[inline]
pub(crate) fn child_of_hash(hash: u32, node: &Node, rotation: u32) -> u32 {
    if node.fanout == 2 {
        // Mirroring complements the hash.
        u32::from(hash ^ 0_u32.wrapping_sub(rotation) >= node.scale)
    } else {
        let child = hash::child_of(hash, node.scale);
        let radix = u32::from(node.radix);
        if rotation == 0 || child >= radix {
            return child;
        }
        let turned = child + rotation;
        if turned >= radix { turned - radix } else { turned }
    }
}

/// The start seed of a node: `depth` counts the higher levels from the root.
#[inline]
pub(crate) fn start_of(shape: &Shape, keys: u32, depth: u32) -> u32 {
    hash::start_seed(match shape.level(keys) {
        Level::Leaf => LEVEL_LEAF,
        Level::First => LEVEL_FIRST,
        Level::Second => LEVEL_SECOND,
        Level::Higher => hash::LEVEL_ROOT + depth,
    })
}

/// A way to search nodes.
pub(crate) trait Search: Copy + Send + Sync {
    /// The smallest number that makes a bijection of the leaf's keys.
    fn leaf(self, task: &Task) -> Result<u64, NoSolution>;
    /// The smallest number that splits the keys as the shape says.
    fn splitting(self, task: &Task) -> Result<u64, NoSolution>;
}

/// Portable vectors.
pub(crate) mod portable {
    use super::lanes::Portable;
    use super::{NoSolution, Search, Task, by_leaf_size, vector};
    use crate::tree::{self, Buckets, Failure, Part, Plan, Scratch};

    #[derive(Clone, Copy)]
    struct Wide;

    impl Search for Wide {
        #[inline(always)]
        fn leaf(self, task: &Task) -> Result<u64, NoSolution> {
            #[inline(never)]
            fn leaf<const M: usize>(task: &Task) -> Result<u64, NoSolution> {
                // SAFETY: portable vectors need no instruction beyond the target's; the leaf has `M` keys.
                unsafe { vector::leaf::<Portable, M>(task) }
            }
            by_leaf_size!(task, leaf)
        }

        fn splitting(self, task: &Task) -> Result<u64, NoSolution> {
            // SAFETY: portable vectors need no instruction beyond the target's; shapes keep units below 255.
            unsafe { vector::splitting::<Portable>(task) }
        }
    }

    pub(crate) fn build(plan: &Plan, buckets: Buckets, scratch: &mut Scratch) -> Result<Part, Failure> {
        tree::build(Wide, plan, buckets, scratch)
    }
}

/// Calls the function for the number of keys of a leaf.
macro_rules! by_leaf_size {
    ($task:expr, $leaf:ident) => {
        match $task.keys.len() {
            2 => $leaf::<2>($task),
            3 => $leaf::<3>($task),
            4 => $leaf::<4>($task),
            5 => $leaf::<5>($task),
            6 => $leaf::<6>($task),
            7 => $leaf::<7>($task),
            8 => $leaf::<8>($task),
            9 => $leaf::<9>($task),
            10 => $leaf::<10>($task),
            11 => $leaf::<11>($task),
            12 => $leaf::<12>($task),
            13 => $leaf::<13>($task),
            14 => $leaf::<14>($task),
            15 => $leaf::<15>($task),
            16 => $leaf::<16>($task),
            17 => $leaf::<17>($task),
            18 => $leaf::<18>($task),
            19 => $leaf::<19>($task),
            20 => $leaf::<20>($task),
            21 => $leaf::<21>($task),
            22 => $leaf::<22>($task),
            23 => $leaf::<23>($task),
            24 => $leaf::<24>($task),
            keys => unreachable!("a leaf of {keys} keys"),
        }
    };
}
pub(crate) use by_leaf_size;
