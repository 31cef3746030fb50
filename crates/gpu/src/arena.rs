//! Vectors that share one allocation: of short ones allocating takes longer than filling.

use std::sync::Arc;

use bytemuck::Pod;

use crate::error::Result;
use crate::memory::{Memory, byte_len};
use crate::{DeviceSliceMut, DeviceVec, Stream};

/// Alignment of every vector's address, equal to that of an allocation.
const ALIGNMENT: usize = 256;

/// An allocation from which vectors are taken, one after the other. It is freed with the last of them.
pub struct Arena {
    memory: Arc<Memory>,
    bytes: usize,
    /// Bytes that have been taken.
    taken: usize,
}

impl Arena {
    /// Allocates room for vectors of `bytes` bytes together, as counted by [`Arena::bytes_of`]; allocated and freed in
    /// the order of `stream`.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`](crate::GpuError::OutOfMemory), and other errors of the driver's allocation.
    pub fn new(stream: &Stream, bytes: usize) -> Result<Arena> {
        Ok(Arena { memory: Arc::new(Memory::on_stream(stream, bytes)?), bytes, taken: 0 })
    }

    /// Returns the bytes that a vector of `len` items takes.
    ///
    /// # Errors
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge).
    pub fn bytes_of<T>(len: usize) -> Result<usize> {
        Ok(byte_len::<T>(len)?.next_multiple_of(ALIGNMENT))
    }

    /// Takes a vector with unspecified contents, or with the bytes that [`Arena::rest`] was filled with.
    ///
    /// # Errors
    /// [`GpuError::TooLarge`](crate::GpuError::TooLarge).
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn take<T: Pod>(&mut self, len: usize) -> Result<DeviceVec<T>> {
        let (bytes, room) = (byte_len::<T>(len)?, Self::bytes_of::<T>(len)?);
        assert!(room <= self.bytes - self.taken, "an arena has room for what it was made for");
        let memory = self.memory.part(self.taken, bytes);
        self.taken += room;
        Ok(DeviceVec::of_memory(memory, len))
    }

    /// Borrows the bytes that have not been taken yet.
    pub fn rest(&mut self) -> DeviceSliceMut<'_, u8> {
        DeviceSliceMut::new(&self.memory, self.bytes).split_at_mut(self.taken).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::devices;

    #[test]
    fn vectors_share_what_the_last_one_frees() {
        for device in devices(11) {
            // Other tests use the same CUDA device.
            let left = || if device.is_emulator() { device.budget().left() } else { 0 };
            let before = left();
            let stream = device.new_stream().unwrap();
            let bytes = Arena::bytes_of::<u32>(70).unwrap() + Arena::bytes_of::<u64>(3).unwrap();
            let mut arena = Arena::new(&stream, bytes).unwrap();
            let mut first = arena.take::<u32>(70).unwrap();
            let none = arena.take::<u32>(0).unwrap();
            stream.upload(arena.rest().slice_mut(..24).cast::<u64>().unwrap(), &[1, 2, 3]).unwrap();
            let second = arena.take::<u64>(3).unwrap();
            drop((arena, none));
            stream.fill_words(&mut first, 7).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(first.to_vec().unwrap(), [7; 70]);
            assert!(first.follows(&stream) && second.as_slice().as_raw().is_multiple_of(256));
            drop(first);
            assert_eq!(second.to_vec().unwrap(), [1, 2, 3]);
            assert!(!device.is_emulator() || before - left() == bytes);
            drop(second);
            stream.synchronize().unwrap();
            assert_eq!(left(), before);
        }
    }
}
