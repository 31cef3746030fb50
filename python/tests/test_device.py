"""Keys and answers on a device: the emulator, with the same protocols for other libraries as a GPU."""

import gc

import numpy as np
import pytest

import warpset
from conftest import DEVICE

EMULATOR = warpset.Device(DEVICE)


class Foreign:
    """An array of another library, on the emulator: `__cuda_array_interface__` alone."""

    def __init__(self, array, **changes):
        self.array = array
        words = np.zeros(-(-array.nbytes // 8) + 1, dtype=np.uint64)
        words.view(np.uint8)[: array.nbytes] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        self.words = EMULATOR.array(words)
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (self.words.__cuda_array_interface__["data"][0], not array.flags.writeable),
            "strides": None if array.flags.c_contiguous else array.strides,
            "version": 3,
            **changes,
        }

    def tolist(self):
        items = self.words.get().view(np.uint8)[: self.array.nbytes]
        return items.view(self.array.dtype).tolist()


class Tensor:
    """A library that speaks DLPack alone."""

    def __init__(self, array, **asked):
        self.array, self.asked = array, asked

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **asked):
        return self.array.__dlpack__(**asked, **self.asked)


def filled(*keys):
    primes = warpset.SplitBlockBloom(1000, fpr=0.0001, device=EMULATOR)
    primes.update(np.array(keys, dtype=np.uint64))
    return primes


@pytest.mark.parametrize("dtype", ["uint32", "int32", "uint64", "int64"])
@pytest.mark.parametrize("wrap", [Foreign, EMULATOR.array, lambda a: Tensor(EMULATOR.array(a)),
                                  lambda a: Tensor(EMULATOR.array(a), max_version=(1, 0))])
def test_keys_of_every_type_and_protocol(dtype, wrap):
    primes = filled(2, 3, 5, 7)
    keys = np.arange(9, dtype=dtype)
    answers = primes.contains(wrap(keys))
    assert isinstance(answers, warpset.DeviceArray) and answers.device == EMULATOR
    assert answers.dtype == "bool" and len(answers) == 9
    assert answers.get().tolist() == [k in (2, 3, 5, 7) for k in range(9)]
    assert primes.count_contained(wrap(keys)) == 4
    primes.update(wrap(keys))
    assert primes.count_contained(keys) == 9
    on_host = warpset.SplitBlockBloom(1000, fpr=0.0001)
    on_host.update(keys)
    on_host.update([2, 3, 5, 7])
    assert on_host == primes and primes.to("cpu").device == "cpu"


def test_answers_into_an_array_of_the_caller():
    primes = filled(2, 3)
    for dtype in (bool, np.uint8):
        out = Foreign(np.zeros(4, dtype=dtype))
        assert primes.contains(Foreign(np.arange(4, dtype=np.uint64)), out=out) is out
        assert out.tolist() == [0, 0, 1, 1]
    keys = EMULATOR.array(np.arange(4, dtype=np.uint64))
    for out in [np.zeros(3, dtype=bool), np.zeros(4, dtype=np.uint16), np.zeros(8, dtype=bool)[::2]]:
        with pytest.raises(ValueError):
            primes.contains(keys, out=Foreign(out))
    locked = np.zeros(4, dtype=bool)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        primes.contains(keys, out=Foreign(locked))
    with pytest.raises(TypeError, match="on a device"):
        primes.contains(keys, out=np.zeros(4, dtype=bool))


def test_answers_are_keys_of_no_kind_and_outlive_their_filter():
    primes = filled(2)
    keys = EMULATOR.array([1, 2])
    answers = primes.contains(keys)
    del primes, keys
    gc.collect()
    assert answers.tolist() == [False, True]
    array = answers.__cuda_array_interface__
    assert array["typestr"] == "|b1" and array["shape"] == (2,) and array["version"] == 3
    for taken in (answers, Tensor(answers)):
        with pytest.raises(ValueError, match="integers of 32 or 64 bits"):
            filled(2).update(taken)


def test_capsules_that_are_not_taken_are_freed():
    before = EMULATOR.memory
    keys = EMULATOR.array(np.arange(1000, dtype=np.uint64))
    capsules = [keys.__dlpack__(), keys.__dlpack__(max_version=(1, 3))]
    del keys
    gc.collect()
    assert EMULATOR.memory != before
    capsules.clear()
    gc.collect()
    assert EMULATOR.memory == before
    with pytest.raises(BufferError):
        EMULATOR.array([1]).__dlpack__(copy=True)


@pytest.mark.parametrize(
    "bad",
    [
        np.zeros((2, 2), dtype=np.uint64),
        np.zeros(4, dtype=np.float64),
        np.zeros(4, dtype=np.uint16),
        np.zeros(8, dtype=np.uint64)[::2],
        np.zeros(4, dtype=">u8"),
    ],
)
def test_arrays_that_hold_no_keys(bad):
    primes = filled(2)
    for call in (primes.update, primes.contains, primes.count_contained):
        with pytest.raises(ValueError):
            call(Foreign(bad))
    assert primes.contains([2]).tolist() == [True]


def test_interfaces_that_lie():
    primes, keys = filled(2), np.zeros(4, dtype=np.uint64)
    for changes in [{"version": 9}, {"stream": 0}, {"shape": (2**62,)}, {"typestr": "nonsense"}]:
        with pytest.raises(ValueError):
            primes.contains(Foreign(keys, **changes))
    broken = Foreign(keys)
    del broken.__cuda_array_interface__["data"]
    with pytest.raises(ValueError, match="data"):
        primes.contains(broken)


def test_no_keys():
    primes = filled(2)
    none = EMULATOR.array(np.array([], dtype=np.uint64))
    assert primes.contains(none).tolist() == [] and primes.count_contained(none) == 0
    primes.update(none)


def test_host_and_device_do_not_mix_by_accident():
    keys = EMULATOR.array([1, 2])
    on_host = warpset.SplitBlockBloom(10)
    for call in (on_host.update, on_host.contains, on_host.count_contained):
        with pytest.raises(ValueError, match="keys are on a device"):
            call(keys)
    # Host keys travel to the device by themselves.
    assert filled(1, 2).contains(np.array([2, 9], dtype=np.uint64)).tolist() == [True, False]


def test_devices_by_name():
    assert warpset.Device(DEVICE) == EMULATOR and hash(warpset.Device(DEVICE)) == hash(EMULATOR)
    assert str(EMULATOR) == DEVICE and EMULATOR.name in repr(EMULATOR)
    assert warpset.SplitBlockBloom(10, device="cpu").device == "cpu"
    assert warpset.SplitBlockBloom(10, device="auto").device == ("cuda:0" if warpset.devices() else "cpu")
    for name in ["gpu", "cuda:x", "cuda:-1", ""]:
        with pytest.raises(ValueError, match="cuda:N"):
            warpset.Device(name)
    with pytest.raises(TypeError):
        warpset.SplitBlockBloom(10, device=3)
    with pytest.raises(warpset.DeviceError):
        warpset.Device("cuda:99")
    EMULATOR.synchronize()
    for wrong in (["a"], EMULATOR.array([1])):
        with pytest.raises((TypeError, ValueError)):
            EMULATOR.array(wrong)


@pytest.mark.skipif(not warpset.devices(), reason="no GPU")
@pytest.mark.parametrize("library", ["cupy", "torch", "numba.cuda", "jax.numpy"])
def test_arrays_of_other_libraries(library):
    module = pytest.importorskip(library)
    keys = np.arange(100_000, dtype=np.int64)
    there = {
        "cupy": lambda: module.asarray(keys),
        "torch": lambda: module.as_tensor(keys).cuda(),
        "numba.cuda": lambda: module.to_device(keys),
        "jax.numpy": lambda: module.asarray(keys.astype(np.int32)),
    }[library]()
    evens = warpset.SplitBlockBloom(100_000, fpr=0.001, device="cuda")
    evens.update(keys[::2])
    answers = evens.contains(there)
    assert (answers.get() == evens.contains(keys)).all()
    if library == "cupy":
        assert int(module.asarray(answers).sum()) == evens.count_contained(there)
        assert module.from_dlpack(answers).dtype == bool
    if library == "torch":
        assert int(module.from_dlpack(answers).sum()) == evens.count_contained(there)
