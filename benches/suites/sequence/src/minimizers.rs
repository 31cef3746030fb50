//! Minimizers of random bases, k = 31 and w = 15: one long sequence, and reads; beside the crate `simd-minimizers`,
//! which has its instructions from the compiler's flags: its rows count in builds with `RUSTFLAGS=-Ctarget-cpu=native`.

use simd_minimizers::packed_seq::{PackedNSeqVec, SeqVec};
use simd_minimizers::seq_hash::NtHasher;
use warpset::gpu::Device;
use warpset::sequence::gpu::DeviceText;
use warpset::sequence::{Minimizers, Packed};

use bench_frame::clock::Effort;
use bench_frame::input::genome::random_letters;
use bench_frame::suite::{Generated, Session, Step, Target, Threads, sizes_on};
use bench_frame::{gpu_limits, machine};
use bench_record::Record;

/// Bases of a k-mer, and k-mers of a window.
const WINDOW: (u32, u32) = (31, 15);
/// Letters of reads.
const READS: [usize; 3] = [150, 15_000, usize::MAX];

/// The benches of minimizers.
pub const MINIMIZERS: Generated = Generated { name: "minimizers", host: steps, device: steps_on };

/// Makes a step for reads of each length.
fn steps(effort: Effort) -> Vec<Step> {
    let bases = if effort == Effort::Quick { 1 << 23 } else { 1 << 26 };
    let step = |len: usize| move |session: &mut Session| on_host(session, bases, len.min(bases));
    READS.iter().map(|&len| Step::new(format!("minimizers: {}", reads(len)), step(len))).collect()
}

/// Makes the steps on a device.
fn steps_on(device: &Device, effort: Effort) -> Vec<Step> {
    sizes_on(
        device,
        &READS,
        |len| format!("minimizers: {}", reads(len)),
        match (device.is_emulator(), effort) {
            (true, _) => |session, device, len| on_device(session, device, 20_000, len.min(20_000)),
            (_, Effort::Quick) => |session, device, len| on_device(session, device, 1 << 26, len.min(1 << 26)),
            _ => |session, device, len| on_device(session, device, 1 << 28, len.min(1 << 28)),
        },
    )
}

/// Names the sequences.
fn reads(len: usize) -> String {
    if len == usize::MAX { "one sequence".to_owned() } else { format!("reads of {len}") }
}

fn row(bases: usize, len: usize, seconds: f64) -> Record {
    let row = Record::new("minimizers", "find", bases).time(seconds).param("kmers", bases).param("read", len);
    row.param("input", "generated").param("key", "k-mer of 31 bases")
}

/// Measures one thread: positions of reads, and canonical k-mers.
fn on_host(session: &mut Session, bases: usize, len: usize) -> anyhow::Result<()> {
    let (k, w) = WINDOW;
    let letters = random_letters(bases, 3);
    let minimizers = Minimizers::deacon(k, w)?;
    let mut packed = Packed::new();
    letters.chunks(len).for_each(|read| _ = packed.push(read));
    let mut kmers = Vec::new();
    let ours = session.time(Threads::One, &mut kmers, |kmers| {
        kmers.clear();
        letters.chunks(len).for_each(|read| minimizers.kmers_into(read, kmers));
        Ok(())
    })?;
    let mut of_packed = Vec::new();
    let ours_packed = session.time(Threads::One, &mut of_packed, |kmers| {
        kmers.clear();
        minimizers.kmers_packed_into(&packed, kmers);
        Ok(())
    })?;
    let mut peer = (PackedNSeqVec { seq: Default::default(), ambiguous: Default::default() }, Vec::new(), Vec::new());
    let (hasher, mut cache) = (NtHasher::<true, 1>::new(k as usize), Default::default());
    let theirs = session.time(Threads::One, &mut peer, |(text, positions, kmers)| {
        kmers.clear();
        for read in letters.chunks(len).filter(|read| read.len() >= (k + w - 1) as usize) {
            text.seq.clear();
            text.ambiguous.clear();
            positions.clear();
            text.seq.push_ascii(read);
            text.ambiguous.push_ascii(read);
            let found = simd_minimizers::canonical_minimizers(k as usize, w as usize)
                .hasher(&hasher)
                .run_skip_ambiguous_windows_with_buf(text.as_slice(), positions, &mut cache);
            kmers.extend(found.pos_and_values_u64().map(|(_, kmer)| kmer));
        }
        Ok(())
    })?;
    let right = kmers == peer.2 && of_packed == kmers;
    let version = machine::version("simd-minimizers");
    let lanes = if cfg!(target_feature = "avx2") { "" } else { ", compiled without AVX2" };
    for (seconds, by, is_peer) in [
        (ours, "from letters".to_owned(), false),
        (ours_packed, "from packed bases".to_owned(), false),
        (theirs, format!("simd-minimizers {version}{lanes}"), true),
    ] {
        session.add(&Target::Cpu, Threads::One, row(bases, len, seconds).by(by, is_peer), right);
    }
    Ok(())
}

fn on_device(session: &mut Session, device: &Device, bases: usize, len: usize) -> anyhow::Result<()> {
    let (k, w) = WINDOW;
    let mut text = Vec::with_capacity(bases + bases / len);
    let mut packed = Packed::new();
    for read in random_letters(bases, 3).chunks(len) {
        text.extend_from_slice(read);
        text.push(b'\n');
        packed.push(read);
    }
    let minimizers = Minimizers::deacon(k, w)?;
    let stream = device.new_stream()?;
    let (letters, packed_there) = (device.from_slice(&text)?, packed.to_device(device)?);
    let room = minimizers.find_device(packed_there.text())?.len();
    let mut positions = device.alloc_zeroed::<u32>(room)?;
    let mut kmers = device.alloc_zeroed::<u64>(room)?;
    let mut count = device.alloc_zeroed::<u64>(1)?;
    let mut wanted = Vec::new();
    minimizers.kmers_into(&text, &mut wanted);
    let inputs =
        [("from letters", DeviceText::Letters(letters.as_slice())), ("from packed bases", packed_there.text())];
    for (by, there) in inputs {
        let seconds = gpu_limits::repeated(device, &stream, session.effort, || {
            let (to, count) = ((positions.as_mut_slice(), kmers.as_mut_slice()), count.as_mut_slice());
            // SAFETY: all memory lives until the stream has been waited for, and nothing else uses it.
            unsafe { minimizers.find_async(&stream, there, to.0, to.1, count)? };
            Ok(())
        })?;
        let right = kmers.to_vec()? == wanted && count.to_vec()? == [room as u64];
        let target = Target::Gpu(device.clone());
        session.add(&target, Threads::All, row(bases, len, seconds).by(by, false), right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_frame::suite::{Setup, Suite};

    #[test]
    fn minimizers_are_those_of_the_peer() {
        let step = |len| Step::new("minimizers", move |session: &mut Session| on_host(session, 20_000, len));
        let rows = Session::rows_of(READS.iter().map(|&len| step(len.min(20_000))).collect());
        assert!(rows.len() == 9 && rows.iter().all(|row| row.checked));
    }

    #[test]
    fn on_the_emulator() {
        let rows = Session::rows_of(MINIMIZERS.generated(&Setup::emulator()));
        let ours: Vec<_> = rows.iter().filter(|row| row.structure == "minimizers").collect();
        assert!(ours.len() == 6 && ours.iter().all(|row| row.checked));
    }
}
