//! Saved structures: fixtures of each version, damaged and foreign bytes.
//!
//! `WARPSET_WRITE_FIXTURES=1 cargo test -p warpset-tests --test formats fixtures` writes the fixtures of a new version.

mod fuse;
mod lsm;
mod range;
mod sequence;
mod static_sets;
