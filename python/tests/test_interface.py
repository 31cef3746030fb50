"""Names, conventions of Python, and details that users meet first."""

import collections.abc
import pathlib
import pickle
import uuid
import weakref

import numpy as np
import polars as pl
import pytest

import warpset
from warpset import (BinaryFuse, KmerCounter, Maplet, PerfectHash, QuotientFilter, RangeFilter, SequenceFilter, SortedMap, SplitBlockBloom,
                     StaticFilter, StaticFunction, StaticMap, StaticSet, minimizers)

SEQUENCE = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGC"


def structures():
    counter = KmerCounter(k=5)
    counter.update_sequences([SEQUENCE])
    return [SplitBlockBloom(10), warpset.BlockedBloom(10), QuotientFilter(10), BinaryFuse([1]), PerfectHash([1]),
            PerfectHash([1], kind="consensus"), StaticFilter([1]), StaticFilter([1], kind="recsplit"), StaticSet([1]),
            StaticFunction([1], [2]), StaticMap([1], [2], key="uint32"), SortedMap({1: 2}), SortedMap(value=None), SequenceFilter(10),
            Maplet(10, value_bits=8), RangeFilter([1]), RangeFilter([-1.5], key="float64"),
            warpset.DynamicRangeFilter(9, key="int64"), counter]


def test_version():
    assert warpset.__version__.count(".") == 2


@pytest.mark.parametrize("ours", structures(), ids=repr)
def test_load_by_what_the_file_holds(ours, tmp_path):
    path = tmp_path / "structure"
    ours.save(bytes(path))
    for name in (path, str(path), bytes(path)):
        again = warpset.load(name)
        assert type(again) is type(ours) and again == ours or isinstance(ours, KmerCounter) and isinstance(again, QuotientFilter)
        assert type(ours).load(name) == ours == type(ours).mmap(name).copy()
    if not isinstance(ours, KmerCounter):
        assert warpset.load(path, device="emulator").device == "emulator"
    assert weakref.ref(ours)() is ours and pickle.loads(pickle.dumps(ours)) == ours


def test_load_of_other_files(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        warpset.load(tmp_path / "none")
    assert error.value.errno == 2 and error.value.filename == str(tmp_path / "none")
    (tmp_path / "text").write_text("text " * 100)
    with pytest.raises(warpset.FileError, match="not a Warpset file"):
        warpset.load(tmp_path / "text")
    for wrong in (7, None, ["structure"]):
        with pytest.raises(TypeError):
            warpset.load(wrong)


RUST = ["::", "to_bytes", "write_to", "read_from", "slice", "backend", "RankSelect", "BinaryFuse8", "Lsm", "builder", "unwrap"]


def test_errors_are_in_words_of_python(tmp_path):
    messages = []
    for one in structures():
        for kind in {type(other) for other in structures()}:
            try:
                kind.from_bytes(bytes(one))
            except warpset.FileError as error:
                messages.append(str(error))
                path = tmp_path / "structure"
                one.save(path)
                with pytest.raises(warpset.FileError, match=str(path)) as error:
                    kind.load(path)
                messages.append(str(error.value))
    assert any("this is a saved BinaryFuse: read it with `BinaryFuse.load`" in message for message in messages)
    calls = [
        lambda: QuotientFilter(10, kind="standard", duplicates="counted"),
        lambda: QuotientFilter(10).merge(QuotientFilter(10, duplicates="kept")),
        lambda: QuotientFilter(10).update(range(10_000)),
        lambda: SplitBlockBloom.from_bytes(b"text " * 100),
        lambda: SplitBlockBloom(10).contains([1], out=np.zeros(3, bool)),
        lambda: BinaryFuse(np.arange(10), bits=7),
        lambda: SortedMap().update([1, 2], [1]),
        lambda: StaticMap([1, 2], [1]),
        lambda: SortedMap(batch_size=7),
        lambda: SplitBlockBloom(10, device="cuda:99"),
        lambda: SplitBlockBloom(10, device="cuda"),
    ]
    for call in calls:
        with pytest.raises((ValueError, OSError)) as error:
            call()
        messages.append(str(error.value))
    assert not [message for message in messages if any(word in message for word in RUST)]


@pytest.mark.parametrize("path", ["genome.fa", "/data/host.fa.gz", b"reads.fastq", "dh1.fa", "C:\\reads", "my_genome", "x" * 30 + ".fna"])
def test_a_path_is_no_sequence(path, tmp_path):
    filter, counter = SequenceFilter(100, k=9), KmerCounter(k=3)
    for call in (filter.add, minimizers, filter.contains_windows, lambda path: filter.update([path]),
                 lambda path: filter.update(np.array([path])), lambda path: filter.count([SEQUENCE, path]),
                 lambda path: filter.matches([path]), lambda path: counter.update_sequences([path])):
        with pytest.raises(ValueError, match="no sequence of bases"):
            call(path)
    with pytest.raises(TypeError, match="a sequence is"):
        filter.add(pathlib.Path("genome.fa"))
    with pytest.raises(FileNotFoundError):
        counter.update(tmp_path / "genome.fa")
    filter.add("ACGTNNRYKMacgtu-*. \r\n\tACGTACGTA")  # letters, gaps and line ends of sequences
    filter.add(np.frombuffer(b"genome.fa", np.uint8))  # bytes that are no text


def test_minimizers_of_repeats_ascend():
    for sequence in ("ACGT" * 20, "ACGT" * 500, "A" * 300, "AC" * 90 + "N" + "AC" * 90, "ACGGATTACAGCT" * 50):
        for k, w in ((31, 15), (5, 3), (4, 9), (1, 64)):
            positions, kmers = minimizers(sequence, k=k, w=w)
            assert (np.diff(positions.astype(int)) > 0).all() and len(kmers) == len(positions)


@pytest.mark.parametrize("k", [1, 5, 16, 31, 32])
def test_minimizers_and_counters_name_kmers_alike(k):
    sequence = SEQUENCE * 3 + "ACGT" * 20
    counter = KmerCounter(k=k)
    counter.update_sequences([sequence])
    positions, kmers = minimizers(sequence, k=k, w=1)
    assert set(kmers.tolist()) == set(counter.arrays()[0].tolist()) and len(positions) == len(sequence) - k + 1
    assert counter.count(kmers).tolist() == [counter[sequence[at : at + k]] for at in positions.tolist()]
    assert counter.count(minimizers(sequence, k=k, w=9)[1]).all()


def test_full_filters_have_no_length():
    for kind in (SplitBlockBloom, warpset.BlockedBloom):
        full = kind(10)
        full.update(range(100_000))
        assert bool(full) and 7 in full
        with pytest.raises(OverflowError, match="all bits"):
            len(full)
        half = kind(1000)
        half.update(range(1000))
        assert 900 < len(half) < 1100


def test_constructors_and_updates_of_maps():
    model = {3: 30, 1: 10}
    for items in (model, model.items(), list(model.items()), iter([[3, 30], (1, 10)]), SortedMap(model)):
        assert list(SortedMap(items).items()) == [(1, 10), (3, 30)]
    ours = SortedMap([3, 1, 3], value=None)
    assert list(ours) == [1, 3]
    names = SortedMap({"ash": 1}, key="S8")
    names.update([("elm", 2), ("ash", 3)])
    assert list(names.items()) == [(b"ash", 3), (b"elm", 2)]
    for wrong in ([1, 2], [(1, 2, 3)], 7, [(1,)]):
        with pytest.raises(TypeError, match="values are missing"):
            SortedMap(wrong)
    assert SortedMap(key=np.uint32, value=np.dtype("u4")) == SortedMap(key="uint32", value="uint32")
    keys = SortedMap(key=np.dtype("V16"))
    keys[uuid.UUID(int=7).bytes] = 7
    assert "V16 to uint64" in repr(keys) and SortedMap(key=np.dtype("S8")) == SortedMap(key="S8")
    assert "uint32" in repr(StaticSet([1], key=np.uint32)) and "values of uint32" in repr(StaticMap([1], [1], value=np.uint32))
    for wrong in (np.float32, "text", 7, object()):
        with pytest.raises((TypeError, ValueError)):
            SortedMap(key=wrong)
        with pytest.raises((TypeError, ValueError)):
            StaticSet([1], key=wrong)


@pytest.mark.parametrize("device", ["cpu", "emulator"])
def test_upserts(device):
    rng = np.random.default_rng(7)
    keys, values = rng.integers(0, 50, 500), rng.integers(0, 1000, 500)
    operations = {"sum": lambda a, b: a + b, "min": min, "max": max, "or": lambda a, b: a | b}
    for by, operation in operations.items():
        ours, model = SortedMap({7: 5}, device=device), {7: 5}
        for part in (slice(0, 200), slice(200, 500)):
            ours.upsert(keys[part], values[part], by=by)
            for key, value in zip(keys[part].tolist(), values[part].tolist()):
                model[key] = operation(model[key], value) if key in model else value
        assert dict(ours.items()) == model
    counts = SortedMap(value="uint32", device=device)
    counts.increment([3, None, 1, 3])
    counts.increment(np.ma.masked_array([3, 9], mask=[False, True]))
    assert dict(counts.items()) == {1: 1, 3: 3}
    counts.upsert([3], [2**32 - 1])
    assert counts[3] == 2  # modulo 2**32
    with pytest.raises(ValueError, match="there are \"sum\""):
        counts.upsert([1], [1], by="product")
    with pytest.raises(ValueError, match="one for each"):
        counts.upsert([1, 2], [1])
    for wrong in (SortedMap(value=None), SortedMap(value="V16")):
        with pytest.raises(TypeError, match="no numbers"):
            wrong.increment([1])


@pytest.mark.parametrize("device", ["cpu", "emulator", "mapped"])
@pytest.mark.parametrize("key", ["uint64", "uint32"])
def test_static_maps_are_walked(device, key, tmp_path):
    keys = np.random.default_rng(3).choice(10**9, 500, replace=False)
    for value in ("uint64", "uint32"):
        exact, map = StaticSet(keys, key=key), StaticMap(keys, keys % 1000, key=key, value=value)
        if device == "mapped":
            exact.save(tmp_path / "set")
            map.save(tmp_path / "map")
            exact, map = StaticSet.mmap(tmp_path / "set"), StaticMap.mmap(tmp_path / "map")
        else:
            exact, map = exact.to(device), map.to(device)
        model = dict(zip(keys.tolist(), (keys % 1000).tolist()))
        assert sorted(exact) == sorted(keys.tolist()) == sorted(exact.keys().tolist()) and exact.keys().dtype == key
        assert dict(map.items()) == model == dict(map) == {**map} and list(map) == map.keys().tolist()
        assert map.values().dtype == value and map.values().tolist() == [model[at] for at in map]
        numbers = exact.index(exact.keys())
        assert (np.diff(numbers.astype(int)) > 0).all()
    assert list(StaticSet([])) == [] == list(StaticMap([], []).items())


def test_abstract_classes():
    assert isinstance(SortedMap(), collections.abc.MutableMapping)
    assert isinstance(StaticMap([1], [2]), collections.abc.Mapping)
    assert isinstance(StaticSet([1]), collections.abc.Collection)
    assert SortedMap[int, bytes].__args__ == (int, bytes)


def test_defaults():
    counter = KmerCounter(k=3)
    counter.update_sequences(["AAAA"])
    for ours, there, value, absent in ((SortedMap({1: 2}), 1, 2, 5), (StaticMap([1], [2]), 1, 2, 5), (counter, "AAA", 2, "ACG")):
        assert ours.get(there) == value == ours.get(there, 7) == ours.get(there, default=7)
        assert ours.get(absent) is None and ours.get(absent, 7) == 7 == ours.get(absent, default=7)


def test_queries_that_have_not_run():
    lazy = pl.LazyFrame({"key": [1]})
    for call in (SplitBlockBloom(10).update, SplitBlockBloom(10).contains, StaticSet):
        with pytest.raises(TypeError, match="collect"):
            call(lazy)
