//! Stages of a build on one device or several: from keys to a function.
//!
//! Source: section 5.10. Departures: hashing, assignment to buckets, encoding and the lists of buckets are kernels too,
//! so keys on the device never leave it, and words stay there; several devices share a build.
//!
//! 1. Every key becomes its bucket and its low half ([`buckets`](super::buckets)); a radix sort brings these into the
//!    order of buckets.
//! 2. The kind finds the codes of all buckets ([`DeviceHashKind`]).
//! 3. Codes become bits ([`EncodedBuckets`](super::EncodedBuckets)), after the bits of each bucket were added up.
//! 4. The lists are made from both sums ([`lists`](super::lists)).
//!
//! Each of several devices takes an equal share of the buckets and does steps 1 to 3 for it
//! ([`device_build`](super::device_build)); the first one joins the results, and does step 4 ([`join`](super::join)).
//! Each device hashes an equal share of the host's keys; keys on a device are all hashed there. Buckets and low halves
//! are kept, and every device takes those of its share ([`key_store`](super::key_store)).
//!
//! Keys that do not fit the devices' memory together are processed one range of buckets at a time. Buckets and low
//! halves are kept meanwhile if they fit, so that the host's keys cross the bus once; otherwise keys are hashed for
//! each range. The bits of a range and its two sums per bucket remain.

use warpset_gpu::{Device, Devices, Stream};

use super::device_build::SeedAttempt;
use super::plan::{AttemptError, FEWEST_KEYS, Plan, plan};
use super::source::Source;
use super::stage_timer::StageTimer;
use super::{DeviceHashKind, PerfectHash};
use crate::build::{Failure, Settings};
use crate::{Builder, Error};

/// Construction of functions on devices.
pub(super) struct Construction<'a, M: DeviceHashKind, S> {
    pub(super) devices: &'a Devices,
    pub(super) settings: Settings<M>,
    pub(super) builder: &'a Builder<M, S>,
    pub(super) options: M::DeviceOptions,
    /// Timer of the stages on the first device, for the bench.
    pub(super) timer: Option<&'a StageTimer>,
}

impl<M: DeviceHashKind, S> Construction<'_, M, S> {
    /// Builds the function of `keys`, not empty, under the first seed that succeeds; on the first device.
    pub(super) fn build(&self, keys: &impl Source) -> Result<PerfectHash<M>, Error> {
        let n = keys.len() as u64;
        let buckets = self.settings.buckets(n);
        let devices = self.devices.at_most(buckets.try_into().unwrap_or(usize::MAX));
        let streams: Vec<Stream> = devices.all().iter().map(Device::new_stream).collect::<Result<_, _>>()?;
        let reporter = self.builder.reporter();
        for (number, seed) in self.builder.seeds() {
            let settings = Settings { seed, ..self.settings };
            let mut plan = plan(keys, buckets, &devices)?;
            let failure = loop {
                let (on, heard_by) = ((&devices, &streams[..]), (&reporter, number));
                let mut attempt = SeedAttempt::new(settings, self.options, keys, on, plan, heard_by);
                attempt.time(self.timer);
                match attempt.run() {
                    Ok(function) => return Ok(function),
                    Err(AttemptError::Seed(failure)) => break failure,
                    Err(stopped) => {
                        drop(attempt);
                        // Returns the memory of the failed attempt.
                        devices.all().iter().try_for_each(Device::synchronize)?;
                        let of_share = devices.all().len() as u64 * plan.ranges;
                        if !stopped.is_for_room() || n / of_share < FEWEST_KEYS || of_share * 2 > buckets {
                            match stopped {
                                AttemptError::Error(error) => return Err(error),
                                _ => break Failure::Unlucky,
                            }
                        }
                        plan = Plan { ranges: plan.ranges * 2, are_kept: false };
                    }
                }
            };
            match failure {
                Failure::Collision { bucket, low } => {
                    keys.check_duplicates(&M::hashing(seed), (bucket, low), buckets)?
                }
                Failure::Interrupted(at) => return Err(at.into()),
                Failure::Unlucky => {}
            }
        }
        Err(Error::HashesCollide { seeds: crate::builder::SEEDS })
    }
}
