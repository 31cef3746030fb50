//! Indices, barriers, spin hints.
use super::engine;
use super::operation::BarrierOp;

macro_rules! indices {
    ($($name:ident = $field:ident . $axis:ident;)*) => {$(
        pub fn $name() -> u32 {
            engine::with(|engine| engine.shape.$field.$axis)
        }
    )*};
}

indices! {
    thread_idx_x = thread_idx.x;
    thread_idx_y = thread_idx.y;
    thread_idx_z = thread_idx.z;
    block_idx_x = block_idx.x;
    block_idx_y = block_idx.y;
    block_idx_z = block_idx.z;
    block_dim_x = block_dim.x;
    block_dim_y = block_dim.y;
    block_dim_z = block_dim.z;
    grid_dim_x = grid_dim.x;
    grid_dim_y = grid_dim.y;
    grid_dim_z = grid_dim.z;
}

#[track_caller]
pub fn sync_threads() {
    engine::barrier(BarrierOp::Plain, false);
}

#[track_caller]
pub fn sync_threads_count(predicate: bool) -> u32 {
    engine::barrier(BarrierOp::Count, predicate)
}

#[track_caller]
pub fn sync_threads_and(predicate: bool) -> bool {
    engine::barrier(BarrierOp::And, predicate) != 0
}

#[track_caller]
pub fn sync_threads_or(predicate: bool) -> bool {
    engine::barrier(BarrierOp::Or, predicate) != 0
}

#[track_caller]
pub fn spin_hint() {
    engine::spin();
}

#[track_caller]
pub fn nanosleep(_nanoseconds: u32) {
    engine::spin();
}

pub fn clock() -> u32 {
    engine::with(|engine| engine.steps() as u32)
}

#[track_caller]
pub fn trap() -> ! {
    engine::trap()
}
