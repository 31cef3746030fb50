//! Launch shapes of kernels that work in tiles.

/// Blocks and tiles of a kernel. Each kernel has its instance as `SHAPE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileShape {
    /// Threads per block.
    pub threads: u32,
    /// Items per tile and thread.
    pub items: u32,
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
}

impl TileShape {
    /// Returns the items per tile.
    pub const fn tile(self) -> usize {
        self.threads as usize * self.items as usize
    }
}

/// Gives a kernel its launch shape, as `SHAPE`, on the host.
macro_rules! launch_shape {
    ($kernel:ident $(<$param:ident>)?: $threads:expr, $items:expr, $shared_bytes:expr) => {
        #[cfg(not(target_arch = "nvptx64"))]
        impl$(<$param>)? $kernel$(<$param>)? {
            /// Launch shape of the kernel.
            pub const SHAPE: crate::primitives::tile_shape::TileShape = crate::primitives::tile_shape::TileShape {
                threads: $threads,
                items: $items,
                shared_bytes: $shared_bytes,
            };
        }
    };
}
pub(crate) use launch_shape;
