"""Arrays of other libraries by the Arrow C data interface."""

import gc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from warpset import SplitBlockBloom

TREES = ["ash", "birch", "elm", "", "a tree with a name longer than twelve bytes", "føhre"]
ABSENT = ["oak", "fir", "a tree with another name longer than twelve bytes"]

STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
           pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint32(), pa.large_string())]
INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ["", "u"] for bits in [8, 16, 32, 64]]


def array(items, kind):
    if pa.types.is_dictionary(kind):
        return pa.array(items, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(items).cast(kind)


def bloom(keys=()):
    filter = SplitBlockBloom(1000, fpr=1e-6)
    filter.update(keys)
    return filter


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_strings(kind):
    expected = bloom(TREES)
    with_nulls = array([None, *TREES, None], kind)
    assert bloom(with_nulls) == expected
    assert bloom(pa.chunked_array([with_nulls, array(TREES[:2], kind)])) == expected
    assert bloom(array(ABSENT + TREES, kind)[len(ABSENT):]) == expected  # an offset
    asked = array([*TREES, None, *ABSENT], kind)
    answers = [True] * len(TREES) + [False] * (1 + len(ABSENT))
    assert expected.contains(asked).tolist() == answers
    assert expected.contains(asked[3:]).tolist() == answers[3:]
    assert expected.count_contained(asked) == len(TREES)


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers(kind):
    numbers = [0, 1, 5, 100, 127] if "u" in str(kind) else [-128, -1, 0, 5, 127]
    expected = bloom(numbers)
    assert bloom(pa.array(numbers, kind)) == expected
    assert bloom(pa.array([None, *numbers, None, 7], kind)[:-1]) == expected
    asked = pa.chunked_array([pa.array([50, None, numbers[0]], kind), pa.array(numbers[1:], kind)])
    assert expected.contains(asked).tolist() == [False, False] + [True] * 5
    assert expected.contains(pa.array([None, None], kind)).tolist() == [False, False]


def test_strings_of_a_fixed_size():
    assert bloom(pa.array([b"abc", None, b"xyz"], pa.binary(3))) == bloom([b"abc", b"xyz"])


@pytest.mark.parametrize("empty", [pa.array([], pa.int64()), pa.chunked_array([], pa.string()), pa.nulls(3),
                                   pl.Series([], dtype=pl.String), pa.table({"a": pa.array([], pa.int32())})], ids=str)
def test_no_keys(empty):
    assert bloom(empty) == bloom()
    assert bloom([1]).contains(empty).tolist() == [False] * len(empty)


def test_polars():
    expected = bloom(TREES)
    series = pl.Series("tree", [*TREES, None])
    assert bloom(series) == expected
    assert bloom(series.cast(pl.Categorical)) == expected
    assert bloom(pl.DataFrame({"tree": series})) == expected
    assert expected.contains(pl.concat([series, series], rechunk=False)).sum() == 2 * len(TREES)
    assert bloom(pl.Series([1, 2, None], dtype=pl.UInt16)) == bloom([1, 2])
    frame = pl.DataFrame({"tree": [*ABSENT, *TREES]})
    assert frame.filter(pl.Series(expected.contains(frame["tree"])))["tree"].to_list() == TREES
    assert frame.filter(pl.Series(expected.contains(frame["tree"], form="arrow")))["tree"].to_list() == TREES


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select range as number, 'key ' || range as word from range(5000)")
    assert bloom(relation.select("number")) == bloom(range(5000))
    assert bloom(relation.select("word")) == bloom(f"key {i}" for i in range(5000))
    with pytest.raises(TypeError, match="a table of 2 columns"):
        bloom(relation)


def test_pandas():
    pandas = pytest.importorskip("pandas")
    assert bloom(pandas.Series(TREES)) == bloom(TREES)
    assert bloom(pandas.Series([*TREES, None], dtype=object)) == bloom(TREES)
    assert bloom(pandas.Series([3, 4], dtype="int16")) == bloom([3, 4])
    assert bloom(pandas.Series([3, None], dtype="Int64")) == bloom([3])
    assert bloom(pandas.Index([3, 4])) == bloom([3, 4])


def test_a_stream_is_not_held():
    before, most = pa.total_allocated_bytes(), 0

    def batches():
        nonlocal most
        for start in range(0, 50_000, 1000):
            yield pa.record_batch({"key": pa.array(list(range(start, start + 1000)))})
            most = max(most, pa.total_allocated_bytes() - before)

    schema = pa.schema({"key": pa.int64()})
    filter = SplitBlockBloom(50_000)
    filter.update(pa.RecordBatchReader.from_batches(schema, batches()))
    assert filter.count_contained(np.arange(50_000)) == 50_000
    assert most < 5 * 8000
    filter = SplitBlockBloom(50_000)
    filter.update(batch.column(0) for batch in batches())
    assert filter.count_contained(np.arange(50_000)) == 50_000


def test_a_stream_that_fails():
    def batches():
        yield pa.record_batch({"key": pa.array([1, 2])})
        raise ZeroDivisionError("no more")

    filter = bloom()
    with pytest.raises(ValueError, match="no more"):
        filter.update(pa.RecordBatchReader.from_batches(pa.schema({"key": pa.int64()}), batches()))
    assert filter == bloom([1, 2])  # what came before it is there


@pytest.mark.parametrize("wrong", [pa.array([1.5]), pa.array([True]), pa.array([[1]]), pa.array([{"a": 1, "b": 2}]),
                                   pa.array([1, 2], pa.date32()), pa.array([1], pa.decimal128(4)),
                                   pa.array([1.5]).dictionary_encode(), pa.table({"a": [1], "b": [2]}),
                                   pa.chunked_array([pa.array([1.5])]), pl.Series([1.5])], ids=lambda a: str(a)[:20])
def test_what_holds_no_keys(wrong):
    filter = bloom([1])
    before = bytes(filter)
    for call in [filter.update, filter.contains, filter.count_contained, filter.test_and_add]:
        with pytest.raises(TypeError, match="columns|holds no keys"):
            call(wrong)
    assert bytes(filter) == before


class Exporter:
    """An object whose export goes wrong."""

    def __init__(self, *capsules):
        self.capsules = capsules

    def __arrow_c_array__(self, requested_schema=None):
        return self.capsules if len(self.capsules) == 2 else self.capsules[0]


def test_exports_that_are_none():
    schema, exported = pa.array([1, 2]).__arrow_c_array__()
    for wrong in [Exporter(exported, schema), Exporter(None), Exporter(1, 2), Exporter(schema)]:
        with pytest.raises((TypeError, ValueError)):
            bloom(wrong)
    used = Exporter(*pa.array([1, 2]).__arrow_c_array__())
    assert bloom(used) == bloom([1, 2])
    with pytest.raises(ValueError):
        bloom(used)  # the array was moved out
    with pytest.raises(TypeError):
        bloom(Exporter)


@given(st.lists(st.tuples(st.one_of(st.none(), st.text(max_size=20)), st.booleans()), max_size=60),
       st.sampled_from(STRINGS[:3]), st.lists(st.integers(0, 60), max_size=3))
@settings(max_examples=60, deadline=None)
def test_any_strings_and_chunks(items, kind, cuts):
    texts = pa.array([text for text, _ in items], kind)
    cuts = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    chunked = pa.chunked_array([texts[a:b] for a, b in zip(cuts, cuts[1:])], kind)
    there = {text for text, added in items if added and text is not None}
    filter = bloom(pa.array(sorted(there), kind))
    model = [text in there for text, _ in items]
    bits = filter.contains(chunked, form="bitmap")
    for answers in [filter.contains(chunked).tolist(), pa.array(filter.contains(chunked, form="arrow")).to_pylist(),
                    np.unpackbits(bits, bitorder="little")[: len(items)].astype(bool).tolist()]:
        assert answers == model
    assert filter.test_and_add(chunked, form="bitmap").nbytes == -(-len(items) // 8)


def test_forms():
    filter = bloom([1, 2])
    answers = filter.contains([1, 3, 2], form="arrow")
    assert isinstance(answers, warpset.BooleanArray) and len(answers) == 3
    assert repr(answers) == "BooleanArray(3 items, 2 true)"
    assert pa.array(answers).equals(pa.array([True, False, True]))
    bits = np.zeros(1, dtype=np.uint8)
    assert filter.contains([1, 3, 2], form="bitmap", out=bits) is bits and bits[0] == 0b101
    with pytest.raises(ValueError, match="form=\"bits\""):
        filter.contains([1], form="bits")
    with pytest.raises(ValueError, match="out"):
        filter.contains([1], form="arrow", out=bits)
    with pytest.raises(ValueError, match="another length"):
        filter.contains(range(9), form="bitmap", out=bits)


def test_arrays_outlive_their_capsules_and_die():
    keys = pa.array(TREES * 100)
    before = pa.total_allocated_bytes()
    for _ in range(20):
        bloom(pa.array(TREES * 100))
        filter = bloom(keys)
        filter.contains(pa.chunked_array([keys, pa.array(TREES)]), form="arrow")
    gc.collect()
    assert pa.total_allocated_bytes() <= before + 1024
