//! Bodies of the integration tests, generic over backends; `tests/` runs them on each.

pub mod bloom;
pub mod files;
