//! The bodies: what every executor must do. `fake_driver.rs` runs those that need no kernel's result as well.

use std::thread;
use warpset_base::filter::LengthMismatch;

use warpset_gpu::{AdoptedMemory, Device, Dim3, GpuError, LaunchConfig, Pending, PinnedVec, Result, Stream};

use crate::runtime_kernels as kernels;

/// Runs everything that moves bytes and runs no kernel.
pub fn memory(device: &Device) -> Result<()> {
    copies(device)?;
    parts(device)?;
    zero_length(device)?;
    pinned_copies(device)?;
    streams_and_events(device)?;
    many_threads(device)?;
    drop_orders(device)?;
    mistakes(device)
}

fn copies(device: &Device) -> Result<()> {
    let items: Vec<u64> = (0..1000).map(|i| i * i).collect();
    let vector = device.from_slice(&items)?;
    assert_eq!((vector.len(), vector.byte_len(), vector.is_empty()), (1000, 8000, false));
    assert_eq!(vector.to_vec()?, items);
    assert_eq!(vector.device(), device);

    let mut zeroed = device.alloc_zeroed::<u16>(777)?;
    assert!(zeroed.to_vec()?.iter().all(|&x| x == 0));
    zeroed.fill_bytes(0xab)?;
    assert!(zeroed.to_vec()?.iter().all(|&x| x == 0xabab));

    let mut uninitialised = device.alloc_uninit::<u64>(1000)?;
    uninitialised.copy_from_slice(&items)?;
    let mut target = vec![0; 1000];
    uninitialised.copy_to_slice(&mut target)?;
    assert_eq!(target, items);
    Ok(())
}

fn parts(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let mut vector = device.from_slice(&(0..100u32).collect::<Vec<_>>())?;
    assert_eq!(vector.slice(10..13).to_vec()?, [10, 11, 12]);
    assert_eq!(vector.slice(..).slice(98..).slice(1..=1).to_vec()?, [99]);
    vector.slice_mut(4..6).copy_from_slice(&[7, 8])?;
    let (mut left, right) = vector.as_mut_slice().split_at_mut(50);
    stream.copy(left.slice_mut(0..2), right.slice(0..2))?;
    stream.fill_words(left.slice_mut(2..4), 0x0102_0304)?;
    stream.synchronize()?;
    assert_eq!(left.slice(..6).to_vec()?, [50, 51, 0x0102_0304, 0x0102_0304, 7, 8]);

    let bytes = vector.slice(2..4).cast::<u8>()?;
    assert_eq!(bytes.to_vec()?, [4, 3, 2, 1, 4, 3, 2, 1]);
    assert_eq!(bytes.cast::<u64>()?.len(), 1);
    let odd = bytes.slice(..5).cast::<u32>();
    assert!(matches!(odd, Err(GpuError::InvalidCast { bytes: 5, .. })), "{odd:?}");
    assert!(bytes.slice(1..5).cast::<u32>().is_err());
    assert_eq!(vector.global().len(), 100);
    assert_eq!(vector.slice_mut(10..20).global_mut().len(), 10);
    Ok(())
}

fn zero_length(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let mut empty = device.from_slice::<u64>(&[])?;
    assert!(empty.is_empty() && empty.to_vec()?.is_empty());
    empty.copy_from_slice(&[])?;
    empty.fill_bytes(1)?;
    stream.fill_bytes(&mut empty, 1)?;
    stream.upload(&mut empty, &[])?;
    stream.download(&empty, &mut [])?;
    let other = device.alloc_zeroed::<u64>(0)?;
    stream.copy(&mut empty, &other)?;
    assert_eq!(empty.slice(0..0).global().len(), 0);
    let temporary = stream.alloc_zeroed::<u32>(0)?;
    assert!(stream.from_slice::<u8>(&[])?.to_vec()?.is_empty());
    stream.fill_words(&mut stream.alloc_uninit(0)?, 3)?;
    drop(temporary);

    let pinned = device.pinned::<u64>(0)?;
    assert!(pinned.is_empty());
    let pinned = stream.upload_pinned(&mut empty, pinned)?.wait()?;
    assert!(stream.download_pinned(&empty, pinned)?.wait()?.is_empty());

    let full = device.from_slice(&[1u8, 2])?;
    assert!(full.slice(2..).to_vec()?.is_empty());
    stream.close()
}

fn pinned_copies(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let mut pinned: PinnedVec<u32> = device.pinned(500)?;
    assert!(pinned.iter().all(|&x| x == 0));
    pinned.iter_mut().zip(0..).for_each(|(slot, i)| *slot = 3 * i);

    let mut vector = device.alloc_uninit::<u32>(400)?;
    let in_flight: Pending<u32> = stream.upload_pinned(&mut vector, pinned)?;
    let mut pinned = in_flight.wait()?;
    pinned.fill(0);
    let in_flight = stream.download_pinned(vector.slice(100..), pinned)?;
    while !in_flight.is_done()? {
        thread::yield_now();
    }
    let pinned = in_flight.wait()?;
    assert!(pinned[..300].iter().zip(100..).all(|(&x, i)| x == 3 * i));
    assert!(pinned[300..].iter().all(|&x| x == 0), "no more than asked for");

    drop(stream.upload_pinned(&mut vector, pinned)?); // waits

    let mut pinned = device.pinned::<u32>(400)?;
    // SAFETY: `pinned` is untouched until the stream has been waited for.
    unsafe { stream.download_async(&vector, &mut pinned)? };
    stream.synchronize()?;
    assert_eq!(pinned[..2], [300, 303]);
    // SAFETY: as above.
    unsafe { stream.upload_async(vector.slice_mut(..3), &[9, 9, 9])? };
    stream.synchronize()?;
    assert_eq!(vector.slice(..3).to_vec()?, [9, 9, 9]);
    Ok(())
}

fn streams_and_events(device: &Device) -> Result<()> {
    let (first, second) = (device.new_stream()?, device.new_stream_with_priority(-1)?);
    assert!(first.is_non_blocking()? && second.is_non_blocking()?);
    assert_ne!(first, second);
    let (start, end) = (device.new_event()?, device.new_event()?);
    assert!(matches!(end.elapsed_ms(&start), Err(GpuError::EventNotRecorded)));
    assert!(start.is_done()?);

    let mut vector = first.alloc_zeroed::<u32>(1000)?;
    first.record(&start)?;
    first.fill_words(&mut vector, 5)?;
    first.record(&end)?;
    for _ in 0..3 {
        second.wait(&end)?; // the event stays ours, however often it is waited for
    }
    second.wait_for(&first)?;
    let copy = {
        let mut copy = second.alloc_uninit::<u32>(1000)?;
        second.copy(&mut copy, &vector)?;
        copy
    };
    drop(vector); // the copy on the other stream may still be reading
    assert!(copy.to_vec()?.iter().all(|&x| x == 5));
    assert!(end.elapsed_ms(&start)? >= 0.0);
    end.synchronize()?;
    assert!(end.is_done()?);
    second.synchronize()?;
    assert!(second.is_idle()?);

    // Streams that are kept when they are dropped come back to one owner each.
    for _ in 0..3 {
        let streams = (0..8).map(|_| device.new_stream()).collect::<Result<Vec<_>>>()?;
        for (i, stream) in streams.iter().enumerate() {
            assert!(streams[..i].iter().all(|other| other.as_raw() != stream.as_raw() || device.is_emulator()));
            drop(stream.alloc_zeroed::<u32>(100)?); // work that is queued when the stream is dropped
        }
    }
    device.synchronize()
}

fn many_threads(device: &Device) -> Result<()> {
    let shared = device.new_stream()?;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4u32)
            .map(|worker| {
                let shared = &shared;
                scope.spawn(move || -> Result<()> {
                    let own = device.new_stream()?;
                    for round in 0..20 {
                        let value = worker * 100 + round;
                        let items = vec![value; 64];
                        let kept = device.from_slice(&items)?;
                        for stream in [&own, shared] {
                            let mut temporary = stream.alloc_uninit::<u32>(64)?;
                            stream.copy(&mut temporary, &kept)?;
                            let mut back = [0; 64];
                            stream.download(&temporary, &mut back)?;
                            assert_eq!(back, items[..]);
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    // One thread allocates, another drops, with no context current there.
    let vector = device.from_slice(&[1u32])?;
    let (event, pinned) = (device.new_event()?, device.pinned::<u8>(8)?);
    thread::spawn(move || drop((vector, event, pinned, shared))).join().expect("no panic");
    Ok(())
}

fn drop_orders(device: &Device) -> Result<()> {
    // Each object in turn is dropped first, the others in both orders after it.
    for first in 0..5 {
        for backwards in [false, true] {
            let handle = device.clone();
            let stream = handle.new_stream()?;
            let mut vector = handle.alloc_uninit::<u32>(10)?;
            let temporary = stream.alloc_zeroed::<u32>(10)?;
            stream.copy(&mut vector, &temporary)?;
            let event = handle.new_event()?;
            stream.record(&event)?;
            let mut things: Vec<Box<dyn std::any::Any>> =
                vec![Box::new(handle), Box::new(stream), Box::new(vector), Box::new(temporary), Box::new(event)];
            drop(things.remove(first));
            while !things.is_empty() {
                drop(things.remove(if backwards { things.len() - 1 } else { 0 }));
            }
        }
    }
    device.synchronize()
}

fn mistakes(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let mut vector = device.from_slice(&[1u32, 2, 3])?;
    let short = stream.upload(&mut vector, &[1]);
    assert!(matches!(short, Err(GpuError::LengthMismatch(LengthMismatch { needed: 1, found: 3, .. }))), "{short:?}");
    assert!(vector.copy_to_slice(&mut [0; 4]).is_err());
    assert!(stream.copy(vector.slice_mut(..2), &device.from_slice(&[1u32])?).is_err());
    assert!(stream.upload_pinned(&mut vector, device.pinned(2)?).is_err());
    assert_eq!(vector.to_vec()?, [1, 2, 3], "a refused copy changes nothing");

    let huge = device.alloc_uninit::<u64>(usize::MAX / 4);
    assert!(matches!(huge, Err(GpuError::TooLarge { item_size: 8, .. })), "{huge:?}");

    let stranger = Device::emulator(Default::default());
    let strange = stream.fill_bytes(&mut stranger.from_slice(&[1u8])?, 0);
    assert!(matches!(strange, Err(GpuError::OtherDevice { .. })), "{strange:?}");
    assert!(stream.record(&stranger.new_event()?).is_err());
    Ok(())
}

/// Allocates until there is nothing left, then continues.
pub fn out_of_memory(device: &Device, piece: usize) -> Result<()> {
    let piece = piece / 4 * 4;
    let before = device.memory_info()?;
    let stream = device.new_stream()?;
    let asked = before.total + 1;
    match device.alloc_uninit::<u8>(asked) {
        Err(GpuError::OutOfMemory { asked: said, free, .. }) => assert!(said == asked && free <= before.total),
        other => panic!("{other:?}"),
    }
    let pinned = device.pinned::<u8>(1 << 60);
    assert!(pinned.as_ref().is_err_and(|e| e.is_out_of_memory() || !device.is_emulator()), "{pinned:?}");

    let mut held = vec![device.from_slice(&[42u32])?];
    let error = loop {
        let next = if held.len() % 2 == 0 { device.alloc_uninit(piece / 4) } else { stream.alloc_uninit(piece / 4) };
        match next {
            Ok(vector) => held.push(vector),
            Err(error) => break error,
        }
        assert!(held.len() < 1000, "memory never ends");
    };
    assert!(error.is_out_of_memory(), "{error}");
    assert!(error.to_string().contains(&format!("{piece} bytes")), "{error}");
    assert_eq!(held[0].to_vec()?, [42], "what was there is still there");
    assert!(device.memory_info()?.free < before.free);
    held.truncate(1);
    stream.synchronize()?;
    device.trim()?;
    let again = device.alloc_zeroed::<u8>(piece)?;
    assert_eq!(again.slice(piece - 1..).to_vec()?, [0]);
    Ok(())
}

/// Checks that a limit on memory is kept, and can be lifted.
pub fn memory_limit(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let held = device.alloc_zeroed::<u8>(1000)?;
    device.set_memory_limit(3000);
    assert_eq!(device.memory_info()?.free, 2000);
    for refused in [device.alloc_uninit::<u64>(251), stream.alloc_zeroed(251)] {
        assert!(matches!(refused, Err(GpuError::OutOfMemory { asked: 2008, free: 2000, .. })), "{refused:?}");
    }
    let rest = stream.alloc_zeroed::<u8>(2000)?;
    assert!(device.from_slice(&[1u8]).is_err_and(|e| e.is_out_of_memory()));
    assert!(device.from_slice::<u8>(&[])?.is_empty());
    drop(held);
    assert_eq!(device.from_slice(&[1u8; 1000])?.to_vec()?, [1; 1000]);
    device.set_memory_limit(usize::MAX);
    assert_eq!(device.alloc_zeroed::<u8>(5000)?.len(), 5000);
    assert_eq!(rest.to_vec()?, [0; 2000]);
    device.clone().close()
}

/// Launches that must be refused, and leave the device as it was.
pub fn misconfigured_launches(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let mut words = device.alloc_zeroed::<u32>(64)?;
    let shapes = [
        (LaunchConfig::new(0, 32), "empty"),
        (LaunchConfig::new(1, 0), "empty"),
        (LaunchConfig::new(Dim3::new(1, 0, 1), 32), "empty"),
        (LaunchConfig::new(1, 65), "launch bounds say 64"),
        (LaunchConfig::new(1, 1025), "allows 1024"),
        (LaunchConfig::new(1, Dim3::new(1, 1, 65)), "allows 64"),
        (LaunchConfig::new(1, Dim3::new(64, 32, 1)), "2048 threads"),
        (LaunchConfig::new(u32::MAX, 32), "along x"),
        (LaunchConfig::new(Dim3::new(1, 65536, 1), 32), "along y"),
        (LaunchConfig::new(1, 32).shared(1 << 20), "1048576 bytes of dynamic shared memory"),
    ];
    for (config, words_of_error) in shapes {
        // SAFETY: the launch is refused.
        let refused = unsafe { kernels::bounded { words: words.global_mut() }.launch(&stream, config) };
        match refused {
            Err(GpuError::InvalidLaunch { kernel: "bounded", reason }) => {
                assert!(reason.contains(words_of_error), "{config:?}: {reason}");
            }
            other => panic!("{config:?}: {other:?}"),
        }
        assert!(device.resident_blocks(kernels::bounded::INFO, config).is_err());
    }
    // SAFETY: one word for each of 64 threads.
    unsafe { kernels::bounded { words: words.global_mut() }.launch(&stream, LaunchConfig::new(2, 32))? };
    stream.synchronize()
}

/// Checks that kernels run and answer.
pub fn kernels(device: &Device) -> Result<()> {
    let stream = device.new_stream()?;
    let n = 10_000;
    let items: Vec<u32> = (0..n as u32).collect();
    let from = device.from_slice(&items)?;
    let mut to = device.alloc_uninit::<u32>(n)?;
    // SAFETY: both hold `n` words, and the stream is waited for below.
    unsafe {
        kernels::add { from: from.global(), to: to.global_mut(), n, amount: 5 }
            .launch(&stream, LaunchConfig::new(7, 128))?
    };
    stream.synchronize()?;
    assert!(to.to_vec()?.iter().zip(5..).all(|(&x, want)| x == want));

    // A part of a vector, and a temporary that is dropped before the stream has passed.
    let mut temporary = stream.from_slice(&items[..100])?;
    let config = LaunchConfig::covering(50, 64);
    // SAFETY: both ranges hold 50 words; both vectors are freed after this stream.
    unsafe {
        let from = temporary.slice(50..).global();
        kernels::add { from, to: to.slice_mut(..50).global_mut(), n: 50, amount: 1 }.launch(&stream, config)?;
        kernels::add { from: to.slice(..50).global(), to: temporary.global_mut(), n: 50, amount: 1 }
            .launch(&stream, config)?;
    }
    let mut back = vec![0; 100];
    stream.download(&temporary, &mut back)?;
    drop(temporary);
    assert!(back[..50].iter().zip(52..).all(|(&x, want)| x == want) && back[50] == 50);

    // More dynamic shared memory than a kernel gets without asking, then less, then more.
    for words in [25_000, 100, 40_000] {
        let items: Vec<u32> = (0..words as u32).collect();
        let mut vector = device.from_slice(&items)?;
        let config = LaunchConfig::new(1, 256).shared(4 * words as u32);
        assert!(device.resident_blocks(kernels::reverse::INFO, config)? >= 1);
        // SAFETY: one block with room for all words, and the copy below waits.
        unsafe { kernels::reverse { words: vector.global_mut(), n: words }.launch(&stream, config)? };
        assert!(vector.to_vec()?.iter().eq(items.iter().rev()));
    }

    let mut counts = device.alloc_zeroed::<u32>(128)?;
    // SAFETY: one word per thread.
    unsafe { kernels::bounded { words: counts.global_mut() }.launch(&stream, LaunchConfig::new(2, 64))? };
    assert_eq!(counts.to_vec()?, [1; 128]);
    if let Some(attributes) = device.kernel_attributes(kernels::bounded::INFO)? {
        assert_eq!(attributes.max_threads_per_block, 64, "launch bounds reach the driver");
        assert_eq!(attributes.local_bytes, 0);
    }
    ordered_with_everything(device, &stream)
}

/// Copies that name no stream come after every stream's work, and so do frees.
fn ordered_with_everything(device: &Device, stream: &Stream) -> Result<()> {
    let other = device.new_stream()?;
    let mut word = device.alloc_zeroed::<u32>(1)?;
    let slow = |stream: &Stream, word: &mut warpset_gpu::DeviceVec<u32>, value| {
        // SAFETY: one thread, one word, which is freed after the stream's work.
        unsafe {
            kernels::slow { word: word.global_mut(), value, rounds: 20_000 }.launch(stream, LaunchConfig::new(1, 1))
        }
    };
    slow(stream, &mut word, 7)?;
    assert_eq!(word.to_vec()?, [7]);

    // The other stream does not wait for this one, nor for the legacy default stream.
    let mut quick = device.alloc_zeroed::<u32>(1)?;
    slow(stream, &mut word, 8)?;
    // SAFETY: one word.
    unsafe {
        kernels::add { from: quick.global(), to: quick.global_mut(), n: 1, amount: 1 }
            .launch(&other, LaunchConfig::new(1, 32))?
    };
    other.synchronize()?;
    // compute-sanitizer runs one kernel at a time.
    let is_serial = device.is_emulator() || warpset_gpu::testing::is_sanitized();
    let overlapped = is_serial || !stream.is_idle()?;
    assert!(overlapped, "a stream waited for another without being asked to");
    stream.synchronize()?;
    assert_eq!((word.to_vec()?, quick.to_vec()?), (vec![8], vec![1]));

    // Dropped while a kernel still writes it; what is allocated next must not see that write.
    slow(stream, &mut word, 0xffff_ffff)?;
    drop(word);
    let next: Vec<_> = (0..64).map(|_| device.alloc_zeroed::<u32>(1)).collect::<Result<_>>()?;
    stream.synchronize()?;
    for vector in &next {
        assert_eq!(vector.to_vec()?, [0]);
    }
    Ok(())
}

/// Copies and order between two devices of one kind.
pub fn peers(first: &Device, second: &Device) -> Result<()> {
    let (here, there) = (first.new_stream()?, second.new_stream()?);
    let from = there.from_slice(&[1u32, 2, 3])?;
    let mut to = first.alloc_uninit::<u32>(3)?;
    here.copy(&mut to, &from)?;
    drop(from);
    assert_eq!(to.to_vec()?, [1, 2, 3]);
    // Events order streams of different devices; other calls keep them apart.
    let event = second.new_event()?;
    there.record(&event)?;
    here.wait(&event)?;
    here.wait_for(&there)?;
    assert!(matches!(here.record(&event), Err(GpuError::OtherDevice { .. })));
    assert!(here.fill_bytes(&mut second.from_slice(&[1u8])?, 0).is_err());
    if !first.is_emulator() {
        let emulated = Device::emulator(Default::default());
        assert!(here.copy(&mut to, &emulated.from_slice(&[1u32, 2, 3])?).is_err());
        assert!(emulated.new_stream()?.copy(&mut emulated.from_slice(&[1u32, 2, 3])?, &to).is_err());
    }
    there.synchronize()?;
    here.synchronize()
}

/// Uses memory and streams of another owner, a role that another part of this crate plays here.
pub fn adoption(device: &Device) -> Result<()> {
    let mut theirs = device.from_slice(&[7u32; 100])?;
    let address = theirs.as_mut_slice().as_raw_mut();
    // SAFETY: four bytes into an allocation of 400, but an address for words of eight.
    let misaligned = unsafe { AdoptedMemory::<u64>::new(device, address + 4, 1) };
    assert!(matches!(misaligned.err(), Some(GpuError::InvalidCast { alignment: 8, .. })));
    // SAFETY: no items need no memory.
    assert!(unsafe { AdoptedMemory::<u32>::new(device, 0, 0)? }.as_slice().is_empty());
    {
        // SAFETY: fifty words inside `theirs`, which nothing else touches until the end of this block.
        let mut words = unsafe { AdoptedMemory::<u32>::new(device, address + 200, 50)? };
        assert_eq!(words.as_slice().to_vec()?, [7; 50]);
        words.as_mut_slice().copy_from_slice(&[9; 50])?;
    }
    assert_eq!(theirs.to_vec()?, [[7; 50], [9; 50]].concat());

    let owner = device.new_stream()?;
    let Some(raw) = owner.as_raw() else {
        assert!(device.is_emulator() && device.as_raw_context().is_none());
        return Ok(());
    };
    assert!(device.as_raw_context().is_some_and(|context| !context.is_null()));
    for _ in 0..2 {
        // SAFETY: `owner` outlives the adopted stream.
        let adopted = unsafe { Stream::adopt(device, raw)? };
        let mut words = adopted.alloc_zeroed::<u32>(100)?;
        adopted.copy(&mut words, &theirs)?;
        drop(adopted);
        assert_eq!(words.to_vec()?, theirs.to_vec()?);
    }
    // The owner's stream still works.
    owner.alloc_zeroed::<u32>(10)?;
    owner.close()
}

/// Loads a module's kernels on a device that nothing else uses, before one of them is launched; the emulator has
/// nothing to load. Neither another request nor the launch loads a kernel twice.
pub fn loading(device: &Device) -> Result<()> {
    assert_eq!(device.loaded_kernels(), []);
    let module = kernels::reverse::INFO.module;
    device.load_module(module)?;
    let ahead = device.loaded_kernels();
    assert_eq!(ahead.iter().any(|kernel| kernel.name == "add"), !device.is_emulator());
    assert!(ahead.iter().all(|kernel| !kernel.launched));

    let stream = device.new_stream()?;
    let mut words = device.alloc_zeroed::<u32>(64)?;
    // SAFETY: reverses no words.
    unsafe { kernels::reverse { words: words.global_mut(), n: 0 }.launch(&stream, LaunchConfig::new(1, 32))? };
    device.load_module(module)?;
    let loaded = device.loaded_kernels();
    assert_eq!(loaded.len(), ahead.len().max(1));
    assert!(loaded.iter().all(|kernel| kernel.launched == (kernel.name == "reverse")));
    stream.close()
}
