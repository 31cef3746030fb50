"""Keys in all containers of Python, and objects that are no keys."""

import array
import copy
import ctypes
import errno
import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from warpset import BlockedBloom, QuotientFilter, SplitBlockBloom

DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FILTERS = {
    "split-block": lambda n=1000, **o: SplitBlockBloom(n, fpr=1e-6, **o),
    "blocked": lambda n=1000, **o: BlockedBloom(n, fpr=1e-6, block_bits=512, **o),
    "rank-select": lambda n=1000, **o: QuotientFilter(n, fpr=1e-7, **o),
    "standard": lambda n=1000, **o: QuotientFilter(n, fpr=1e-7, kind="standard", **o),
}
every_filter = pytest.mark.parametrize("make", FILTERS.values(), ids=FILTERS.keys())


def bloom(keys=(), n=1000):
    filter = SplitBlockBloom(n, fpr=1e-6)
    filter.update(keys)
    return filter


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 7, 255, 256, 257, 5000])
def test_equal_numbers_are_equal_keys(dtype, n):
    info = np.iinfo(dtype)
    numbers = np.random.default_rng(n).integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    expected = bloom(numbers.tolist(), 5000)
    assert bloom(numbers, 5000) == expected
    assert bloom(array.array(numbers.dtype.char.replace("l", "q").replace("L", "Q"), numbers.tolist()), 5000) == expected
    assert bloom((int(i) for i in numbers), 5000) == expected
    assert expected.contains(numbers).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_gaps_and_misaligned_and_read_only_arrays(dtype):
    numbers = np.arange(100).astype(dtype)
    expected = bloom(numbers)
    raw = bytearray(numbers.nbytes + 1)
    raw[1:] = numbers.tobytes()
    misaligned = np.frombuffer(raw, dtype=dtype, offset=1)
    read_only = numbers.copy()
    read_only.flags.writeable = False
    wide = np.zeros((100, 3), dtype=dtype)
    wide[:, 1] = numbers
    fields = np.zeros(100, dtype=[("a", "u1"), ("key", dtype)])
    fields["key"] = numbers
    for same in [misaligned, read_only, numbers[::-1], np.repeat(numbers, 2)[::2], wide[:, 1], fields["key"]]:
        assert bloom(same) == expected
        assert expected.contains(same).all()


@every_filter
def test_strings(make):
    words = ["ash", "birch", "føhre", "", "a long word, longer than others"]
    kinds = [words, tuple(words), [w.encode() for w in words], np.array(words), np.array([w.encode() for w in words]),
             np.array(words, dtype=object), (w for w in words), dict.fromkeys(words), set(words)]
    if hasattr(np.dtypes, "StringDType"):
        kinds.append(np.array(words, dtype=np.dtypes.StringDType()))
    expected = make()
    for word in words:
        expected.add(word)
    for kind in kinds:
        filter = make()
        filter.update(kind)
        assert filter == expected, type(kind)
    for kind in kinds[:6]:
        assert expected.contains(kind).all()
    assert not expected.contains(np.array(["oak", "fir"])).any()
    assert "ash" in expected and b"ash" in expected and "oak" not in expected


def test_missing_items_of_arrays_of_objects():
    some = np.array(["ash", None, float("nan"), "birch"], dtype=object)
    assert bloom(some) == bloom(["ash", "birch"])
    assert bloom(["ash"]).contains(some).tolist() == [True, False, False, False]
    missing = np.array([None, None], dtype=object)
    assert bloom(missing) == bloom() and bloom([1]).contains(missing).tolist() == [False, False]


def test_numbers_of_numpy_are_keys():
    filter = bloom([7, 2**64 - 1])
    for number in [np.uint8(7), np.int64(7), np.uint64(2**64 - 1), np.int64(-1), True + 6]:
        assert number in filter
    filter = bloom()
    filter.update([np.uint16(9), np.int32(10)])
    filter.update(iter([np.arange(3), 4, np.array([5, 6])]))  # an iterable of keys and of batches of them
    assert filter == bloom([9, 10, 0, 1, 2, 4, 5, 6])


NO_KEYS = [1.5, None, float("nan"), object(), 1 + 2j, np.float32(1), np.datetime64("2026-01-01"), [1], {}, slice(1), Ellipsis]
NO_BATCHES = [1.5, None, object, object(), np.float64(1), np.datetime64("2026-01-01"), "text", b"bytes", bytearray(b"b"), 7,
              [1.5], [1, "a"], ["a", 1], np.array([1.5]), np.array([1 + 1j]), np.array([True]), np.zeros((2, 2), int),
              np.array(["2026-01-01"], dtype="datetime64[D]"), np.array([1], dtype=">i8"), np.zeros(2, dtype="f2"),
              np.array([1, 2.5], dtype=object), np.array([[1, "a"]], dtype=object), np.int64(1), (ctypes.c_float * 2)(),
              [np.float32(1)], [np.datetime64("2026-01-01")], [[1.5]], np.zeros(2, dtype=[("a", int), ("b", int)])]


@every_filter
@pytest.mark.parametrize("wrong", NO_BATCHES, ids=lambda k: repr(k)[:30])
def test_what_holds_no_keys(make, wrong):
    filter = make()
    filter.add(1)
    before = bytes(filter)
    for call in [filter.update, filter.contains, filter.count_contained, filter.test_and_add]:
        with pytest.raises((TypeError, ValueError)):
            call(wrong)
    assert bytes(filter) == before


@every_filter
@pytest.mark.parametrize("wrong", NO_KEYS, ids=lambda k: repr(k)[:30])
def test_what_is_no_key(make, wrong):
    filter = make()
    with pytest.raises(TypeError, match="a key is"):
        filter.add(wrong)
    with pytest.raises(TypeError, match="a key is"):
        wrong in filter  # noqa: B015
    if wrong is not None and wrong == wrong:  # a null, which has its own tests
        with pytest.raises(TypeError):
            filter.update([wrong] if not isinstance(wrong, list) else [1.5])


def test_fixed_bytes_have_all_their_bytes():
    digests = np.frombuffer(b"ash\0\0elm\0\0", "V5")
    for filter in (bloom(digests), bloom([b"ash\0\0", b"elm\0\0"])):
        assert filter.contains(digests).all() and b"ash\0\0" in filter and b"ash" not in filter
    assert b"ash" in bloom(digests.view("S5"))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**30])
def test_integers_that_do_not_fit(number):
    filter = bloom([1])
    for call in [lambda: filter.add(number), lambda: number in filter, lambda: filter.update([number]),
                 lambda: filter.contains([number])]:
        with pytest.raises(OverflowError, match="no key"):
            call()
    for fits in [2**64 - 1, -(2**63)]:
        filter.add(fits)
        assert fits in filter


def test_answers_into_an_array():
    filter = bloom([1, 2])
    out = np.ones(3, dtype=bool)
    assert filter.contains([1, 2, 3], out=out) is out and out.tolist() == [True, True, False]
    room = np.ones(8, dtype=bool)
    filter.contains([3, 1], out=room[2:4])
    assert room.tolist() == [True, True, False] + [True] * 5
    read_only = np.zeros(3, dtype=bool)
    read_only.flags.writeable = False
    for wrong in [np.zeros(2, dtype=bool), np.zeros(3, dtype=np.int32), np.zeros(3, dtype=">i8"), read_only, np.zeros(6, dtype=bool)[::2]]:
        with pytest.raises(ValueError, match="out"):
            filter.contains([1, 2, 3], out=wrong)
    for wrong in [[True] * 3, None.__class__, 5]:
        with pytest.raises(TypeError, match="out"):
            filter.contains([1, 2, 3], out=wrong)


def test_one_array_as_keys_and_answers():
    keys = np.array([7, 1, 2, 7], dtype=np.uint64)
    filter = QuotientFilter(100, key_bits=32, duplicates="kept")
    filter.update([7, 7, 2])
    assert filter.count(keys, out=keys) is keys and keys.tolist() == [2, 0, 1, 2]


small = st.lists(st.integers(-(2**63), 2**64 - 1) | st.integers(0, 20), max_size=40)


@every_filter
@given(batches=st.lists(small, max_size=4), asked=small)
@settings(max_examples=25, deadline=None)
def test_against_a_set(make, batches, asked):
    filter, model = make(), set()
    for batch in batches:
        words = [key % 2**64 for key in batch]
        first = [key not in model and key not in words[:i] for i, key in enumerate(words)]
        assert filter.test_and_add(batch).tolist() == first
        model.update(words)
    words = [key % 2**64 for key in asked]
    assert filter.contains(np.array(words, dtype=np.uint64)).tolist() == [key in model for key in words]
    assert [key in filter for key in asked] == [key in model for key in words]
    assert pickle.loads(pickle.dumps(filter)) == filter == copy.deepcopy(filter)


@every_filter
def test_files(make, tmp_path):
    filter = make()
    filter.update(["ash", "birch"])
    path = tmp_path / "trees"
    filter.save(path)
    filter.save(str(path))
    assert type(filter).load(path) == filter == type(filter).from_bytes(bytes(filter))
    mapped = type(filter).mmap(path)
    assert mapped.contains(["ash", "oak"]).tolist() == [True, False] and "birch" in mapped
    assert pickle.loads(pickle.dumps(mapped)).contains(["ash"]).all()
    for change in [lambda: mapped.add("oak"), lambda: mapped.update(["oak"]), mapped.clear]:
        with pytest.raises(ValueError, match="mapped"):
            change()
    data = bytes(filter)
    for damaged in [b"", data[:-1], data[: len(data) // 2], b"x" + data[1:], bytes(len(data))]:
        path.with_suffix(".bad").write_bytes(damaged)
        for read in [lambda: type(filter).from_bytes(damaged), lambda: type(filter).load(path.with_suffix(".bad")),
                     lambda: type(filter).mmap(path.with_suffix(".bad"))]:
            with pytest.raises(warpset.FileError):
                read()
    for read in (type(filter).load, type(filter).mmap):
        with pytest.raises(FileNotFoundError, match="none") as error:
            read(tmp_path / "none")
        assert (error.value.errno, error.value.filename) == (errno.ENOENT, str(tmp_path / "none"))
        with pytest.raises(OSError):
            read(tmp_path)
    with pytest.raises(FileNotFoundError):
        filter.save(tmp_path / "no folder" / "trees")
    other = SplitBlockBloom if not isinstance(filter, SplitBlockBloom) else QuotientFilter
    with pytest.raises(warpset.FileError, match=type(filter).__name__):
        other.load(path)
    with pytest.raises(warpset.FileError):
        pickle.loads(pickle.dumps(filter).replace(data[:8], b"WARPSET?"[:8]))


@every_filter
def test_operators(make):
    left, right = make(), make()
    left.update(range(100))
    right.update(range(50, 150))
    both = left | right
    assert both.contains(np.arange(150)).all() and not left.contains(np.arange(110, 150)).any()
    twin = left.copy()
    twin |= right
    assert twin == both != left
    twin.clear()
    assert len(twin) == 0 and not twin and both
    if isinstance(left, (SplitBlockBloom, BlockedBloom)):
        common = left & right
        assert common.contains(np.arange(50, 100)).all() and not common.contains(np.arange(50)).any()
        assert left == left.copy() and abs(len(left) - 100) < 10
    assert (left == 1) is False and left != "a"
    with pytest.raises(TypeError):
        left | {1, 2}
    with pytest.raises(ValueError):
        left | make(n=10**6) if isinstance(left, (SplitBlockBloom, BlockedBloom)) else left | QuotientFilter(100, fpr=0.3)
    assert type(left).__name__ in repr(left) and "bytes" in repr(left) and "fpr" in repr(left)


@pytest.mark.parametrize("wrong", [
    {"fpr": 0}, {"fpr": 1}, {"fpr": -1}, {"fpr": float("nan")}, {"fpr": float("inf")}, {"device": "gpu"}, {"device": 1},
    {"fpr": "a"}, {"n": -1}, {"n": 2**70}, {"n": 1.5}, {"n": 2**64 - 1}, {"unknown": 1}], ids=str)
@pytest.mark.parametrize("kind", [SplitBlockBloom, BlockedBloom, QuotientFilter])
def test_arguments(kind, wrong):
    with pytest.raises((ValueError, TypeError, OverflowError, MemoryError)):
        kind(**{"n": 100, **wrong})


def test_no_such_device():
    if not warpset.devices():
        with pytest.raises(warpset.DeviceError):
            SplitBlockBloom(100, device="cuda:0")
    with pytest.raises(warpset.DeviceError):
        SplitBlockBloom(100, device="cuda:99")
    assert SplitBlockBloom(100, device="auto").device in {"cpu", "cuda:0"}


def test_a_number_of_threads_is_not_negative():
    filter = bloom(np.arange(10), 100)
    for call in [filter.contains, filter.update, warpset.StaticSet, warpset.PerfectHash]:
        with pytest.raises(ValueError, match="threads=-1: pass a number of threads, or None for all of the machine"):
            call(np.arange(1000), threads=-1)


@pytest.mark.parametrize("threads", [1, 2, 3, 0, None])
def test_threads(threads):
    keys = np.arange(100_000)
    filter = SplitBlockBloom(100_000)
    filter.update(keys, threads=threads)
    assert filter.count_contained(keys, threads=threads) == 100_000
    assert filter.contains(keys, threads=threads).all()


@every_filter
def test_threads_of_python(make):
    filter, wrong = make(n=40_000), []

    def work(number):
        mine = np.arange(number * 10_000, (number + 1) * 10_000)
        for start in range(0, 10_000, 500):
            filter.update(mine[start : start + 500])
            filter.add(int(mine[start]))
            if not filter.contains(mine[: start + 500]).all():
                wrong.append((number, start))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    [worker.start() for worker in workers]
    [worker.join() for worker in workers]
    assert not wrong and filter.contains(np.arange(40_000)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_was_forked():
    filter = bloom(np.arange(1000), 100_000)  # starts the threads that a child does not have
    child = os.fork()
    if child == 0:
        filter.add(1000)
        filter.update(np.arange(1001, 1100))
        filter.update(np.arange(1100, 2000))
        os._exit(0 if filter.contains(np.arange(2000)).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert filter.contains(np.arange(1000)).all()


def test_without_numpy():
    program = """
import sys
sys.modules["numpy"] = None
import array, warpset
filter = warpset.SplitBlockBloom(100)
filter.update(array.array("Q", [1, 2, 3]))
filter.update(range(3, 5))
answers = filter.contains([1, 4, 10**9])
assert isinstance(answers, memoryview) and answers.tolist() == [True, True, False]
assert filter.contains([1, 10**9], form="bitmap").tolist() == [1]
assert "numpy" not in [name for name, module in sys.modules.items() if module]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
