//! Scans by operators that are not associative, on host slices: see [`crate::non_associative`].

use warpset_core::scan::MaxPlus;
use warpset_core::scan::non_associative::{Lifted, Recurrence};

use super::scan::scan_parts;
use crate::Result;
use crate::check::same_len;

/// A scan by a recurrence whose steps are functions that compose, on all threads.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if the two are not of the same length.
pub fn scan<R: Lifted>(input: &[R::Item], out: &mut [R::Number]) -> Result<()> {
    same_len("results of a scan", input.len(), out.len())?;
    scan_parts::<MaxPlus<R::Number>, _>(out, |i, _| R::lift(input[i]), |place, _, _, after| *place = R::finish(after));
    Ok(())
}

/// A scan by any recurrence, item by item: the definition.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if the two are not of the same length.
pub fn scan_sequentially<R: Recurrence>(input: &[R::Item], out: &mut [R::Value]) -> Result<()> {
    same_len("results of a scan", input.len(), out.len())?;
    let mut before = None;
    for (&item, place) in input.iter().zip(out) {
        let value = before.map_or_else(|| R::start(item), |before| R::step(before, item));
        *place = value;
        before = Some(value);
    }
    Ok(())
}
