"""Ctrl-C ends all long calls within a second, and leaves intact structures."""

import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from warpset import (BinaryFuse, KmerCounter, Maplet, PerfectHash, QuotientFilter, SequenceFilter, SortedMap, SplitBlockBloom,
                     StaticFunction, StaticMap, StaticSet, minimizers)

PART = np.arange(1 << 20, dtype=np.uint32)
MANY = pa.chunked_array([PART] * 300)  # one part in memory, 300 times as many keys
DIFFERENT = np.arange(10_000_000, dtype=np.uint64)
GENOME = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), 200_000_000)


def words():
    return (f"key {number}" for number in range(10**9))


def filled(kind, *arguments, **settings):
    ours = kind(*arguments, **settings)
    ours.update(PART[:1000])
    return ours


CALLS = {
    "contains": lambda: SplitBlockBloom(1000).contains(MANY),
    "contains, as bits": lambda: SplitBlockBloom(1000).contains(MANY, form="bitmap"),
    "count_contained": lambda: SplitBlockBloom(1000).count_contained(MANY),
    "update": lambda: SplitBlockBloom(1000).update(np.repeat(PART, 100)),
    "update of a stream": lambda: SplitBlockBloom(1000).update(MANY),
    "update of an iterable": lambda: SplitBlockBloom(1000).update(words()),
    "test_and_add": lambda: SplitBlockBloom(1000).test_and_add(MANY),
    "QuotientFilter.count": lambda: filled(QuotientFilter, 1000).count(MANY),
    "QuotientFilter.update": lambda: QuotientFilter(100_000_000).update(DIFFERENT),
    "QuotientFilter.remove": lambda: filled(QuotientFilter, 1000).remove(MANY),
    "PerfectHash.index": lambda: PerfectHash(PART[:1000]).index(MANY),
    "StaticFunction.get_many": lambda: StaticFunction(PART[:1000], PART[:1000]).get_many(MANY),
    "Maplet.insert": lambda: Maplet(100_000_000, value_bits=8).insert(DIFFERENT, DIFFERENT % 256),
    "Maplet.get_many": lambda: Maplet(1000, value_bits=8).get_many(MANY),
    "StaticMap.get_many": lambda: StaticMap(PART[:1000], PART[:1000]).get_many(MANY),
    "StaticSet.index": lambda: StaticSet(PART[:1000]).index(MANY),
    "SortedMap.get_many": lambda: SortedMap({1: 2}).get_many(MANY),
    "SortedMap.contains": lambda: SortedMap({1: 2}).contains(MANY),
    "SortedMap.update": lambda: SortedMap().update(DIFFERENT, DIFFERENT),
    "SortedMap.increment": lambda: SortedMap().increment(DIFFERENT),
    "SortedMap.delete": lambda: SortedMap().delete(MANY),
    "BinaryFuse": lambda: BinaryFuse(DIFFERENT),
    "StaticFunction": lambda: StaticFunction(DIFFERENT, DIFFERENT),
    "StaticSet": lambda: StaticSet(DIFFERENT),
    "StaticMap": lambda: StaticMap(DIFFERENT, DIFFERENT),
    "PerfectHash": lambda: PerfectHash(DIFFERENT),
    "SequenceFilter.add": lambda: SequenceFilter(1000).add(GENOME),
    "SequenceFilter.count": lambda: SequenceFilter(1000).count([GENOME]),
    "SequenceFilter.contains_windows": lambda: SequenceFilter(1000).contains_windows(GENOME),
    "minimizers": lambda: minimizers(GENOME),
    "KmerCounter.update_sequences": lambda: KmerCounter().update_sequences([GENOME[:50_000_000].tobytes()]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_long_calls_end(call, interrupts):
    raised = []

    def interrupt():
        raised.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(0.15, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call()
        timer.join()
    assert time.monotonic() - raised[0] < 5  # less than 1 on a machine that does nothing else


def test_handlers_may_use_the_structure():
    ours, seen = SplitBlockBloom(1000), []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(5 in ours))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        while not seen:
            ours.update(np.repeat(PART, 4))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen


def test_what_does_not_fit_leaves_a_filter_as_it_was():
    ours = filled(QuotientFilter, 1 << 20)
    before = ours.copy()
    for array in (DIFFERENT[: 3 << 20], pa.array(DIFFERENT[: 3 << 20])):
        with pytest.raises(ValueError, match="full"):
            ours.update(array)
        with pytest.raises(ValueError, match="full"):
            ours.test_and_add(array)
    assert ours == before


def test_parts_give_the_answers_of_the_whole():
    n = (1 << 20) + 3
    keys, hidden = np.arange(n), np.arange(n) % 3 == 0
    for array, nulls in ((np.ma.masked_array(keys, mask=hidden), hidden),
                         (pa.chunked_array([pa.array(keys[:5]), pa.array(keys[5:])]), np.zeros(n, bool))):
        there = ~nulls & (keys % 2 == 0)
        members = keys[(keys % 2 == 0)]
        exact = StaticMap(members, members + 1)
        assert np.array_equal(exact.contains(array), there)
        values, found = exact.get_many(array, default=7)
        assert np.array_equal(found, there) and np.array_equal(values, np.where(there, keys + 1, 7))
        map = SortedMap()
        map.update(array, keys)
        assert len(map) == (~nulls).sum() and map[keys[4]] == 4
        values, found = map.get_many(array, default=9)
        assert np.array_equal(found, ~nulls) and np.array_equal(values, np.where(nulls, 9, keys))
        assert np.array_equal(map.contains(array), ~nulls)
        filter = QuotientFilter(2 * n, key_bits=32)
        assert np.array_equal(filter.test_and_add(array), ~nulls) and len(filter) == (~nulls).sum()
        assert np.array_equal(filter.count(array), ~nulls) and filter.count_contained(array) == (~nulls).sum()
        map.increment(array)
        assert map[keys[4]] == 5
        map.delete(array)
        assert len(map) == 0


def test_parts_of_sequences():
    letters = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), (1 << 21) + 100)
    letters[[500_000, (1 << 21) - 3]] = ord("N")
    whole, halves = SequenceFilter(10_000_000, k=21), SequenceFilter(10_000_000, k=21)
    whole.add(letters)
    for begin in range(0, len(letters), 1 << 20):
        halves.add(letters[begin : begin + (1 << 20) + 20])
    assert whole == halves
    found, kmers = whole.count([letters, letters[:50]])
    assert found.tolist() == kmers.tolist() == [len(letters) - 20 - 42, 30]
    windows = whole.contains_windows(letters)
    assert len(windows) == len(letters) - 20 and windows.sum() == kmers[0]
    positions, codes = minimizers(letters, k=21, w=11)
    assert (np.diff(positions) > 0).all() and (np.diff(positions) <= 11 + 21 + 10).all()
    around = slice((1 << 21) - 4000, (1 << 21) - 3)
    near, near_codes = minimizers(letters[around], k=21, w=11)
    inside = (positions >= around.start) & (positions < around.stop - 21)
    assert set(near + around.start) <= set(positions[inside]) and len(codes) == len(positions)
    assert set(near_codes.tolist()) <= set(codes[inside].tolist())
