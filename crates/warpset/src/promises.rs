//! Promises of the type system, as tests: each example that must not compile follows a twin that does. They differ by
//! one line, so that it fails for the reason given. A nightly compiler checks the codes of the errors, too.

/// A query borrows its filter: nothing can be inserted while a view is in use.
///
/// ```
/// use warpset::quotient::StandardQuotientFilter;
/// let mut filter = StandardQuotientFilter::builder(1000).build().unwrap();
/// let view = filter.view();
/// assert!(!view.contains(7u64));
/// filter.insert(7u64).unwrap();
/// ```
///
/// ```compile_fail,E0502
/// use warpset::quotient::StandardQuotientFilter;
/// let mut filter = StandardQuotientFilter::builder(1000).build().unwrap();
/// let view = filter.view();
/// filter.insert(7u64).unwrap();
/// assert!(!view.contains(7u64));
/// ```
///
/// Bloom filters that must not compile.
///
/// ```
/// use warpset::bloom::{BlockedBloom, Insert};
/// let mut filter = BlockedBloom::builder(1000).build().unwrap();
/// let view = filter.view();
/// assert!(!view.contains(7u64));
/// filter.insert_bulk(&[7u64]).unwrap();
/// ```
///
/// ```compile_fail,E0502
/// use warpset::bloom::{BlockedBloom, Insert};
/// let mut filter = BlockedBloom::builder(1000).build().unwrap();
/// let view = filter.view();
/// filter.insert_bulk(&[7u64]).unwrap();
/// assert!(!view.contains(7u64));
/// ```
pub struct QueriesAndInsertions;

/// A device slice does not outlive its vector.
///
/// ```
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let vector = device.from_slice(&[1u32, 2, 3]).unwrap();
/// let slice = vector.as_slice();
/// assert_eq!(slice.len(), 3);
/// drop(vector);
/// ```
///
/// ```compile_fail,E0505
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let vector = device.from_slice(&[1u32, 2, 3]).unwrap();
/// let slice = vector.as_slice();
/// drop(vector);
/// assert_eq!(slice.len(), 3);
/// ```
///
/// While it is borrowed for writing, nothing reads it.
///
/// ```
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let mut vector = device.from_slice(&[1u32, 2, 3]).unwrap();
/// let mut to = vector.as_mut_slice();
/// to.fill_bytes(0).unwrap();
/// assert_eq!(vector.to_vec().unwrap(), [0; 3]);
/// ```
///
/// ```compile_fail,E0502
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let mut vector = device.from_slice(&[1u32, 2, 3]).unwrap();
/// let mut to = vector.as_mut_slice();
/// assert_eq!(vector.to_vec().unwrap(), [0; 3]);
/// to.fill_bytes(0).unwrap();
/// ```
pub struct DeviceSlices;

/// Pinned memory belongs to a copy in flight until it is waited for.
///
/// ```
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let stream = device.new_stream().unwrap();
/// let mut to = device.alloc_uninit::<u64>(4).unwrap();
/// let mut lane = device.pinned::<u64>(4).unwrap();
/// lane[0] = 5;
/// let pending = stream.upload_pinned(&mut to, lane).unwrap();
/// let mut lane = pending.wait().unwrap();
/// lane[0] = 6;
/// ```
///
/// ```compile_fail,E0382
/// use warpset::gpu::Device;
/// let device = Device::emulator(Default::default());
/// let stream = device.new_stream().unwrap();
/// let mut to = device.alloc_uninit::<u64>(4).unwrap();
/// let mut lane = device.pinned::<u64>(4).unwrap();
/// lane[0] = 5;
/// let pending = stream.upload_pinned(&mut to, lane).unwrap();
/// lane[0] = 6;
/// pending.wait().unwrap();
/// ```
pub struct PinnedMemory;

/// Work that is queued on a stream and not waited for is `unsafe`.
///
/// ```
/// use warpset::gpu::Device;
/// use warpset::primitives::sort::{self, By};
/// let device = Device::emulator(Default::default());
/// let stream = device.new_stream().unwrap();
/// let mut keys = device.from_slice(&[3u32, 1, 2]).unwrap();
/// // SAFETY: `keys` live until `to_vec` has waited.
/// unsafe { sort::sort_keys_in_place_async(&stream, &mut keys, By::ascending()).unwrap() };
/// assert_eq!(keys.to_vec().unwrap(), [1, 2, 3]);
/// ```
///
/// ```compile_fail,E0133
/// use warpset::gpu::Device;
/// use warpset::primitives::sort::{self, By};
/// let device = Device::emulator(Default::default());
/// let stream = device.new_stream().unwrap();
/// let mut keys = device.from_slice(&[3u32, 1, 2]).unwrap();
/// sort::sort_keys_in_place_async(&stream, &mut keys, By::ascending()).unwrap();
/// assert_eq!(keys.to_vec().unwrap(), [1, 2, 3]);
/// ```
pub struct QueuedWork;
