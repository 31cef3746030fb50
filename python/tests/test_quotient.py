"""Quotient filters, against `collections.Counter`: exact ones have the contents of a Counter after any operations."""

import copy
import pickle
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import QuotientFilter

KINDS = [
    ("rank-select", "dropped"),
    ("rank-select", "kept"),
    ("rank-select", "counted"),
    ("standard", "dropped"),
    ("standard", "kept"),
]
KEYS = np.arange(1 << 8, dtype=np.uint64)
batches = st.lists(st.integers(0, 40), max_size=30)
steps = st.lists(st.tuples(st.sampled_from(["update", "remove", "test_and_add", "double", "merge", "clear"]), batches))


def exact(kind, duplicates, device="cpu", n=400):
    return QuotientFilter(n, kind=kind, duplicates=duplicates, key_bits=32, device=device)


def behaves_like_a_counter(make, duplicates, steps):
    ours, model = make(), Counter()

    def added(keys):
        return Counter(set(keys) - set(model)) if duplicates == "dropped" else Counter(keys)

    for name, keys in steps:
        if model.total() + len(keys) > 380 or (name == "double" and ours.nbytes > 1 << 16):
            continue
        array = np.array(keys, dtype=np.uint32)
        if name == "update":
            model.update(added(keys))
            ours.update(array)
        elif name == "remove":
            taken = Counter(keys) & model
            assert ours.remove(array) == taken.total()
            model -= taken
        elif name == "test_and_add":
            first = [k not in model and k not in keys[:i] for i, k in enumerate(keys)]
            assert ours.test_and_add(array).tolist() == first
            model.update(added(keys))
        elif name == "double":
            ours.double()
        elif name == "merge":
            other = make()
            other.update(keys)
            ours |= other
            model.update(added(keys))
        else:
            ours.clear()
            model.clear()
        assert len(ours) == model.total()
    assert ours.count(KEYS).tolist() == [model[k] for k in range(len(KEYS))]
    assert ours.contains(KEYS).tolist() == [model[k] > 0 for k in range(len(KEYS))]
    assert ours.count_contained(KEYS) == len(model)
    assert all(ours.count_one(k) == n for k, n in model.items())
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.deepcopy(ours)


@pytest.mark.parametrize("kind, duplicates", KINDS)
@settings(max_examples=60, deadline=None)
@given(steps=steps)
def test_like_a_counter(kind, duplicates, steps):
    behaves_like_a_counter(lambda: exact(kind, duplicates), duplicates, steps)


@pytest.mark.parametrize("kind, duplicates", KINDS)
@settings(max_examples=4, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from(["update", "remove", "merge", "double"]), batches), max_size=3))
def test_like_a_counter_on_a_device(kind, duplicates, steps):
    behaves_like_a_counter(lambda: exact(kind, duplicates, DEVICE, 100), duplicates, steps)


@pytest.mark.parametrize("kind, duplicates", KINDS)
def test_arrays_on_a_device(kind, duplicates):
    device = warpset.Device(DEVICE)
    ours = exact(kind, duplicates, device, 100)
    keys = device.array(np.array([3, 5, 3, 7], dtype=np.uint64))
    ours.update(keys)
    twice = 1 if duplicates == "dropped" else 2
    counts = ours.count(keys)
    assert isinstance(counts, warpset.DeviceArray) and counts.dtype == "uint64" and counts.device == device
    assert counts.tolist() == [twice, 1, twice, 1]
    out = device.array(np.zeros(4, dtype=np.uint64))
    assert ours.count(keys, out=out) is out and out.tolist() == counts.tolist()
    assert ours.remove(device.array(np.array([7, 8], dtype=np.uint64))) == 1
    on_host = ours.to("cpu")
    assert on_host.count([3, 5, 7]).tolist() == [twice, 1, 0] and on_host.to(device) == ours == on_host
    with pytest.raises(ValueError, match="on a device"):
        on_host.remove(keys)
    with pytest.raises(ValueError, match="in host memory"):
        on_host.count(keys)


@pytest.mark.parametrize("kind, duplicates", KINDS)
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_strings_and_single_keys(kind, duplicates, device):
    words = QuotientFilter(100, fpr=1e-9, kind=kind, duplicates=duplicates, device=device)
    words.update(["ash", b"birch", "ash"])
    assert "ash" in words and b"ash" in words and "fir" not in words
    assert words.count_one("ash") == (1 if duplicates == "dropped" else 2)
    assert words.discard("birch") and not words.discard("birch")
    words.add("fir")
    assert words.contains(["ash", "birch", "fir"]).tolist() == [True, False, True]


@pytest.mark.parametrize("kind, duplicates", KINDS)
def test_files(kind, duplicates, tmp_path):
    ours, path = exact(kind, duplicates), tmp_path / "filter.warpset"
    ours.update([1, 2, 2, 3])
    ours.save(path)
    assert QuotientFilter.load(path) == ours == QuotientFilter.from_bytes(bytes(ours))
    assert QuotientFilter.load(path, device=DEVICE) == ours
    mapped = QuotientFilter.mmap(path)
    assert mapped.count(KEYS).tolist() == ours.count(KEYS).tolist() and len(mapped) == len(ours)
    assert (mapped.kind, mapped.duplicates) == (kind, duplicates) and "mapped from" in repr(mapped)
    assert pickle.loads(pickle.dumps(mapped)).contains(KEYS).tolist() == ours.contains(KEYS).tolist()
    for change in (lambda: mapped.add(1), lambda: mapped.remove([1]), lambda: mapped.discard(1), mapped.double):
        with pytest.raises(ValueError, match="mapped"):
            change()


def test_damaged_files(tmp_path):
    saved = bytes(exact("standard", "kept"))
    with pytest.raises(warpset.FileError, match="checksum"):
        QuotientFilter.from_bytes(saved[:-1] + bytes([saved[-1] ^ 1]))
    for end in (0, 10, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            QuotientFilter.from_bytes(saved[:end])
    other = tmp_path / "bloom.warpset"
    warpset.SplitBlockBloom(100).save(other)
    for read in (QuotientFilter.load, QuotientFilter.mmap):
        with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
            read(other)
    with pytest.raises(FileNotFoundError):
        QuotientFilter.load(tmp_path / "none")


@pytest.mark.parametrize("kind, duplicates", KINDS)
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_full_filters_stay_as_they_were(kind, duplicates, device):
    ours = exact(kind, duplicates, device, 50)
    ours.update(np.arange(40))
    before = ours.copy()
    many = np.arange(1000, 1000 + ours.capacity, dtype=np.int64)
    with pytest.raises(warpset.FullError, match="double"):
        ours.update(many)
    with pytest.raises(warpset.FullError):
        ours.merge(filled(kind, duplicates, many))
    assert ours == before
    while ours.capacity < 40 + len(many):
        ours.double()
    ours.update(many)
    assert ours.contains(many).all() and len(ours) == 40 + len(many)
    assert ours.remove(many) == len(many)
    ours.halve()
    assert ours.count_contained(np.arange(40)) == 40 and 0 < ours.load_factor < 1


def filled(kind, duplicates, keys):
    other = exact(kind, duplicates, "cpu", len(keys))
    other.update(keys)
    return other


def test_sizes_may_differ_in_a_union():
    small, large = QuotientFilter(100, key_bits=40), QuotientFilter(10_000, key_bits=40)
    small.update([1, 2])
    large.update(np.arange(2, 60))
    assert len(small | large) == len(large | small) == 59
    assert len(small) == 2 and len(large) == 58


def test_rates_and_sizes():
    ours = QuotientFilter(10_000, fpr=0.001)
    ours.update(np.arange(10_000))
    others = np.arange(10_000, 210_000)
    assert ours.count_contained(np.arange(10_000)) == 10_000
    assert ours.fpr <= 0.001 and ours.count_contained(others) <= 300
    assert 0 < ours.load_factor <= 0.95 and ours.nbytes < 10_000 * 4
    assert repr(ours).startswith("QuotientFilter(") and 'kind="rank-select"' in repr(ours) and "cpu" in repr(ours)
    assert QuotientFilter(100, key_bits=20).fpr == 0.0
    assert QuotientFilter(100, seed=1) != QuotientFilter(100, seed=2) and QuotientFilter(100) != "a filter"


def test_bad_input():
    for wrong, message in [
        ({"kind": "other"}, "rank-select"),
        ({"duplicates": "other"}, "counted"),
        ({"kind": "standard", "duplicates": "counted"}, "rank-select"),
        ({"fpr": 2.0}, "between 0 and 1"),
        ({"fpr": float("nan")}, "between 0 and 1"),
        ({"key_bits": 65}, "2 to 64"),
        ({"max_load": 1.5}, "0.99"),
        ({"device": "cuda:x"}, "cuda:N"),
    ]:
        with pytest.raises(ValueError, match=message):
            QuotientFilter(100, **wrong)
    assert len(QuotientFilter(0)) == 0
    with pytest.raises(OverflowError):
        QuotientFilter(-1)
    ours = exact("rank-select", "kept")
    for keys in (np.array([1 << 32]), [-1], ["ash"]):
        assert ours.count(keys).tolist() == [0] and ours.remove(keys) == 0
        with pytest.raises(ValueError, match="32 bits"):
            ours.update(keys)
    for keys in (7, "ash", [1.5], np.array([0.5]), [[1]], None):
        for ask in (ours.count, ours.remove, ours.contains):
            with pytest.raises(TypeError):
                ask(keys)
    for key in (1.5, None, [1]):
        for ask in (ours.count_one, ours.discard, ours.add):
            with pytest.raises(TypeError):
                ask(key)
    with pytest.raises(ValueError, match="out"):
        ours.count([1, 2], out=np.zeros(3, dtype=np.uint64))
    with pytest.raises(ValueError, match="another type"):
        ours.count([1, 2], out=np.zeros(2, dtype=np.int64))
    with pytest.raises(ValueError, match="kind"):
        ours |= exact("standard", "kept")
    with pytest.raises(ValueError, match="duplicates"):
        ours |= exact("rank-select", "dropped")
    assert len(ours) == 0


@pytest.mark.parametrize("kind, duplicates", KINDS)
def test_threads_on_one_filter(kind, duplicates):
    ours = QuotientFilter(200_000, kind=kind, duplicates=duplicates, key_bits=32)
    other = ours.copy()

    def work(first):
        for start in range(first, 20_000, 2000):
            ours.update(np.arange(start, start + 1000))
            ours.count(np.arange(0, 20_000, 7))
            ours.discard(10**6)
            ours.merge(other) if first else other.merge(other)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(ours) == 20_000 and (ours.count(np.arange(20_000)) == 1).all()
