//! Minimizers compared with their definition, and with the crate `simd-minimizers`.

use proptest::prelude::*;
use simd_minimizers::packed_seq::PackedNSeqVec;
use simd_minimizers::seq_hash::NtHasher;
use warpset_core::minimizer::{Scheme, canonical, code, hash, is_base, order};
use warpset_sequence::{Error, Minimizer, Minimizers};

/// Finds minimizers window by window.
fn plain(letters: &[u8], scheme: Scheme) -> Vec<Minimizer> {
    let (k, window) = (scheme.k as usize, scheme.window() as usize);
    let kmer = |i: usize| letters[i..i + k].iter().rev().fold(0, |kmer, &base| kmer << 2 | u64::from(code(base)));
    let mut found: Vec<Minimizer> = Vec::new();
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
            found.push(Minimizer { position, kmer: canonical(kmer(position), scheme.k) });
        }
    }
    found
}

/// Finds minimizers by `simd-minimizers`.
fn peer<const ROTATION: u32>(letters: &[u8], scheme: Scheme) -> Vec<Minimizer> {
    if letters.len() < scheme.window() as usize {
        return Vec::new();
    }
    let sequence = PackedNSeqVec::from_ascii(letters);
    let hasher = NtHasher::<true, ROTATION>::new(scheme.k as usize);
    let mut positions = Vec::new();
    let found = simd_minimizers::canonical_minimizers(scheme.k as usize, scheme.w as usize)
        .hasher(&hasher)
        .run_skip_ambiguous_windows(sequence.as_slice(), &mut positions);
    found.pos_and_values_u64().map(|(position, kmer)| Minimizer { position: position as usize, kmer }).collect()
}

fn schemes() -> Vec<Minimizers> {
    let all =
        [(1, 1), (2, 1), (3, 5), (5, 3), (4, 64), (15, 8), (21, 11), (31, 15), (31, 16), (32, 64), (32, 2), (1, 64)];
    all.iter().flat_map(|&(k, w)| [Minimizers::new(k, w).unwrap(), Minimizers::deacon(k, w).unwrap()]).collect()
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
        for minimizers in schemes() {
            let wanted = plain(letters.as_bytes(), minimizers.scheme());
            prop_assert_eq!(&minimizers.find(letters.as_bytes()), &wanted, "{:?}", minimizers);
            let (mut positions, mut kmers) = (vec![7], vec![8]);
            minimizers.positions_into(letters.as_bytes(), &mut positions);
            minimizers.kmers_into(letters.as_bytes(), &mut kmers);
            prop_assert!(positions[1..].iter().copied().eq(wanted.iter().map(|found| found.position)));
            prop_assert!(kmers[1..].iter().copied().eq(wanted.iter().map(|found| found.kmer)));
        }
    }

    /// Compares windows of an odd number of bases, the only ones of the peer.
    #[test]
    fn are_those_of_simd_minimizers(letters in letters()) {
        for minimizers in schemes() {
            let scheme = minimizers.scheme();
            if scheme.is_strand_symmetric() {
                let wanted = match scheme.rotation {
                    1 => peer::<1>(letters.as_bytes(), scheme),
                    _ => peer::<7>(letters.as_bytes(), scheme),
                };
                prop_assert_eq!(minimizers.find(letters.as_bytes()), wanted, "{:?}", minimizers);
            }
        }
    }

    #[test]
    fn both_strands_have_the_same(letters in letters()) {
        let other: Vec<u8> = letters.bytes().rev().map(|letter| match letter.to_ascii_uppercase() {
            b'A' => b'T',
            b'C' => b'G',
            b'G' => b'C',
            b'T' => b'A',
            other => other,
        }).collect();
        for minimizers in schemes().into_iter().filter(|minimizers| minimizers.scheme().is_strand_symmetric()) {
            let k = minimizers.scheme().k as usize;
            let mut there = minimizers.find(&other);
            there.reverse();
            there.iter_mut().for_each(|found| found.position = letters.len() - k - found.position);
            prop_assert_eq!(minimizers.find(letters.as_bytes()), there, "{:?}", minimizers);
        }
    }
}

/// Checks sequences longer than a block of windows.
#[test]
fn long_sequences() {
    let bases: Vec<u8> = (0..300_000u64).map(|i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize]).collect();
    for (k, w) in [(31, 15), (31, 63), (5, 1)] {
        let minimizers = Minimizers::deacon(k, w).unwrap();
        assert!(minimizers.find(&bases) == peer::<1>(&bases, minimizers.scheme()), "{k} {w}");
        assert!(minimizers.find(&bases[..70_001]) == plain(&bases[..70_001], minimizers.scheme()), "{k} {w}");
    }
}

#[test]
fn other_lengths_are_errors() {
    for (k, w) in [(0, 1), (33, 1), (1, 0), (1, 65), (u32::MAX, u32::MAX)] {
        assert!(matches!(Minimizers::new(k, w), Err(Error::InvalidScheme { .. })), "{k} {w}");
        assert!(matches!(Minimizers::deacon(k, w), Err(Error::InvalidScheme { .. })), "{k} {w}");
    }
}
