"""Maplets: behave like a map of keys to values, on the host and on a device."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_recsplit import different, words
from warpset import FullError, Maplet

KEYS = np.arange(3000, dtype=np.uint64) * 7919
VALUES = (KEYS * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48)
COMBINE = {"sum": lambda a, b: (a + b) % 2**16, "min": min, "max": max, "or": int.__or__}


@settings(max_examples=40, deadline=None)
@given(keys=words, by=st.sampled_from(list(COMBINE)), data=st.data())
def test_behaves_like_a_map(keys, by, data):
    keys, ours, model = different(keys), Maplet(500, value_bits=16, fpr=1e-11), {}
    for _ in range(3):
        batch = data.draw(st.lists(st.sampled_from(keys), max_size=50)) if keys else []
        values = data.draw(st.lists(st.integers(0, 2**16 - 1), min_size=len(batch), max_size=len(batch)))
        new = len({key for key in batch if key not in model})
        for key, value in zip(batch, values):
            model[key] = COMBINE[by](model[key], value) if key in model else value
        assert ours.upsert(batch, values, by=by) == new
        removed = data.draw(st.lists(st.sampled_from(keys), max_size=3)) if keys else []
        assert ours.remove(removed) == len({key for key in removed if model.pop(key, None) is not None})
    assert len(ours) == len(model)
    values, found = ours.get_many(keys, default=3)
    assert values.tolist() == [model.get(key, 3) for key in keys] and found.tolist() == [key in model for key in keys]
    assert [ours.get(key) for key in keys] == [model.get(key) for key in keys]
    assert [key in ours for key in keys] == found.tolist() and values.dtype == np.uint64
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_several_values(device):
    for duplicates, copies in (("dropped", 1), ("kept", 2), ("counted", 2)):
        ours = Maplet(1000, value_bits=8, fpr=1e-6, duplicates=duplicates, device=device)
        assert ours.insert(["ash", "fir", None, "ash", "ash"], [9, 4, 3, 7, 7]) == 2 + copies
        assert ours.values("ash").tolist() == [7, 9] and ours.values("oak").tolist() == []
        assert ours.get("ash") == 7 and ours.get("oak", 5) == 5 and "fir" in ours and len(ours) == 2 + copies
        assert (ours.value_bits, ours.duplicates, ours.device) == (8, duplicates, device)
        if duplicates == "counted":
            with pytest.raises(ValueError, match="counted"):
                ours.upsert(["ash"], [1])
        else:
            assert ours.upsert(["ash", "oak"], [2, 250], by="sum") == 1
            assert ours.values("ash").tolist() == [(9 + 7 * copies + 2) % 256]
        ours.clear()
        assert len(ours) == 0 and ours.get("ash") is None


def test_merges_and_sizes():
    halves = [Maplet(3000, value_bits=16, fpr=1e-9) for _ in range(2)]
    for maplet, part in zip(halves, (slice(0, 2000), slice(1000, 3000))):
        maplet.insert(KEYS[part], VALUES[part])
    both, most = halves[0].copy(), halves[0].copy()
    both.merge(halves[1])
    halves[1].upsert(KEYS[2999:], [2**16 - 1], by="max")
    most.merge(halves[1], by="max")
    assert len(both) == len(most) == 3000 and both.get_many(KEYS)[0].tolist() == VALUES.tolist()
    assert most.get_many(KEYS)[0].tolist() == [*VALUES[:-1].tolist(), 2**16 - 1]
    before = both.copy()
    both.double()
    assert both.capacity > before.capacity and both.nbytes > before.nbytes and both.load_factor < before.load_factor
    both.halve()
    assert both == before and 0 < both.fpr < 1e-9
    small = Maplet(10, value_bits=16)
    with pytest.raises(FullError):
        small.insert(KEYS, VALUES)
    assert len(small) == 0 and repr(small).startswith("Maplet(0 values of 16 bits, ")
    exact = Maplet(3000, value_bits=16, key_bits=30)
    exact.insert(KEYS, VALUES)
    assert exact.fpr == 0 and exact.get_many(KEYS + np.uint64(1))[1].sum() == 0 and exact.get(2**31) is None


def test_devices_give_the_same():
    device, keys, values = warpset.Device(DEVICE), KEYS[:300], VALUES[:300]
    here, there = (Maplet(400, value_bits=16, fpr=1e-6, device=place) for place in ("cpu", DEVICE))
    on_device, of_device = map(device.array, (keys, values))
    assert here.insert(keys, values) == there.insert(on_device, of_device) == 300
    assert here.upsert(keys[:50], values[50:100], by="max") == there.upsert(keys[:50], values[50:100], by="max") == 0
    assert there == here and here.to(DEVICE) == there
    asked = np.concatenate([keys, keys + np.uint64(1)])
    for maplet in (here, there):
        assert [answer.tolist() for answer in maplet.get_many(asked)] == [
            answer.tolist() for answer in there.get_many(device.array(asked))
        ]
    out = device.array(np.zeros(300, np.uint64))
    assert there.get_many(on_device, out=out)[0] is out and out.tolist() == here.get_many(keys)[0].tolist()
    assert there.remove(device.array(keys[:9])) == here.remove(keys[:9]) == 9 and there == here
    there.merge(here, by="sum")
    assert there.get(int(keys[20])) == 2 * here.get(int(keys[20])) % 2**16
    for wrong in (lambda: here.insert(on_device, of_device), lambda: here.get_many(on_device), lambda: here.remove(on_device)):
        with pytest.raises(ValueError, match="in host memory"):
            wrong()
    with pytest.raises(TypeError, match="all arrays of a call are on one side"):
        there.insert(on_device, values)


def test_wrong_arguments(tmp_path):
    ours = Maplet(10, value_bits=4)
    for arguments in (([1], [16]), ([1], [1, 2]), ([1], [None])):
        with pytest.raises(ValueError):
            ours.insert(*arguments)
    for make in (lambda: Maplet(10, value_bits=0), lambda: Maplet(10, value_bits=64), lambda: Maplet(10, value_bits=4, duplicates="x"),
                 lambda: ours.upsert([1], [1], by="product"), lambda: ours.merge(Maplet(10, value_bits=5))):
        with pytest.raises(ValueError):
            make()
    ours.insert([1], [15])
    ours.save(tmp_path / "maplet")
    mapped = Maplet.mmap(tmp_path / "maplet")
    assert mapped.get(1) == 15 and mapped.values(1).tolist() == [15] and mapped.get_many([1, 2])[1].tolist() == [True, False]
    for change in (lambda: mapped.insert([1], [2]), mapped.double, mapped.clear, lambda: mapped.merge(ours), lambda: mapped.remove([1])):
        with pytest.raises(ValueError, match="copy"):
            change()
