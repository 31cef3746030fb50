//! Fences, which matter to the race detector and to delayed stores.
use crate::emulator::engine;

#[track_caller]
pub fn block() {
    engine::fence();
}

#[track_caller]
pub fn device() {
    engine::fence();
}

#[track_caller]
pub fn system() {
    engine::fence();
}
