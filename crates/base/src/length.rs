//! Lengths of slices that go together.

/// Slices that go together differ in length, or an output does not have a place for each item.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found} given, {needed} needed; pass a slice of that length")]
pub struct LengthMismatch {
    /// What is too short or too long: "values".
    pub what: &'static str,
    /// The length that is needed.
    pub needed: usize,
    /// The length that was given.
    pub found: usize,
}

crate::debug_as_display!(LengthMismatch);

impl LengthMismatch {
    /// An error unless `found` is exactly what is needed.
    ///
    /// # Errors
    /// [`LengthMismatch`].
    pub fn unless_equal(what: &'static str, needed: usize, found: usize) -> Result<(), LengthMismatch> {
        if found == needed { Ok(()) } else { Err(LengthMismatch { what, needed, found }) }
    }

    /// An error unless `found` is what is needed, or more.
    ///
    /// # Errors
    /// [`LengthMismatch`].
    pub fn unless_room(what: &'static str, needed: usize, found: usize) -> Result<(), LengthMismatch> {
        if found >= needed { Ok(()) } else { Err(LengthMismatch { what, needed, found }) }
    }
}

/// An error unless there are as many answers, or whatever goes with keys, as keys.
///
/// # Errors
/// [`LengthMismatch`].
pub fn same_length(keys: usize, found: usize) -> Result<(), LengthMismatch> {
    LengthMismatch::unless_equal("places or values for keys", keys, found)
}
