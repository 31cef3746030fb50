"""Static sets and maps: the answers of `set` and `dict`, for keys in all arrays."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import StaticMap, StaticSet

NONE = 2**64 - 1
TOP = {"uint64": 2**64 - 1, "uint32": 2**32 - 1}
types = st.sampled_from(sorted(TOP))


@settings(max_examples=80, deadline=None)
@given(data=st.data(), key=types, value=types, seed=st.integers(0, 2**64 - 1))
def test_like_a_dict(data, key, value, seed):
    some = st.integers(0, TOP[key]) | st.integers(0, 40)
    pairs = data.draw(st.lists(st.tuples(some, st.integers(0, TOP[value])), max_size=80))
    others = data.draw(st.lists(some, max_size=30))
    model = dict(pairs)
    keys, values = [key for key, _ in pairs], [value for _, value in pairs]
    ours, members = StaticMap(keys, values, key=key, value=value, seed=seed), StaticSet(keys, key=key, seed=seed)
    assert len(ours) == len(members) == len(model) and bool(ours) == bool(model)
    asked = keys + others
    found, is_there = ours.get_many(asked, default=7)
    assert found.dtype == value and found.tolist() == [model.get(key, 7) for key in asked]
    assert is_there.tolist() == ours.contains(asked).tolist() == members.contains(asked).tolist() == [
        key in model for key in asked
    ]
    assert [ours.get(key) for key in asked] == [model.get(key) for key in asked]
    assert ours.count_contained(asked) == members.count_contained(asked) == sum(key in model for key in asked)
    for structure in (ours, members):
        numbers = structure.index(asked).tolist()
        assert [number != NONE for number in numbers] == is_there.tolist()
        assert len({number for number in numbers if number != NONE}) == len(model)
        assert all(number < structure.slots for number in numbers if number != NONE)
        assert [structure.index_one(key) for key in asked] == [None if n == NONE else n for n in numbers]
        assert pickle.loads(pickle.dumps(structure)) == structure == copy.copy(structure)


@settings(max_examples=6, deadline=None)
@given(keys=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=60), key=types, value=types)
def test_devices_give_the_same(keys, key, value):
    device = warpset.Device(DEVICE)
    values = list(range(len(keys)))
    here = StaticMap(keys, values, key=key, value=value)
    there = StaticMap(keys, values, key=key, value=value, device=DEVICE)
    assert there == here == there.to("cpu") and here.to(DEVICE) == there
    assert StaticSet(keys, key=key, device=DEVICE) == StaticSet(keys, key=key)
    on_device = device.array(np.array(keys, dtype=key))
    assert StaticMap(on_device, device.array(np.array(values, dtype=value)), key=key, value=value, device=device) == here
    assert StaticSet(on_device, key=key, device=device) == StaticSet(keys, key=key)
    asked = np.array(keys + [1, 2, 3], dtype=key)
    found, is_there = there.get_many(device.array(asked))
    expected, flags = here.get_many(asked)
    assert found.tolist() == expected.tolist() and is_there.tolist() == flags.tolist()
    assert there.get_many(asked)[0].tolist() == expected.tolist()
    assert there.contains(device.array(asked)).tolist() == flags.tolist()


def test_all_kinds_of_arrays():
    small = np.arange(100, dtype=np.uint8)
    for key in TOP:
        ours = StaticSet(small, key=key)
        for same in (small.astype(np.int64), small.astype(np.int32)[::-1], small.tolist(), range(100), iter(range(100))):
            assert StaticSet(same, key=key) == ours
        for dtype in (np.int8, np.int16, np.int32, np.int64):
            assert ours.contains(np.arange(-3, 3).astype(dtype)).tolist() == [False] * 3 + [True] * 3
            assert (ours.index(np.arange(-3, 0).astype(dtype)) == NONE).all()
        assert not ours.contains(np.array([2**32, 2**32 + 5, 2**63], dtype=np.uint64)).any()
        assert (ours.index([2**32, 2**63]) == NONE).all() and ours.index_one(2**40) is None
        assert -1 not in ours and "a" not in ours and ours.index_one("a") is None
    same = np.arange(10, dtype=np.uint64)
    ours = StaticMap(same, same * 3)
    values, found = ours.get_many(same, out=same)
    assert values is same and same.tolist() == list(range(0, 30, 3)) and found.all()
    flags = np.zeros(10, dtype=bool)
    assert ours.get_many(same, found=flags)[1] is flags and flags.sum() == 4


def test_arrow():
    pa = pytest.importorskip("pyarrow")
    chunks = pa.chunked_array([[3, 1], [], [2]], pa.uint32())
    ours = StaticMap(chunks, pa.chunked_array([[30], [10, 20]], pa.int64()))
    assert [ours[key] for key in (1, 2, 3)] == [10, 20, 30]
    nulls = pa.array([1, None, 9])
    assert ours.contains(nulls).tolist() == [True, False, False] and ours.index(nulls)[1] == NONE
    with pytest.raises(ValueError, match="nulls"):
        StaticMap([1, 2, 3], nulls)


@pytest.mark.parametrize("key", sorted(TOP))
def test_files(key, tmp_path):
    keys = np.arange(3000, dtype=key) * 7
    for ours in (StaticSet(keys, key=key), StaticMap(keys, keys, key=key, value="uint32")):
        kind, path = type(ours), tmp_path / "keys.warpset"
        ours.save(path)
        assert kind.load(path) == ours == kind.from_bytes(bytes(ours)) == kind.load(path, device=DEVICE)
        mapped = kind.mmap(path)
        assert mapped.index(keys).tolist() == ours.index(keys).tolist() and len(mapped) == 3000
        assert pickle.loads(pickle.dumps(mapped)).contains(keys).all() and "mapped from" in repr(mapped)
        saved = bytes(ours)
        for place in (1, 20, 60, 130, len(saved) // 2, len(saved) - 1):
            with pytest.raises(warpset.FileError):
                kind.from_bytes(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :])
        other = tmp_path / "other.warpset"
        warpset.SplitBlockBloom(100).save(other)
        with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
            kind.load(other)
    assert repr(StaticSet(keys, key=key)).startswith(f"StaticSet(3000 keys of {key}, ")
    with pytest.raises(warpset.FileError):
        StaticSet.from_bytes(bytes(StaticMap([1], [2])))


def test_bad_input():
    for wrong, message in [({"key": "int64"}, "uint32"), ({"device": "gpu"}, "emulator")]:
        with pytest.raises(ValueError, match=message):
            StaticSet([1], **wrong)
    with pytest.raises(ValueError, match="uint32"):
        StaticMap([1], [2], value="float")
    with pytest.raises(ValueError, match="2"):
        StaticMap([1, 2], [1])
    for keys, key in [([-1], "uint64"), ([2**32], "uint32"), (np.array([-5]), "uint32")]:
        with pytest.raises(OverflowError):
            StaticSet(keys, key=key)
    for keys in (["a"], [1.5], 7, "ash", None):
        with pytest.raises(TypeError):
            StaticSet(keys)
    ours = StaticMap([1, 2], [3, 4], value="uint32")
    with pytest.raises(KeyError):
        ours[5]
    with pytest.raises(OverflowError):
        ours.get_many([1], default=2**32)
    with pytest.raises(TypeError):
        ours.index(["a"])
    device = warpset.Device(DEVICE)
    there = device.array(np.array([1], dtype=np.uint64))
    for call in (lambda: ours.get_many(there), lambda: StaticSet(there), lambda: ours.index(there)):
        with pytest.raises(ValueError):
            call()
