//! One read at a time: minimizers beside `simd-minimizers`, filters of k-mers beside `fastbloom` of ready k-mers.

use bench_frame::input::genome::{canonical_kmers, random_letters};
use criterion::{Criterion, Throughput};
use fastbloom::BloomFilter;
use simd_minimizers::packed_seq::{PackedNSeqVec, SeqVec};
use simd_minimizers::seq_hash::NtHasher;
use warpset::sequence::{Minimizers, SequenceFilter};

use super::peer;

/// Bases of a k-mer, and k-mers of a window.
const WINDOW: (u32, u32) = (31, 15);
/// Letters of a read.
const READ: usize = 150;
/// Letters of the genome.
const GENOME: usize = 1 << 20;

pub fn run(criterion: &mut Criterion) {
    let letters = random_letters(GENOME, 3);
    let reads: Vec<&[u8]> = letters.chunks_exact(READ).collect();
    let (k, w) = WINDOW;
    let mut next = 0;
    let mut read = || {
        next = if next + 1 == reads.len() { 0 } else { next + 1 };
        reads[next]
    };

    let mut group = criterion.benchmark_group("sequence/minimizers of a read");
    group.throughput(Throughput::Elements(READ as u64));
    let minimizers = Minimizers::deacon(k, w).expect("a window that its hashes allow");
    let mut kmers = Vec::new();
    group.bench_function("Minimizers", |bencher| {
        bencher.iter(|| {
            kmers.clear();
            minimizers.kmers_into(read(), &mut kmers);
            kmers.len()
        });
    });
    let (hasher, mut cache) = (NtHasher::<true, 1>::new(k as usize), Default::default());
    let mut text = PackedNSeqVec { seq: Default::default(), ambiguous: Default::default() };
    let mut positions = Vec::new();
    group.bench_function(peer("simd-minimizers"), |bencher| {
        bencher.iter(|| {
            let read = read();
            text.seq.clear();
            text.ambiguous.clear();
            positions.clear();
            kmers.clear();
            text.seq.push_ascii(read);
            text.ambiguous.push_ascii(read);
            let found = simd_minimizers::canonical_minimizers(k as usize, w as usize)
                .hasher(&hasher)
                .run_skip_ambiguous_windows_with_buf(text.as_slice(), &mut positions, &mut cache);
            kmers.extend(found.pos_and_values_u64().map(|(_, kmer)| kmer));
            kmers.len()
        });
    });
    group.finish();

    let mut group = criterion.benchmark_group("sequence/k-mers of a read looked up");
    group.throughput(Throughput::Elements((READ - k as usize + 1) as u64));
    let mut filter = SequenceFilter::builder(GENOME as u64).bits_per_key(16.0).build().expect("memory");
    filter.insert(&letters);
    group.bench_function("SequenceFilter", |bencher| bencher.iter(|| filter.count(read())));
    let mut theirs =
        BloomFilter::with_num_bits(16 * GENOME).hasher(foldhash::fast::FixedState::default()).expected_items(GENOME);
    canonical_kmers(&letters).for_each(|kmer| _ = theirs.insert(&kmer));
    group.bench_function(peer("fastbloom"), |bencher| {
        bencher.iter(|| canonical_kmers(read()).filter(|kmer| theirs.contains(kmer)).count());
    });
    group.finish();
}
