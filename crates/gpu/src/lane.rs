//! A stream with pinned memory: what host slices travel on, in chunks, or all at once where they are short.

use std::ops::Range;

use crate::error::Result;
use crate::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, PinnedVec, Stream};

/// A stream with memory on both sides of the bus, for copies between the two. Allocates nothing if the device has kept
/// the parts of an earlier lane.
pub struct Lane {
    pub(crate) stream: Stream,
    pub(crate) host: PinnedVec<u64>,
    pub(crate) device: DeviceVec<u64>,
    /// Whether work has been queued since the stream was last waited for.
    pub(crate) is_busy: bool,
}

impl Lane {
    /// Makes a lane with a stream of its own, and these numbers of 64-bit words on the host and on the device.
    ///
    /// # Errors
    /// The driver's error of an allocation.
    pub fn new(device: &Device, host_words: usize, device_words: usize) -> Result<Lane> {
        Self::on(&device.new_stream()?, host_words, device_words)
    }

    /// Does the work of [`Lane::new`] for this stream.
    ///
    /// # Errors
    /// The errors of [`Lane::new`].
    pub fn on(stream: &Stream, host_words: usize, device_words: usize) -> Result<Lane> {
        Ok(Lane {
            device: stream.alloc_uninit(device_words)?,
            host: PinnedVec::kept(stream.device(), host_words)?,
            stream: stream.clone(),
            is_busy: false,
        })
    }

    /// Returns the stream, on which work with the device's memory is queued.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits until nothing uses the lane's memory.
    ///
    /// # Errors
    /// The error of the queued work.
    pub fn wait(&mut self) -> Result<()> {
        if self.is_busy {
            self.stream.synchronize()?;
            self.is_busy = false;
        }
        Ok(())
    }

    /// Waits, and gives the bytes on the host.
    ///
    /// # Errors
    /// As for [`Lane::wait`].
    pub fn host(&mut self) -> Result<&mut [u8]> {
        self.wait()?;
        Ok(bytemuck::cast_slice_mut(&mut self.host))
    }

    /// Borrows the bytes on the device.
    pub fn device(&mut self) -> Result<DeviceSliceMut<'_, u8>> {
        self.device.as_mut_slice().cast()
    }

    /// Queues the copy of some bytes from the host to the device, to the same places.
    ///
    /// # Errors
    /// The driver's error of the copy.
    pub fn send(&mut self, bytes: Range<usize>) -> Result<()> {
        self.is_busy = true;
        let from = &bytemuck::cast_slice::<u64, u8>(&self.host)[bytes.clone()];
        let to = self.device.as_mut_slice().cast::<u8>()?;
        let (_, rest) = to.split_at_mut(bytes.start);
        let (to, _) = rest.split_at_mut(bytes.len());
        // SAFETY: the pinned memory is the lane's, which waits before anyone changes it or it is given up.
        unsafe { self.stream.upload_async(to, from) }
    }

    /// Queues the copy of some bytes from the device to the host, to the same places.
    ///
    /// # Errors
    /// The driver's error of the copy.
    pub fn fetch(&mut self, bytes: Range<usize>) -> Result<()> {
        self.is_busy = true;
        let from = self.device.as_slice().cast::<u8>()?.slice(bytes.clone());
        let to = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.host)[bytes];
        // SAFETY: the pinned memory is the lane's, which waits before anyone reads it or it is given up.
        unsafe { self.stream.download_async(from, to) }
    }

    /// Queues the copy of the first bytes on the host to a place on the device that is not the lane's.
    ///
    /// # Errors
    /// The driver's error of the copy.
    pub fn send_to(&mut self, to: DeviceSliceMut<'_, u8>) -> Result<()> {
        self.is_busy = true;
        let from = &bytemuck::cast_slice::<u64, u8>(&self.host)[..to.len()];
        // SAFETY: the pinned memory is the lane's, which waits before anyone changes it or it is given up.
        unsafe { self.stream.upload_async(to, from) }
    }

    /// Queues the copy of some bytes elsewhere on the device to the first bytes on the host.
    ///
    /// # Safety
    /// The bytes are allocated when the stream reaches this copy. Until the caller has waited for the lane, no other
    /// work writes them.
    ///
    /// # Errors
    /// The driver's error of the copy.
    pub(crate) unsafe fn fetch_from(&mut self, from: DeviceSlice<'_, u8>) -> Result<()> {
        self.is_busy = true;
        let to = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut self.host)[..from.len()];
        // SAFETY: the pinned memory belongs to the lane, which waits before it is read; `from` is valid, by this
        // function's contract.
        unsafe { self.stream.download_unordered(from, to) }
    }
}

/// A lane that ends while copies are under way, as on an error or by a panic, waits for them.
impl Drop for Lane {
    fn drop(&mut self) {
        match self.wait() {
            Ok(()) => self.host.keep(),
            Err(_) => self.host.leak(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::devices;

    #[test]
    fn bytes_travel_there_and_back() {
        for device in devices(10) {
            let mut lane = Lane::new(&device, 40, 40).unwrap();
            for round in 0..3u8 {
                let host = lane.host().unwrap();
                host.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8 ^ round);
                lane.send(3..301).unwrap();
                lane.host().unwrap().fill(0);
                lane.fetch(5..300).unwrap();
                let host = lane.host().unwrap();
                assert!((0..320).all(|i| host[i] == if (5..300).contains(&i) { i as u8 ^ round } else { 0 }));
            }
        }
    }
}
