"""Placement: the behaviour of other kinds of functions and filters, with its own numbers, bits and settings."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_recsplit import KEYS, different, is_permutation, words
from warpset import PerfectHash, StaticFilter


@settings(max_examples=40, deadline=None)
@given(keys=words, seed=st.integers(0, 2**64 - 1))
def test_numbers_are_a_permutation(keys, seed):
    keys = different(keys)
    function = PerfectHash(keys, kind="placement", seed=seed)
    assert len(function) == function.values == len(keys) and function.kind == "placement"
    assert is_permutation(function(keys), len(keys))
    assert [function.index_one(key) for key in keys] == function.index(keys).tolist()
    members = StaticFilter(keys, kind="placement", bits=32)
    assert members.contains(keys).all() and is_permutation(members.index(keys), len(keys))
    assert pickle.loads(pickle.dumps(function)) == function and pickle.loads(pickle.dumps(members)) == members


@pytest.mark.parametrize("cls", [PerfectHash, StaticFilter])
def test_devices_and_files(cls, tmp_path):
    here, there = cls(KEYS, kind="placement"), cls(KEYS, kind="placement", device=DEVICE)
    assert there == here and here.to(DEVICE) == there.to("cpu") and there.kind == "placement"
    assert there.index(KEYS).tolist() == here.index(KEYS).tolist()
    assert cls(warpset.Device(DEVICE).array(KEYS), kind="placement", device=DEVICE) == here
    here.save(tmp_path / "saved")
    for read in (cls.load(tmp_path / "saved"), cls.mmap(tmp_path / "saved"), warpset.load(tmp_path / "saved")):
        assert read.kind == "placement" and read.index(KEYS).tolist() == here.index(KEYS).tolist()
    assert 'kind="placement"' in repr(here)


def test_settings():
    small, large = (PerfectHash(np.arange(50_000), kind="placement", keys_per_seed=keys) for keys in (4.5, 2))
    assert small.bits_per_key < large.bits_per_key
    assert PerfectHash(KEYS, kind="placement", bits_per_key=2.1).kind == "placement"
    for cls, wrong, message in [
        (PerfectHash, {"kind": "placement", "overhead": 0.1}, 'overhead is a setting of kind="consensus"'),
        (PerfectHash, {"kind": "consensus", "keys_per_seed": 4}, 'keys_per_seed is a setting of kind="placement"'),
        (PerfectHash, {"kind": "placement", "keys_per_seed": 7}, "1 to 6"),
        (PerfectHash, {"kind": "placement", "keys_per_seed": 4, "bits_per_key": 2}, "alone"),
        (StaticFilter, {"kind": "placement", "leaf_size": 8}, "leaf_size is a setting"),
    ]:
        with pytest.raises(ValueError, match=message):
            cls([1, 2], **wrong)
