//! Quotient filters: a genome screened, counted, merged and forgotten again; the figures and the table of the paper;
//! how slots lie in memory; other crates beside.
//!
//! Source of the figures: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU",
//! IPDPS 2018, section VII: 2^23 slots, remainders of 5 bits, keys of 32 bits.

mod choice;
mod counted;
mod device;
mod device_counted;
mod device_updates;
mod figures;
mod kmers;
mod kmers_device;
mod maplets;
mod memory;
mod real;
mod several_devices;
mod subject;
mod whole;

use bench_frame::input::keys::KeySpace;

use bench_frame::clock::Effort;
use bench_frame::suite::{Setup, Step, Suite};
use bench_record::Record;

/// The quotient filters' benches.
#[derive(Default)]
pub struct Quotient {
    /// The base-two logarithm of the number of slots, if one size is wanted instead of those of the effort.
    pub log2_slots: Option<u32>,
}

impl Suite for Quotient {
    fn name(&self) -> &'static str {
        "quotient"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = real::steps(setup);
        steps.extend(kmers::steps(setup));
        steps
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = Vec::new();
        if setup.cpu() {
            for size in self.log2_slots.map_or_else(|| Size::on_cpu(setup.effort), |bits| vec![Size::of(bits)]) {
                let loads = if size.is_large() { LARGE_LOADS } else { loads(setup.effort) };
                steps.extend(figures::steps(loads, size));
                steps.push(whole::step(size));
                if !size.is_large() {
                    steps.push(counted::step(size));
                }
            }
            steps.push(choice::step(if setup.effort == Effort::Quick { 16 } else { 22 }));
            steps.push(memory::step(if setup.effort == Effort::Quick { 16 } else { 20 }));
            steps.extend(figures::containers(setup.effort));
        }
        steps.extend(device::steps(setup, self.log2_slots));
        steps.extend(kmers_device::steps(setup));
        steps.extend(several_devices::steps(setup));
        steps
    }
}

/// Bits of quotients and remainders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The base-two logarithm of the number of slots.
    pub quotient_bits: u32,
    /// Bits of a remainder.
    pub remainder_bits: u32,
}

impl Size {
    /// The paper's: 2^23 slots, a rate of false positives of 1/32 when full.
    const PAPER: Size = Size { quotient_bits: 23, remainder_bits: 5 };

    /// Returns the size with remainders as in the paper.
    const fn of(quotient_bits: u32) -> Size {
        Size { quotient_bits, ..Size::PAPER }
    }

    fn on_cpu(effort: Effort) -> Vec<Size> {
        match effort {
            Effort::Quick => vec![Size::of(18)],
            Effort::Standard => vec![Size::PAPER],
            Effort::Full => vec![Size::PAPER, Size::of(28)],
        }
    }

    /// Returns the name for titles.
    fn name(self) -> String {
        format!("2^{} slots", self.quotient_bits)
    }

    /// Returns the number of keys that fill it to `load`.
    fn keys(self, load: f64) -> usize {
        ((1u64 << self.quotient_bits) as f64 * load) as usize
    }

    /// Whether it is so large that only a few figures are measured.
    fn is_large(self) -> bool {
        self.quotient_bits > 25
    }

    /// Returns the bytes of its slots.
    fn bytes(self) -> usize {
        (1usize << self.quotient_bits) * (self.remainder_bits as usize + 3) / 8
    }

    /// Returns the batches of up to two million, as in the paper: they fill a filter of 2^23 slots from 0.7 to 0.94.
    fn batches(self, sizes: &[usize]) -> Vec<usize> {
        let most = 2_000_000.min(self.keys(0.24));
        sizes.iter().copied().take_while(|batch| *batch < most).chain([most]).collect()
    }

    /// Returns the batch of Figure 10b, smaller for small filters.
    fn batch(self) -> usize {
        100_000.min(1 << (self.quotient_bits - 5))
    }
}

/// The load that the paper's batches of varying sizes meet.
const COMMON_LOAD: f64 = 0.7;
/// The highest load of a filter: the last figures' 0.95 and a batch.
const MAX_LOAD: f64 = 0.98;
/// Seed of all generated keys.
const SEED: u64 = 0x2018;
/// Streams of keys: inserted.
const INSERTED: u64 = 0;
/// Never inserted.
const ABSENT: u64 = 1;
/// Inserted later.
const BATCH: u64 = 2;

/// Returns the first `n` keys of a stream.
fn keys(stream: u64, n: usize) -> Vec<u32> {
    KeySpace::new(SEED).stream(stream).u32_keys(n)
}

/// Lists the loads of the figures.
fn loads(effort: Effort) -> &'static [f64] {
    match effort {
        Effort::Quick => &[0.5, 0.9],
        Effort::Standard => &[0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95],
        Effort::Full => &[0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95],
    }
}

/// Loads of large filters on the CPU.
const LARGE_LOADS: &[f64] = &[0.5, 0.7, 0.9];

/// Whether a count of rare independent events agrees with its expectation: within six standard deviations.
fn as_expected(count: usize, expected: f64) -> bool {
    (count as f64 - expected).abs() <= 6.0 * expected.sqrt() + 3.0
}

/// Common parameters of the rows of one figure: the study, the size of the filter, and its load.
#[derive(Clone, Copy)]
struct Point {
    study: &'static str,
    size: Size,
    load: f64,
}

impl Point {
    /// Makes a row without the name of the subject.
    fn row(self, operation: &str, n: usize, seconds: f64) -> Record {
        let row = Record::new("quotient", operation, n).time(seconds).param("study", self.study).param("key", "u32");
        let row = row.param("quotient_bits", self.size.quotient_bits);
        row.param("remainder_bits", self.size.remainder_bits).param("load", self.load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_frame::suite::Session;

    /// Runs small filters as a whole: everything is right, and each figure has its rows.
    #[test]
    fn small_filters_pass() {
        let size = Size::of(11);
        let mut steps = figures::steps(&[0.7], size);
        steps.push(whole::step(size));
        steps.push(counted::step(size));
        steps.push(memory::step(11));
        steps.push(choice::step(11));
        steps.push(figures::container_step(9, &[1, 5, 6], &[0.5]));
        let rows = Session::rows_of(steps);
        let rows: Vec<&Record> = rows.iter().filter(|row| row.structure == "quotient").collect();
        assert!(rows.iter().all(|row| row.checked), "{rows:?}");
        for study in [
            "lookup over fill",
            "lookup over batch",
            "update over fill",
            "insert over batch",
            "build over fill",
            counted::COUNTED,
            "memory",
            "containers",
            choice::STUDY,
        ] {
            let rows = rows.iter().filter(|row| row.text("study") == Some(study));
            assert!(rows.clone().any(|row| row.implementation().is_none()), "{study}");
            assert!(
                ["containers", "memory", choice::STUDY].contains(&study) || rows.clone().any(|row| row.peer.is_some()),
                "{study}"
            );
        }
    }

    #[test]
    fn the_emulator_passes() {
        let rows = Session::rows_of(Quotient::default().generated(&Setup::emulator()));
        assert!(rows.iter().any(|row| row.structure == "quotient" && row.checked));
    }

    #[test]
    fn counts_are_held_against_their_expectation() {
        assert!(as_expected(0, 0.0) && as_expected(84, 84.0) && as_expected(130, 84.0));
        assert!(!as_expected(0, 84.0) && !as_expected(168, 84.0));
    }
}
