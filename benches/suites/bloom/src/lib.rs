//! Bloom filters: screens on real input, every operation on generated keys, false-positive rates, the figures of Rao's
//! paper.

mod device;
mod forms;
mod generated;
mod host;
mod key_size;
mod peers;
mod screen;
mod several_devices;
mod studies;
mod subject;
mod variant;

use bench_frame::suite::{Setup, Step, Suite};

/// Bits per key at all sizes of filters of generated keys.
const BITS_PER_KEY: usize = 16;
/// Seed of all generated keys.
const SEED: u64 = 0x2026;
/// Streams of keys: inserted.
const INSERTED: u64 = 0;
/// Never inserted.
const ABSENT: u64 = 1;

/// The Bloom filters' benches.
pub struct Bloom;

impl Suite for Bloom {
    fn name(&self) -> &'static str {
        "bloom"
    }

    fn real(&self, setup: &Setup) -> Vec<Step> {
        screen::steps(setup)
    }

    fn generated(&self, setup: &Setup) -> Vec<Step> {
        let mut steps = generated::steps(setup);
        steps.extend(device::steps(setup));
        steps.extend(host::steps(setup));
        steps.extend(studies::steps(setup));
        steps.extend(key_size::steps(setup));
        steps.extend(several_devices::steps(setup));
        steps
    }
}

/// Whether a count of rare independent events agrees with its expectation: within six standard deviations and the
/// tenth that our formulas may be off.
fn plausible(count: usize, expected: f64) -> bool {
    (count as f64 - expected).abs() <= 6.0 * expected.sqrt() + 0.1 * expected + 3.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_frame::suite::Session;

    #[test]
    fn counts_are_held_against_their_expectation() {
        assert!(plausible(0, 0.0) && plausible(84, 84.0) && plausible(120, 84.0));
        assert!(!plausible(0, 84.0) && !plausible(168, 84.0) && !plausible(40_000, 27_000.0));
    }

    #[test]
    fn every_operation_is_right_on_the_emulator() {
        let rows = Session::rows_of(Bloom.generated(&Setup::emulator()));
        let of = |operation: &'static str| rows.iter().filter(move |row| row.operation == operation);
        for operation in ["insert", "contains hit", "contains miss", "test_and_insert", "union", "contains bitmap"] {
            assert!(of(operation).count() >= 1, "{operation}");
        }
        assert!(of("insert").count() >= 3);
        assert!(rows.iter().all(|row| row.checked && row.backend == "emulator" && row.limit_fraction.is_none()));
        let by_size = rows.iter().filter(|row| row.text("study") == Some("key size"));
        assert_eq!(by_size.count(), 2 * (2 + key_size::LENGTHS.len()));
    }
}
