//! RecSplit: a bucket's code is a splitting tree; each node stores the first trial that solves it.
//!
//! Source: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020; D.
//! Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022; sections are those of
//! the thesis.
//!
//! [`find`] searches the numbers of the nodes, [`encode`] makes bits of them, and [`query`] walks down the trees.

mod builder;
mod cost;
pub(crate) mod encode;
pub(crate) mod find;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
pub(crate) mod query;
mod shape_tables;

use crate::elias_fano::{Least, Lists};
use crate::format::Header;
use crate::function::{Lookup, PerfectHash};
use crate::kind::{Bucket, Buckets, Kind, Part, SearchFailure, sealed};
#[cfg(feature = "mmap")]
use crate::stored::Mapped;
use crate::{Error, Estimate, HashKind, build};
use encode::CodeTable;
use find::Trees;
use find::cpu::CpuFinder;
use warpset_base::file::FileError;
use warpset_base::key::Hash128;
use warpset_core::recsplit::{Method, Remix, TreeShape};

pub use find::Simd;

/// Kind of functions with a splitting tree per bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecSplitKind;

/// A minimal perfect hash function: maps the `n` keys that it was built from to `0..n`, each to its own number.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for a
/// structure that does.
///
/// ```
/// use warpset_mphf::RecSplit;
///
/// let keys = ["Alpha", "Beta", "Gamma", "Delta"];
/// let function = RecSplit::builder().build_from(&keys)?;
/// let mut seen = [false; 4];
/// for key in keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert_eq!(seen, [true; 4]);
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
///
/// Space: 1.50 to 3 bits per key, see [`crate::Builder`]. Lookups: two cache misses for large functions, then a walk
/// down the splitting tree of one bucket.
pub type RecSplit = PerfectHash<RecSplitKind>;

/// A function that borrows its words: lent by [`RecSplit::view`], or opened in bytes without a copy.
///
/// ```
/// use warpset_mphf::{RecSplit, RecSplitView};
///
/// let function = RecSplit::builder().build_from(&["one", "two", "three"])?;
/// let view = RecSplitView::from_words(function.words())?;
/// assert_eq!(view.get("two"), function.get("two"));
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
pub type RecSplitView<'a> = PerfectHash<RecSplitKind, &'a [u64]>;

/// A function in a memory-mapped file, made by [`RecSplit::map`].
#[cfg(feature = "mmap")]
pub type MappedRecSplit = PerfectHash<RecSplitKind, Mapped>;

/// Shape of the trees, stored in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeParameters {
    pub(crate) shape: TreeShape,
    pub(crate) remix: Remix,
}

/// Options that only RecSplit has.
#[derive(Clone, Copy, Debug)]
pub struct KindOptions {
    leaf_size: u32,
    fanouts: Option<(u32, u32)>,
    method: Method,
    remix: Remix,
    simd: Simd,
    load_factor: f64,
    keys_per_value: Option<u32>,
}

/// Shared, immutable part of the search for all trees.
pub struct Search {
    pub(crate) trees: Trees,
    codes: CodeTable,
    simd: Simd,
    /// Least expected hashes of a tree that threads share, if there are few partitions.
    pub(crate) share_from: f64,
}

/// Memory that a thread reuses from search to search.
#[derive(Default)]
pub struct Scratch {
    numbers: Vec<u64>,
    find: find::walk::Scratch,
    encoder: encode::Encoder,
}

/// Least expected hashes of a tree that threads share: they take a tenth of a millisecond or more, and starting another
/// thread takes a hundredth of that.
const SHARED: f64 = 1e6;

impl HashKind for RecSplitKind {}

impl sealed::HashKind for RecSplitKind {
    const KIND: Kind = Kind::RecSplit;
    const NAME: &'static str = "RecSplit function";
    const BUCKET_SIZE: u32 = 1000;
    type KindOptions = KindOptions;
    type CodeParameters = CodeParameters;
    type Tables = query::Tables;
    type Search = Search;
    type Scratch = Scratch;

    fn code(options: &KindOptions, _: u32) -> Result<CodeParameters, Error> {
        Ok(CodeParameters { shape: options.shape()?, remix: options.remix })
    }

    fn estimate(code: &CodeParameters, bucket_size: u32) -> Estimate {
        Estimate::of(&code.shape, bucket_size)
    }

    fn choose_for_space(
        options: &mut KindOptions,
        bits_per_key: f64,
        time: impl Fn(&Estimate) -> f64,
    ) -> Result<u32, f64> {
        options.choose_for_space(bits_per_key, time)
    }

    fn to_fields(CodeParameters { shape, remix }: &CodeParameters) -> ([u8; 5], u64) {
        let (first, second) = (shape.first_fanout() as u8, shape.second_fanout() as u8);
        ([shape.leaf() as u8, first, second, shape.method() as u8, *remix as u8], shape.positions().into())
    }

    fn from_fields(
        [leaf, first, second, method, remix]: [u8; 5],
        positions: u64,
        bytes: u64,
    ) -> Result<CodeParameters, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let method = match method {
            0 => Method::BruteForce,
            1 => Method::Rotation,
            2 => Method::Grouped,
            _ => return invalid("method", method.into()),
        };
        let remix = match remix {
            0 => Remix::Bits32,
            1 => Remix::Bits64,
            _ => return invalid("remix", remix.into()),
        };
        let shape = TreeShape::new(leaf.into(), first.into(), second.into(), method);
        match shape.and_then(|shape| shape.with_positions(u32::try_from(positions).ok()?)) {
            Some(shape) => Ok(CodeParameters { shape, remix }),
            None => invalid("shape", bytes),
        }
    }

    fn is_possible(header: &Header<Self>) -> bool {
        u64::from(header.largest_bucket) <= (header.code_bits + 1) * u64::from(header.code.shape.leaf())
    }

    fn is_minimal(code: &CodeParameters) -> bool {
        code.shape.is_minimal()
    }

    fn values(header: &Header<Self>) -> u64 {
        header.code.shape.base(header.keys, header.layout.buckets)
    }

    fn tables(header: &Header<Self>, lists: &Lists, _: &[u64]) -> query::Tables {
        query::Tables::new(header, lists)
    }

    #[inline(always)]
    fn get(lookup: Lookup<'_, Self>, hash: Hash128) -> u64 {
        lookup.get(hash)
    }

    fn get_batch(lookup: Lookup<'_, Self>, hashes: &[Hash128], values: &mut [u64]) {
        lookup.get_batch_of(hashes, values);
    }

    fn search(settings: &build::Settings<Self>, _: u64, largest: u32) -> Search {
        let CodeParameters { shape, remix } = settings.code;
        let trees = Trees::new(shape, remix, largest);
        Search { codes: CodeTable::new(&trees), trees, simd: settings.options.simd, share_from: SHARED }
    }

    fn is_slow(Search { trees, .. }: &Search, keys: u32) -> bool {
        trees.works[(keys as usize).min(trees.nodes().len() - 1)] >= SHARED / 4.0
    }

    fn wants_lowest_byte_first(code: &CodeParameters) -> bool {
        code.shape.method() == Method::Grouped
    }

    fn encode(
        Search { trees, codes, simd, share_from }: &Search,
        are_few: bool,
        Buckets { keys, bounds }: Buckets<'_>,
        found: &mut [Bucket],
        least: &mut Least,
        Scratch { numbers, find, encoder }: &mut Scratch,
    ) -> Result<Part, SearchFailure> {
        let count = trees.count(bounds)?;
        if numbers.len() < count {
            numbers.resize(count, 0);
        }
        let numbers = &mut numbers[..count];
        let finder = CpuFinder::new(*simd, trees.remix, if are_few { *share_from } else { f64::INFINITY });
        finder.find(trees, Buckets { keys, bounds }, numbers, find)?;
        Ok(encoder.encode((trees, codes), bounds, numbers, found, least))
    }
}

impl<W: AsRef<[u64]>> PerfectHash<RecSplitKind, W> {
    /// Returns the shape of the splitting trees.
    pub fn shape(&self) -> TreeShape {
        self.parameters().header.code.shape
    }
}
