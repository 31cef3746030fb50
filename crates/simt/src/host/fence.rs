//! Fences, which matter to the race detector and to delayed stores.
use super::engine;
use super::operation::Scope;

pub fn block() {
    engine::fence(Scope::Block);
}

pub fn device() {
    engine::fence(Scope::Device);
}

pub fn system() {
    engine::fence(Scope::Device);
}
