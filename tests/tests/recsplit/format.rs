//! Saved functions: each damage has its error, and bytes of version 1 stay as they are. Damage in general is tested
//! beside the code.

use warpset_mphf::{
    Builder, Consensus, ConsensusKind, Error, FileError, HashKind, Key, Method, PerfectHash, RecSplit, RecSplitKind,
    RecSplitView, Remix, StaticFilter, StaticFilterView,
};

fn function(keys: u64) -> (Vec<u64>, RecSplit) {
    let keys: Vec<u64> = (0..keys).map(|i| i * i + 7).collect();
    let function = RecSplit::builder().leaf_size(6).bucket_size(40).build_from(&keys).unwrap();
    (keys, function)
}

#[test]
fn what_is_wrong_has_its_error() {
    let (_, function) = function(100);
    let bytes = function.to_bytes();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        // Words, so that they are aligned.
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(&bytes);
        let viewed = RecSplitView::from_bytes(&bytemuck::cast_slice(&words)[..bytes.len()]).map(|_| ());
        let read = RecSplit::read_from(bytes.as_slice()).map(|_| ());
        assert!(RecSplit::from_bytes(&bytes).is_err());
        match (viewed, read) {
            (Err(Error::File(viewed)), Err(Error::File(read))) => {
                assert_eq!(std::mem::discriminant(&viewed), std::mem::discriminant(&read));
                read
            }
            other => panic!("{other:?}"),
        }
    };
    assert!(matches!(error(&|bytes| bytes[0] = 0), FileError::BadMagic));
    let unsupported = error(&|bytes| bytes[8] = 2);
    assert!(matches!(unsupported, FileError::UnsupportedVersion { found: 2, supported: 1 }));
    assert!(matches!(error(&|bytes| bytes[10] = 17), FileError::WrongStructure { found, .. } if found.number == 17));
    assert!(matches!(error(&|bytes| bytes[12] = 64), FileError::InvalidHeader { field: "header bytes", value: 64 }));
    assert!(matches!(error(&|bytes| bytes[88] = 1), FileError::InvalidHeader { field: "reserved bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[16] ^= 1), FileError::InvalidHeader { field: "payload bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[23] = 0x80), FileError::InvalidHeader { field: "payload bytes", .. }));
    assert!(matches!(error(&|bytes| bytes[51] = 7), FileError::InvalidHeader { field: "method", value: 7 }));
    assert!(matches!(error(&|bytes| bytes.truncate(100)), FileError::Truncated { found: 100, .. }));
    assert!(matches!(error(&|bytes| bytes.truncate(bytes.len() - 8)), FileError::Truncated { .. }));
    assert!(matches!(error(&|bytes| bytes[120] ^= 1), FileError::Corrupted { .. }));
    let mut longer = function.words().to_vec();
    longer.push(0);
    let viewed = RecSplitView::from_bytes(bytemuck::cast_slice(&longer)).map(|_| ());
    assert!(matches!(viewed, Err(Error::File(FileError::TrailingBytes { extra: 8 }))));
    let viewed = RecSplitView::from_bytes(&bytemuck::cast_slice(&longer)[1..]).map(|_| ());
    assert!(matches!(viewed, Err(Error::File(FileError::Misaligned { alignment: 8 }))));
}

#[test]
fn a_wrong_number_of_words_is_no_cut_file() {
    let (keys, function) = function(100);
    let filter = StaticFilter::builder().width(9).build_from(&keys).unwrap();
    for whole in [function.words(), filter.words()] {
        for found in [0, 3, 15, 16, whole.len() - 1, whole.len() + 1, whole.len() + 7] {
            let mut words = whole.to_vec();
            words.resize(found, 0);
            let errors = if whole == function.words() {
                [RecSplitView::from_words(&words).err(), RecSplit::from_words(words.clone()).err()]
            } else {
                [
                    StaticFilterView::<ConsensusKind>::from_words(&words).err(),
                    StaticFilter::<ConsensusKind>::from_words(words).err(),
                ]
            };
            for error in errors {
                let error = error.expect("the number is wrong");
                let told = error.to_string();
                let Error::WordCount { needed, found: said } = error else { panic!("{told}") };
                let header = warpset_base::file::HEADER_BYTES / 8;
                let expected = if found < header { header } else { whole.len() };
                assert_eq!((needed, said), (expected as u64, found as u64));
                assert!(told.starts_with(&format!("{found} words of 64 bits")) && !told.contains("file"), "{told}");
            }
        }
    }
}

/// Compares a function of the keys from 0 on with the words of a file of version 1, which every later version must
/// read.
fn version_1_is_read<M: HashKind, const N: usize>(builder: &Builder<M>, written: &str, numbers: [u64; N]) {
    let keys: Vec<u64> = (0..N as u64).collect();
    let function = builder.build_from(&keys).unwrap();
    let text: String = function.words().iter().map(|word| format!("{word:016x}\n")).collect();
    assert_eq!(text, written);
    let words: Vec<u64> = written.lines().map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
    assert_eq!(PerfectHash::<M>::from_words(words).unwrap().get_bulk(&keys), numbers);
}

#[test]
fn files_of_version_1_are_read() {
    let recsplit = RecSplit::builder().leaf_size(4).fanouts(3, 2).bucket_size(5);
    let numbers = [5, 7, 6, 3, 8, 2, 0, 4, 9, 1];
    version_1_is_read(&recsplit, include_str!("../fixtures/recsplit_v1.txt"), numbers);
    let consensus = Consensus::builder().overhead(0.2).bucket_size(10);
    let numbers = [11, 16, 14, 0, 13, 2, 9, 5, 18, 3, 8, 7, 12, 6, 17, 15, 1, 4, 10, 19];
    version_1_is_read(&consensus, include_str!("../fixtures/consensus_v1.txt"), numbers);
}

/// Hashes of what functions of every kind are saved as, and of the numbers that they give.
fn hashes<M: HashKind, K: Key + Sync>(builder: &Builder<M>, keys: &[K]) -> [u64; 2] {
    let function = builder.build_from(keys).unwrap();
    let numbers: Vec<u8> = keys.iter().flat_map(|key| function.get(key).to_le_bytes()).collect();
    [function.to_bytes(), numbers].map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes))
}

/// Compares bits by seed and numbers by bits: they are part of the format.
#[test]
fn version_1_stays_as_it_is() {
    let keys: Vec<u64> = (0..5000_u64).map(|i| i.pow(3)).collect();
    let strings: Vec<String> = keys.iter().map(u64::to_string).collect();
    let builder = |leaf, bucket| RecSplit::builder().leaf_size(leaf).bucket_size(bucket);
    let consensus =
        |overhead, bucket: u32| Consensus::builder().overhead(overhead).bucket_size(bucket).seed(bucket.into());
    let kinds = [
        ("grouped", hashes(&builder(12, 200), &keys)),
        ("large leaves, strings, a seed", hashes(&builder(21, 2000).seed(7), &strings)),
        ("rotation", hashes(&builder(8, 5).method(Method::Rotation), &keys)),
        ("brute force", hashes(&builder(6, 2000).method(Method::BruteForce), &strings)),
        ("64-bit remix, fanouts", hashes(&builder(5, 50).remix(Remix::Bits64).fanouts(4, 3), &keys)),
        ("load factor", hashes(&builder(8, 100).load_factor(0.8), &keys)),
        ("keys per value", hashes(&builder(8, 1000).keys_per_value(6), &keys)),
        ("Consensus, near the least space", hashes(&consensus(0.02, 2400), &keys)),
        ("Consensus, small buckets, strings", hashes(&consensus(0.2, 200), &strings)),
        ("Consensus, smallest buckets", hashes(&consensus(1.0, 5), &keys)),
        ("Consensus, one large bucket", hashes(&consensus(0.05, 5000), &strings)),
    ];
    for ((kind, found), expected) in kinds.into_iter().zip(HASHES_OF_VERSION_1) {
        assert_eq!(found, expected, "{kind}");
    }
    let recsplit = StaticFilter::builder_of_kind(RecSplitKind).width(9).leaf_size(5).bucket_size(20);
    let consensus = StaticFilter::builder().width(9).bucket_size(700);
    let filters =
        [recsplit.build_from(&strings).unwrap().to_bytes(), consensus.build_from(&strings).unwrap().to_bytes()];
    assert_eq!(filters.map(|bytes| xxhash_rust::xxh3::xxh3_64(&bytes)), FILTERS_OF_VERSION_1);
}

const HASHES_OF_VERSION_1: [[u64; 2]; 11] = [
    [0x772e_6fc0_e6ec_347c, 0x2312_f8c6_7cad_5584],
    [0x0436_fbbc_985e_c84c, 0xdce2_df66_78a9_b0fe],
    [0x8506_d4dd_0846_7c61, 0x45e0_2599_1611_8003],
    [0xef4d_b86a_e9a1_c9e0, 0x1b0e_69f0_8e61_94a9],
    [0x5af3_ebd9_0527_9f45, 0x0816_3b9e_ed8e_7024],
    [0xf179_9cce_157c_0e38, 0x3a26_ad7a_a654_e306],
    [0x613c_4aab_650b_e9bb, 0xfa41_738b_bf12_33d9],
    [0x52f8_ba2a_d7ec_bafd, 0x167a_599e_2cb9_d45f],
    [0xf83a_1525_423c_df50, 0xb704_e92e_192f_375e],
    [0xb17b_50d1_9a6b_2e1e, 0xecbc_14ba_6693_206b],
    [0x8546_7cb5_5505_bdd0, 0xbfd4_a306_b34f_5ffb],
];
const FILTERS_OF_VERSION_1: [u64; 2] = [0x6ab8_c00a_b78b_a439, 0xf6c4_fd1d_7740_6777];
