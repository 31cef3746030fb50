//! The 31-mers of reads counted on a GPU: from packed bases in the host's memory to the finished filter in the
//! device's; and 31- and 55-mers from FASTA in the host's memory to a table in it.

use warpset::gpu::Device;
use warpset_core::hash::finalise;
use warpset_kmers::gpu::{Counter, Packed};
use warpset_kmers::{BackendChoice, K, Settings, count_bytes};

use super::device::{making, push};
use bench_frame::clock::Effort;
use bench_frame::suite::{Session, Setup, Step};
use bench_record::Record;

/// Bases of a k-mer.
const K_BASES: u32 = 31;
/// Bases of the k-mers of tables on the host.
const OF_TABLES: [u32; 2] = [K_BASES, 55];
/// Bases of a read, of which every other one has a substitution.
const READ: usize = 150;
/// The most k-mers whose filter is compared with the host's.
const COMPARED: usize = 1 << 23;

/// Bases of the genome, and reads of it.
#[derive(Clone, Copy)]
struct Size {
    genome: u64,
    reads: u64,
}

fn size(device: &Device, effort: Effort) -> Size {
    match (device.is_emulator(), effort) {
        (true, _) => Size { genome: 1000, reads: 20 },
        (_, Effort::Quick) => Size { genome: 1 << 16, reads: 1 << 15 },
        (_, Effort::Standard) => Size { genome: 4_600_000, reads: 300_000 },
        (_, Effort::Full) => Size { genome: 4_600_000, reads: 3_000_000 },
    }
}

/// Makes the step, on each device.
pub fn steps(setup: &Setup) -> Vec<Step> {
    let step = |device: &Device| {
        let (device, size) = (device.clone(), size(device, setup.effort));
        let name = if device.is_emulator() { "emulator" } else { "GPU" };
        Step::new(format!("quotient: k-mers of reads counted on the {name}"), move |session| {
            count(session, &device, size)
        })
    };
    setup.devices().map(step).collect()
}

/// Generates read `i`.
fn read(genome: &[u8], i: u64) -> Vec<u8> {
    let at = (finalise(2 * i) % (genome.len() - READ) as u64) as usize;
    let mut read = genome[at..at + READ].to_vec();
    let random = finalise(2 * i + 1);
    if random & 1 == 1 {
        let place = (random >> 1) as usize % READ;
        let other = |base: &u8| *base != read[place];
        read[place] = b"ACGT".iter().copied().filter(other).nth((random >> 32) as usize % 3).unwrap_or(b'N');
    }
    read
}

fn count(session: &mut Session, device: &Device, size: Size) -> anyhow::Result<()> {
    let genome: Vec<u8> = (0..size.genome).map(|i| b"ACGT"[(finalise(!i) & 3) as usize]).collect();
    let n = size.reads as usize * (READ + 1 - K_BASES as usize);
    let (mut parts, mut fasta) = (vec![Packed::new()], Vec::new());
    for i in 0..size.reads {
        let read = read(&genome, i);
        if i % 10_000 == 9_999 {
            parts.push(Packed::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(&read);
        }
        fasta.extend_from_slice(&[b">\n", &read[..], b"\n"].concat());
    }
    let k = K::new(K_BASES)?;
    let (seconds, (filter, distinct)) = making(session, device, || {
        let mut counter = Counter::new(device, k)?;
        counter.add(&parts)?;
        Ok(counter.finish(1)?)
    })?;
    let mut right = filter.len() == n as u64;
    if n <= COMPARED {
        let table = count_bytes(&fasta, &Settings::new(K_BASES)?.backend(BackendChoice::Cpu))?;
        right &= table.filter() == Some(&filter.to_host()?) && table.distinct() == distinct;
    }
    let row = |n, seconds, by: &str, bytes: u64, distinct: u64| {
        let row = Record::new("quotient", "count k-mers", n).time(seconds).by(by, false);
        let mut row = row.param("study", "k-mers").param("input", format!("{} reads of {READ} bases", size.reads));
        row.bits_per_item = Some(8.0 * bytes as f64 / distinct as f64);
        row
    };
    push(session, device, row(n, seconds, "packed reads", filter.memory_bytes(), distinct), right);
    drop(filter);
    for k in OF_TABLES {
        let (settings, n) = (Settings::new(k)?, size.reads as usize * (READ + 1 - k as usize));
        let (seconds, table) = making(session, device, || Ok(count_bytes(&fasta, &settings.clone().on(device))?))?;
        let right = table.total() == n as u64
            && (n > COMPARED || table == count_bytes(&fasta, &settings.clone().backend(BackendChoice::Cpu))?);
        let row = row(n, seconds, "FASTA to a table", table.memory_bytes(), table.distinct()).param("k", k);
        push(session, device, row, right);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_counted() {
        let rows = Session::rows_of(steps(&Setup::emulator()));
        assert!(rows.len() == 3 && rows.iter().all(|row| row.checked), "{rows:?}");
        assert!(rows[0].n == 20 * 120 && rows[2].n == 20 * 96, "{rows:?}");
    }
}
