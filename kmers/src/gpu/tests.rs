//! Tables from the emulator and, where available, from CUDA, equal to those of the host.

use std::collections::BTreeMap;

use warpset_gpu::Device;
use warpset_gpu::testing::devices;

use super::{Counter, PADDING, Packed, upload};
use crate::word::Word;
use crate::{BackendChoice, Error, K, Roll, Settings, Table, count_bytes};

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state += 1;
        warpset_core::hash::finalise(state) % below
    }
}

/// Generates sequences with repeats, lower case, palindromes, letters that are no bases, and some shorter than a k-mer.
fn sequences(seed: u64, count: usize, len: u64) -> Vec<Vec<u8>> {
    let mut next = random(seed << 32);
    let mut all: Vec<Vec<u8>> = vec![b"ACGT".repeat(20), vec![b'T'; 100], b"A".to_vec(), b"acgtacgta".to_vec()];
    for _ in 0..count {
        let letters = (0..1 + next(len)).map(|_| match next(60) {
            0 => b"NnRX-"[next(5) as usize],
            1..10 => b"acgt"[next(4) as usize],
            _ => b"ACGT"[next(4) as usize],
        });
        let mut sequence: Vec<u8> = letters.collect();
        if next(2) == 0 {
            sequence.extend_from_slice(&all[next(all.len() as u64) as usize]);
        }
        all.push(sequence);
    }
    all
}

fn fasta(sequences: &[Vec<u8>]) -> Vec<u8> {
    let lines = |sequence: &Vec<u8>| sequence.chunks(61).collect::<Vec<_>>().join(&b'\n');
    sequences.iter().flat_map(|sequence| [b">x\n", &lines(sequence)[..], b"\n"].concat()).collect()
}

fn model<W: Word>(sequences: &[Vec<u8>], k: K) -> BTreeMap<W, u64> {
    let mut model = BTreeMap::new();
    for sequence in sequences {
        Roll::of(k).each(sequence, |kmer| *model.entry(kmer).or_default() += 1);
    }
    model
}

fn on(device: &Device, sequences: &[Vec<u8>], settings: &Settings) -> Result<Table, Error> {
    count_bytes(&fasta(sequences), &settings.clone().on(device))
}

#[test]
fn tables_are_those_of_the_host() {
    for device in devices(1) {
        for (i, k) in [1u32, 2, 3, 16, 17, 31, 32, 33, 47, 62, 63].into_iter().enumerate() {
            let sequences = sequences(i as u64, if k > 32 { 6 } else { 12 }, 200);
            for least in [1, 3] {
                for threads in [1, 3] {
                    let settings = Settings::new(k).unwrap().least(least).threads(threads);
                    let host = count_bytes(&fasta(&sequences), &settings.clone().backend(BackendChoice::Cpu)).unwrap();
                    let table = on(&device, &sequences, &settings).unwrap();
                    assert!(table == host, "{k} {least}");
                    assert_eq!(table.to_bytes(), host.to_bytes());
                    assert_eq!((table.distinct(), table.total()), (host.distinct(), host.total()));
                    let mut wanted = model::<u128>(&sequences, K::new(k).unwrap());
                    wanted.retain(|_, copies| *copies >= least);
                    assert!(table.kmers::<u128>().unwrap().collect::<BTreeMap<_, _>>() == wanted, "{k} {least}");
                }
            }
        }
    }
}

/// Checks sequences that end at, before and after the borders of words, warp tiles and block tiles.
#[test]
fn windows_at_all_borders() {
    for device in devices(2) {
        for (k, lens) in
            [(1, &[31, 32, 33][..]), (31, &[30, 31, 62, 63, 1023, 1024, 1025]), (32, &[31, 8191, 8192, 8200])]
        {
            let k = K::new(k).unwrap();
            let mut next = random(u64::from(k.get()));
            let sequences: Vec<Vec<u8>> =
                lens.iter().map(|&len| (0..len).map(|_| b"ACGT"[next(4) as usize]).collect()).collect();
            for sequences in [&sequences[..], &sequences[..1], &sequences[lens.len() - 1..]] {
                let mut packed = Packed::new();
                sequences.iter().for_each(|sequence| packed.push(sequence));
                let mut counter = Counter::new(&device, k).unwrap();
                counter.add(&[packed]).unwrap();
                let wanted = model(sequences, k);
                if wanted.is_empty() {
                    assert!(matches!(counter.finish(1), Err(Error::NoKmers { .. })));
                    continue;
                }
                let (filter, distinct) = counter.finish(1).unwrap();
                let counts: BTreeMap<u64, u64> = filter.to_host().unwrap().key_counts().unwrap().collect();
                assert!(counts == wanted && distinct == wanted.len() as u64, "{k:?} {lens:?}");
            }
        }
    }
}

#[test]
fn batches_add_up_to_what_one_counts() {
    for device in devices(3) {
        let k = K::new(15).unwrap();
        let sequences = sequences(9, 30, 300);
        let mut all = Counter::new(&device, k).unwrap();
        let mut by_batches = Counter::new(&device, k).unwrap();
        let mut parts = Vec::new();
        for batch in sequences.chunks(9) {
            let mut packed = [Packed::new(), Packed::new(), Packed::new()];
            batch.iter().enumerate().for_each(|(i, sequence)| packed[i % 2].push(sequence));
            by_batches.add(&packed).unwrap();
            by_batches.add(&[]).unwrap();
            parts.extend(packed);
        }
        all.add(&parts).unwrap();
        for least in [1, 2] {
            let finish = |counter: &mut Counter| {
                let counter = std::mem::replace(counter, Counter::new(&device, k).unwrap());
                let (filter, distinct) = counter.finish(least).unwrap();
                (filter.to_host().unwrap(), distinct)
            };
            let (one, many) = (finish(&mut all), finish(&mut by_batches));
            assert!(one.0 == many.0 && one.1 == many.1);
            all.add(&parts).unwrap();
            by_batches.add(&parts).unwrap();
        }
        assert!(all.most_words().unwrap() > 0);
    }
}

/// Checks batches of long k-mers, from sequences that end at, before and after the borders of words and tiles.
#[test]
fn batches_of_long_kmers_add_up() {
    for device in devices(6) {
        let mut next = random(1);
        let lens = [62, 63, 64, 65, 95, 96, 97, 1024, 1086, 8192, 8254];
        let random = |len: usize| -> Vec<u8> { (0..len).map(|_| b"ACGT"[next(4) as usize]).collect() };
        let mut sequences: Vec<Vec<u8>> = lens.map(random).into();
        sequences.push(sequences[7].clone());
        for k in [33, 48, 63].map(|k| K::new(k).unwrap()) {
            for least in [1, 2] {
                let mut counter = Counter::<u128>::of(&device, k).unwrap();
                for batch in sequences.chunks(5) {
                    let mut packed = [Packed::new(), Packed::new()];
                    batch.iter().enumerate().for_each(|(i, sequence)| packed[i % 2].push(sequence));
                    counter.add(&packed).unwrap();
                }
                let mut wanted = model::<u128>(&sequences, k);
                wanted.retain(|_, copies| *copies >= least);
                let table = counter.table(least, None).unwrap();
                assert!(table.kmers().unwrap().collect::<BTreeMap<_, _>>() == wanted, "{k:?} {least}");
            }
        }
        let counter = Counter::<u128>::of(&device, K::new(40).unwrap()).unwrap();
        assert!(matches!(counter.table(1, None), Err(Error::NoKmers { k: 40 })));
    }
}

#[test]
fn parts_arrive_one_after_the_other() {
    for device in devices(4) {
        let stream = device.new_stream().unwrap();
        let parts: Vec<Packed> = [0usize, 3, 700, 32, 0, 1, 2000]
            .map(|len| {
                let mut packed = Packed::new();
                (0..len).for_each(|i| packed.push(&b"ACGTTGCA"[i % 8..]));
                packed
            })
            .into();
        let words = parts.iter().map(Packed::words).sum();
        let (bases, breaks) = upload::upload(&stream, &parts, words).unwrap();
        let mut wanted: (Vec<u64>, Vec<u32>) = Default::default();
        for part in &parts {
            wanted.0.extend_from_slice(part.bases());
            wanted.1.extend_from_slice(part.breaks());
        }
        wanted.0.extend([0; PADDING]);
        wanted.1.extend([!0; PADDING]);
        assert!(bases.to_vec().unwrap() == wanted.0 && breaks.to_vec().unwrap() == wanted.1);
    }
}

/// Counts text that cannot be cut, on any number of threads.
#[test]
fn compressed_text_is_counted_like_plain_text() {
    let text = fasta(&sequences(9, 30, 300));
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &text).unwrap();
    let compressed = encoder.finish().unwrap();
    for device in devices(3) {
        for threads in [1, 2, 4] {
            let settings = Settings::new(21).unwrap().threads(threads);
            let wanted = count_bytes(&text, &settings.clone().backend(BackendChoice::Cpu)).unwrap();
            assert!(count_bytes(&compressed, &settings.on(&device)).unwrap() == wanted, "{threads}");
        }
    }
}

#[test]
fn errors_are_those_of_the_host() {
    for device in devices(5) {
        let settings = Settings::new(11).unwrap().threads(2);
        let counted = |sequences: &[Vec<u8>], settings: &Settings| on(&device, sequences, settings).unwrap_err();
        assert!(matches!(counted(&[b"ACGTNACGT".to_vec()], &settings), Error::NoKmers { k: 11 }));
        let some = sequences(4, 5, 100);
        assert!(matches!(counted(&some, &settings.clone().memory(100)), Error::OverBudget { .. }));
        let table = on(&device, &some, &settings.clone().least(1000)).unwrap();
        assert_eq!((table.distinct(), table.total()), (0, 0));
        for text in [&b"hello\n"[..], b">a\nACGT\n>b", b"@a\nACGT\n+\nIII\n"] {
            let (here, there) = (
                count_bytes(text, &settings.clone().backend(BackendChoice::Cpu)),
                count_bytes(text, &settings.clone().on(&device)),
            );
            assert_eq!(here.unwrap_err().to_string(), there.unwrap_err().to_string());
        }
    }
}

/// Checks the error of a device with too little memory, after which `auto` takes the CPU.
#[test]
fn devices_that_are_too_small_say_so() {
    // Other tests share the CUDA device, so that its memory is not limited here.
    for device in devices(7).into_iter().filter(Device::is_emulator) {
        let sequences = sequences(8, 400, 300);
        device.set_memory_limit(400_000);
        let error = on(&device, &sequences, &Settings::new(21).unwrap()).unwrap_err();
        assert!(error.asks_for_cpu(), "{error}");
        device.set_memory_limit(usize::MAX);
        on(&device, &sequences, &Settings::new(21).unwrap()).unwrap();
    }
}

/// Checks that without a device `auto` counts on the CPU, and the error of `cuda` names what is missing.
#[test]
fn backends_are_chosen() {
    let text = fasta(&sequences(6, 5, 100));
    let count = |backend| count_bytes(&text, &Settings::new(9).unwrap().backend(backend));
    let host = count(BackendChoice::Cpu).unwrap();
    assert!(count(BackendChoice::Auto).unwrap() == host);
    match (count(BackendChoice::Cuda), warpset_gpu::Backend::auto()) {
        (Ok(table), warpset_gpu::Backend::Cuda(_)) => assert!(table == host),
        (Err(Error::Device(why)), warpset_gpu::Backend::Cpu(_)) => assert!(why.is_unavailable()),
        other => panic!("{other:?}"),
    }
}
