//! Operations of an emulated device, as data: executed by the call that makes them, or later.

use std::ptr;

use warpset_simt::emulator::{AccessKind, Fault, Operation, POISON};
use warpset_simt::{KernelInfo, LaunchConfig, ThreadBody};

use super::EmulatedDevice;

/// An operation on addresses of the device and of the host.
///
/// Whoever makes one guarantees, until it has been executed: every range is allocated; nothing that the streams do not
/// order accesses it, but that an operation that writes is the only one.
pub(super) enum Work {
    /// The start of an allocation's life on its stream: contents are poison.
    Allocate { address: usize, bytes: usize },
    /// The end of an allocation's life.
    Free { address: usize, bytes: usize },
    /// A copy from the host.
    Upload { to: usize, from: usize, bytes: usize },
    /// A copy to the host.
    Download { to: usize, from: usize, bytes: usize },
    /// A copy on the device; `source` is whether `from` is this device's memory too.
    Copy { to: usize, from: usize, bytes: usize, is_local: bool },
    /// A fill with a byte.
    FillBytes { address: usize, byte: u8, bytes: usize },
    /// A fill with an aligned word.
    FillWords { address: usize, word: u32, words: usize },
    /// A launch, which has been checked.
    Launch { info: &'static KernelInfo, config: LaunchConfig, thread: ThreadBody },
}

impl Work {
    /// Returns the name for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Work::Allocate { .. } => "an allocation",
            Work::Free { .. } => "a free",
            Work::Upload { .. } => "a copy to the device",
            Work::Download { .. } => "a copy to the host",
            Work::Copy { .. } => "a copy on the device",
            Work::FillBytes { .. } | Work::FillWords { .. } => "a fill",
            Work::Launch { info, .. } => info.name,
        }
    }

    /// Whether it is executed as soon as the streams allow, so that a late access after it finds the memory freed.
    pub(super) fn is_prompt(&self) -> bool {
        matches!(self, Work::Allocate { .. } | Work::Free { .. })
    }

    /// Returns the ranges of device memory that this work accesses as a whole, with the kind of access. A launch
    /// accesses word by word.
    fn ranges(&self) -> [Option<(usize, usize, AccessKind)>; 2] {
        let write = |address, bytes| Some((address, bytes, AccessKind::Write));
        let read = |address, bytes| Some((address, bytes, AccessKind::Read));
        match *self {
            Work::Allocate { address, bytes } | Work::Free { address, bytes } => [write(address, bytes), None],
            Work::Upload { to, bytes, .. } => [write(to, bytes), None],
            Work::Download { from, bytes, .. } => [read(from, bytes), None],
            Work::Copy { to, from, bytes, is_local } => {
                [write(to, bytes), if is_local { read(from, bytes) } else { None }]
            }
            Work::FillBytes { address, bytes, .. } => [write(address, bytes), None],
            Work::FillWords { address, words, .. } => [write(address, 4 * words), None],
            Work::Launch { .. } => [None, None],
        }
    }
}

impl EmulatedDevice {
    /// Executes an operation; checks its order with others where it is one of a stream.
    pub(super) fn perform(&self, work: Work, operation: Option<&Operation>) -> Result<(), Fault> {
        if let Some(operation) = operation {
            for (address, bytes, kind) in work.ranges().into_iter().flatten() {
                self.emulator.access_in_order(operation, address, bytes, kind)?;
            }
        }
        let at = ptr::with_exposed_provenance::<u8>;
        let at_mut = ptr::with_exposed_provenance_mut::<u8>;
        // SAFETY: all ranges are allocated, and nothing else accesses what is written (see `Work`); words are aligned.
        unsafe {
            match work {
                Work::Allocate { address, bytes } => ptr::write_bytes(at_mut(address), POISON, bytes),
                Work::Free { address, bytes } => {
                    ptr::write_bytes(at_mut(address), POISON, bytes);
                    self.release(address);
                }
                Work::Upload { to, from, bytes } => ptr::copy_nonoverlapping(at(from), at_mut(to), bytes),
                Work::Download { to, from, bytes } => ptr::copy_nonoverlapping(at(from), at_mut(to), bytes),
                Work::Copy { to, from, bytes, .. } => ptr::copy(at(from), at_mut(to), bytes),
                Work::FillBytes { address, byte, bytes } => ptr::write_bytes(at_mut(address), byte, bytes),
                Work::FillWords { address, word, words } => {
                    std::slice::from_raw_parts_mut(at_mut(address).cast::<u32>(), words).fill(word);
                }
                Work::Launch { info, config, thread } => {
                    return match operation {
                        Some(operation) => self.emulator.launch_in_order(info, config, &*thread, operation),
                        None => self.emulator.launch(info, config, &*thread),
                    };
                }
            }
        }
        Ok(())
    }
}
