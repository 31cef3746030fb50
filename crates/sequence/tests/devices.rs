//! Minimizers and screening on the emulator and, where available, on CUDA, compared with the host.

use std::collections::HashSet;

use warpset_core::minimizer::DEACON_ROTATION;
use warpset_gpu::testing::{devices, fail_each};
use warpset_gpu::{Device, GpuError};
use warpset_sequence::gpu::{Answers, DeviceKmer, DeviceText, HitCounts, Reads, ScreenOutput, Screener};
use warpset_sequence::{Error, Minimizer, Minimizers, Packed, Scheme};
use warpset_static::StaticSet;

fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed << 32;
    move |below| {
        state += 1;
        warpset_core::hash::finalise(state) % below
    }
}

/// Generates letters with repeats of few bases, lower case, and letters that are no bases.
fn letters(seed: u64, len: usize) -> Vec<u8> {
    let mut next = random(seed);
    let mut letters = Vec::new();
    while letters.len() < len {
        let part = 1 + next(400);
        match next(8) {
            0 => letters.extend((0..part).map(|_| b"AT"[next(2) as usize])),
            1 => letters.extend((0..part).map(|i| b"AC"[i as usize % 2])),
            2 => letters.extend((0..part % 3).map(|_| b"NnRX-\n@"[next(7) as usize])),
            _ => letters.extend((0..part).map(|_| b"ACGTacgt"[next(8) as usize])),
        }
    }
    letters.truncate(len);
    letters
}

fn found<K: DeviceKmer>(device: &Device, text: DeviceText<'_>, minimizers: Minimizers<K>) -> Vec<Minimizer<K>> {
    let found = minimizers.find_device(text).unwrap();
    assert!(!found.is_empty() || found.kmers().is_empty());
    device.synchronize().unwrap();
    let (positions, kmers) = (found.positions().to_vec().unwrap(), found.kmers().to_vec().unwrap());
    positions.into_iter().zip(kmers).map(|(position, kmer)| Minimizer { position: position as usize, kmer }).collect()
}

/// Returns the schemes to test; few on the emulator, which takes a second for half a million positions.
fn schemes<K: DeviceKmer>(device: &Device, all: &[(u32, u32)]) -> Vec<Minimizers<K>> {
    let minimizers = |&(k, w): &(u32, u32)| Minimizers::with_scheme(Scheme::new(k, w).unwrap()).unwrap();
    all.iter()
        .take(if device.is_emulator() { 3 } else { all.len() })
        .flat_map(|lengths| [minimizers(lengths), minimizers(lengths).rotated_by(DEACON_ROTATION)])
        .collect()
}

#[test]
fn minimizers_are_those_of_the_host() {
    for device in devices(1) {
        let short = [(31, 15), (32, 64), (2, 3), (1, 1), (5, 4), (15, 16), (21, 11), (1, 64), (31, 5)];
        compare(&device, &schemes::<u64>(&device, &short));
        let long = [(63, 64), (41, 15), (33, 1), (61, 15), (62, 2), (48, 16), (49, 31), (7, 5), (1, 64)];
        compare(&device, &schemes::<u128>(&device, &long));
    }
}

/// Checks lengths before, at and after the borders of tiles, which have 1,888 to 2,016 windows.
fn compare<K: DeviceKmer>(device: &Device, all: &[Minimizers<K>]) {
    let many: &[usize] = if device.is_emulator() { &[6001] } else { &[9001, 123_456, 3_000_001] };
    for &minimizers in all {
        let window = minimizers.scheme().window() as usize;
        let tile = (2048 - 31 - window) / 32 * 32;
        for len in [0, 1, 7, window - 1, window, 33, tile, tile + window - 2, tile + window - 1, tile + window]
            .iter()
            .chain(many)
        {
            let letters = letters(*len as u64, *len);
            let wanted = minimizers.find(&letters);
            // Also from an address that is no multiple of 8.
            for shift in [0, 3] {
                let there = device.from_slice(&[&letters[..shift.min(*len)], &letters[..]].concat()).unwrap();
                let text = DeviceText::Letters(there.slice(shift.min(*len)..));
                assert!(found(device, text, minimizers) == wanted, "{minimizers:?} {len} {shift}");
            }
            let mut packed = Packed::new();
            packed.push(&letters);
            packed.push(&letters[..len / 2]);
            let there = packed.to_device(device).unwrap();
            let wanted = minimizers.find_packed(&packed);
            assert!(found(device, there.text(), minimizers) == wanted, "{minimizers:?} {len}");
        }
    }
}

#[test]
fn what_has_no_room_is_counted() {
    for device in devices(2) {
        let minimizers = Minimizers::new(5, 4).unwrap();
        let letters = letters(3, 5000);
        let wanted = minimizers.find(&letters);
        let text = device.from_slice(&letters).unwrap();
        for room in [0, 1, 100, wanted.len()] {
            let (mut positions, mut kmers) =
                (device.alloc_zeroed::<u32>(room).unwrap(), device.alloc_zeroed::<u64>(room + 1).unwrap());
            let mut count = device.alloc_zeroed::<u64>(1).unwrap();
            device
                .waiting(|stream| {
                    let text = DeviceText::Letters(text.as_slice());
                    let to = (positions.as_mut_slice(), kmers.slice_mut(..room), count.as_mut_slice());
                    // SAFETY: all arguments live until the stream has been waited for.
                    unsafe { minimizers.find_async(stream, text, to.0, to.1, to.2) }
                })
                .unwrap();
            assert_eq!(count.to_vec().unwrap(), [wanted.len() as u64]);
            assert!(positions.to_vec().unwrap().iter().zip(&wanted).all(|(&p, wanted)| p as usize == wanted.position));
            let kmers = kmers.to_vec().unwrap();
            assert!(kmers[..room].iter().zip(&wanted).all(|(&kmer, wanted)| kmer == wanted.kmer) && kmers[room] == 0);
        }
    }
}

/// Generates reads of a genome with errors, reads of another one, pairs, short and empty reads.
fn reads(genome: &[u8], seed: u64, count: usize) -> Vec<Vec<Vec<u8>>> {
    let mut next = random(seed);
    let mut read = |i: usize| {
        let len = [150, 0, 20, 150, 800, 45, 150, 32, 64][i % 9];
        let mut read = match next(3) {
            0 => letters(next(1 << 20), len),
            _ => {
                let at = next((genome.len() - len) as u64) as usize;
                genome[at..at + len].to_vec()
            }
        };
        let errors = next(8);
        for _ in 0..if len == 0 { 0 } else { errors } {
            let at = next(len as u64) as usize;
            read[at] = b"ACGTN"[next(5) as usize];
        }
        read
    };
    (0..count).map(|i| if i % 4 == 3 { vec![read(i), read(i + 1)] } else { vec![read(i)] }).collect()
}

/// Packs reads and pairs, and counts for each what the device has to count.
fn batch(units: &[Vec<Vec<u8>>], minimizers: Minimizers, set: &HashSet<u64>) -> (Packed, Vec<u32>, Vec<HitCounts>) {
    let (mut packed, mut starts, mut wanted) = (Packed::new(), Vec::new(), Vec::new());
    for unit in units {
        starts.push(packed.words() as u32);
        let mut kmers = Vec::new();
        for read in unit {
            packed.push(read);
            minimizers.kmers_into(read, &mut kmers);
        }
        let different: HashSet<u64> = kmers.into_iter().collect();
        let hits = different.intersection(set).count() as u32;
        wanted.push(HitCounts { hits, minimizers: different.len() as u32 });
    }
    (packed, starts, wanted)
}

#[test]
fn decisions_are_those_of_the_host() {
    for device in devices(3) {
        for (minimizers, count) in [(Minimizers::deacon(31, 15).unwrap(), 400), (Minimizers::new(9, 4).unwrap(), 100)] {
            let genome = letters(7, 20_000);
            let mut kmers = Vec::new();
            minimizers.kmers_into(&genome, &mut kmers);
            let set = StaticSet::<u64>::builder().on(&device).build_from(&kmers).unwrap();
            let kmers: HashSet<u64> = kmers.into_iter().collect();
            let mut screener = Screener::new(&device, minimizers).unwrap();
            // A long one with few different minimizers among the others.
            let mut units = reads(&genome, 5, count);
            units.insert(3, vec![b"ACGTTGCA".repeat(1000), genome.clone()]);
            for units in [&units[..], &units[..1], &[], &[vec![]], &[vec![], vec![b"ACGT".to_vec()]]] {
                let (packed, starts, wanted) = batch(units, minimizers, &kmers);
                assert_eq!(screener.count(&set, Reads { packed: &packed, starts: &starts }).unwrap(), wanted);
                for (hits, share) in [(1, 0.0), (2, 0.01), (1, 0.3), (3, 1.0)] {
                    let decided =
                        screener.decide(&set, Reads { packed: &packed, starts: &starts }, hits, share).unwrap();
                    let matches = |counts: &HitCounts| {
                        let needed = warpset_core::minimizer::needed_hits(hits, share, counts.minimizers.into());
                        u64::from(counts.hits) >= needed
                    };
                    assert_eq!(decided, wanted.iter().map(matches).collect::<Vec<_>>(), "{hits} {share}");
                }
            }
        }
    }
}

/// Packs a batch while the device decides the one before. One batch has many more minimizers than those before it, and
/// one is begun and not finished.
#[test]
fn batches_overlap() {
    for device in devices(6) {
        let minimizers = Minimizers::new(9, 1).unwrap();
        let genome = letters(11, 6000);
        let mut kmers = Vec::new();
        minimizers.kmers_into(&genome, &mut kmers);
        let set = StaticSet::<u64>::builder().on(&device).build_from(&kmers).unwrap();
        let kmers: HashSet<u64> = kmers.into_iter().collect();
        let none = vec![vec![vec![b'N'; 3000]]];
        let dense = vec![vec![genome.clone()], vec![vec![]], vec![letters(12, 1000)]];
        let batches = [none.clone(), dense.clone(), vec![], none, reads(&genome, 3, 60), dense];
        let mut screener = Screener::new(&device, minimizers).unwrap();
        let mut before: Option<Vec<HitCounts>> = None;
        for (i, units) in batches.iter().enumerate() {
            let (packed, starts, wanted) = batch(units, minimizers, &kmers);
            if i != 4 {
                let answers = screener.finish(&set).unwrap();
                let counts = match answers {
                    Answers::Counts(counts) => counts.iter().copied().map(HitCounts::from).collect::<Vec<_>>(),
                    Answers::Decisions(decisions) => {
                        assert!(decisions.is_empty());
                        Vec::new()
                    }
                };
                assert_eq!(counts, before.take().unwrap_or_default(), "{i}");
            }
            // SAFETY: the screener is dropped before the set, and nothing writes the set.
            unsafe { screener.begin(&set, Reads { packed: &packed, starts: &starts }, ScreenOutput::Counts).unwrap() };
            before = Some(wanted);
        }
        assert!(matches!(screener.finish(&set).unwrap(), Answers::Counts(counts) if counts.len() == 3));
        assert!(matches!(screener.finish(&set).unwrap(), Answers::Decisions([])));
        let (packed, starts, _) = batch(&batches[1], minimizers, &kmers);
        // SAFETY: the screener is dropped before the set, which waits, and nothing writes the set.
        unsafe {
            screener
                .begin(
                    &set,
                    Reads { packed: &packed, starts: &starts },
                    ScreenOutput::Decisions { hits: 1, share: 0.0 },
                )
                .unwrap()
        };
        drop(screener);
    }
}

#[test]
fn bad_input_is_an_error() {
    for device in devices(4) {
        let minimizers = Minimizers::new(5, 4).unwrap();
        let set = StaticSet::<u64>::builder().on(&device).build_from(&[1, 2, 3]).unwrap();
        let mut screener = Screener::new(&device, minimizers).unwrap();
        let mut packed = Packed::new();
        packed.push(&[b'A'; 100]);
        for starts in [&[1][..], &[0, 3, 2], &[0, 5]] {
            let error = screener.decide(&set, Reads { packed: &packed, starts }, 1, 0.0);
            assert!(matches!(error, Err(Error::InvalidStarts { words: 4 })), "{starts:?}");
        }
        let (bases, breaks) = (device.from_slice(&[0u64; 3]).unwrap(), device.from_slice(&[0u32; 2]).unwrap());
        let text = DeviceText::Packed { bases: bases.as_slice(), breaks: breaks.as_slice() };
        assert!(matches!(minimizers.find_device(text), Err(Error::LengthMismatch(_))));
        let other = Device::emulator(Default::default());
        let letters = other.from_slice(b"ACGT").unwrap();
        let mut count = device.alloc_zeroed::<u64>(1).unwrap();
        let (mut positions, mut kmers) = (device.alloc_zeroed(1).unwrap(), device.alloc_zeroed(1).unwrap());
        let queued = device.waiting(|stream| {
            let text = DeviceText::Letters(letters.as_slice());
            // SAFETY: all arguments live until the stream has been waited for.
            unsafe {
                minimizers.find_async(
                    stream,
                    text,
                    positions.as_mut_slice(),
                    kmers.as_mut_slice(),
                    count.as_mut_slice(),
                )
            }
        });
        assert!(matches!(queued, Err(Error::Gpu(GpuError::OtherDevice { .. }))));
    }
}

/// Fails each allocation and launch once.
#[test]
fn failures_leave_everything_usable() {
    for device in devices(5) {
        let minimizers = Minimizers::deacon(15, 7).unwrap();
        let genome = letters(9, 3000);
        let mut kmers = Vec::new();
        minimizers.kmers_into(&genome, &mut kmers);
        let set = StaticSet::<u64>::builder().on(&device).build_from(&kmers).unwrap();
        let units = reads(&genome, 2, 20);
        let (packed, starts, wanted) = batch(&units, minimizers, &kmers.into_iter().collect());
        // A new screener each time, which has to allocate, and then one with all its memory.
        for (is_new, least) in [(true, 8), (false, 2)] {
            let failures = fail_each(
                &mut Screener::new(&device, minimizers).unwrap(),
                |screener| {
                    if is_new {
                        *screener = Screener::new(&device, minimizers)?;
                    }
                    screener.count(&set, Reads { packed: &packed, starts: &starts })
                },
                |screener, result| {
                    assert!(result.is_err() || result.is_ok_and(|counts| counts == wanted));
                    assert_eq!(screener.count(&set, Reads { packed: &packed, starts: &starts }).unwrap(), wanted);
                },
            );
            assert!(failures > least, "{is_new} {failures}");
        }
    }
}
