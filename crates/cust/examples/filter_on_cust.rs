//! A program that `cust` orchestrates asks a Bloom filter of Warpset, on its own stream and buffers.
//!
//! `cargo run --release -p warpset-cust --example filter_on_cust`; says so where there is no CUDA device.

use warpset_bloom::SplitBlockBloom;
use warpset_bloom::gpu::DeviceFilter;
use warpset_cust::cust::memory::{CopyDestination, DeviceBuffer};
use warpset_cust::cust::stream::{Stream, StreamFlags};
use warpset_cust::{adopt_context, adopt_memory, adopt_stream, lend_slice_mut, lend_stream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(why) = warpset_gpu::Device::cuda(0) {
        println!("nothing to show: {why}");
        return Ok(());
    }
    // The program's own context, stream and buffers.
    let context = warpset_cust::cust::quick_init()?;
    let stream = Stream::new(StreamFlags::NON_BLOCKING, None)?;
    let present: Vec<u64> = (0..1_000_000).collect();
    let asked: Vec<u64> = (500_000..1_500_000).collect();
    let mut inserted = DeviceBuffer::from_slice(&present)?;
    let mut keys = DeviceBuffer::from_slice(&asked)?;
    let mut answers = DeviceBuffer::from_slice(&vec![0u8; asked.len()])?;

    // Warpset's filter on them, without a copy.
    let device = adopt_context(&context)?;
    let mut filter = SplitBlockBloom::builder(1_000_000).on(&device).build()?;
    // SAFETY: all work on these buffers is queued on this one stream, which is waited for before anything is dropped.
    unsafe {
        let ours = adopt_stream(&device, &stream)?;
        let inserted = adopt_memory(&device, &mut inserted)?;
        let keys = adopt_memory(&device, &mut keys)?;
        let mut answers = adopt_memory(&device, &mut answers)?;
        filter.insert_async(&ours, inserted.as_slice())?;
        filter.contains_async(&ours, keys.as_slice(), answers.as_mut_slice())?;
    }
    stream.synchronize()?;

    let mut found = vec![0u8; asked.len()];
    answers.copy_to(&mut found)?;
    assert!(found[..500_000].iter().all(|&answer| answer == 1), "a key that was inserted is missing");
    let false_positives = found[500_000..].iter().filter(|&&answer| answer == 1).count();
    assert!(false_positives < 10_000, "{false_positives} false positives");

    // And the other way round: `cust` copies on a stream of ours, into memory of ours.
    let ours = device.new_stream()?;
    let mut words = device.alloc_zeroed::<u64>(asked.len())?;
    // SAFETY: the copy is queued on a stream that is waited for before either buffer is used again.
    unsafe {
        use warpset_cust::cust::memory::AsyncCopyDestination;
        let (lent, mut target) = (lend_stream(&ours)?, lend_slice_mut(words.as_mut_slice()));
        target.async_copy_from(&keys, &lent)?;
    }
    ours.synchronize()?;
    assert_eq!(words.to_vec()?, asked);
    println!("{}: 1,000,000 keys asked, {false_positives} of 500,000 absent ones reported present", device);
    Ok(())
}
