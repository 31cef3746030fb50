"""Binary fuse filters: all keys are found and few others, for all types of keys."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_recsplit import words
from warpset import BinaryFuse

WIDTHS = [8, 16, 32]
KEYS = np.arange(3000, dtype=np.uint64) * 7919


@settings(max_examples=60, deadline=None)
@given(keys=words, width=st.sampled_from(WIDTHS), arity=st.sampled_from([3, 4]), sharded=st.booleans(),
       seed=st.integers(0, 2**64 - 1))
def test_members_are_found(keys, width, arity, sharded, seed):
    keys = list(keys)
    ours = BinaryFuse(keys + keys[:3], bits=width, arity=arity, sharded=sharded, seed=seed)
    different = {key % 2**64 if isinstance(key, int) else key for key in keys}
    assert len(ours) == len(different) and ours.bits == width and ours.fpr <= 2.0**-width
    assert ours.contains(keys).all() and all(key in ours for key in keys) and ours.count_contained(keys) == len(keys)
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


@pytest.mark.parametrize("width", WIDTHS)
def test_rates(width):
    ours, others = BinaryFuse(KEYS, bits=width), np.arange(200_000, dtype=np.uint64) * 7919 + 1
    assert ours.contains(KEYS).all()
    found = ours.count_contained(others)
    assert (500 < found < 1100) if width == 8 else (found < 20)
    assert ours.bits_per_key == 8 * ours.nbytes / 3000 < 1.5 * width
    assert repr(ours).startswith("BinaryFuse(3000 keys, ")


@pytest.mark.parametrize("width", WIDTHS)
def test_devices_give_the_same(width):
    device, keys = warpset.Device(DEVICE), KEYS[:300]
    here, there = BinaryFuse(keys, bits=width), BinaryFuse(keys, bits=width, device=DEVICE)
    on_device = device.array(keys)
    assert there == here == BinaryFuse(on_device, bits=width, device=device) and here.to(DEVICE) == there
    assert all(there.contains(on_device).tolist()) and there.count_contained(on_device) == 300
    assert int(keys[5]) in there and there.to("cpu") == here
    with pytest.raises(ValueError, match="in host memory"):
        BinaryFuse(on_device)


def test_arrays_and_nulls():
    small = np.arange(100, dtype=np.uint8)
    ours = BinaryFuse(small)
    for same in (small.astype(np.int64), small.astype(np.int32)[::-1], small.tolist(), range(100)):
        assert BinaryFuse(same) == ours
    pa = pytest.importorskip("pyarrow")
    text = [f"key {i}" for i in range(30)]
    chunks = pa.chunked_array([text[:7] + [None], [], text[7:]], pa.large_string())
    assert BinaryFuse(chunks) == BinaryFuse(text) and BinaryFuse(text).contains(chunks).tolist() == [
        value is not None for value in chunks.to_pylist()
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_files(width, tmp_path):
    ours, path = BinaryFuse(KEYS, bits=width), tmp_path / "keys.warpset"
    ours.save(path)
    assert BinaryFuse.load(path) == ours == BinaryFuse.from_bytes(bytes(ours)) == BinaryFuse.load(path, device=DEVICE)
    mapped = BinaryFuse.mmap(path)
    assert mapped.contains(KEYS).all() and mapped.bits == width and "mapped from" in repr(mapped)
    saved = bytes(ours)
    for place in (1, 20, 130, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            BinaryFuse.from_bytes(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :])
    other = tmp_path / "other.warpset"
    warpset.SplitBlockBloom(100).save(other)
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        BinaryFuse.load(other)


def test_bad_input():
    for wrong, message in [({"bits": 12}, "8, 16 or 32"), ({"arity": 5}, "3 or 4"), ({"device": "gpu"}, "emulator")]:
        with pytest.raises(ValueError, match=message):
            BinaryFuse([1, 2], **wrong)
    for keys in (7, "ash", None, [1.5], [1, "ash"], np.array([0.5])):
        with pytest.raises(TypeError):
            BinaryFuse(keys)
    assert len(BinaryFuse([])) == 0 and 7 not in BinaryFuse([], bits=32)
