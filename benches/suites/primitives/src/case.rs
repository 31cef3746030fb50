//! One measured operation on a device: its input and output in host memory, copied to the device and back, and one
//! check of the result.

use bytemuck::Pod;
use warpset::gpu::{self, Device, DeviceVec, Stream};

use bench_frame::gpu_limits::{self, GpuAccess};
use bench_frame::suite::{Session, Target, Threads};
use bench_frame::table::parameters;
use bench_record::Record;

/// Host memory that an operation reads.
pub trait Input {
    /// The input in device memory.
    type OnDevice;
    /// Copies it to the device.
    fn upload(&self, device: &Device) -> gpu::Result<Self::OnDevice>;
}

/// Host memory that an operation writes.
pub trait Output: Input + Send + Sized {
    /// Copies it back.
    fn download(from: &Self::OnDevice) -> gpu::Result<Self>;
}

impl<T: Pod> Input for &[T] {
    type OnDevice = DeviceVec<T>;

    fn upload(&self, device: &Device) -> gpu::Result<DeviceVec<T>> {
        device.from_slice(self)
    }
}

impl<T: Pod> Input for Vec<T> {
    type OnDevice = DeviceVec<T>;

    fn upload(&self, device: &Device) -> gpu::Result<DeviceVec<T>> {
        device.from_slice(self)
    }
}

impl<T: Pod + Send> Output for Vec<T> {
    fn download(from: &DeviceVec<T>) -> gpu::Result<Self> {
        from.to_vec()
    }
}

macro_rules! tuples {
    ($($part:ident),*) => {
        #[expect(non_snake_case, reason = "the parts are named as their types")]
        impl<$($part: Input),*> Input for ($($part,)*) {
            type OnDevice = ($($part::OnDevice,)*);

            fn upload(&self, device: &Device) -> gpu::Result<Self::OnDevice> {
                let ($($part,)*) = self;
                Ok(($($part.upload(device)?,)*))
            }
        }

        #[expect(non_snake_case, reason = "the parts are named as their types")]
        impl<$($part: Output),*> Output for ($($part,)*) {
            fn download(from: &Self::OnDevice) -> gpu::Result<Self> {
                let ($($part,)*) = from;
                Ok(($($part::download($part)?,)*))
            }
        }
    };
}
tuples!(A, B);
tuples!(A, B, C);

/// Returns `n` items to be overwritten.
pub fn blank<T: Pod>(n: usize) -> Vec<T> {
    vec![T::zeroed(); n]
}

/// A row to be measured, and the bytes that its operation has to move.
pub struct Case<'a> {
    session: &'a mut Session,
    device: &'a Device,
    row: Record,
    bytes: usize,
    /// Memory that the operation goes over, input and output together: once or, in passes, several times.
    memory: usize,
}

impl<'a> Case<'a> {
    /// Makes the case of `operation` on `n` items of the type named `item`.
    pub fn new(
        session: &'a mut Session,
        device: &'a Device,
        operation: &str,
        item: &str,
        n: usize,
        bytes: usize,
    ) -> Self {
        Self { session, device, row: Record::new("primitives", operation, n).param("key", item), bytes, memory: bytes }
    }

    /// Sets the memory that an operation of several passes goes over.
    pub fn in_passes_over(self, memory: usize) -> Self {
        Self { memory, ..self }
    }

    /// Adds a parameter to the row.
    pub fn param(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.row = self.row.param(name, value);
        self
    }

    /// Measures what `queue` queues, by events on the device's clock. `right` sees the output of the last repeat.
    ///
    /// `queue` may rely on this: input and output stay alive, and no other work touches them, until the stream has
    /// been waited for.
    pub fn run<I: Input, O: Output, R, E: Into<anyhow::Error>>(
        self,
        input: I,
        output: O,
        mut queue: impl FnMut(&Stream, &I::OnDevice, &mut O::OnDevice) -> Result<R, E>,
        right: impl FnOnce(&O) -> bool,
    ) -> anyhow::Result<()> {
        let Self { session, device, row, bytes, memory } = self;
        let stream = device.new_stream()?;
        let (input, mut written) = (input.upload(device)?, output.upload(device)?);
        let work = || queue(&stream, &input, &mut written).map(|_| ()).map_err(Into::into);
        let seconds = gpu_limits::repeated(device, &stream, session.effort, work)?;
        stream.synchronize()?;
        let output = O::download(&written)?;
        let copied = copied_per_second(session, device, memory)?;
        let mut row = row.time(seconds).bytes(bytes, copied);
        row.checked =
            session.verify(right(&output), || format!("{} of {} items, {}", row.operation, row.n, parameters(&row)));
        session.push_on(&Target::Gpu(device.clone()), row, Threads::All);
        Ok(())
    }
}

/// Measures the bytes per second of a copy between two halves of as much memory as the operation reads and writes; none
/// on the emulator, where speed does not matter.
fn copied_per_second(session: &mut Session, device: &Device, memory: usize) -> anyhow::Result<Option<f64>> {
    if device.is_emulator() {
        return Ok(None);
    }
    let footprint = (memory / 2).next_power_of_two().clamp(1 << 16, 1 << 32);
    Ok(Some(32.0 * session.gpu_limit(device, GpuAccess::Copy, footprint)?))
}
