//! (skeleton)
#![no_std]
