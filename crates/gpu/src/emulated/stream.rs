//! Streams of emulated devices.

use std::sync::Arc;

use warpset_simt::emulator::POISON;
use warpset_simt::{KernelInfo, LaunchConfig, ThreadBody};

use super::EmulatedDevice;
use super::deferred::Point;
use super::work::Work;
use crate::error::{GpuError, Result};

/// A user's stream.
pub(crate) struct EmulatedStream {
    device: Arc<EmulatedDevice>,
    /// Its number, unless operations are executed at once.
    number: Option<u32>,
}

impl EmulatedStream {
    pub(crate) fn new(device: Arc<EmulatedDevice>) -> Self {
        let number = device.deferred.as_ref().map(|deferred| deferred.open());
        Self { device, number }
    }

    /// Queues an operation, or executes it at once. The caller gives the guarantees of [`Work`].
    fn queue(&self, work: Work) -> Result<()> {
        match (&self.device.deferred, self.number) {
            (Some(deferred), Some(number)) => deferred.queue(&self.device, number, work),
            _ => self.device.perform(work, None).map_err(GpuError::Emulator),
        }
    }

    /// Returns the end of this stream's work; `None` if it never has any.
    pub(crate) fn end(&self) -> Option<Point> {
        Some(self.device.deferred.as_ref()?.end(self.number?))
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.end().map_or(Ok(()), |end| self.device.pass(&end))
    }

    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.end().map_or(Ok(true), |end| self.device.has_passed(&end))
    }

    /// Makes this stream wait for a point of `source`. Work of another device is executed at once.
    pub(crate) fn wait(&self, source: &EmulatedDevice, point: Point) -> Result<()> {
        match (&self.device.deferred, self.number) {
            (Some(deferred), Some(number)) if std::ptr::eq(&*self.device, source) => {
                deferred.wait(&self.device, number, point);
                Ok(())
            }
            _ => source.pass(&point),
        }
    }

    /// Makes this stream wait for what `other` holds now.
    pub(crate) fn wait_for(&self, other: &EmulatedStream) -> Result<()> {
        other.end().map_or(Ok(()), |end| self.wait(&other.device, end))
    }

    /// Allocates memory that this stream may use at once, and others once they have waited for it. `bytes > 0`.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<usize> {
        let address = self.device.allocate(bytes)?;
        if self.number.is_some() {
            self.queue(Work::Allocate { address, bytes })?;
        }
        Ok(address)
    }

    /// Frees memory of [`allocate`](Self::allocate) after everything that this stream holds.
    pub(crate) fn free(&self, address: usize, bytes: usize) {
        // After a fault the memory stays until the device goes.
        let _ = self.queue(Work::Free { address, bytes });
    }

    /// Queues a copy from the host.
    ///
    /// # Safety
    /// Until the stream has passed this copy, `from` is valid for `bytes` reads and `to..` is within an allocation of
    /// this device.
    pub(crate) unsafe fn upload(&self, to: usize, from: *const u8, bytes: usize) -> Result<()> {
        self.queue(Work::Upload { to, from: from.expose_provenance(), bytes })
    }

    /// Queues a copy to the host.
    ///
    /// # Safety
    /// Until the stream has passed this copy, `to` is valid for `bytes` writes and `from..` is within an allocation of
    /// this device.
    pub(crate) unsafe fn download(&self, to: *mut u8, from: usize, bytes: usize) -> Result<()> {
        if self.number.is_some() {
            // SAFETY: the caller allows writes to `to`. A host that reads it too early finds poison.
            unsafe { to.write_bytes(POISON, bytes) };
        }
        self.queue(Work::Download { to: to.expose_provenance(), from, bytes })
    }

    /// Queues a copy between or within devices.
    ///
    /// # Safety
    /// Until the stream has passed this copy, `to..` is within an allocation of this device and `from..` within one of
    /// `source`.
    pub(crate) unsafe fn copy(&self, to: usize, source: &EmulatedDevice, from: usize, bytes: usize) -> Result<()> {
        let is_local = std::ptr::eq(&*self.device, source);
        self.queue(Work::Copy { to, from, bytes, is_local })?;
        // The source's streams have no order with this copy, so its memory may be freed once this returns.
        if is_local { Ok(()) } else { self.synchronize() }
    }

    /// Queues a fill with one byte.
    ///
    /// # Safety
    /// Until the stream has passed this fill, `address..` is within an allocation of this device.
    pub(crate) unsafe fn set_bytes(&self, address: usize, byte: u8, bytes: usize) -> Result<()> {
        self.queue(Work::FillBytes { address, byte, bytes })
    }

    /// Queues a fill with one word.
    ///
    /// # Safety
    /// Until the stream has passed this fill, `address` is a multiple of 4, and `address..` is within an allocation of
    /// this device.
    pub(crate) unsafe fn set_words(&self, address: usize, word: u32, words: usize) -> Result<()> {
        self.queue(Work::FillWords { address, word, words })
    }

    /// Queues a launch.
    ///
    /// # Safety
    /// The kernel's contract is kept until the stream has passed the launch.
    pub(crate) unsafe fn launch(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        thread: ThreadBody,
    ) -> Result<()> {
        self.device.check_launch(info, config)?;
        self.queue(Work::Launch { info, config, thread })
    }
}

impl Drop for EmulatedStream {
    fn drop(&mut self) {
        if let (Some(deferred), Some(number)) = (&self.device.deferred, self.number) {
            deferred.close(number);
        }
    }
}
