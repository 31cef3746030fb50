use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::abi::sealed::Managed;
use super::*;
use crate::testing::devices;

/// A tensor of another library, and the number of calls of its deleter.
struct Theirs {
    _items: Vec<u64>,
    _numbers: Vec<i64>,
    deleted: &'static AtomicUsize,
}

/// Makes a tensor of 12 words in host memory, modified by `change`.
fn theirs(change: impl FnOnce(&mut DLTensor, &mut Vec<i64>)) -> (Box<DLManagedTensorVersioned>, &'static AtomicUsize) {
    unsafe extern "C" fn delete(managed: *mut DLManagedTensorVersioned) {
        // SAFETY: the test's tensors are boxes of these types, and deleted once.
        let theirs = unsafe { Box::from_raw(Box::from_raw(managed).manager_ctx.cast::<Theirs>()) };
        theirs.deleted.fetch_add(1, Ordering::Relaxed);
    }
    let deleted: &AtomicUsize = Box::leak(Box::default());
    let (mut items, mut numbers) = ((0..12).collect::<Vec<u64>>(), vec![12, 1]);
    let mut tensor = DLTensor {
        data: items.as_mut_ptr().cast(),
        device: DLDevice { device_type: DL_CPU, device_id: 0 },
        ndim: 1,
        dtype: type_of::<u64>(),
        shape: ptr::null_mut(),
        strides: ptr::null_mut(),
        byte_offset: 0,
    };
    change(&mut tensor, &mut numbers);
    // Shape and strides lie one after the other.
    let dimensions = usize::try_from(tensor.ndim).unwrap_or(0);
    tensor.shape = numbers.as_mut_ptr();
    tensor.strides = if numbers.len() > dimensions { numbers[dimensions..].as_mut_ptr() } else { ptr::null_mut() };
    let context = Box::into_raw(Box::new(Theirs { _items: items, _numbers: numbers, deleted })).cast::<c_void>();
    (Box::new(DLManagedTensorVersioned::new(tensor, context, delete)), deleted)
}

/// Returns the name of the refused field; checks that its owner calls the deleter once.
fn refused<T: ArrayItem>(change: impl FnOnce(&mut DLTensor, &mut Vec<i64>)) -> &'static str {
    let (tensor, deleted) = theirs(change);
    let tensor = NonNull::from(Box::leak(tensor));
    // SAFETY: the tensor is sound.
    let field = match unsafe { HostTensor::<T>::from_dlpack(tensor) } {
        Ok(_) => "none",
        Err(error) => {
            assert_eq!(deleted.load(Ordering::Relaxed), 0);
            // SAFETY: it has not been taken.
            unsafe { Managed::delete(tensor) };
            match error {
                GpuError::ForeignArray { field, .. } => field,
                GpuError::InvalidCast { .. } => "alignment",
                other => panic!("{other}"),
            }
        }
    };
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    field
}

#[test]
fn what_does_not_fit_is_named() {
    type Change = fn(&mut DLTensor, &mut Vec<i64>);
    let changes: [(Change, &str); 18] = [
        (|_, _| {}, "none"),
        (|_, numbers| numbers.truncate(1), "none"), // no strides
        (|tensor, _| tensor.device.device_type = DL_CUDA_HOST, "none"),
        (|tensor, _| tensor.device.device_type = DL_CUDA, "device"),
        (|tensor, _| tensor.dtype.lanes = 2, "dtype"),
        (|tensor, _| tensor.dtype.bits = 32, "dtype"),
        (|tensor, _| tensor.dtype.code = BOOLEAN, "dtype"),
        (|tensor, _| tensor.ndim = -1, "ndim"),
        (|_, numbers| numbers[0] = -3, "shape"),
        (|tensor, numbers| (tensor.ndim, *numbers) = (2, vec![1 << 40, 1 << 40]), "shape"),
        (|tensor, numbers| (tensor.ndim, *numbers) = (2, vec![3, 4, 4, 1]), "none"),
        (|tensor, numbers| (tensor.ndim, *numbers) = (2, vec![3, 4, 1, 3]), "strides"), // column by column
        (|tensor, numbers| (tensor.ndim, *numbers) = (3, vec![3, 1, 4, 4, 99, 1]), "none"),
        (|tensor, numbers| (tensor.ndim, *numbers) = (2, vec![0, 4, 7, 7]), "none"), // no items
        (|tensor, _| tensor.data = ptr::null_mut(), "data"),
        (|tensor, _| tensor.byte_offset = 4, "alignment"),
        (|tensor, _| tensor.byte_offset = u64::MAX, "byte_offset"),
        (|tensor, _| tensor.ndim = 0, "none"), // one item
    ];
    for (i, (change, field)) in changes.into_iter().enumerate() {
        assert_eq!(refused::<u64>(change), field, "change {i}");
    }
    assert_eq!(refused::<i64>(|_, _| {}), "dtype");
    assert_eq!(refused::<f64>(|_, _| {}), "dtype");
    let booleans = DLDataType { code: BOOLEAN, bits: 8, lanes: 1 };
    assert_eq!(refused::<u8>(|tensor, _| tensor.dtype = booleans), "none");
    assert_eq!(refused::<i8>(|tensor, _| tensor.dtype = booleans), "dtype");
}

#[test]
fn versions_and_flags_count() {
    let (mut tensor, deleted) = theirs(|_, _| {});
    tensor.version.major = 2;
    let tensor = NonNull::from(Box::leak(tensor));
    // SAFETY: the tensor is sound until it is deleted, and nothing else uses it.
    unsafe {
        let error = HostTensor::<u64>::from_dlpack(tensor).unwrap_err();
        assert!(error.to_string().contains("has version 2.3, where 1.x is needed"), "{error}");
        (*tensor.as_ptr()).version.major = 1;
        (*tensor.as_ptr()).flags = DLPACK_FLAG_BITMASK_READ_ONLY;
        let mut taken = HostTensor::<u64>::from_dlpack(tensor).unwrap();
        assert!(matches!(taken.as_mut_slice(), Err(GpuError::ForeignArray { field: "flags", .. })));
        assert_eq!(taken[11], 11);
    }
    assert_eq!(deleted.load(Ordering::Relaxed), 1);
    // A part of the items.
    let (tensor, _) = theirs(|tensor, numbers| (tensor.byte_offset, numbers[0]) = (16, 3));
    // SAFETY: as above.
    let mut taken = unsafe { HostTensor::<u64>::from_dlpack(NonNull::from(Box::leak(tensor))).unwrap() };
    taken.as_mut_slice().unwrap()[0] = 9;
    assert_eq!(taken[..], [9, 3, 4]);
}

fn there_and_back<M: ManagedTensor>(device: &Device) {
    let before = device.memory_info().unwrap().free;
    let theirs = device.from_slice(&[1i32, -2, 3]).unwrap().into_dlpack::<M>().unwrap();
    // SAFETY: the tensor is sound, and nothing else uses it; this holds for all tensors here.
    unsafe {
        let error = DeviceTensor::<u32>::from_dlpack(device, theirs).unwrap_err();
        assert!(matches!(error, GpuError::ForeignArray { field: "dtype", .. }));
        let error = HostTensor::<i32>::from_dlpack(theirs).unwrap_err();
        assert!(matches!(error, GpuError::ForeignArray { field: "device", .. }));
        let mut back = DeviceTensor::<i32>::from_dlpack(device, theirs).unwrap();
        back.as_mut_slice().unwrap().slice_mut(1..2).copy_from_slice(&[7]).unwrap();
        assert_eq!((back.as_slice().to_vec().unwrap(), back.shape()), (vec![1, 7, 3], &[3][..]));
        drop(back);
        let none = device.alloc_zeroed::<u8>(0).unwrap().into_dlpack::<M>().unwrap();
        assert!(theirs_is_null(none));
        assert!(DeviceTensor::<u8>::from_dlpack(device, none).unwrap().as_slice().is_empty());
        let on_host = vec_into_dlpack::<_, M>(vec![0.5f64; 3]);
        let error = DeviceTensor::<f64>::from_dlpack(device, on_host).unwrap_err();
        assert!(matches!(error, GpuError::ForeignArray { field: "device", .. }));
        assert_eq!(HostTensor::<f64>::from_dlpack(on_host).unwrap()[..], [0.5; 3]);
    }
    if device.is_emulator() {
        assert_eq!(device.memory_info().unwrap().free, before, "all memory was freed");
    }
}

/// Whether the tensor has no address.
unsafe fn theirs_is_null<M: ManagedTensor>(tensor: NonNull<M>) -> bool {
    // SAFETY: every caller passes a sound tensor.
    unsafe { tensor.as_ref() }.tensor().data.is_null()
}

#[test]
fn tensors_go_there_and_back() {
    for device in devices(8) {
        there_and_back::<DLManagedTensorVersioned>(&device);
        there_and_back::<DLManagedTensor>(&device);
    }
}

fn shared<M: ManagedTensor>(device: &Device) {
    let before = device.memory_info().unwrap().free;
    let vector = SharedVec::booleans(device.from_slice(&[1u8, 0, 1]).unwrap());
    let array = vector.interface();
    assert_eq!((array.typestr.as_str(), array.shape.as_slice(), array.data.1), ("|b1", &[3][..], false));
    // SAFETY: the tensors are sound, and nothing writes the items while others read them.
    let (first, second) = unsafe { (vector.to_dlpack::<M>(), vector.clone().to_dlpack::<M>()) };
    // SAFETY: a sound tensor.
    assert_eq!(unsafe { first.as_ref() }.tensor().dtype, DLDataType { code: BOOLEAN, bits: 8, lanes: 1 });
    drop(vector);
    // SAFETY: as above; each tensor is taken once.
    let (first, second) = unsafe {
        (
            DeviceTensor::<u8>::from_dlpack(device, first).unwrap(),
            DeviceTensor::<u8>::from_dlpack(device, second).unwrap(),
        )
    };
    drop(first);
    assert_eq!(second.as_slice().to_vec().unwrap(), [1, 0, 1]);
    drop(second);
    let numbers = SharedVec::new(device.from_slice(&[1u64, 2]).unwrap());
    assert_eq!((numbers.interface().typestr.as_str(), numbers.place()), ("<u8", place_of(device)));
    drop(numbers);
    if device.is_emulator() {
        assert_eq!(device.memory_info().unwrap().free, before, "all memory was freed");
    }
}

#[test]
fn vectors_are_shared_by_tensors() {
    for device in devices(8) {
        shared::<DLManagedTensorVersioned>(&device);
        shared::<DLManagedTensor>(&device);
    }
}
