"""`SortedMap` beside a `dict`, on the host and on the emulator."""

import bisect
import copy
import doctest
import os
import pickle
import signal
import threading
import time
from collections.abc import MutableMapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import SortedMap

EMULATOR = warpset.Device(DEVICE)
TYPES = [("uint64", "uint64"), ("uint64", "uint32"), ("uint64", None), ("uint32", "uint32"), ("int64", "uint64"),
         ("int64", None)]


def bounds(dtype):
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def filled(model, **options):
    made = SortedMap(**options)
    made.update(model)
    return made


def test_the_example_in_the_documentation():
    test = doctest.DocTestParser().get_doctest(SortedMap.__doc__, {}, "SortedMap", None, 0)
    assert len(test.examples) > 5 and doctest.DocTestRunner().run(test).failed == 0


def check(ours, model, dtypes):
    """All queries that a model of a `dict` answers."""
    low, high = bounds(dtypes[0])
    keys = sorted(model)
    assert len(ours) == len(model) and bool(ours) == bool(model)
    assert ours.keys().tolist() == keys and ours.keys().dtype == dtypes[0]
    assert list(ours) == keys and list(ours.items()) == [(k, model[k]) for k in keys]
    if dtypes[1]:
        assert ours.values().tolist() == [model[k] for k in keys] and ours.values().dtype == dtypes[1]
    else:
        assert ours.values() is None
    asked = sorted({low, low + 1, high - 1, high, *keys[:20], *(k + 1 for k in keys[:20] if k < high)})
    values, found = ours.get_many(asked, 0)
    assert found.tolist() == [k in model for k in asked] == ours.contains(asked).tolist()
    assert found.tolist() == [k in ours for k in asked]
    if dtypes[1]:
        assert values.tolist() == [model.get(k, 0) for k in asked]
    assert [ours.get(k, -1) for k in asked] == [model.get(k, -1) for k in asked]
    lows, highs = asked, asked[::-1]
    parts = [keys[bisect.bisect_left(keys, a):bisect.bisect_right(keys, b)] for a, b in zip(lows, highs)]
    assert ours.count_range(lows, highs).tolist() == [len(part) for part in parts]
    offsets, listed, values = ours.range(lows, highs)
    assert [listed[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:])] == parts
    if dtypes[1]:
        assert values.tolist() == [model[k] for part in parts for k in part]
    above = [next(iter(keys[bisect.bisect_right(keys, k):]), None) for k in asked]
    below = [next(iter(keys[:bisect.bisect_left(keys, k)][::-1]), None) for k in asked]
    for nearest, expected in ((ours.successors(asked), above), (ours.predecessors(asked), below)):
        assert [k if there else None for k, there in zip(nearest[0].tolist(), nearest[2])] == expected
        if dtypes[1]:
            there = [model[k] if k is not None else 0 for k in expected]
            assert nearest[1].tolist() == there
    if keys:
        assert ours.first() == (keys[0], model[keys[0]]) and ours.last() == (keys[-1], model[keys[-1]])
        a, b = keys[len(keys) // 3], keys[len(keys) * 2 // 3]
        assert ours[a:b][0].tolist() == [k for k in keys if a <= k < b]
        assert ours[b:][0].tolist() == [k for k in keys if k >= b]
        assert ours[:a][0].tolist() == [k for k in keys if k < a]
    else:
        for call in (ours.first, ours.last, ours.popitem):
            with pytest.raises(KeyError):
                call()


@st.composite
def stories(draw):
    """Types, and what is done with a map of them."""
    key, value = draw(st.sampled_from(TYPES))
    low, high = bounds(key)
    keys = st.one_of(st.integers(low, high), st.sampled_from([low, low + 1, high - 1, high]), st.integers(0, 9))
    values = st.integers(*bounds(value)) if value else st.none()
    step = st.one_of(
        st.tuples(st.just("update"), st.lists(st.tuples(keys, values), max_size=12)),
        st.tuples(st.just("delete"), st.lists(keys, max_size=6)),
        st.tuples(st.sampled_from(["set", "setdefault"]), st.tuples(keys, values)),
        st.tuples(st.sampled_from(["del", "pop", "in"]), keys),
        st.tuples(st.just("del slice"), st.tuples(keys, keys)),
        st.tuples(st.sampled_from(["popitem", "clear", "cleanup", "check", "copy", "merge"]), st.none()),
    )
    return key, value, draw(st.lists(step, max_size=10)), draw(st.sampled_from([0.5, 1, 3, None]))


def play(story, device):
    key, value, steps, cleanup = story
    ours, model = SortedMap(key=key, value=value, batch_size=64, cleanup=cleanup, device=device), {}
    for name, given_ in steps:
        match name:
            case "update":
                pairs = dict(given_)
                ours.update([k for k, _ in given_], [v for _, v in given_]) if value else ours.update(list(pairs))
                model.update(pairs)
            case "delete":
                ours.delete(given_)
                for k in given_:
                    model.pop(k, None)
            case "set":
                ours[given_[0]] = given_[1]
                model[given_[0]] = given_[1]
            case "setdefault":
                assert ours.setdefault(*given_) == model.setdefault(*given_)
            case "del":
                if given_ in model:
                    del ours[given_], model[given_]
                else:
                    with pytest.raises(KeyError, match=str(given_)):
                        del ours[given_]
            case "pop":
                assert ours.pop(given_, "no") == model.pop(given_, "no")
            case "in":
                assert (given_ in ours) == (given_ in model)
            case "del slice":
                del ours[given_[0]:given_[1]]
                model = {k: v for k, v in model.items() if not given_[0] <= k < given_[1]}
            case "popitem":
                if model:
                    assert ours.popitem() == (max(model), model.pop(max(model)))
            case "clear":
                ours.clear()
                model.clear()
            case "cleanup":
                ours.cleanup()
                assert ours.stored == len(model)
            case "copy":
                before, ours = ours, copy.deepcopy(ours)
                before.clear()
            case "merge":
                other = SortedMap(key=key, value=value)
                other[5] = 7 if value else None
                ours |= other
                model[5] = 7 if value else None
            case "check":
                check(ours, model, (key, value))
    check(ours, model, (key, value))
    fresh = SortedMap(key=key, value=value)
    fresh.update(model)
    assert fresh == ours and ours.device == device


@settings(max_examples=120, deadline=None)
@given(stories())
def test_as_a_dict(story):
    play(story, "cpu")


@settings(max_examples=12, deadline=None)
@given(stories())
def test_as_a_dict_on_the_emulator(story):
    play(story, DEVICE)


@pytest.mark.parametrize("key, value", TYPES)
def test_all_types_with_thousands_of_keys(key, value):
    rng, (low, high) = np.random.default_rng(1), bounds(key)
    model = {low: 1 if value else None, high: bounds(value)[1] if value else None}
    ours = SortedMap(key=key, value=value, batch_size=64)
    ours.update(model)
    for _ in range(5):
        keys = rng.integers(low, high, 3000, dtype=key, endpoint=True)
        keys[::7] = keys[0]
        values = rng.integers(0, 2**32, 3000, dtype=value) if value else None
        ours.update(keys, values) if value else ours.update(keys)
        model.update(zip(keys.tolist(), values.tolist() if value else [None] * 3000))
        gone = keys[:500]
        ours.delete(gone)
        for k in gone.tolist():
            model.pop(k, None)
    check(ours, model, (key, value))
    assert f"{key} to {value}" in repr(ours) and ours.nbytes > 0
    for again in (pickle.loads(pickle.dumps(ours)), SortedMap.from_bytes(bytes(ours)), copy.copy(ours), ours.copy()):
        assert again == ours
        check(again, model, (key, value))


@pytest.mark.parametrize("key, value", [("uint64", "uint32"), ("int64", "uint64"), ("int64", None)])
def test_files(tmp_path, key, value):
    ours = SortedMap(key=key, value=value)
    model = {k: k * 2 if value else None for k in range(5000)}
    ours.update(model)
    ours.delete([17])
    del model[17]
    path = tmp_path / "map"
    ours.save(path)
    loaded, mapped = SortedMap.load(path), SortedMap.mmap(path)
    assert loaded == ours and SortedMap.load(path, device=DEVICE).device == DEVICE
    for again in (loaded, mapped, pickle.loads(pickle.dumps(mapped))):
        check(again, model, (key, value))
    walked = iter(mapped)
    del mapped
    assert next(walked) == 0 and sum(1 for _ in walked) == len(model) - 1
    again = SortedMap.mmap(path)
    for change in (lambda: again.update([1], [1] if value else None), lambda: again.delete([1]), again.clear,
                   lambda: again.pop(1), lambda: again.merge(ours)):
        with pytest.raises(ValueError, match="mapped"):
            change()
    data = bytes(ours)
    for damaged in (b"", data[:50], data[:-8], data[:200] + b"\xff" + data[201:], b"x" + data[1:]):
        with pytest.raises(warpset.FileError):
            SortedMap.from_bytes(damaged)
        path.write_bytes(damaged)
        for read in (SortedMap.load, SortedMap.mmap):
            with pytest.raises(warpset.FileError):
                read(path)
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        SortedMap.from_bytes(bytes(warpset.SplitBlockBloom(10)))
    with pytest.raises(FileNotFoundError):
        SortedMap.load(tmp_path / "absent")


def test_conventions_of_mappings():
    ours = filled({3: 30, 1: 10})
    assert isinstance(ours, MutableMapping) and dict(ours) == {1: 10, 3: 30} == dict(ours.items())
    assert ours != {1: 10, 3: 30} and ours == filled({1: 10, 3: 30}) and ours != filled({1: 10})
    assert ours != filled({1: 10, 3: 30}, value="uint32")
    assert ours.pop(9, None) is None and ours.setdefault(4, 40) == 40 and ours.popitem() == (4, 40)
    with pytest.raises(KeyError, match="9"):
        ours[9]
    with pytest.raises(KeyError, match="9"):
        ours.pop(9)
    with pytest.raises(TypeError):
        hash(ours)
    ours |= {5: 50}
    both = ours | filled({5: 55, 6: 66})
    assert list(both.items()) == [(1, 10), (3, 30), (5, 55), (6, 66)] and list(ours) == [1, 3, 5]
    ours.merge(ours)
    ours.update(ours)
    ours |= ours
    assert len(ours) == 3
    for key in ours:  # what there was when it began
        del ours[key]
        ours[key + 10] = 1
    assert list(ours) == [11, 13, 15]
    many = filled({k: k for k in range(10_000)}, cleanup=1)
    pairs = many.items()
    many.clear()
    assert list(pairs) == [(k, k) for k in range(10_000)]
    seen = SortedMap(value=None)
    seen.update([3, 1])
    seen[2] = None
    assert list(seen) == [1, 2, 3] and seen[1] is None and 4 not in seen and seen.get(4, 0) == 0
    assert seen.get_many([1, 4])[0] is None and seen[:][1] is None and seen.setdefault(9) is None and 9 in seen


def test_arrays_of_many_kinds():
    ours = SortedMap()
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        keys = np.arange(40, dtype=dtype)
        ours.update(keys[::2], keys[20:])
        assert ours.get_many(keys[::2])[0].tolist() == list(range(20, 40))
        ours.delete(memoryview(keys))
        assert len(ours) == 0
    out, found = np.zeros(3, dtype=np.uint64), np.ones(3, dtype=bool)
    ours.update((1, 2), {3: 0, 4: 0})
    assert ours.get_many(iter([1, 5, 2]), 9, out=out, found=found)[0] is out
    assert out.tolist() == [3, 9, 4] and found.tolist() == [True, False, True]
    counts = np.zeros(1, dtype=np.uint64)
    assert ours.count_range([1], [2], out=counts) is counts and counts.tolist() == [2]
    both = np.array([2, 7, 1], dtype=np.uint64)
    assert ours.get_many(both, 8, out=both)[1].tolist() == [True, False, True] and both.tolist() == [4, 8, 3]
    for wrong in (np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64), [1, 2, 3]):
        with pytest.raises((ValueError, TypeError), match="out"):
            ours.get_many([1, 2, 3], out=wrong)
    for empty in ([], np.array([], dtype=np.int8), np.array([], dtype=np.uint64)):
        ours.update(empty, [])
        ours.delete(empty)
        assert [a.tolist() for a in ours.get_many(empty)] == [[], []]
        assert [a.tolist() for a in ours.range(empty, empty)] == [[0], [], []]
        assert ours.count_range(empty, empty).tolist() == [] and len(ours) == 2


def test_bad_input():
    for wrong, message in [
        ({"key": "uint16"}, "uint64 to uint32"), ({"value": "int64"}, "uint32"), ({"key": "uint32"}, "uint32 to uint32"), ({"batch_size": 100}, "power of two"),
        ({"cleanup": 1.5}, "below 1"), ({"cleanup": 0}, "1 or more"), ({"cleanup": float("nan")}, "below 1"),
        ({"device": "cuda:x"}, "cuda:N"),
    ]:
        with pytest.raises(ValueError, match=message):
            SortedMap(**wrong)
    with pytest.raises(TypeError):
        SortedMap(cleanup="often")
    ours = filled({1: 2})
    before = ours.copy()
    small, signed = filled({1: 2}, key="uint32", value="uint32"), filled({1: 2}, key="int64")
    for keys in ([-1], np.array([5, -1]), np.array([-1], dtype=np.int8), [2**63, -1], np.array([-1], dtype=np.int32)):
        for call in (ours.delete, ours.get_many, ours.contains, ours.successors, ours.predecessors,
                     lambda keys: ours.update(keys, keys), lambda keys: ours.range(keys, keys),
                     lambda keys: ours.count_range(keys, keys)):
            with pytest.raises(OverflowError):
                call(keys)
    with pytest.raises(OverflowError, match="item 1: -5 is out of the range of uint64"):
        ours.delete(np.array([5, -5]))
    with pytest.raises(OverflowError, match="4294967296 is out of the range of uint32"):
        small.update([1], [2**32])
    for keys in ([2**32], np.array([1, 2**32], dtype=np.uint64), np.array([-1]), [2**64 - 1]):
        with pytest.raises(OverflowError, match="uint32"):
            small.contains(keys)
    for keys in ([2**63], np.array([2**64 - 1], dtype=np.uint64), [-1, 2**63]):
        with pytest.raises(OverflowError, match="int64|2\\*\\*63"):
            signed.contains(keys)
    assert signed.contains([-(2**63), 2**63 - 1, 1]).tolist() == [False, False, True]
    with pytest.raises(OverflowError):
        ours.get_many([1], default=-1)
    with pytest.raises(OverflowError):
        ours.delete([2**64])
    for key, error in [(-1, OverflowError), (2**64, OverflowError), (1.0, TypeError), ("ash", TypeError),
                       (None, TypeError), (float("nan"), TypeError), ([1], TypeError)]:
        for call in (ours.get, ours.pop, lambda k: ours[k], lambda k: k in ours, lambda k: ours.setdefault(k, 1),
                     lambda k: ours.__setitem__(k, 1), lambda k: ours.__setitem__(1, k), ours.__delitem__):
            with pytest.raises(error):
                call(key)
    for keys in (7, "ash", [1.5], ["ash"], np.array([0.5]), np.array([np.nan]), [[1]], None, np.array(["ash"])):
        for call in (ours.delete, ours.get_many, ours.contains, ours.successors, lambda k: ours.update(k, [1]),
                     lambda k: ours.update([1], k) if k is not None else ours.update([1])):
            with pytest.raises(TypeError):
                call(keys)
    with pytest.raises(ValueError, match="nulls"):
        ours.update([1, 2], [1, None])
    for call in (lambda: ours.update([1, 2], [1]), lambda: ours.range([1, 2], [1]), lambda: ours.count_range([1], []),
                 lambda: ours.get_many(np.zeros((2, 2), dtype=np.uint64)), lambda: ours[1:9:2],
                 lambda: ours.merge(small), lambda: ours | small):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: ours | {}, lambda: ours.merge({}), lambda: ours.setdefault(8), lambda: ours.pop(1, 2, 3),
                 lambda: SortedMap(value=None).update([1], [1]), lambda: SortedMap(value=None).setdefault(1, 1)):
        with pytest.raises(TypeError):
            call()
    assert ours == before and len(small) == 1


@pytest.mark.parametrize("key, value", TYPES[:4])
def test_device_arrays(key, value):
    ours = SortedMap(key=key, value=value, device=EMULATOR)
    keys = np.arange(0, 600, 3, dtype=key)
    on_device = EMULATOR.array(keys)
    ours.update(on_device, EMULATOR.array((keys * 2).astype(value))) if value else ours.update(on_device)
    model = {int(k): int(k) * 2 if value else None for k in keys}
    ours.delete(EMULATOR.array(np.array([3, 4], dtype=key)))
    del model[3]
    check(ours, model, (key, value))
    asked = EMULATOR.array(np.arange(10, dtype=key))
    values, found = ours.get_many(asked)
    assert isinstance(found, warpset.DeviceArray) and found.tolist() == [k in model for k in range(10)]
    assert ours.contains(asked).tolist() == found.tolist()
    if value:
        assert values.dtype == value and values.tolist() == [model.get(k, 0) for k in range(10)]
    highs = EMULATOR.array(np.arange(10, dtype=key) + 5)
    counts, (offsets, listed, values) = ours.count_range(asked, highs), ours.range(asked, highs)
    host = ours.to("cpu").range(np.arange(10, dtype=key), np.arange(10, dtype=key) + 5)
    assert counts.tolist() == np.diff(host[0]).tolist() and offsets.tolist() == host[0].tolist()
    assert listed.dtype == key and listed.tolist() == host[1].tolist()
    assert values.tolist() == host[2].tolist() if value else values is host[2] is None
    there = ours.to("cpu")
    assert there == ours and there.device == "cpu" and ours.device == DEVICE
    assert pickle.loads(pickle.dumps(ours)).device == DEVICE
    assert (ours | there) == ours and (there | ours) == ours
    for call in (lambda: there.contains(asked), lambda: there.delete(asked), lambda: there.range(asked, asked),
                 lambda: there.get_many(asked), lambda: ours.get_many(asked, 5)):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: ours.range(asked, [1]), lambda: ours.count_range([1], asked), lambda: ours.successors(asked)):
        with pytest.raises(TypeError, match="on a device"):
            call()
    other = EMULATOR.array(np.arange(10, dtype="int32"))
    for call in (ours.contains, ours.delete, ours.get_many):
        with pytest.raises(TypeError, match="view"):
            call(other)
    signed = SortedMap(key="int64", device=EMULATOR)
    with pytest.raises(TypeError, match="flipped"):
        signed.contains(other)
    with pytest.raises(ValueError if value else TypeError):
        ours.update(asked, EMULATOR.array(np.arange(3, dtype=value or key)))


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_on_one_map(threads):
    ours, other, failures = SortedMap(batch_size=1024), filled({5 * 10**6: 1}), []

    def work(first):
        try:
            for start in range(first, 40_000, 4000):
                keys = np.arange(start, start + 2000, dtype=np.uint64)
                ours.update(keys, keys * 3, threads=threads)
                ours[start + 10**6] = 1
                del ours[start + 10**6]
                values, found = ours.get_many(np.arange(40_000, dtype=np.uint64), threads=threads)
                assert (values[found] == np.flatnonzero(found) * 3).all()
                assert sum(1 for _ in ours) % 2000 < 4
                ours.merge(other)
                other.merge(other)
        except Exception as error:  # shown by the test
            failures.append(error)

    workers = [threading.Thread(target=work, args=(first,)) for first in (0, 2000)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert not failures and len(ours) == 40_001


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes():
    ours, asked = filled({k: k for k in range(100_000)}), np.arange(250)

    def ask():
        return ours.successors(asked), ours.range([0], [99_999]), ours.count_range(asked, asked), len(ours)

    ask()
    child = os.fork()
    if child == 0:
        ask()
        os._exit(7)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 7
