//! The primitives on host slices, on the threads of the current rayon pool: the same names as on a device, the same
//! results, the same errors.

pub mod merge;
pub mod non_associative;
pub mod reduce;
pub mod scan;
pub mod search;
pub mod segmented_sort;
pub mod select;
pub mod sort;
