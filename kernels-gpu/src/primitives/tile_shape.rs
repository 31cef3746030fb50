//! How kernels that work in tiles are launched.

/// Blocks and tiles of a kernel. Each instance stands at its kernel as `SHAPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Threads of a block.
    pub threads: u32,
    /// Items of a tile for each thread.
    pub items: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl TileShape {
    /// Items of a tile.
    pub const fn tile(self) -> usize {
        self.threads as usize * self.items as usize
    }
}

/// Gives a kernel its launch shape, as `SHAPE`, on the host.
macro_rules! launch_shape {
    ($kernel:ident $(<$param:ident>)?: $threads:expr, $items:expr, $shared_bytes:expr) => {
        #[cfg(not(target_arch = "nvptx64"))]
        impl$(<$param>)? $kernel$(<$param>)? {
            /// The kernel's launch shape.
            pub const SHAPE: crate::primitives::tile_shape::TileShape = crate::primitives::tile_shape::TileShape {
                threads: $threads,
                items: $items,
                shared_bytes: $shared_bytes,
            };
        }
    };
}
pub(crate) use launch_shape;
