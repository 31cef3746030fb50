"""Structures in mapped files support all methods that do not change them."""

import copy

import numpy as np
import pytest

import warpset

KEYS = np.arange(1000)
SEQUENCE = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGC"


def counter():
    ours = warpset.KmerCounter(k=5)
    ours.update_sequences([SEQUENCE])
    return ours


def filled(make, *arguments, **settings):
    ours = make(*arguments, **settings)
    ours.update(KEYS if make is not warpset.SequenceFilter else [SEQUENCE])
    return ours


def inserted(ours):
    ours.insert(KEYS, KEYS)
    return ours


MAKERS = {
    "split-block": lambda: filled(warpset.SplitBlockBloom, 1000),
    "blocked": lambda: filled(warpset.BlockedBloom, 1000, block_bits=512),
    "rank-select": lambda: filled(warpset.QuotientFilter, 1000, duplicates="counted"),
    "standard": lambda: filled(warpset.QuotientFilter, 1000, kind="standard"),
    "fuse": lambda: warpset.BinaryFuse(KEYS, bits=16),
    "static function": lambda: warpset.StaticFunction(KEYS, KEYS, filtered=4),
    "maplet": lambda: inserted(warpset.Maplet(1000, value_bits=10)),
    "range": lambda: warpset.RangeFilter(KEYS, key="int64"),
    "dynamic range": lambda: filled(warpset.DynamicRangeFilter, 1000),
    "recsplit": lambda: warpset.PerfectHash(KEYS),
    "consensus filter": lambda: warpset.StaticFilter(KEYS, kind="consensus"),
    "set": lambda: warpset.StaticSet(KEYS, key="uint32"),
    "map": lambda: warpset.StaticMap(KEYS, KEYS),
    "sorted": lambda: warpset.SortedMap(dict(zip(range(100), range(100)))),
    "sorted set of nothing": lambda: warpset.SortedMap(value=None),
    "k-mers": counter,
    "sequences": lambda: filled(warpset.SequenceFilter, 1000, k=21),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_mapped_structure_is_read_whole(make, tmp_path):
    ours, path = make(), tmp_path / "structure"
    ours.save(path)
    mapped = type(ours).mmap(path)
    assert mapped == ours and ours == mapped and mapped == mapped and mapped == type(ours).mmap(path)
    assert mapped in [ours] and mapped != "structure" and not mapped != ours
    assert bytes(mapped) == path.read_bytes() and bytes(mapped.to("cpu")) == bytes(mapped.copy())
    for copied in (mapped.copy(), copy.copy(mapped), copy.deepcopy(mapped), mapped.to("cpu"), mapped.to("emulator")):
        assert copied == ours and not copied.device.startswith("mapped")
    again = tmp_path / "again"
    mapped.save(again)
    assert type(ours).load(again) == ours
    mapped.save(path)  # over the file itself, whose map stays
    assert mapped == ours
    path.unlink()
    assert mapped == ours and mapped.copy() == ours


@pytest.mark.parametrize("make", [MAKERS[name] for name in ("split-block", "blocked", "rank-select", "standard", "sorted", "sequences")])
def test_merging_from_mapped_ones(make, tmp_path):
    ours, path = make(), tmp_path / "structure"
    ours.save(path)
    mapped = type(ours).mmap(path)
    for both in (ours | mapped, mapped | ours, mapped | mapped):
        assert both == (ours | ours) and both.device == "cpu"
    changed = ours.copy()
    changed.merge(mapped)
    assert changed == (ours | ours)
    with pytest.raises(ValueError, match=r"mapped, so it cannot be changed: change a `copy\(\)`"):
        mapped.merge(ours)


def test_counters_and_intersections(tmp_path):
    ours, path = counter(), tmp_path / "structure"
    ours.save(path)
    mapped = warpset.KmerCounter.mmap(path)
    assert (ours + mapped)["GATTA"] == 2 == (mapped + ours)["GATTA"]
    bloom = MAKERS["blocked"]()
    bloom.save(path)
    assert bloom & warpset.BlockedBloom.mmap(path) == bloom == warpset.BlockedBloom.mmap(path) & bloom


def test_a_replaced_file_leaves_the_map(tmp_path):
    path = tmp_path / "structure"
    one, other = warpset.StaticSet([1]), warpset.StaticSet([2])
    one.save(path)
    mapped = warpset.StaticSet.mmap(path)
    other.save(path)
    assert mapped == one and warpset.StaticSet.mmap(path) == other and 1 in mapped.copy()
