//! Minimizers of sixteen sequences at a time, one per lane, base by base.
//!
//! [`blocks`](super::blocks) processes neighbouring positions side by side, and has to scan and shift vectors. Here
//! each lane rolls through its own sequence: one step takes some thirty instructions for sixteen positions. Long
//! sequences are cut into pieces, and sequences of similar length share the lanes.
//!
//! - Hashes roll: the change by an entering and a leaving base is one value of a table of sixteen.
//! - The minimum of a window is that of two parts: the k-mers since the last multiple of `w`, and the rest of the `w`
//!   k-mers before. Minima of the latter, from each place to the end, are computed once per `w` steps (two stacks).
//! - Lanes select the leftmost of least k-mers, and detect windows that may have several. Such a sequence, and one with
//!   letters that are no bases, is left to [`blocks`](super::blocks): one read in two hundred of random bases.

use std::arch::x86_64::*;
use std::cell::RefCell;

use warpset_core::minimizer::{Kmer, MOST_K, MOST_W, Scheme, complement, seed};

use super::blocks::{kmer_at, visit_avx512};
use super::lanes::Avx512;
use super::text::Letters;

/// Sequences per group.
const LANES: usize = 16;
/// Largest number of bases of a piece: places of all lanes together have 16 bits.
const PIECE: usize = 1024;
/// Bases per word.
const WORD: usize = 16;
/// Words before the first one, as if that many bases A preceded each sequence.
const BEFORE: usize = 4;
/// Letters per vector.
const BYTES: usize = 64;
/// Number of pieces that is too small for lanes.
const FEW: usize = 4;
/// Places of all lanes, and one vector more.
const PLACES: usize = LANES * PIECE + LANES;

const _: () = assert!(BEFORE * WORD >= MOST_K as usize && LANES * PIECE <= 1 << 16);
const _: () = assert!(PIECE > 2 * (MOST_K + MOST_W) as usize);

/// Range of windows of a sequence.
#[derive(Clone, Copy, Debug)]
struct Piece {
    sequence: usize,
    /// First window.
    first: usize,
    windows: usize,
    /// Range of its k-mers among those found, and the positions of the first and the last one.
    begin: usize,
    end: usize,
    ends: [usize; 2],
}

struct Buffers {
    pieces: Vec<Piece>,
    /// Order of the pieces by length.
    order: Vec<u32>,
    lanes: Box<Group>,
}

/// Buffers for sixteen pieces.
struct Group {
    /// Words of all lanes, side by side.
    words: [[u32; LANES]; BEFORE + PIECE / WORD + 1],
    /// Bases of `words`, lane by lane.
    packed: [u8; (1 << 16) / 4 + 17],
    /// Newly selected places, in the order of steps.
    taken: [u32; PLACES],
    /// Places of `taken`, lane by lane.
    places: [u16; PLACES],
    kmers: [u64; PLACES],
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        pieces: Vec::new(),
        order: Vec::new(),
        lanes: Box::new(Group {
            words: [[0; _]; _],
            packed: [0; _],
            taken: [0; _],
            places: [0; _],
            kmers: [0; _],
        }),
    });
}

/// Appends the canonical k-mers of the minimizers of sequences, and the end of each sequence.
pub(super) fn kmers_of<S: AsRef<[u8]>, K: Kmer>(
    avx512: Avx512,
    scheme: Scheme,
    sequences: &[S],
    kmers: &mut Vec<K>,
    ends: &mut Vec<usize>,
) {
    BUFFERS.with_borrow_mut(|Buffers { pieces, order, lanes }| {
        let window = scheme.window() as usize;
        let most = PIECE + 1 - window;
        pieces.clear();
        for (sequence, letters) in sequences.iter().enumerate() {
            let all = (letters.as_ref().len() + 1).saturating_sub(window);
            for first in (0..all).step_by(most) {
                let windows = most.min(all - first);
                pieces.push(Piece { sequence, first, windows, begin: 0, end: 0, ends: [usize::MAX; 2] });
            }
        }
        order.clear();
        order.extend(0..pieces.len() as u32);
        order.sort_unstable_by_key(|&piece| pieces[piece as usize].windows);
        if order.is_sorted() {
            // K-mers found in this order need not be moved.
            let mut end = kmers.len();
            lanes.find_all(avx512, scheme, sequences, (pieces, order), true, kmers);
            let mut rest = pieces.iter().peekable();
            for sequence in 0..sequences.len() {
                while let Some(piece) = rest.next_if(|piece| piece.sequence == sequence) {
                    end = piece.end;
                }
                ends.push(end);
            }
            return;
        }
        // Two of `w + 1` k-mers are minimizers on average.
        let windows: usize = pieces.iter().map(|piece| piece.windows).sum();
        let mut found = Vec::with_capacity(2 * windows / (scheme.w as usize + 1));
        lanes.find_all(avx512, scheme, sequences, (pieces, order), false, &mut found);
        let mut rest = pieces.iter().peekable();
        for sequence in 0..sequences.len() {
            let mut last = usize::MAX;
            while let Some(piece) = rest.next_if(|piece| piece.sequence == sequence) {
                if piece.begin < piece.end {
                    // The last window of a piece and the first one of the next may select one k-mer.
                    let again = usize::from(piece.ends[0] == last);
                    kmers.extend_from_slice(&found[piece.begin + again..piece.end]);
                    last = piece.ends[1];
                }
            }
            ends.push(kmers.len());
        }
    });
}

impl Group {
    /// Appends the k-mers of all pieces in `order`. If that is their own order, a k-mer that two neighbouring pieces
    /// select is appended once.
    fn find_all<S: AsRef<[u8]>, K: Kmer>(
        &mut self,
        avx512: Avx512,
        scheme: Scheme,
        sequences: &[S],
        (pieces, order): (&mut [Piece], &[u32]),
        is_theirs: bool,
        found: &mut Vec<K>,
    ) {
        let window = scheme.window() as usize;
        let mut before = (usize::MAX, usize::MAX);
        for group in order.chunks(LANES) {
            let mut texts = [&[][..]; LANES];
            for (text, &piece) in texts.iter_mut().zip(group) {
                let Piece { sequence, first, windows, .. } = pieces[piece as usize];
                *text = &sequences[sequence].as_ref()[first..first + windows + window - 1];
            }
            let of_lanes = match group.len() {
                ..FEW => Found::NOTHING,
                // SAFETY: a value of `Avx512` exists only if the processor has the instructions.
                _ => unsafe { self.find(scheme, &texts[..group.len()], K::MOST_K <= 32) },
            };
            for (lane, &piece) in group.iter().enumerate() {
                let piece = &mut pieces[piece as usize];
                piece.begin = found.len();
                if of_lanes.is_done >> lane & 1 == 1 {
                    let range = of_lanes.begins[lane]..of_lanes.begins[lane + 1];
                    let places = &self.places[range.clone()];
                    if let (Some(&first), Some(&last)) = (places.first(), places.last()) {
                        let position = |place| piece.first + (usize::from(place) - (lane << of_lanes.shift));
                        piece.ends = [position(first), position(last)];
                    }
                    if K::MOST_K <= 32 {
                        found.extend(self.kmers[range].iter().map(|&kmer| K::from(kmer)));
                    } else {
                        let kmer = |&place: &u16| kmer_at::<K>(&self.packed, place.into(), scheme.k);
                        found.extend(self.places[range].iter().map(|place| kmer(place).canonical(scheme.k)));
                    }
                } else {
                    let Piece { first, ends, .. } = piece;
                    visit_avx512(avx512, &Letters(texts[lane]), scheme, |position, kmer| {
                        *ends = [if ends[0] == usize::MAX { *first + position } else { ends[0] }, *first + position];
                        found.push(kmer);
                    });
                }
                if is_theirs && piece.begin < found.len() {
                    if before == (piece.sequence, piece.ends[0]) {
                        found.remove(piece.begin);
                    }
                    before = (piece.sequence, piece.ends[1]);
                }
                piece.end = found.len();
            }
        }
    }
}

/// Result of a group of lanes.
struct Found {
    /// One bit per lane, set if its k-mers were found.
    is_done: u32,
    /// Start of the k-mers of each lane, and the end.
    begins: [usize; LANES + 1],
    /// Places per lane, as a power of two.
    shift: u32,
}

impl Found {
    const NOTHING: Found = Found { is_done: 0, begins: [0; LANES + 1], shift: 0 };
}

/// Returns the change of hashes at `entering + 4 * leaving`: of the strand, and of the other one.
fn changes(scheme: Scheme) -> [[u32; 16]; 2] {
    let Scheme { k, rotation, .. } = scheme;
    let mut changes = [[0; 16]; 2];
    for at in 0..16u8 {
        let (enters, leaves) = (at % 4, at / 4);
        changes[0][usize::from(at)] = seed(enters) ^ seed(leaves).rotate_left(k * rotation);
        changes[1][usize::from(at)] =
            seed(complement(leaves)).rotate_right(rotation) ^ seed(complement(enters)).rotate_left((k - 1) * rotation);
    }
    changes
}

/// Returns the hashes of `k` bases A on both strands.
fn hashes_of_as(scheme: Scheme) -> [u32; 2] {
    (0..scheme.k).fold([0; 2], |[forward, reverse], i| {
        let turn = i * scheme.rotation;
        [forward ^ seed(0).rotate_left(turn), reverse ^ seed(complement(0)).rotate_left(turn)]
    })
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[u32; LANES]) -> __m512i {
    // SAFETY: `values` is an array of sixteen `u32`, the width of the vector.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(values: &mut [u32; LANES], vector: __m512i) {
    // SAFETY: `values` is an array of sixteen `u32`, the width of the vector.
    unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), vector) }
}

impl Group {
    /// Finds the minimizers of up to sixteen texts, each at least a window and at most a piece long; their k-mers if
    /// these have at most 32 bases.
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn find(&mut self, scheme: Scheme, texts: &[&[u8]], with_kmers: bool) -> Found {
        let longest = texts.iter().fold(0, |most, text| text.len().max(most));
        let shift = longest.next_power_of_two().max(64).trailing_zeros();
        let mut are_bases = 0;
        for (lane, text) in texts.iter().enumerate() {
            are_bases |= u32::from(self.fill(text, lane, shift)) << lane;
        }
        let mut most = [0; LANES];
        for (lane, text) in texts.iter().enumerate() {
            // Largest place of a k-mer of this lane.
            most[lane] = ((lane << shift) + text.len() + 1 - scheme.k as usize) as u32;
        }
        let (count, counts, ties) = self.roll(scheme, longest, shift, &most);
        let mut begins = [0; LANES + 1];
        for lane in 0..LANES {
            begins[lane + 1] = begins[lane] + counts[lane] as usize;
        }
        let mut next = [0u32; LANES];
        (0..LANES).for_each(|lane| next[lane] = begins[lane] as u32);
        for &taken in &self.taken[..count] {
            let place = taken as u16;
            let next = &mut next[usize::from(place) >> shift & (LANES - 1)];
            self.places[*next as usize] = place;
            *next += 1;
        }
        if with_kmers {
            self.extract(scheme.k, count);
        }
        Found { is_done: are_bases & !u32::from(ties), begins, shift }
    }

    /// Packs the letters of a lane. Returns whether all of them are bases.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn fill(&mut self, text: &[u8], lane: usize, shift: u32) -> bool {
        let packed = &mut self.packed[lane << shift >> 2..];
        let letters_of_codes =
            _mm_setr_epi8(b'A' as i8, b'C' as i8, b'T' as i8, b'G' as i8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let letters_of_codes = _mm512_broadcast_i32x4(letters_of_codes);
        let (three, upper) = (_mm512_set1_epi8(3), _mm512_set1_epi8(!0x20));
        // Two codes form a number of four bits, and two of those a byte.
        let (by_four, by_sixteen) = (_mm512_set1_epi16(0x0401), _mm512_set1_epi32(0x0010_0001));
        let mut others = 0;
        for (i, letters) in text.chunks(BYTES).enumerate() {
            let there: u64 = !0 >> (BYTES - letters.len());
            // SAFETY: the mask has a bit per letter that is left, so that no byte past the end is read.
            let letters = unsafe { _mm512_maskz_loadu_epi8(there, letters.as_ptr().cast()) };
            // No instruction shifts bytes: bits of the byte above enter, and are masked.
            let codes = _mm512_and_si512(_mm512_srli_epi16::<1>(letters), three);
            let known = _mm512_shuffle_epi8(letters_of_codes, codes);
            others |= _mm512_mask_cmpneq_epi8_mask(there, known, _mm512_and_si512(letters, upper));
            let codes = _mm512_madd_epi16(_mm512_maddubs_epi16(codes, by_four), by_sixteen);
            let codes = _mm512_cvtepi32_epi8(codes);
            let to: &mut [u8; 16] = (&mut packed[16 * i..16 * i + 16]).try_into().expect("16 bytes");
            // SAFETY: `to` is an array of sixteen bytes, the width of the vector.
            unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), codes) };
            let words = &mut self.words[BEFORE + 4 * i..BEFORE + 4 * i + 4];
            words[0][lane] = _mm_extract_epi32::<0>(codes) as u32;
            words[1][lane] = _mm_extract_epi32::<1>(codes) as u32;
            words[2][lane] = _mm_extract_epi32::<2>(codes) as u32;
            words[3][lane] = _mm_extract_epi32::<3>(codes) as u32;
        }
        others == 0
    }

    /// Rolls through all lanes. Returns the number of newly selected places in all, the numbers per lane, and one bit
    /// per lane in which a window may have several least k-mers.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn roll(&mut self, scheme: Scheme, len: usize, shift: u32, most: &[u32; LANES]) -> (usize, [u32; LANES], u16) {
        /// Ternary logic: bits of the first operand where the third has ones, and of the second elsewhere.
        const CHOOSE: i32 = 0xe4;
        let (k, w, window) = (scheme.k as usize, scheme.w as usize, scheme.window() as usize);
        let [change_forward, change_reverse] = changes(scheme);
        let (change_forward, change_reverse) = (load(&change_forward), load(&change_reverse));
        let [forward, reverse] = hashes_of_as(scheme);
        let (mut forward, mut reverse) = (_mm512_set1_epi32(forward as i32), _mm512_set1_epi32(reverse as i32));
        let turn = _mm512_set1_epi32(scheme.rotation as i32);
        let (entering, upper) = (_mm512_set1_epi32(3), _mm512_set1_epi32(0xffff_0000u32 as i32));
        let (one, largest) = (_mm512_set1_epi32(1), _mm512_set1_epi32(-1));
        let mut first = [0; LANES];
        (0..LANES).for_each(|lane| first[lane] = (lane << shift) as u32);
        let (mut place, most) = (load(&first), load(most));
        // Leaving bases are `k` places before entering ones.
        let before = BEFORE * WORD - k;
        let low = _mm_cvtsi32_si128(2 * (before % WORD) as i32);
        let high = _mm_cvtsi32_si128(32 - 2 * (before % WORD) as i32);
        // Orders above places of the `w` k-mers before: the least from each place to the end. `least`: the least since
        // a multiple of `w`.
        let mut least_to_end = [largest; MOST_W as usize + 1];
        let (mut least, mut last, mut ties, mut counts) = (largest, largest, largest, _mm512_setzero_si512());
        let (mut count, mut at, mut step) = (0, 0, 0);
        for word in 0..len.div_ceil(WORD) {
            let mut enters = load(&self.words[BEFORE + word]);
            let leaves = [load(&self.words[word + before / WORD]), load(&self.words[word + before / WORD + 1])];
            let leaves = _mm512_or_si512(_mm512_srl_epi32(leaves[0], low), _mm512_sll_epi32(leaves[1], high));
            let mut leaves = _mm512_rol_epi32::<2>(leaves);
            for _ in 0..WORD.min(len - step) {
                let change = _mm512_ternarylogic_epi32::<CHOOSE>(enters, leaves, entering);
                enters = _mm512_srli_epi32::<2>(enters);
                leaves = _mm512_ror_epi32::<2>(leaves);
                forward = _mm512_xor_si512(
                    _mm512_rolv_epi32(forward, turn),
                    _mm512_permutexvar_epi32(change, change_forward),
                );
                reverse = _mm512_xor_si512(
                    _mm512_rorv_epi32(reverse, turn),
                    _mm512_permutexvar_epi32(change, change_reverse),
                );
                step += 1;
                if step < k {
                    continue;
                }
                let hash = _mm512_add_epi32(forward, reverse);
                let key = _mm512_ternarylogic_epi32::<CHOOSE>(hash, place, upper);
                ties = _mm512_min_epu32(ties, _mm512_xor_si512(least, key));
                least = _mm512_min_epu32(least, key);
                least_to_end[at] = key;
                at += 1;
                if step >= window {
                    let other = least_to_end[at];
                    ties = _mm512_min_epu32(ties, _mm512_xor_si512(least, other));
                    let taken = _mm512_min_epu32(least, other);
                    let is_inside = _mm512_cmplt_epu32_mask(place, most);
                    let anew = _mm512_mask_cmpneq_epu32_mask(is_inside, taken, last);
                    last = taken;
                    counts = _mm512_mask_add_epi32(counts, anew, counts, one);
                    let to: &mut [u32; LANES] =
                        (&mut self.taken[count..count + LANES]).try_into().expect("as many places");
                    store(to, _mm512_maskz_compress_epi32(anew, taken));
                    count += anew.count_ones() as usize;
                }
                place = _mm512_add_epi32(place, one);
                if at == w {
                    least = largest;
                    for key in least_to_end[..w].iter_mut().rev() {
                        ties = _mm512_min_epu32(ties, _mm512_xor_si512(least, *key));
                        least = _mm512_min_epu32(least, *key);
                        *key = least;
                    }
                    (least, at) = (largest, 0);
                }
            }
        }
        let mut counted = [0; LANES];
        store(&mut counted, counts);
        // Keys of equal order differ only in their places.
        (count, counted, _mm512_cmplt_epu32_mask(ties, _mm512_set1_epi32(1 << 16)))
    }

    /// Extracts the canonical k-mers at the first `count` places.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,avx512f,avx512bw,avx512dq,avx512vl")]
    fn extract(&mut self, k: u32, count: usize) {
        let eight = |value: u64| value.cast_signed();
        let (mask, three, width) =
            (_mm512_set1_epi64(eight(!0 >> (64 - 2 * k))), _mm512_set1_epi64(3), _mm512_set1_epi64(8));
        let turned = _mm512_broadcast_i32x4(_mm_setr_epi8(7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8));
        let nibbles = _mm512_set1_epi64(eight(0x0f0f_0f0f_0f0f_0f0f));
        let pairs = _mm512_set1_epi64(eight(0x3333_3333_3333_3333));
        let complements = _mm512_set1_epi64(eight(0xaaaa_aaaa_aaaa_aaaa));
        let unused = _mm_cvtsi32_si128(64 - 2 * k as i32);
        let places = self.places[..count.next_multiple_of(8)].as_chunks::<8>().0;
        let kmers = self.kmers[..count.next_multiple_of(8)].as_chunks_mut::<8>().0;
        for (places, kmers) in places.iter().zip(kmers) {
            // SAFETY: `places` is an array of eight `u16`, the width of the vector.
            let place = _mm512_cvtepu16_epi64(unsafe { _mm_loadu_si128(places.as_ptr().cast()) });
            let byte = _mm512_srli_epi64::<2>(place);
            let shift = _mm512_slli_epi64::<1>(_mm512_and_si512(place, three));
            let from = self.packed.as_ptr();
            // SAFETY: places have 16 bits, so byte offsets are below 2^14, and `packed` has 17 more bytes.
            let (low, high) = unsafe {
                (_mm512_i64gather_epi64::<1>(byte, from.cast()), _mm512_i64gather_epi64::<1>(byte, from.add(1).cast()))
            };
            let high = _mm512_sllv_epi64(high, _mm512_sub_epi64(width, shift));
            let kmer = _mm512_and_si512(_mm512_or_si512(_mm512_srlv_epi64(low, shift), high), mask);
            // Reverse complement, as in `reverse_complement`.
            let other = _mm512_shuffle_epi8(kmer, turned);
            let other = _mm512_or_si512(
                _mm512_slli_epi64::<4>(_mm512_and_si512(other, nibbles)),
                _mm512_and_si512(_mm512_srli_epi64::<4>(other), nibbles),
            );
            let other = _mm512_or_si512(
                _mm512_slli_epi64::<2>(_mm512_and_si512(other, pairs)),
                _mm512_and_si512(_mm512_srli_epi64::<2>(other), pairs),
            );
            let other = _mm512_srl_epi64(_mm512_xor_si512(other, complements), unused);
            // SAFETY: `kmers` is an array of eight `u64`, the width of the vector.
            unsafe { _mm512_storeu_si512(kmers.as_mut_ptr().cast(), _mm512_min_epu64(kmer, other)) };
        }
    }
}
