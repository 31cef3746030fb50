//! Queries over levels, the newest first, whoever owns them: one implementation for [`Lsm`](crate::Lsm),
//! [`Snapshot`](crate::Snapshot), [`SortedArray`](crate::SortedArray) and [`View`](crate::View).

pub(crate) mod few;
pub(crate) mod lookup;
pub(crate) mod methods;
pub(crate) mod order;
pub(crate) mod range;
pub(crate) mod scan;
