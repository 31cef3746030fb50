//! The messages of all errors, in one file to review: `tests/messages.txt`.
//!
//! After a change of wording, `WARPSET_WRITE_MESSAGES=1 cargo test -p warpset-tests --test all messages` writes the
//! file again. The sources say which errors there are, so that none can be left out.

use std::io;
use std::path::PathBuf;

use warpset_base::file::{FileError, FileKind, SameFile, SavedType};
use warpset_base::filter::LengthMismatch;
use warpset_base::words::OutOfMemory;
use warpset_gpu::emulator::{Fault, FaultKind};
use warpset_gpu::{CudaVersion, Device, Dim3, DriverCode, GpuError};
use warpset_quotient::{Container, Duplicates};

mod list;

use list::{Messages, names_in_sources};

/// Crates whose errors users meet.
const CRATES: [&str; 11] =
    ["base", "bloom", "fuse", "gpu", "lsm", "mphf", "primitives", "quotient", "range", "sequence", "static"];

macro_rules! add {
    ($messages:ident: $($error:expr),* $(,)?) => {
        $(
            let error = $error;
            assert!(format!("{error:?}") == error.to_string(), "`main` prints an error by `Debug`: {error:?}");
            $messages.add(&error, stringify!($error));
        )*
    };
}

/// Returns the package's folder, where the tests run.
fn package() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned()).into()
}

fn base(messages: &mut Messages) {
    use FileError as E;
    let missing = || io::Error::from(io::ErrorKind::NotFound);
    let saved = |structure: FileKind, elements| SavedType { number: structure.number, elements };
    add![messages:
        LengthMismatch { what: "places or values for keys", needed: 1000, found: 999 },
        OutOfMemory { bytes: 1 << 40 },
        SameFile { path: "clean.fq".into(), other: "clean.fq".into(), is_read: false, is_written: true },
        E::Truncated { needed: 4224, found: 4096 },
        E::TrailingBytes { extra: 1 },
        E::BadMagic,
        E::UnsupportedVersion { found: 9, supported: 1 },
        E::WrongStructure { expected: saved(FileKind::SPLIT_BLOCK_BLOOM, None), found: saved(FileKind::LSM, Some([4, 8])) },
        E::Refused(Box::new(warpset_bloom::Error::ZeroCapacity)),
        E::At { path: "/data/seen.warpset".into(), doing: "read", reason: Box::new(E::Io(missing())) },
        E::Corrupted { expected: 0x0123_4567_89ab_cdef, found: 0xfedc_ba98_7654_3210 },
        E::InvalidHeader { field: "quotient bits", value: 99 },
        E::Misaligned { alignment: 8 },
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::Io(missing()),
    ];
}

fn bloom(messages: &mut Messages) {
    use warpset_bloom::{AskedSize, Error as E, PhysicalType};
    let [by_fpr, by_bits] = [AskedSize::Fpr(0.001), AskedSize::BitsPerKey(16.0)];
    add![messages:
        E::ZeroCapacity,
        E::InvalidFpr { fpr: 1.0 },
        E::InvalidBitsPerKey { bits_per_key: -1.0 },
        E::InvalidShape { block_bits: 2048, word_bits: 32, hashes: 8 },
        E::InvalidBucket { bucket_words: 1, hashes: 8 },
        E::InvalidChoices { choices: 3 },
        E::InvalidLoadFactor { load_factor: 1.5 },
        E::OverMemoryLimit { keys: 1_000_000, size: by_fpr, needed: 2_000_000, limit: 1 << 20 },
        E::OverMemoryLimit { keys: 1_000_000, size: by_bits, needed: 2_000_000, limit: 1 << 20 },
        E::OverMemoryLimit { keys: 1, size: AskedSize::MemoryLimit, needed: 32, limit: 31 },
        E::UnreachableFpr { keys: 1_000_000, fpr: 1e-30 },
        E::TooLarge { bytes: 1 << 40, limit: 1 << 37 },
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::Incompatible { field: "bytes", left: 3200, right: 3232 },
        E::NoIntersection,
        E::CannotFold { blocks: 100, factor: 3 },
        E::LengthMismatch(LengthMismatch { what: "places for answers", needed: 1000, found: 1 }),
        E::BucketOverflow { attempts: 8, limit: 4000, ones: 4001 },
        E::File(FileError::BadMagic),
        E::Parquet { what: "the number of bytes is missing" },
        E::Milvus { what: "it does not begin with MBF1" },
        E::Spark { what: "its version is neither 1 nor 2" },
        E::ColumnMismatch { column: PhysicalType::Int32, bytes: 8 },
        E::WordCount { needed: 800, found: 792 },
        E::Gpu(GpuError::NoDevice),
        E::InvalidGrouping { bits: 25 },
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn fuse(messages: &mut Messages) {
    use warpset_fuse::Error as E;
    add![messages:
        E::InvalidFpr { fpr: 1.0 },
        E::UnreachableFpr { fpr: 0.001, bits: 8 },
        E::UnreachableFpr { fpr: 1e-12, bits: 32 },
        E::TooManyKeys { keys: 5_000_000_000, most: 3_816_633_912 },
        E::TooManyKeys { keys: 1 << 50, most: 221_459_251_200 },
        E::TwoValues { first: 3, second: 4 },
        E::WideValue { value: 300, bits: 8 },
        E::OtherValues { expected: 1, found: 2 },
        E::OtherValues { expected: 8, found: 33 },
        E::InvalidBits { value_bits: 17, filter_bits: 0, type_bits: 16 },
        E::NoSeed { seeds: 64 },
        E::InvalidArray { what: "the length of a segment", value: 3 },
        E::NotInterchangeable { what: "four-wise" },
        E::Io(io::Error::from(io::ErrorKind::NotFound)),
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::LengthMismatch(LengthMismatch { what: "places or values for keys", needed: 1, found: 0 }),
        E::File(FileError::BadMagic),
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn gpu(messages: &mut Messages) {
    use GpuError as E;
    // No driver has a text for it.
    let code = DriverCode(4_000_000_000);
    let fault = Fault {
        kernel: "own_kernel",
        block: Some(Dim3::new(3, 0, 0)),
        thread: Some(Dim3::new(31, 0, 0)),
        location: None,
        seed: 7,
        launch: 12,
        kind: FaultKind::UseAfterFree { offset: 8, bytes: 64 },
    };
    add![messages:
        E::NotBuiltIn,
        E::NoDriver { reason: "libcuda.so.1: cannot open shared object file".into() },
        E::NoDevice,
        E::NoSuchDevice { ordinal: 8, count: 1 },
        E::DriverTooOld { found: CudaVersion { major: 11, minor: 8 }, needed: CudaVersion { major: 12, minor: 0 } },
        E::DeviceTooOld { name: "Tesla V100".into(), found: (7, 0), needed: (8, 0) },
        E::Disabled { variable: "WARPSET_BACKEND", value: "cpu".into() },
        E::InvalidSetting { variable: "WARPSET_BACKEND", value: "gpu".into(), allowed: "`cpu` or `cuda`" },
        E::OutOfMemory { place: "NVIDIA H100".into(), asked: 1 << 40, free: 1 << 36 },
        E::UnknownModule { module: "own".into() },
        E::ModuleExists { module: "own".into() },
        E::PtxRejected { module: "own".into(), code, log: "line 7: syntax error".into() },
        E::UnknownKernel { module: "own".into(), kernel: "own_kernel".into() },
        E::InvalidLaunch { kernel: "own_kernel", reason: "2048 threads per block, and 1024 are the most".into() },
        E::LaunchFailed { kernel: "own_kernel", code },
        E::DeviceLost { code, last_kernel: Some("own_kernel") },
        E::DeviceLost { code, last_kernel: None },
        E::LengthMismatch(LengthMismatch { what: "items in the target of a copy", needed: 2, found: 1 }),
        E::ForeignArray { field: "type", found: "f32".into(), expected: "u64".into() },
        E::InvalidCast { bytes: 1, item_size: 8, alignment: 8 },
        E::TooLarge { items: usize::MAX, item_size: 1 },
        E::OtherDevice {
            operation: "two quotient filters",
            expected: "Warpset emulator 1".into(),
            found: "Warpset emulator 2".into(),
        },
        E::EmptyDeviceList,
        E::SameDeviceTwice { device: "NVIDIA H100 (device 0)".into() },
        E::MissingOffsets,
        E::InvalidOffsets { index: 3, bytes: 40 },
        E::EventNotRecorded,
        E::Emulator(fault),
        E::Driver { call: "cuStreamCreate", code },
    ];
}

fn lsm(messages: &mut Messages) {
    use warpset_lsm::Error as E;
    add![messages:
        E::InvalidBatchSize { batch_size: 1000 },
        E::InvalidStaleShare { share: 1.0 },
        E::NoBatches,
        E::LengthMismatch(LengthMismatch { what: "values", needed: 1000, found: 999 }),
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::File(FileError::BadMagic),
        E::Invalid { level: 3, what: "keys do not ascend after", place: 70 },
        E::RangesTooLarge { elements: 1 << 34, bytes: 1 << 38, free: 1 << 36 },
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn primitives(messages: &mut Messages) {
    use warpset_primitives::Error as E;
    add![messages:
        E::InvalidDigit { shift: 60, bits: 8 },
        E::InvalidBits { bits: 25 },
        E::LengthMismatch(LengthMismatch { what: "selected items", needed: 1000, found: 1 }),
        E::InvalidBitRange { begin: 5, end: 70, width: 64 },
        E::Overlap { what: "input and output of a scan" },
        E::TooLong { len: 1 << 40, max: 1 << 30 },
        E::TooManyRuns { runs: 100, max: 32 },
        E::Gpu(GpuError::NoDevice),
    ];
}

fn quotient(messages: &mut Messages) {
    use warpset_quotient::Error as E;
    add![messages:
        E::OverMemoryLimit { needed: 2_000_000, limit: 1 << 20 },
        E::TooManyKeys { keys: 1 << 50, most: 253_327_948_639_436 },
        E::InvalidFpr { fpr: 1.0 },
        E::InvalidMaxLoad { max_load: 1.0 },
        E::InvalidBits { quotient_bits: 50, remainder_bits: 7 },
        E::UnreachableFpr { keys: 1_000_000, fpr: 1e-20, least: 1e6 * 0.5f64.powi(64) },
        E::InvalidKeyBits { key_bits: 65 },
        E::TooManyExactKeys { keys: 60_000, key_bits: 16, most: 29_491 },
        E::OtherKeyBits { key_bits: 16, bits: 15 },
        E::WrongContainer { structure: "rank-and-select quotient filter", container: Container::Bytes },
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::Full { items: 199_458, limit: 117_964, duplicates: Duplicates::Dropped },
        E::Full { items: 199_458, limit: 117_964, duplicates: Duplicates::Kept },
        E::Full { items: 199_458, limit: 117_964, duplicates: Duplicates::Counted },
        E::OverflowRegionFull { slot: 1200, limit: 1151 },
        E::CannotDouble { limit: 117_964 },
        E::CannotHalve { limit: 1 },
        E::InvalidValueBits { value_bits: 40, fingerprint_bits: 34, most: 30 },
        E::InvalidValueBits { value_bits: 8, fingerprint_bits: 64, most: 0 },
        E::ValueTooWide { value: 300, bits: 8 },
        E::CountedValues,
        E::NoCounters { structure: "standard quotient filter" },
        E::KeyTooWide { bits: 40 },
        E::NotExact,
        E::TooManyCopies,
        E::Incompatible { field: "seed", left: 0, right: 7 },
        E::DifferentDuplicates { left: Duplicates::Kept, right: Duplicates::Counted },
        E::DifferentKeyBits { left: Some(40), right: None },
        E::FewerBits { left: 21, right: 20 },
        E::InvalidFingerprint { fingerprint: 1 << 20, bits: 20 },
        E::NotAscending { fingerprint: 7 },
        E::LengthMismatch(LengthMismatch { what: "places or values for keys", needed: 1, found: 0 }),
        E::File(FileError::BadMagic),
        E::InvalidSlots { slot: 70 },
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn mphf(messages: &mut Messages) {
    use warpset_mphf::{Error as E, Stage};
    let no_threads = || {
        let spawn = |_| Err(io::Error::from(io::ErrorKind::WouldBlock));
        rayon::ThreadPoolBuilder::new().num_threads(1).spawn_handler(spawn).build().err().unwrap()
    };
    add![messages:
        E::DuplicateKey { first: 3, second: 70, key: "\"north\"".into() },
        E::InvalidShape { leaf_size: 25, first_fanout: 9, second_fanout: 9 },
        E::InvalidBucketSize { bucket_size: 0, largest: 1 << 20 },
        E::InvalidParameter { what: "load factor", value: 0.5, allowed: "above 0.75 and at most 1" },
        E::UnreachableSpace { name: "Consensus function", bits_per_key: 0.5, least: 1.452 },
        E::HashesCollide { seeds: 8 },
        E::InputChanged { first: 1000, later: 999 },
        E::PartialKey { width: 16, rest: 1 },
        E::LengthMismatch(LengthMismatch { what: "places or values for keys", needed: 1000, found: 999 }),
        E::File(FileError::BadMagic),
        E::WordCount { needed: 800, found: 792 },
        E::Interrupted { stage: Stage::Hashing, keys_done: 1000, keys: 2000 },
        E::Interrupted { stage: Stage::Building, keys_done: 1000, keys: 2000 },
        E::Threads(no_threads()),
        E::Io(io::Error::from(io::ErrorKind::NotFound)),
        E::NumbersTooLarge { values: 1 << 33 },
        E::TableTooShort { values: 1000, found: 999 },
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn range(messages: &mut Messages) {
    use warpset_range::Error as E;
    add![messages:
        E::InvalidBitsPerKey { bits: 2.5 },
        E::InvalidFpr { fpr: 1.5 },
        E::InvalidRangeLength,
        E::TooManyKeys { keys: 1 << 41 },
        E::TooManyCodes { keys: 1000, bits: 60.0 },
        E::UnreachableFpr { keys: 1000, fpr: 1e-17, length: 64 },
        E::Slots(Box::new(warpset_quotient::Error::CannotDouble { limit: 1000 })),
        E::OtherKeys { structure: "RangeFilter", expected: "u64", found: "i64" },
        E::LengthMismatch(LengthMismatch { what: "places or values for keys", needed: 1000, found: 999 }),
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::File(FileError::BadMagic),
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn static_sets(messages: &mut Messages) {
    use warpset_static::Error as E;
    add![messages:
        E::TooManyKeys { keys: 1 << 35, most: 1 << 34 },
        E::NoSeed { keys: 1600, seed: 0, attempts: 8 },
        E::LengthMismatch(LengthMismatch { what: "values for keys", needed: 1000, found: 999 }),
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::File(FileError::BadMagic),
        E::Invalid { what: "a key twice", bucket: 7 },
        E::Gpu(GpuError::NoDevice),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

fn sequence(messages: &mut Messages) {
    use warpset_sequence::Error as E;
    add![messages:
        E::InvalidScheme { k: 33, w: 65 },
        E::TooLong { positions: 1 << 32, most: 4_294_901_759 },
        E::InvalidStarts { words: 4 },
        E::InvalidLengths { k: 31, s: 32, m: 16 },
        E::ZeroCapacity,
        E::InvalidBitsPerKey { bits_per_key: 0.0 },
        E::TooLarge { bytes: 1 << 40, limit: 1 << 37 },
        E::Incompatible { field: "bases per s-mer", left: 26, right: 25 },
        E::NotKmer { kmer: "GATTACAN".into(), k: 9 },
        E::InvalidFraction { fraction: 1.5 },
        E::OutOfMemory(OutOfMemory { bytes: 1 << 40 }),
        E::File(FileError::BadMagic),
        E::LengthMismatch(LengthMismatch { what: "places for answers", needed: 2, found: 1 }),
        E::Gpu(GpuError::NoDevice),
        E::Filter(Box::new(OutOfMemory { bytes: 1 << 40 })),
        E::Primitive(Box::new(warpset_primitives::Error::InvalidBits { bits: 25 })),
    ];
}

#[test]
fn messages_are_those_of_the_file() {
    let mut messages = Messages::default();
    for of in [base, bloom, fuse, gpu, lsm, mphf, primitives, quotient, range, sequence, static_sets] {
        of(&mut messages);
    }
    let folder = |of: &str| package().join("../crates").join(of).join("src");
    let in_sources = CRATES.iter().flat_map(|of| names_in_sources(of, &folder(of))).collect();
    messages.check(&package().join("messages.txt"), &in_sources);
}

/// Checks that two devices of one kind have different names.
#[test]
fn devices_have_names_of_their_own() {
    let [one, other] = [1, 2].map(|_| Device::emulator(Default::default()).to_string());
    assert!(one != other, "{one}");
}
