"""One rule for nulls: they are no keys, in any container and any method."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import DEVICE

import warpset
from warpset import DynamicRangeFilter, KmerCounter, PerfectHash, RangeFilter, SequenceFilter, SortedMap, StaticMap, StaticSet

NONE = 2**64 - 1
HIDDEN = [False, True, False]


def masked(items, dtype=None, mask=HIDDEN):
    return np.ma.masked_array(np.array(items, dtype=dtype), mask=mask)


# In each the first and last item are keys, the one between them is a null.
INTEGERS = {
    "list": [1, None, 3],
    "generator": lambda: iter([1, None, 3]),
    "nan": [1, float("nan"), 3],
    "NA": [1, pd.NA, 3],
    "objects": np.array([1, None, 3], dtype=object),
    **{f"masked {dtype}": masked([1, 2, 3], dtype)
       for dtype in ("uint8", "int8", "int16", "uint32", "int32", "uint64", "int64", object)},
    "masked, with a gap": np.ma.masked_array(np.arange(1, 7), mask=[0, 0, 0, 1, 0, 0])[[0, 3, 2]],
    "masked, strided": np.ma.masked_array([1, 9, 2, 9, 3], mask=[0, 0, 1, 0, 0])[::2],
    **{f"arrow {kind}": pa.array([1, None, 3], kind) for kind in (pa.uint8(), pa.int32(), pa.uint64())},
    "arrow dictionary": pa.array([1, None, 3]).dictionary_encode(),
    "arrow dictionary of nulls": pa.DictionaryArray.from_arrays(pa.array([2, 0, 1]), pa.array([None, 3, 1])),
    "arrow scalars": [pa.scalar(1), pa.scalar(None, pa.int64()), pa.scalar(3)],
    "arrow list scalar": pa.scalar([1, None, 3]),
    "arrow table": pa.table({"key": pa.array([1, None, 3])}),
    "arrow struct": pa.StructArray.from_arrays([pa.array([1, 2, 3])], ["key"], mask=pa.array(HIDDEN)),
    "polars": pl.Series([1, None, 3]),
    **{f"pandas {kind.__name__} {dtype}": kind(pd.array([1, None, 3], dtype=dtype))
       for kind in (pd.Series, pd.Index, lambda array: array)
       for dtype in ("UInt8", "Int16", "UInt64", "Int64", "int64[pyarrow]")},
    "pandas category": pd.Categorical([1, None, 3]),
    "pandas series of a category": pd.Series([1, None, 3], dtype="category"),
}
WORDS = {
    "list": ["ash", None, "elm"],
    "masked S": masked([b"ash", b"fir", b"elm"]),
    "masked U": masked(["ash", "fir", "elm"]),
    "masked T": masked(["ash", "fir", "elm"], np.dtypes.StringDType()),
    "masked objects": masked(["ash", "fir", "elm"], object),
    "masked V": masked([b"ash", b"fir", b"elm"], "V3"),
    "objects": np.array(["ash", None, "elm"], dtype=object),
    "arrow": pa.array(["ash", None, "elm"]),
    "arrow dictionary": pa.array(["ash", None, "elm"]).dictionary_encode(),
    "polars categorical": pl.Series(["ash", None, "elm"], dtype=pl.Categorical),
    "pandas": pd.Series(["ash", None, "elm"]),
    "pandas category": pd.Series(["ash", None, "elm"], dtype="category"),
    "pandas index": pd.Index(["ash", None, "elm"], dtype="string"),
}
ALL = [pytest.param(*pair, id=f"{kind}: {name}") for kind, arrays, ends in
       (("integers", INTEGERS, (1, 3)), ("words", WORDS, ("ash", "elm")))
       for name, array in arrays.items() for pair in [(array, ends)]]


def given(array):
    return array() if callable(array) else array


def growing(device="cpu"):
    return [warpset.SplitBlockBloom(100, fpr=1e-6, device=device), warpset.BlockedBloom(100, fpr=1e-6, device=device),
            warpset.QuotientFilter(100, fpr=1e-9, duplicates="counted", device=device)]


@pytest.mark.parametrize("array,ends", ALL)
def test_filters(array, ends):
    for filter in growing():
        assert filter.test_and_add(given(array)).tolist() == [True, False, True]
        assert filter.test_and_add(given(array)).tolist() == [False] * 3
        twin = filter.copy()
        twin.clear()
        twin.update(given(array))
        twin.update(given(array))
        assert twin == filter or isinstance(filter, warpset.BlockedBloom) and twin.contains(list(ends)).all()
        assert filter.contains(given(array)).tolist() == [True, False, True]
        assert filter.count_contained(given(array)) == 2 and all(end in filter for end in ends)
        assert not filter.contains([2, "fir"][isinstance(ends[0], str):][:1]).any()
    counted = growing()[2]
    counted.update(given(array))
    assert counted.count(given(array)).tolist() == [1, 0, 1] and len(counted) == 2
    assert counted.remove(given(array)) == 2 and len(counted) == 0


@pytest.mark.parametrize("array,ends", ALL)
def test_what_never_changes(array, ends):
    values, found = warpset.StaticFunction(given(array), [10, 20, 30]).get_many(given(array), default=7)
    assert values.tolist() == [10, 7, 30] and found.tolist() == [True, False, True]
    maplet = warpset.Maplet(10, value_bits=8, fpr=1e-9)
    assert maplet.insert(given(array), [10, 20, 30]) == 2 == maplet.remove(given(array))
    for kind in (warpset.BinaryFuse, PerfectHash, warpset.StaticFilter):
        ours = kind(given(array))
        assert len(ours) == 2
        if kind is not PerfectHash:
            assert ours.contains(given(array)).tolist() == [True, False, True] and ends[0] in ours
        if kind is not warpset.BinaryFuse:
            numbers = ours.index(given(array)).tolist()
            assert sorted(numbers[::2]) == [0, 1] and numbers[1] == NONE
    if isinstance(ends[0], int):
        for key in ("uint64", "uint32"):
            exact, map = StaticSet(given(array), key=key), StaticMap(given(array), [10, 20, 30], key=key)
            assert len(exact) == len(map) == 2 and 2 not in exact
            assert exact.contains(given(array)).tolist() == [True, False, True]
            assert exact.index(given(array)).tolist()[1] == NONE
            values, found = map.get_many(given(array), default=7)
            assert (values.tolist(), found.tolist()) == ([10, 7, 30], [True, False, True])


@pytest.mark.parametrize("array,ends", ALL)
@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_sorted_maps(array, ends, device):
    ours = SortedMap(key="uint64" if isinstance(ends[0], int) else "S8", device=device)
    ours.update(given(array), [10, 20, 30])
    assert list(ours.values()) == [10, 30]
    for default in (0, 7):
        values, found = ours.get_many(given(array), default=default)
        assert (values.tolist(), found.tolist()) == ([10, default, 30], [True, False, True])
    assert ours.contains(given(array)).tolist() == [True, False, True]
    assert ours.count_range(given(array), given(array)).tolist() == [1, 0, 1]
    offsets, _, values = ours.range(given(array), given(array))
    assert (offsets.tolist(), values.tolist()) == ([0, 1, 1, 2], [10, 30])
    assert ours.successors(given(array))[2].tolist() == [True, False, False]
    assert ours.predecessors(given(array))[2].tolist() == [False, False, True]
    with pytest.raises(ValueError, match="nulls"):
        ours.update([1, 2] if isinstance(ends[0], int) else ["a", "b"], [None, 1])
    with pytest.raises(ValueError, match="one for each"):
        ours.update(given(array), [1, 2])
    ours.delete(given(array))
    assert len(ours) == 0


def test_sets_and_rows():
    ours = SortedMap(value=None)
    ours.update([1, None, 3])
    assert list(ours) == [1, 3]
    rows = SortedMap(value="V16")
    with pytest.raises(ValueError, match="nulls"):
        rows.update([1, 2, 3], masked([b"a" * 16, b"b" * 16, b"c" * 16], "V16"))
    rows = SortedMap(key="V16")
    rows.update(masked([b"a" * 16, b"b" * 16, b"c" * 16], "V16"), [1, 2, 3])
    assert list(rows) == [b"a" * 16, b"c" * 16]


@pytest.mark.parametrize("empty", [
    pa.array([None, None], pa.string()).dictionary_encode(),
    pa.array([], pa.string()).dictionary_encode(),
    pa.array([None, None], pa.int64()).dictionary_encode(),
    pa.array([None, None], pa.float64()).dictionary_encode(),
    pa.array([], pa.float64()).dictionary_encode(),
    pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([None, None], pa.string())),
    pa.DictionaryArray.from_arrays(pa.array([None, 1]), pa.array(["ash", None])),
    pa.chunked_array([pa.array([None], pa.string()).dictionary_encode(), pa.array([], pa.string()).dictionary_encode()]),
    pl.Series([None], dtype=pl.Categorical), pl.Series([], dtype=pl.Categorical), pl.Series([None], dtype=pl.Enum(["a"])),
    pd.Series([None, None], dtype="category"), pd.Series([], dtype="category"), pd.Categorical([None]),
    pd.array([None], dtype="Int64"), pd.array([], dtype="Int64"), pd.Index(pd.array([None], dtype="UInt8")),
    [None], [pd.NA], np.array([None], dtype=object), np.ma.masked_all(3, int), pa.nulls(2),
], ids=lambda array: f"{type(array).__module__} {str(getattr(array, 'dtype', getattr(array, 'type', '')))[:60]}".strip())
def test_nothing_but_nulls(empty):
    for filter in growing():
        filter.update(empty)
        assert filter.contains(empty).tolist() == [False] * len(empty) == filter.test_and_add(empty).tolist()
        assert filter.count_contained(empty) == 0 and not filter
    assert len(warpset.BinaryFuse(empty)) == len(warpset.StaticFunction(empty, [1] * len(empty))) == len(PerfectHash(empty)) == len(StaticSet(empty)) == 0
    assert len(KmerCounter(k=3)) == KmerCounter(k=3).count(empty).sum() == 0


def test_sequences():
    genome, null = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGC", None
    for all in ([genome, null, genome], iter([genome, null, genome]), pa.array([genome, null, genome]),
                masked([genome.encode()] * 3), pd.Series([genome, null, genome]), np.array([genome, null, genome], object)):
        filter = SequenceFilter(1000, k=21)
        if not hasattr(all, "__next__"):
            assert filter.matches(all).tolist() == [False] * 3
        filter.update(all)
        assert filter.count([genome, null])[0].tolist() == [17, 0] == filter.count([genome, null])[1].tolist()
        assert filter.matches([genome, null]).tolist() == [True, False]
        counter = KmerCounter(k=21)
        counter.update_sequences([genome, null])
        assert len(counter) == 17
    letters = np.ma.masked_array(np.frombuffer(genome.encode(), np.uint8), mask=[False] * len(genome))
    for call in (filter.add, filter.contains_windows, warpset.minimizers):
        with pytest.raises(TypeError, match="masked"):
            call(letters)
    with pytest.raises(TypeError, match="masked"):
        filter.update(np.ma.masked_array(np.zeros((2, 30), np.uint8), mask=False))


def test_one_null_is_no_key():
    filter, map = growing()[0], SortedMap()
    for null in (None, pa.scalar(None, pa.int64()), pd.NA, np.ma.masked):
        for call in (filter.add, filter.__contains__, map.__contains__, map.get, map.__getitem__):
            with pytest.raises(TypeError):
                call(null)
        with pytest.raises(TypeError):
            filter.contains(null)


def test_one_null_is_no_key_of_a_range_filter():
    for filter in (RangeFilter([1, 2]), RangeFilter([1.5], key="float64"), DynamicRangeFilter(10)):
        for null in (None, pa.scalar(None, pa.int64()), pd.NA):
            calls = [filter.__contains__]
            if isinstance(filter, DynamicRangeFilter):
                calls += [filter.add, filter.discard]
            for call in calls:
                with pytest.raises(TypeError, match="a key is"):
                    call(null)
        assert not any(filter.contains([None]))
    assert float("nan") not in RangeFilter([1.5], key="float64")


def test_an_array_without_dimensions_is_one_key():
    filter = growing()[0]
    filter.add(np.array(7))
    assert np.array(7) in filter and 7 in filter
    for call in (filter.contains, filter.update, StaticSet):
        with pytest.raises(TypeError, match="one key where many"):
            call(np.array(7))


def test_one_value_of_arrow():
    filter, map = growing()[2], SortedMap()
    for one, key in ((pa.scalar("ash"), "ash"), (pa.scalar(7, pa.uint8()), 7), (pa.scalar(-1), -1), (pa.scalar(b"x"), b"x")):
        filter.add(one)
        assert one in filter and key in filter and filter.count_one(one) == 1
        for call in (filter.contains, filter.update, filter.count, PerfectHash, StaticSet):
            with pytest.raises(TypeError, match="one key where many"):
                call(one)
    map[pa.scalar(7)] = pa.scalar(8)
    assert map[7] == 8 == map[pa.scalar(7)] and StaticMap([pa.scalar(7)], [8])[pa.scalar(7)] == 8


def test_masked_answers_are_refused():
    filter = growing()[0]
    with pytest.raises(ValueError, match="masked"):
        filter.contains([1, 2], out=np.ma.masked_array(np.zeros(2, bool), mask=[True, False]))
    with pytest.raises(ValueError, match="shape"):
        filter.contains(np.arange(4), out=np.zeros((2, 2), bool))


def test_masks_without_a_hidden_item_are_arrays():
    assert growing()[0].contains(np.ma.masked_array([1, 2], mask=np.ma.nomask)).tolist() == [False, False]
    ours = SortedMap()
    ours.update(np.ma.masked_array([1, 2]), np.ma.masked_array([3, 4], mask=[False, False]))
    assert list(ours.items()) == [(1, 3), (2, 4)]
