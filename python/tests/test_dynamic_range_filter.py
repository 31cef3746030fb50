"""Range filters with keys that come and go: no wrong "no", whatever happened before."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_range_filter import OF_TYPE
from warpset import DynamicRangeFilter, FullError

KEYS = np.random.default_rng(5).integers(0, 2**62, 2000)


@settings(max_examples=60, deadline=None)
@given(key=st.sampled_from(list(OF_TYPE)), length=st.integers(1, 300), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_no_wrong_no(key, length, seed, data):
    ours, model = DynamicRangeFilter(200, key=key, fpr_at=(0.01, length), seed=seed), []
    for _ in range(data.draw(st.integers(1, 6))):
        added = data.draw(st.lists(OF_TYPE[key], max_size=20))
        ours.update(added)
        model += added
        removed = data.draw(st.lists(st.sampled_from(model), max_size=5)) if model else []
        for one in removed:
            if one in model:
                model.remove(one)
                assert ours.discard(one)
        assert len(ours) == len(model) and ours.contains(model).all() and all(one in ours for one in model)
        firsts, lasts = (data.draw(st.lists(OF_TYPE[key], min_size=5, max_size=5)) for _ in range(2))
        for first, last, found in zip(firsts, lasts, ours.may_contain(firsts, lasts)):
            assert found >= any(first <= one <= last for one in model) and (first <= last or not found)
            assert ours.any_in(first, last) == found
        assert ours.any_in() == bool(model) == bool(ours)
    assert ours.remove(model) == len(model) and len(ours) == 0 and not ours.any_in()


def test_rates_growth_and_merges():
    ours, other = (DynamicRangeFilter(2000, fpr_at=(0.01, 100)) for _ in range(2))
    ours.update(KEYS)
    firsts = np.random.default_rng(6).integers(0, 2**62, 20_000)
    assert ours.may_contain(firsts, firsts + 99).mean() < 0.015 and ours.fpr_of(100) <= 0.01 and 0 < ours.fpr <= 0.01
    assert len(ours) == 2000 <= ours.capacity and 0 < ours.load_factor < 1 and ours.nbytes * 8 == ours.bits_per_key * 2000
    assert f"2000 of {ours.capacity} keys of uint64" in repr(ours)
    other.update(KEYS + 2**40)
    with pytest.raises(FullError):
        for _ in range(3):
            ours.merge(other)
    ours.clear()
    ours.update(KEYS)
    ours.double()
    ours.merge(other)
    assert len(ours) == 4000 and ours.contains(KEYS).all() and ours.contains(KEYS + 2**40).all()
    assert ours.remove(KEYS + 2**40) == 2000
    ours.halve()
    assert ours.contains(KEYS).all() and ours.capacity == other.capacity
    full = DynamicRangeFilter(100)
    with pytest.raises(FullError):
        full.update(KEYS)
    assert len(full) == 0
    full.add(7)
    full.update([8, None, 9])
    assert len(full) == 3 and full.discard(7) and not full.discard(7) and 8 in full
    with pytest.raises(ValueError, match="same `key`"):
        full.merge(DynamicRangeFilter(100, key="int64"))


@pytest.mark.parametrize("key", list(OF_TYPE))
def test_files_and_devices(key, tmp_path):
    keys = KEYS.tolist() if key != "bytes" else [str(one) for one in KEYS]
    ours, path = DynamicRangeFilter(2000, key=key, fpr_at=(0.001, 16)), tmp_path / "filter"
    ours.update(keys)
    ours.save(path)
    mapped = DynamicRangeFilter.mmap(path)
    for again in (DynamicRangeFilter.load(path), warpset.load(path), DynamicRangeFilter.from_bytes(bytes(ours)), mapped):
        assert again == ours and again.may_contain(keys[:99], keys[:99]).all() and key in repr(again)
    with pytest.raises(ValueError, match="copy"):
        mapped.update(keys[:1])
    if key == "bytes":
        with pytest.raises(ValueError, match="host memory only"):
            ours.to(DEVICE)
        return
    there, firsts = DynamicRangeFilter(2000, key=key, fpr_at=(0.001, 16), device=DEVICE), KEYS[:200] - 7
    there.update(keys)
    assert there == ours == there.to("cpu") and there.fpr == ours.fpr
    assert there.may_contain(firsts, firsts + 5).tolist() == ours.may_contain(firsts, firsts + 5).tolist()
    assert there.remove(keys[:500]) == ours.remove(keys[:500]) == 500 and there == ours and keys[600] in there
    there.double()
    there.merge(ours)
    assert len(there) == 3000
    there.clear()
    assert not there.any_in()


def test_bad_input():
    for wrong, message in [
        ({"fpr_at": (2, 1)}, "between 0 and 1"), ({"fpr_at": (0.1, 0)}, "at least 1"), ({"key": "uint32"}, "float64"),
        ({"fpr_at": (1e-300, 100)}, "higher"), ({"max_load": 2}, "load"), ({"device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            DynamicRangeFilter(10, **wrong)
    ours = DynamicRangeFilter(10)
    for call in (lambda: ours.add("ash"), lambda: ours.update(7), lambda: ours.update([1.5]), lambda: "ash" in ours):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(OverflowError):
        ours.add(-1)
    with pytest.raises(warpset.FileError, match="RangeFilter"):
        DynamicRangeFilter.from_bytes(bytes(warpset.RangeFilter([1])))
    assert len(ours) == 0
