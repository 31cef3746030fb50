"""Consensus: the behaviour of RecSplit's functions and filters, with its own numbers, bits and settings."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_recsplit import KEYS, NONE, different, is_permutation, words
from warpset import PerfectHash, StaticFilter

CLASSES = [PerfectHash, StaticFilter]


def of(cls):
    return partial(cls, kind="consensus")


@settings(max_examples=40, deadline=None)
@given(keys=words, others=words, seed=st.integers(0, 2**64 - 1))
def test_numbers_are_a_permutation(keys, others, seed):
    keys = different(keys)
    function = PerfectHash(keys, kind="consensus", seed=seed)
    assert len(function) == function.values == len(keys) and function.kind == "consensus"
    assert is_permutation(function(keys), len(keys))
    assert [function.index_one(key) for key in keys] == function.index(keys).tolist()
    assert all(number < max(len(keys), 1) for number in function(list(others)).tolist())
    assert pickle.loads(pickle.dumps(function)) == function


@settings(max_examples=40, deadline=None)
@given(keys=words)
def test_members_are_found(keys):
    keys = different(keys)
    members = StaticFilter(keys, kind="consensus", bits=32)
    assert members.contains(keys).all() and members.count_contained(keys) == len(keys) == len(members)
    assert is_permutation(members.index(keys), len(keys)) and all(key in members for key in keys)
    assert pickle.loads(pickle.dumps(members)) == members


@pytest.mark.parametrize("cls", CLASSES)
def test_devices_give_the_same(cls):
    device = warpset.Device(DEVICE)
    keys = KEYS[:300]
    here, there = of(cls)(keys), of(cls)(keys, device=DEVICE)
    assert there == here and here.to(DEVICE) == there.to("cpu") and there.kind == "consensus"
    assert there.index(keys).tolist() == here.index(keys).tolist()
    assert there.index_one(int(keys[7])) == here.index_one(int(keys[7]))
    on_device = device.array(keys)
    assert of(cls)(on_device, device=device) == here
    if cls is PerfectHash:
        assert there(on_device).tolist() == here(keys).tolist()
    else:
        assert all(there.contains(on_device).tolist()) and there.count_contained(on_device) == 300


@pytest.mark.parametrize("cls", CLASSES)
def test_chunks_nulls_and_duplicates(cls):
    pa = pytest.importorskip("pyarrow")
    values = [f"key {i}" for i in range(30)]
    function = of(cls)(values)
    chunks = pa.chunked_array([values[:7] + [None], [], values[7:]], pa.string())
    assert of(cls)(chunks) == function and function.index(chunks)[7] == NONE
    with pytest.raises(warpset.DuplicateKeyError, match="number 3 and 30"):
        of(cls)(values + values[3:4])


@pytest.mark.parametrize("cls", CLASSES)
def test_files_know_their_kind(cls, tmp_path):
    both = {kind: cls(KEYS, kind=kind) for kind in ("recsplit", "consensus")}
    assert both["recsplit"] != both["consensus"]
    for kind, ours in both.items():
        path = tmp_path / kind
        ours.save(path)
        for read in (cls.load(path), cls.mmap(path), cls.from_bytes(bytes(ours))):
            assert read.kind == kind and read.index(KEYS).tolist() == ours.index(KEYS).tolist()
        assert f'kind="{kind}"' in repr(ours)
    with pytest.raises(warpset.FileError):
        cls.from_bytes(bytes(both["consensus"])[:-1])
    other = tmp_path / "other"
    warpset.SplitBlockBloom(100).save(other)
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        cls.load(other)


def test_settings():
    small, large = (PerfectHash(KEYS, kind="consensus", overhead=bits) for bits in (0.02, 0.5))
    assert small.bits_per_key < large.bits_per_key and is_permutation(small(KEYS), len(KEYS))
    assert PerfectHash(KEYS, kind="consensus", bits_per_key=1.6).kind == "consensus"
    assert PerfectHash(KEYS, kind="consensus", bucket_size=300, seed=1) != PerfectHash(KEYS, kind="consensus", seed=2)
    assert StaticFilter(KEYS, kind="consensus", fpr=0.001, overhead=0.1).bits == 10
    told = []
    PerfectHash(np.arange(50_000), kind="consensus", progress=lambda done, keys: told.append((done, keys)))
    assert told[-1] == (50_000, 50_000)
    for cls, wrong, message in [
        (PerfectHash, {"kind": "chd"}, 'there are "recsplit", "consensus" and "placement"'),
        (PerfectHash, {"kind": "consensus", "leaf_size": 8}, 'leaf_size is a setting of kind="recsplit"'),
        (PerfectHash, {"kind": "consensus", "load_factor": 0.9}, "load_factor is a setting"),
        (PerfectHash, {"kind": "consensus", "keys_per_value": 3}, "keys_per_value is a setting"),
        (PerfectHash, {"overhead": 0.1}, 'overhead is a setting of kind="consensus"'),
        (PerfectHash, {"kind": "consensus", "overhead": 2.0}, "0.001 to 1"),
        (PerfectHash, {"kind": "consensus", "overhead": 0.1, "bits_per_key": 1.5}, "alone"),
        (PerfectHash, {"kind": "consensus", "bits_per_key": float("inf")}, "1.46"),
        (StaticFilter, {"leaf_size": 8}, "leaf_size is a setting"),
        (StaticFilter, {"kind": "recsplit", "overhead": 0.1}, "overhead is a setting"),
    ]:
        with pytest.raises(ValueError, match=message):
            cls([1, 2], **wrong)
