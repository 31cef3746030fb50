//! Settings of structures.

use std::ops::ControlFlow;

use warpset::fuse::{Arity, Form};
use warpset::lsm::CleanupPolicy;
use warpset::quotient::Duplicates;

use crate::device::{Place, warpset_device};
use crate::error::{Failure, Result};
use crate::handle::check;
use crate::object::Object;

/// Repetitions of a key in a quotient filter.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_duplicates {
    /// A repeated key is not stored again.
    Dropped = 0,
    /// Each repetition takes a slot.
    Kept = 1,
    /// Repetitions are counted, in few bits. Only of a rank-select quotient filter.
    Counted = 2,
}

/// Perfect hash functions under a static filter.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, reason = "name in C")]
pub enum warpset_function_kind {
    /// Consensus: small and quickly built.
    Consensus = 0,
    Recsplit = 1,
    /// Placement: the fastest lookups.
    Placement = 2,
}

/// Function that is called now and then during the build of a perfect hash function, on any thread. A result other than
/// 0 stops the build, which then returns `WARPSET_STATUS_INVALID_VALUE`.
#[allow(non_camel_case_types, reason = "name in C")]
pub type warpset_progress = Option<unsafe extern "C" fn(user_data: *mut std::ffi::c_void, done: u64, keys: u64) -> i32>;

/// Settings of a structure: `warpset_options options = warpset_options_default();`, then set fields by name. Zero is
/// the default, and NULL in place of settings means all defaults. A structure ignores the settings of others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_options {
    /// `sizeof(warpset_options)`. Later versions of this library append fields, and accept smaller structures.
    pub struct_size: usize,
    /// Place of the structure; NULL is host memory.
    pub device: *const warpset_device,
    /// Seed of the hash function. Bloom filters but the split-block one, quotient filters, fuse filters and functions,
    /// perfect hash functions, static sets and maps, range filters.
    pub seed: u64,
    /// False-positive rate. Bloom, quotient and static filters; maplets; range filters, at ranges of `range_length`.
    /// Default: 0.01.
    pub fpr: f64,
    /// Bits per key, in place of `fpr`: split-block and blocked Bloom, static range and sequence filters (default:
    /// 16). Of perfect hash functions, in place of their settings below.
    pub bits_per_key: f64,
    /// Bits per fingerprint. Fuse filters: 8 (default), 16 or 32. Static filters, in place of `fpr`: 1 to 32.
    pub fingerprint_bits: u32,
    /// Bits of a block of a blocked Bloom filter: 64 to 1024, a power of two. Default: 256.
    pub block_bits: u32,
    /// Bits per key in a blocked Bloom filter. Default: the best.
    pub hashes: u32,
    /// Fuse filters and static functions: 3 (default) or 4 slots per key.
    pub arity: u32,
    /// Fuse filters and static functions: 1 for many small graphs, which are built in parallel.
    pub sharded: u32,
    /// Quotient filters: a `warpset_duplicates`.
    pub duplicates: u32,
    /// Quotient filters: stores keys of this many bits exactly, in place of `fpr`. Keys are integers below 2^key_bits.
    pub key_bits: u32,
    /// Bits per value. Maplets (default: 32), static functions (default: those of the largest value).
    pub value_bits: u32,
    /// Quotient and dynamic range filters, maplets: share of slots in use of a full structure. Default: 0.95 or less.
    pub max_load: f64,
    /// Static functions: bits by which keys outside the set are detected. Default: 0, which detects none.
    pub filtered: u32,
    /// RecSplit: keys per leaf, 2 to 24. Default: 12.
    pub leaf_size: u32,
    /// Perfect hash functions: average number of keys per bucket.
    pub bucket_size: u32,
    /// Static filters: a `warpset_function_kind`.
    pub function_kind: u32,
    /// Consensus: bits per key beyond the minimum of 1.4427. Default: 0.05.
    pub overhead: f64,
    /// Placement: average number of keys per seed, 1 to 6. Default: 4.5.
    pub keys_per_seed: f64,
    /// RecSplit: share of numbers that have a key, from 0.75. Default: 1.
    pub load_factor: f64,
    /// RecSplit: number of keys that share a number, 2 to 24, in place of `leaf_size`. Default: 1.
    pub keys_per_value: u32,
    /// Bits of a key of a dictionary, static set or map: 32, 64 (default), or 128 for dictionaries.
    pub map_key_bits: u32,
    /// Bits of a value: of a static map 32 or 64 (default), of a dictionary 32 for keys of 32 bits and 64 for others.
    pub map_value_bits: u32,
    /// Dictionaries: 1 for keys that are strings of 16 bytes, in the order of their bytes.
    pub map_key_strings: u32,
    /// Sequence filters: letters of a k-mer. Default: 31.
    pub k: u32,
    /// LSM: number of pairs of a batch. Default: 65,536.
    pub batch_size: u64,
    /// LSM: share of stale pairs at which they are removed. Default: 0.5. Negative: only `warpset_map_cleanup` does it.
    pub stale_share: f64,
    /// Range filters: number of possible keys of the ranges that `fpr` is the rate of. Default: 1.
    pub range_length: u64,
    /// Callback of perfect hash functions and static filters; NULL for none.
    pub progress: warpset_progress,
    /// First argument of `progress`.
    pub user_data: *mut std::ffi::c_void,
}

/// Size of the first version of the settings.
const FIRST_SIZE: usize = size_of::<warpset_options>();

impl Default for warpset_options {
    fn default() -> Self {
        // SAFETY: zero is valid for integers, floats, pointers and the optional function.
        unsafe { std::mem::zeroed() }
    }
}

/// Settings after their checks.
pub struct Options {
    pub given: warpset_options,
    pub place: Place,
}

/// Settings as the caller passed them: `None` for zero.
pub fn set<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

/// Calls setters of a builder for settings that are not zero.
macro_rules! with_settings {
    ($builder:expr, $options:expr; $($setter:ident = $field:ident),* $(,)?) => {{
        let mut builder = $builder;
        $(if let Some(value) = $crate::options::set($options.given.$field) {
            builder = builder.$setter(value);
        })*
        builder
    }};
}
pub(crate) use with_settings;

/// Reads the settings of a caller.
///
/// # Safety
/// If `options` is neither NULL nor misaligned, it points to as many bytes as its first field tells. Its device is NULL
/// or obeys the contract of [`content`](crate::handle::content).
pub unsafe fn read(options: *const warpset_options) -> Result<Options> {
    let mut given = warpset_options::default();
    if !options.is_null() {
        check(options, "options")?;
        // SAFETY: checked for NULL and alignment; the first field is readable.
        let size = unsafe { options.cast::<usize>().read() };
        if !(FIRST_SIZE..=1 << 16).contains(&size) {
            let why = format!("options.struct_size = {size}: begin with warpset_options_default()");
            return Err(Failure::value(why));
        }
        // SAFETY: the structure has at least the fields of this version.
        given = unsafe { *options };
    }
    // SAFETY: the contract of this function.
    let place = unsafe { Place::of(given.device) }?;
    Ok(Options { given, place })
}

impl Options {
    /// Returns a structure of host memory in its place.
    pub fn take(&self, object: impl Object) -> Result<Box<dyn Object>> {
        self.place.take(Box::new(object))
    }

    pub fn graphs(&self) -> Result<(Arity, Form)> {
        let arity = match self.given.arity {
            0 | 3 => Arity::Three,
            4 => Arity::Four,
            other => return Err(Failure::value(format!("arity = {other}: choose 3 or 4"))),
        };
        Ok((arity, if self.given.sharded == 0 { Form::OneGraph } else { Form::Sharded }))
    }

    pub fn duplicates(&self) -> Result<Duplicates> {
        let all = [
            (warpset_duplicates::Dropped, Duplicates::Dropped),
            (warpset_duplicates::Kept, Duplicates::Kept),
            (warpset_duplicates::Counted, Duplicates::Counted),
        ];
        let (given, found) =
            (self.given.duplicates, all.into_iter().find(|known| known.0 as u32 == self.given.duplicates));
        found
            .map(|known| known.1)
            .ok_or_else(|| Failure::value(format!("duplicates = {given} is no warpset_duplicates")))
    }

    pub fn function_kind(&self) -> Result<warpset_function_kind> {
        use warpset_function_kind::{Consensus, Placement, Recsplit};
        let given = self.given.function_kind;
        let found = [Consensus, Recsplit, Placement].into_iter().find(|&known| known as u32 == given);
        found.ok_or_else(|| Failure::value(format!("function_kind = {given} is no warpset_function_kind")))
    }

    pub fn cleanup(&self) -> CleanupPolicy {
        match self.given.stale_share {
            0.0 => CleanupPolicy::default(),
            share if share < 0.0 => CleanupPolicy::Manual,
            share => CleanupPolicy::StaleShare(share),
        }
    }

    /// Returns the caller's callback as a function of this library.
    pub fn progress(&self) -> Option<impl Fn(u64, u64) -> ControlFlow<()> + Send + Sync + 'static> {
        struct UserData(*mut std::ffi::c_void);
        // SAFETY: the header demands that the callback may be called on any thread with this pointer.
        unsafe impl Send for UserData {}
        // SAFETY: likewise.
        unsafe impl Sync for UserData {}
        let (callback, user_data) = (self.given.progress?, UserData(self.given.user_data));
        Some(move |done, keys| {
            let UserData(user_data) = &user_data;
            // SAFETY: the caller's function with the caller's pointer, as the header describes.
            match unsafe { callback(*user_data, done, keys) } {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })
    }
}
