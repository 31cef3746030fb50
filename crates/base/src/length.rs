//! Lengths of slices that go together.

/// Slices that go together differ in length, or an output does not have a place for each item.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found} given, {needed} needed; pass a slice of that length")]
pub struct LengthMismatch {
    /// Name of the slice that is too short or too long: "values".
    pub what: &'static str,
    /// The length that is needed.
    pub needed: usize,
    /// The length that was given.
    pub found: usize,
}

crate::debug_as_display!(LengthMismatch);

impl LengthMismatch {
    /// Reports an error unless `found` equals `needed`.
    ///
    /// # Errors
    /// [`LengthMismatch`].
    pub fn unless_equal(what: &'static str, needed: usize, found: usize) -> Result<(), LengthMismatch> {
        if found == needed { Ok(()) } else { Err(LengthMismatch { what, needed, found }) }
    }

    /// Reports an error unless `found` is at least `needed`.
    ///
    /// # Errors
    /// [`LengthMismatch`].
    pub fn unless_room(what: &'static str, needed: usize, found: usize) -> Result<(), LengthMismatch> {
        if found >= needed { Ok(()) } else { Err(LengthMismatch { what, needed, found }) }
    }
}

/// Reports an error unless there is one answer, or other item, per key.
///
/// # Errors
/// [`LengthMismatch`].
pub fn same_length(keys: usize, found: usize) -> Result<(), LengthMismatch> {
    LengthMismatch::unless_equal("places or values for keys", keys, found)
}
