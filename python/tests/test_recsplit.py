"""Perfect hash functions and static filters: numbers are a permutation and members are found, for all types of keys."""

import copy
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import PerfectHash, StaticFilter

NONE = 2**64 - 1
KEYS = np.arange(3000, dtype=np.uint64) * 7919
words = st.one_of(
    st.sets(st.integers(-(2**63), 2**64 - 1), max_size=60),
    st.sets(st.binary(max_size=12), max_size=60),
    st.sets(st.integers(0, 255), max_size=60),
)


def is_permutation(numbers, n):
    return sorted(numbers.tolist()) == list(range(n))


def different(keys):
    """Keys that are equal by their 64 bits once."""
    return list({key % 2**64 if isinstance(key, int) else key: key for key in keys}.values())


@settings(max_examples=60, deadline=None)
@given(keys=words, others=words, seed=st.integers(0, 2**64 - 1))
def test_numbers_are_a_permutation(keys, others, seed):
    keys = different(keys)
    function = PerfectHash(keys, seed=seed)
    assert len(function) == function.values == len(keys)
    assert is_permutation(function(keys), len(keys))
    assert [function.index_one(key) for key in keys] == function.index(keys).tolist()
    assert all(number < max(len(keys), 1) for number in function(list(others)).tolist())
    assert pickle.loads(pickle.dumps(function)) == function == copy.deepcopy(function)


@settings(max_examples=60, deadline=None)
@given(keys=words, others=words)
def test_members_are_found(keys, others):
    keys = different(keys)
    members = StaticFilter(keys, kind="recsplit", bits=32)
    assert len(members) == len(keys) and members.bits == 32
    assert members.contains(keys).all() and all(key in members for key in keys)
    assert members.count_contained(keys) == len(keys) and is_permutation(members.index(keys), len(keys))
    kind = type(keys[0]) if keys else int
    known = {key % 2**64 if kind is int else key for key in keys}
    others = [key for key in others if isinstance(key, kind) and (key % 2**64 if kind is int else key) not in known]
    assert not members.contains(others).any() and (members.index(others) == NONE).all()
    assert all(members.index_one(key) is None for key in others)
    assert pickle.loads(pickle.dumps(members)) == members == copy.copy(members)


@settings(max_examples=4, deadline=None)
@given(keys=words)
def test_devices_give_the_same(keys):
    keys = different(keys)
    for kind in (PerfectHash, StaticFilter):
        here, there = kind(keys), kind(keys, device=DEVICE)
        assert there == here and there.device == DEVICE and here.to(DEVICE) == there.to("cpu")
        assert there.index(keys).tolist() == here.index(keys).tolist()
        assert [there.index_one(key) for key in keys[:3]] == [here.index_one(key) for key in keys[:3]]


def test_arrays_on_a_device():
    device = warpset.Device(DEVICE)
    keys = device.array(KEYS[:200])
    function, members = PerfectHash(keys, device=device), StaticFilter(keys, kind="recsplit", device=device)
    assert function == PerfectHash(KEYS[:200]) and members == StaticFilter(KEYS[:200], kind="recsplit")
    numbers = function(keys)
    assert isinstance(numbers, warpset.DeviceArray) and numbers.device == device
    assert numbers.tolist() == function.index(KEYS[:200]).tolist()
    out = device.array(np.zeros(200, dtype=np.uint64))
    assert function.index(keys, out=out) is out and out.tolist() == numbers.tolist()
    assert all(members.contains(keys).tolist()) and members.count_contained(keys) == 200
    signed = device.array(KEYS[:20].astype(np.int32))
    assert PerfectHash(signed, device=device) == PerfectHash(KEYS[:20])
    for kind in (PerfectHash, StaticFilter):
        with pytest.raises(ValueError, match="in host memory"):
            kind(keys)
        with pytest.raises(warpset.DuplicateKeyError, match="number 0 and 1"):
            kind(device.array(np.array([7, 7], dtype=np.uint64)), device=device)
    with pytest.raises(ValueError, match="copy them to the host"):
        members.index(keys)
    with pytest.raises(ValueError, match="in host memory"):
        function.to("cpu").index(keys)


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
def test_all_kinds_of_arrays(kind):
    small = np.arange(100, dtype=np.uint8)
    function = kind(small)
    for same in (small.astype(np.int64), small.astype(np.int32)[::-1][::-1], small.tolist(), range(100), iter(range(100))):
        assert kind(same) == function
    text = [f"key {i}" for i in range(100)]
    assert kind(np.array(text, dtype="S")) == kind(text) == kind([word.encode() for word in text])
    out = np.zeros(100, dtype=np.uint64)
    assert function.index(small, out=out) is out and is_permutation(out, 100)


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
def test_chunks_and_nulls(kind):
    pa = pytest.importorskip("pyarrow")
    text, numbers = [f"key {i}" for i in range(30)], list(range(-15, 15))
    for values, types in [(text, [pa.string(), pa.large_string()]), (numbers, [pa.int64(), pa.int32(), pa.int8()])]:
        function = kind(values)
        for of in types:
            chunks = pa.chunked_array([values[:7] + [None], [], [None, None], values[7:]], of)
            assert kind(chunks) == function == kind(pa.array(values, of))
            assert function.index(chunks).tolist() == [
                NONE if value is None else function.index_one(value) for value in chunks.to_pylist()
            ]
            with pytest.raises(warpset.DuplicateKeyError, match="number 3 and 30"):
                kind(pa.chunked_array([values, values[3:4]], of))
    assert len(kind(pa.chunked_array([], pa.string()))) == len(kind(pa.array([None], pa.int64()))) == 0


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
@pytest.mark.parametrize("device", [None, DEVICE])
def test_duplicates_are_named(kind, device):
    for keys, message in [
        ([5, 7, 9, 7], "duplicate key 7: keys number 1 and 3"),
        (["ash", "fir", "ash"], "ash.*number 0 and 2"),
        (np.array([1, -1, 2**32 - 1, -1]), "number 1 and 3"),
    ]:
        with pytest.raises(warpset.DuplicateKeyError, match=message):
            kind(keys, device=device)
    assert issubclass(warpset.DuplicateKeyError, ValueError)


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
def test_empty_and_one(kind):
    none, one = kind([]), kind(["ash"])
    assert len(none) == 0 and not none and none.index([]).tolist() == [] and none.nbytes > 0
    assert len(one) == 1 and one and one.index_one("ash") == 0 == one.index(["ash"])[0]
    assert none == kind(np.array([], dtype=np.int32)) and none != one and one != "a function"
    assert none.index_one(7) == (0 if kind is PerfectHash else None)


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
def test_files(kind, tmp_path):
    ours, path = kind(KEYS), tmp_path / "keys.warpset"
    ours.save(path)
    assert kind.load(path) == ours == kind.from_bytes(bytes(ours)) == kind.load(path, device=DEVICE)
    mapped = kind.mmap(path)
    assert mapped.index(KEYS).tolist() == ours.index(KEYS).tolist() and "mapped from" in repr(mapped)
    assert mapped.index_one(7919) == ours.index_one(7919) and len(mapped) == len(ours)
    assert pickle.loads(pickle.dumps(mapped)).index(KEYS).tolist() == ours.index(KEYS).tolist()
    saved = bytes(ours)
    for place in (1, 20, 60, 130, len(saved) // 2, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            kind.from_bytes(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :])
    for end in (0, 10, 127, 128, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            kind.from_bytes(saved[:end])
    with pytest.raises(warpset.FileError):
        kind.from_bytes(saved + b"\0")
    other = tmp_path / "other.warpset"
    warpset.SplitBlockBloom(100).save(other)
    for read in (kind.load, kind.mmap):
        with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
            read(other)
        with pytest.raises(FileNotFoundError, match="none"):
            read(tmp_path / "none")


def test_settings():
    small = PerfectHash(KEYS, bits_per_key=1.7)
    assert small.bits_per_key < PerfectHash(KEYS, leaf_size=4, bucket_size=50).bits_per_key < 3.5
    assert small.nbytes * 8 / len(KEYS) == small.bits_per_key and is_permutation(small(KEYS), len(KEYS))
    loose = PerfectHash(KEYS, load_factor=0.8)
    assert 3000 < loose.values < 4000 and loose(KEYS).max() < loose.values and len(set(loose(KEYS))) == 3000
    shared = PerfectHash(KEYS, keys_per_value=10, bucket_size=100)
    assert 300 <= shared.values <= 340 and np.bincount(shared(KEYS).astype(int)).max() == 10
    assert PerfectHash(KEYS, seed=1) != PerfectHash(KEYS, seed=2) == PerfectHash(KEYS, seed=2, threads=1)
    assert repr(small).startswith("PerfectHash(3000 keys, ") and repr(small).endswith("bits per key, cpu)")
    coarse, fine = (StaticFilter(KEYS, kind="recsplit", fpr=rate) for rate in (0.1, 0.001))
    assert (coarse.bits, fine.bits) == (4, 10) and fine.fpr == 2**-10 and fine.bits_per_key < 14
    others = KEYS + 1
    assert 50 < coarse.count_contained(others) < 400 and fine.count_contained(others) < 20
    assert repr(fine).startswith("StaticFilter(3000 keys, ") and "fpr=9.77e-4" in repr(fine)
    assert StaticFilter(KEYS).bits == 7 and StaticFilter(KEYS).kind == "consensus"


def test_bad_input():
    for wrong, message in [
        ({"leaf_size": 25}, "leaf size 25"),
        ({"bucket_size": 0}, "bucket size 0"),
        ({"load_factor": 0.5}, "load factor 0.5"),
        ({"keys_per_value": 1}, "2 to 24"),
        ({"bits_per_key": 2, "leaf_size": 4}, "alone"),
        ({"bits_per_key": float("nan")}, "1.53"),
        ({"keys_per_value": 4, "load_factor": 0.9}, "without them"),
        ({"device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            PerfectHash([1, 2], **wrong)
    for wrong, message in [
        ({"bits": 33}, "1 to 32"),
        ({"bits": 0}, "1 to 32"),
        ({"fpr": 1.0}, "below 1"),
        ({"fpr": float("nan")}, "below 1"),
        ({"fpr": 0.1, "bits": 4}, "give one"),
    ]:
        with pytest.raises(ValueError, match=message):
            StaticFilter([1, 2], **wrong)
    for kind in (PerfectHash, StaticFilter):
        for keys in (7, "ash", None, [1.5], [1, "ash"], np.array([0.5]), [[1]], object()):
            with pytest.raises(TypeError):
                kind(keys)
        with pytest.raises(OverflowError):
            kind([2**64])
        with pytest.raises(OverflowError):
            kind([1], seed=-1)
        function = kind([1, 2])
        for keys in (7, "ash", [1.5], np.array([0.5]), None):
            with pytest.raises(TypeError):
                function.index(keys)
        for key in (1.5, None, [1]):
            with pytest.raises(TypeError):
                function.index_one(key)
        with pytest.raises(ValueError, match="out"):
            function.index([1, 2], out=np.zeros(3, dtype=np.uint64))
        with pytest.raises(TypeError):
            iter(function)


def slow(kind, **more):
    """A build of seconds."""
    return kind(np.arange(2_000_000), kind="recsplit", leaf_size=14, bucket_size=200, threads=2, **more)


@pytest.mark.parametrize("kind", [PerfectHash, StaticFilter])
def test_progress(kind):
    told = []
    kind(np.arange(100_000), kind="recsplit", leaf_size=6, progress=lambda done, keys: told.append((done, keys)))
    assert told[-1] == (100_000, 100_000) and all(0 <= done <= keys for done, keys in told)

    def stop(done, keys):
        raise KeyError("enough")

    start = time.monotonic()
    with pytest.raises(KeyError, match="enough"):
        slow(kind, progress=stop)
    with pytest.raises(TypeError, match="not callable"):
        slow(kind, progress=7)
    with pytest.raises(KeyError, match="enough"):
        kind(KEYS[:500], device=DEVICE, progress=stop)
    assert time.monotonic() - start < 5


def test_signals_stop_a_build(interrupts):
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        slow(PerfectHash)
    assert time.monotonic() - start < 5


def test_threads():
    function, numbers = PerfectHash(KEYS), [None] * 4
    expected = function(KEYS).tolist()

    def work(place):
        built = PerfectHash(KEYS, threads=1 + place % 2)
        numbers[place] = built == function and function.index(KEYS, threads=2).tolist() == expected

    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert numbers == [True] * 4
