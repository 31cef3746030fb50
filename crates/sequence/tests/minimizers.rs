//! Minimizers compared with their definition, and with the crate `simd-minimizers`.

use proptest::prelude::*;
use simd_minimizers::packed_seq::PackedNSeqVec;
use simd_minimizers::seq_hash::NtHasher;
use warpset_core::minimizer::{DEACON_ROTATION, Kmer, Scheme, code, hash, is_base, order};
use warpset_sequence::{Error, Minimizer, Minimizers};

/// Finds minimizers window by window.
fn plain<K: Kmer>(letters: &[u8], scheme: Scheme) -> Vec<Minimizer<K>> {
    let (k, window) = (scheme.k as usize, scheme.window() as usize);
    let with = |kmer: K, base: &u8| kmer << 2 | K::from(u64::from(code(*base)));
    let kmer = |i: usize| letters[i..i + k].iter().rev().fold(K::default(), with);
    let mut found = Vec::<Minimizer<K>>::new();
    for first in 0..(letters.len() + 1).saturating_sub(window) {
        let bases = &letters[first..first + window];
        if !bases.iter().all(|&letter| is_base(letter)) {
            continue;
        }
        let orders = || (first..first + scheme.w as usize).map(|i| (i, order(hash(kmer(i), scheme))));
        let least = orders().map(|(_, order)| order).min().unwrap();
        let mut least = orders().filter(|&(_, order)| order == least).map(|(i, _)| i);
        let gs_and_ts = bases.iter().filter(|base| b"GTgt".contains(base)).count();
        let position = if 2 * gs_and_ts > window { least.next() } else { least.next_back() }.unwrap();
        if found.last().is_none_or(|last| last.position != position) {
            found.push(Minimizer { position, kmer: kmer(position).canonical(scheme.k) });
        }
    }
    found
}

/// Finds minimizers by `simd-minimizers`.
fn peer<K: OfPeer>(letters: &[u8], scheme: Scheme) -> Vec<Minimizer<K>> {
    match scheme.rotation {
        DEACON_ROTATION => peer_with::<K, DEACON_ROTATION>(letters, scheme),
        _ => peer_with::<K, 7>(letters, scheme),
    }
}

fn peer_with<K: OfPeer, const ROTATION: u32>(letters: &[u8], scheme: Scheme) -> Vec<Minimizer<K>> {
    if letters.len() < scheme.window() as usize {
        return Vec::new();
    }
    let sequence = PackedNSeqVec::from_ascii(letters);
    let hasher = NtHasher::<true, ROTATION>::new(scheme.k as usize);
    let mut positions = Vec::new();
    let found = simd_minimizers::canonical_minimizers(scheme.k as usize, scheme.w as usize)
        .hasher(&hasher)
        .run_skip_ambiguous_windows(sequence.as_slice(), &mut positions);
    let kmers: Vec<(u32, K)> = if K::MOST_K > 32 {
        found.pos_and_values_u128().map(|(position, kmer)| (position, K::of(kmer))).collect()
    } else {
        found.pos_and_values_u64().map(|(position, kmer)| (position, K::of(kmer.into()))).collect()
    };
    kmers.into_iter().map(|(position, kmer)| Minimizer { position: position as usize, kmer }).collect()
}

/// K-mers of the peer.
trait OfPeer: Kmer {
    fn of(kmer: u128) -> Self;
}
impl OfPeer for u64 {
    fn of(kmer: u128) -> u64 {
        kmer as u64
    }
}
impl OfPeer for u128 {
    fn of(kmer: u128) -> u128 {
        kmer
    }
}

fn searches<K: Kmer>(all: &[(u32, u32)]) -> Vec<Minimizers<K>> {
    let of = |&(k, w): &(u32, u32)| Minimizers::with_scheme(Scheme::new(k, w).unwrap()).unwrap();
    all.iter().map(of).flat_map(|search: Minimizers<K>| [search, search.rotated_by(DEACON_ROTATION)]).collect()
}

fn short() -> Vec<Minimizers> {
    searches(&[
        (1, 1),
        (2, 1),
        (3, 5),
        (5, 3),
        (4, 64),
        (15, 8),
        (21, 11),
        (31, 15),
        (31, 16),
        (32, 64),
        (32, 2),
        (1, 64),
    ])
}

fn long() -> Vec<Minimizers<u128>> {
    searches(&[(5, 3), (31, 15), (33, 1), (33, 15), (41, 15), (47, 8), (48, 3), (49, 64), (61, 15), (62, 2), (63, 1)])
}

/// Generates random bases, repeats of few bases, and other letters.
fn letters() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ACGT]{0,400}",
        "[ACGTacgt]{0,300}[NnRX\\-\n]{0,2}[ACGT]{0,90}[N]{0,1}[ACGTN]{0,40}",
        "(AC){0,90}[ACGT]{0,20}A{0,120}(GT){0,80}N(TTA){0,50}",
        "[AT]{0,300}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn are_those_of_the_definition(letters in letters()) {
        short().into_iter().try_for_each(|search| is_as_defined(search, letters.as_bytes()))?;
        long().into_iter().try_for_each(|search| is_as_defined(search, letters.as_bytes()))?;
    }

    #[test]
    fn are_those_of_simd_minimizers(letters in letters()) {
        short().into_iter().try_for_each(|search| is_as_the_peer(search, letters.as_bytes()))?;
        long().into_iter().try_for_each(|search| is_as_the_peer(search, letters.as_bytes()))?;
    }

    #[test]
    fn both_strands_have_the_same(letters in letters()) {
        short().into_iter().try_for_each(|search| both_are_same(search, letters.as_bytes()))?;
        long().into_iter().try_for_each(|search| both_are_same(search, letters.as_bytes()))?;
    }
}

fn is_as_defined<K: Kmer>(minimizers: Minimizers<K>, letters: &[u8]) -> Result<(), TestCaseError> {
    let wanted = plain::<K>(letters, minimizers.scheme());
    prop_assert_eq!(&minimizers.find(letters), &wanted, "{:?}", minimizers);
    let (mut positions, mut kmers) = (vec![7], vec![K::from(8)]);
    minimizers.positions_into(letters, &mut positions);
    minimizers.kmers_into(letters, &mut kmers);
    prop_assert!(positions[1..].iter().copied().eq(wanted.iter().map(|found| found.position)));
    prop_assert!(kmers[1..].iter().copied().eq(wanted.iter().map(|found| found.kmer)));
    Ok(())
}

/// Compares windows of an odd number of bases, the only ones of the peer.
fn is_as_the_peer<K: OfPeer>(minimizers: Minimizers<K>, letters: &[u8]) -> Result<(), TestCaseError> {
    if minimizers.scheme().is_strand_symmetric() {
        prop_assert_eq!(minimizers.find(letters), peer(letters, minimizers.scheme()), "{:?}", minimizers);
    }
    Ok(())
}

fn both_are_same<K: Kmer>(minimizers: Minimizers<K>, letters: &[u8]) -> Result<(), TestCaseError> {
    let complement = |letter: u8| match letter.to_ascii_uppercase() {
        b'A' => b'T',
        b'C' => b'G',
        b'G' => b'C',
        b'T' => b'A',
        other => other,
    };
    let other: Vec<u8> = letters.iter().rev().map(|&letter| complement(letter)).collect();
    if minimizers.scheme().is_strand_symmetric() {
        let k = minimizers.scheme().k as usize;
        let mut there = minimizers.find(&other);
        there.reverse();
        there.iter_mut().for_each(|found| found.position = letters.len() - k - found.position);
        prop_assert_eq!(minimizers.find(letters), there, "{:?}", minimizers);
    }
    Ok(())
}

/// Checks sequences longer than a block of windows. The peer takes at most 96 bases per window.
#[test]
fn long_sequences() {
    let bases: Vec<u8> = (0..300_000u64).map(|i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize]).collect();
    fn check<K: OfPeer>(minimizers: Minimizers<K>, bases: &[u8]) {
        let scheme = minimizers.scheme();
        assert!(minimizers.find(bases) == peer(bases, scheme), "{scheme:?}");
        assert!(minimizers.find(&bases[..70_001]) == plain(&bases[..70_001], scheme), "{scheme:?}");
    }
    searches::<u64>(&[(31, 15), (31, 63), (5, 1)]).into_iter().for_each(|search| check(search, &bases));
    searches::<u128>(&[(61, 15), (63, 33)]).into_iter().for_each(|search| check(search, &bases));
}

#[test]
fn other_lengths_are_errors() {
    for (k, w) in [(0, 1), (33, 1), (1, 0), (1, 65), (u32::MAX, u32::MAX)] {
        assert!(matches!(Minimizers::new(k, w), Err(Error::InvalidScheme { .. })), "{k} {w}");
        assert!(matches!(Minimizers::deacon(k, w), Err(Error::InvalidScheme { .. })), "{k} {w}");
    }
}
