"""String maps: exact for all kinds of functions, in memory and in mapped files."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import StringMap

KINDS = ["placement", "consensus", "recsplit"]
KEYS = [f"key {number}" for number in range(3000)]


@settings(max_examples=60, deadline=None)
@given(model=st.dictionaries(st.binary(max_size=40), st.integers(0, 2**64 - 1), max_size=50), kind=st.sampled_from(KINDS),
       seed=st.integers(0, 2**64 - 1), others=st.lists(st.binary(max_size=3)))
def test_is_a_dictionary(model, kind, seed, others):
    ours = StringMap(list(model), list(model.values()), kind=kind, seed=seed)
    assert len(ours) == len(model) and ours.kind == kind and kind in repr(ours)
    values, found = ours.get_many(asked := [*model, *others], default=7)
    assert values.tolist() == [model.get(key, 7) for key in asked] and found.tolist() == [key in model for key in asked]
    assert [ours.get(key) for key in asked] == [model.get(key) for key in asked]
    assert all(key in ours for key in model) and pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, tmp_path):
    told, path = [], tmp_path / "map"
    ours = StringMap(KEYS, range(3000), kind=kind, progress=lambda done, all: told.append((done, all)))
    assert told[-1] == (3000, 3000) and ours.nbytes < 3000 * 27
    ours.save(path)
    mapped = StringMap.mmap(path)
    for again in (StringMap.load(path), warpset.load(path), StringMap.from_bytes(bytes(ours)), mapped, pickle.loads(pickle.dumps(mapped))):
        assert again == ours and again.kind == kind and again.get_many(KEYS)[0].tolist() == list(range(3000))
    saved = bytes(ours)
    with pytest.raises(warpset.FileError):
        StringMap.from_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    with pytest.raises(ValueError, match="host memory only"):
        ours.to(DEVICE)


def test_arrays_and_nulls():
    pa = pytest.importorskip("pyarrow")
    ours = StringMap(pa.chunked_array([["ash", None], [], ["oak"]]), pa.array([1, 2, 3], pa.uint8()))
    assert ours == StringMap(np.array(["ash", "oak"]), [1, 3]) and ours.get(b"oak") == 3 and ours.get("elm", 5) == 5
    out, flags = np.zeros(3, np.uint64), np.zeros(3, bool)
    values, found = ours.get_many(pa.array(["oak", None, "elm"]), 9, out=out, found=flags)
    assert values is out and found is flags and out.tolist() == [3, 9, 9] and flags.tolist() == [True, False, False]
    assert not StringMap([], []) and StringMap([], []).get("ash") is None


def test_bad_input():
    ours = StringMap(["ash"], [1])
    with pytest.raises(warpset.DuplicateKeyError):
        StringMap(["ash", "ash"], [1, 1])
    for wrong in (lambda: StringMap(["ash"], [1, 2]), lambda: StringMap(["ash"], [1], kind="hash"),
                  lambda: ours.get_many(warpset.Device(DEVICE).array(np.arange(3, dtype=np.uint64)))):
        with pytest.raises(ValueError):
            wrong()
    for wrong in (lambda: StringMap([1], [1]), lambda: ours.get(1), lambda: ours.get_many([1]), lambda: 1 in ours, lambda: StringMap("ash", [1])):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(OverflowError):
        StringMap(["ash"], [-1])
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        StringMap.from_bytes(bytes(warpset.SplitBlockBloom(10)))
