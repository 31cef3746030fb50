"""Range filters: no wrong "no", and wrong "yes" at most at the rate, for all types of keys."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import RangeFilter

KEYS = np.random.default_rng(5).integers(0, 2**62, 3000)
OF_TYPE = {
    "uint64": st.integers(0, 2**64 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=15).map(lambda key: key.rstrip(b"\0")),
}


@settings(max_examples=60, deadline=None)
@given(key=st.sampled_from(list(OF_TYPE)), bits=st.floats(3, 60), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_no_wrong_no(key, bits, seed, data):
    lists = st.lists(OF_TYPE[key], max_size=20)
    keys, firsts = data.draw(lists), data.draw(lists)
    lasts = data.draw(st.lists(OF_TYPE[key], min_size=len(firsts), max_size=len(firsts)))
    ours = RangeFilter(keys, key=key, bits_per_key=bits, seed=seed)
    assert len(ours) <= len(keys) and ours.contains(keys).all() and all(one in ours for one in keys)
    may, counts = ours.may_contain(firsts, lasts), ours.count_at_most(firsts, lasts)
    for first, last, found, count in zip(firsts, lasts, may, counts):
        there = {one for one in keys if first <= one <= last}
        assert count >= len(there) and found >= bool(there) and (first <= last or not found)
        assert ours.any_in(first, last) == found == ours.contains([first])[0] if first == last else True
        assert ours.any_in(first) >= any(first <= one for one in keys) and ours.any_in(last=last) >= any(one <= last for one in keys)
    assert ours.any_in() == bool(keys) == bool(ours)
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


def test_rates_and_sizes():
    ours, wide = RangeFilter(KEYS, fpr_at=(0.01, 100)), RangeFilter(KEYS, bits_per_key=20)
    firsts = np.random.default_rng(6).integers(0, 2**62, 20_000)
    assert ours.may_contain(firsts, firsts + 99).mean() < 0.015 and not ours.is_exact
    assert ours.fpr_of(100) <= 0.01 and ours.fpr == ours.fpr_of(1) and wide.fpr < ours.fpr
    assert 15 < ours.bits_per_key < 15.6 and ours.nbytes * 8 == ours.bits_per_key * len(ours)
    assert "3000 keys of uint64" in repr(ours) and RangeFilter(KEYS).bits_per_key == pytest.approx(16, abs=0.3)
    dense = RangeFilter(range(0, 3000, 3))
    assert dense.is_exact and dense.fpr == 0 and dense.contains(range(9)).tolist() == [True, False, False] * 3
    assert dense.count_at_most([0, 1, 5000], [8, 2, 6000]).tolist() == [3, 0, 0]


def test_types_of_arrays():
    for dtype in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", ">i4"):
        small = np.arange(0, 120, 5).astype(dtype)
        small = small.astype(small.dtype.newbyteorder("="))
        for key in ("uint64", "int64", np.float64):
            ours = RangeFilter(small, key=key)
            assert ours == RangeFilter(small.tolist(), key=key) and ours.contains(small).all()
            assert key == np.float64 or ours.contains(np.arange(120)).sum() == len(small)
    floats = np.array([-1e300, -1.5, -0.0, 2.5, np.inf], dtype=np.float64)
    ours = RangeFilter([*floats, None, np.nan], key="float64")
    assert len(ours) == 5 and ours.contains(floats).all() and 0.0 in ours and ours.any_in(0, 1) and not ours.any_in(3.0, np.nextafter(3, 4))
    assert 2.5 in RangeFilter(floats[1:4].astype("f4"), key="float64")
    assert ours.may_contain([np.nan, 0, None, 2], [9, np.nan, 9, 3]).tolist() == [False, False, False, True]
    text = RangeFilter(["ash", b"birch", "oak"], key="bytes")
    assert text.may_contain(np.array(["b", "p"]), np.array(["c", "z"])).tolist() == [True, False]
    assert "oak" in text and b"ash" in text and text.any_in("a", "ash") and not text.any_in("pine")


def test_arrays_and_nulls():
    pa = pytest.importorskip("pyarrow")
    ours = RangeFilter(pa.chunked_array([[10, None], [], [20]], pa.int16()))
    assert ours == RangeFilter([10, 20]) and len(ours) == 2
    firsts, lasts = pa.array([5, None, 12, 20]), pa.chunked_array([[10, 100, None], [30]])
    assert ours.may_contain(firsts, lasts).tolist() == [True, False, False, True]
    assert ours.count_at_most(firsts, lasts).tolist() == [1, 0, 0, 1]
    assert pa.array(ours.may_contain(firsts, lasts, form="arrow")).to_pylist() == [True, False, False, True]
    assert ours.contains([10, 11, None, 20], form="bitmap").tolist() == [0b1001]
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    assert len(RangeFilter(masked, key="float64")) == 1
    same, flags = np.arange(10, dtype=np.uint64), np.zeros(10, dtype=bool)
    assert ours.contains(same, out=flags) is flags and flags.tolist() == [False] * 10
    assert ours.count_at_most(same, same, out=same) is same and same.sum() == 0


def test_files_of_other_floats_are_refused():
    saved = bytes(RangeFilter([1.5, 2.5], key="float64"))
    wide, narrow = ((1 << 34 | size).to_bytes(8, "little") for size in (8, 4))  # the field with the type of keys
    assert wide in saved
    with pytest.raises(warpset.FileError, match="f32"):
        RangeFilter.from_bytes(saved.replace(wide, narrow, 1))


@pytest.mark.parametrize("key", list(OF_TYPE))
def test_files_and_devices(key, tmp_path):
    keys = KEYS.tolist() if key != "bytes" else [str(one) for one in KEYS]
    ours, path = RangeFilter(keys, key=key, bits_per_key=12), tmp_path / "filter"
    ours.save(path)
    mapped = RangeFilter.mmap(path)
    for again in (RangeFilter.load(path), warpset.load(path), RangeFilter.from_bytes(bytes(ours)), mapped):
        assert again == ours and again.may_contain(keys[:99], keys[:99]).all() and key in repr(again)
    assert mapped.count_at_most(keys, keys).tolist() == ours.count_at_most(keys, keys).tolist()
    saved = bytes(ours)
    with pytest.raises(warpset.FileError):
        RangeFilter.from_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    if key == "bytes":
        with pytest.raises(ValueError, match="host memory only"):
            ours.to(DEVICE)
        return
    there, firsts = RangeFilter(keys, key=key, bits_per_key=12, device=DEVICE), KEYS[:200] - 7
    assert there == ours == there.to("cpu") and there.is_exact == ours.is_exact and there.fpr == ours.fpr
    assert there.may_contain(firsts, firsts + 5).tolist() == ours.may_contain(firsts, firsts + 5).tolist()
    assert there.count_at_most(firsts, firsts + 9).tolist() == ours.count_at_most(firsts, firsts + 9).tolist()
    assert keys[0] in there and there.any_in() and not there.any_in(last=-1 if key != "uint64" else 0)
    with pytest.raises(TypeError, match="device|DeviceArray"):
        there.contains(warpset.Device(DEVICE).array(KEYS.view("u8")))


def test_bad_input():
    for wrong, message in [
        ({"bits_per_key": 2}, "3 to 60"), ({"fpr_at": (2, 1)}, "between 0 and 1"), ({"fpr_at": (0.1, 0)}, "at least 1"),
        ({"key": "uint32"}, "float64"), ({"bits_per_key": 9, "fpr_at": (0.1, 1)}, "one of them"), ({"device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            RangeFilter([1], **wrong)
    ours = RangeFilter([1, 2])
    with pytest.raises(ValueError, match="2 low and 1 high"):
        ours.may_contain([1, 2], [3])
    for call in (lambda: ours.contains([-1]), lambda: -1 in ours, lambda: RangeFilter([2**64], key="int64")):
        with pytest.raises(OverflowError):
            call()
    for call in (lambda: RangeFilter(["ash"]), lambda: RangeFilter([1], key="bytes"), lambda: RangeFilter([1.5]), lambda: "ash" in ours,
                 lambda: ours.contains(7), lambda: ours.may_contain(1, 2), lambda: RangeFilter(7, key="float64"), lambda: ours.any_in([1])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        RangeFilter.from_bytes(bytes(warpset.SplitBlockBloom(10)))
