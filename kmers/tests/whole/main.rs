//! Whole runs of the library and of the program, on generated files.

#![allow(clippy::cloned_ref_to_slice_refs, reason = "lists of files read alike, of one file or several")]

mod damage;
mod files;
mod judges;
mod labels;
mod messages;
#[cfg(unix)]
mod outputs;
mod reads;
mod runs;
mod screens;
mod sequences;
mod unusual;
