"""Maps with keys and values that are bytes, beside a `dict`."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import SortedMap

TYPES = [("uint64", "V16"), ("uint64", "V32"), ("S8", "uint64"), ("S8", "V16"), ("V16", "uint64")]
KEYS = {
    "uint64": st.integers(0, 2**64 - 1) | st.integers(0, 9),
    "S8": st.binary(max_size=8).map(lambda key: key.rstrip(b"\0")) | st.sampled_from([b"", b"a", b"a\0b", b"\xff" * 8]),
    # Whole ones, of which some differ in one half alone.
    "V16": st.binary(min_size=16, max_size=16)
    | st.binary(min_size=1, max_size=2).map(lambda key: key.ljust(16, b"\0"))
    | st.binary(min_size=1, max_size=2).map(lambda key: key.rjust(16, b"\0")),
}
VALUES = {"uint64": st.integers(0, 2**64 - 1), "V16": st.binary(max_size=16), "V32": st.binary(max_size=32)}


def whole(value, dtype):
    """What a map answers for a value: bytes with zeros at the end."""
    return value.ljust(np.dtype(dtype).itemsize, b"\0") if dtype[0] == "V" else value


@st.composite
def runs(draw):
    key, value = draw(st.sampled_from(TYPES))
    batch = st.dictionaries(KEYS[key], VALUES[value], max_size=40)
    return key, value, draw(st.lists(st.tuples(st.sampled_from("uudi"), batch), max_size=8))


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_like_a_dict(device):
    @settings(max_examples=40 if device == "cpu" else 10, deadline=None)
    @given(runs())
    def check(run):
        key, value, operations = run
        ours, model = SortedMap(key=key, value=value, batch_size=64, device=device), {}
        for what, batch in operations:
            wanted = {k: whole(v, value) for k, v in batch.items()}
            if what == "u":
                ours.update(batch)
                model |= wanted
            elif what == "d":
                ours.delete(list(batch))
                model = {k: v for k, v in model.items() if k not in batch}
            else:
                for k, v in batch.items():
                    ours[k] = v
                model |= wanted
        keys = sorted(model)
        assert list(ours) == keys == ours.keys().tolist() and len(ours) == len(model)
        assert list(ours.items()) == [(k, model[k]) for k in keys] and ours.values().tolist() == [model[k] for k in keys]
        asked = keys[:9] + {"S8": [b"zz", b"\0\1"], "V16": [b"z" * 16, bytes(16)]}.get(key, [7, 2**63])
        found = ours.get_many(asked)
        nothing = whole(b"", value) if value[0] == "V" else 0
        assert found[0].tolist() == [model.get(k, nothing) for k in asked]
        assert found[1].tolist() == [k in model for k in asked] == ours.contains(asked).tolist()
        assert [ours.get(k) for k in asked] == [model.get(k) for k in asked]
        assert ours.count_range(asked, asked).tolist() == [int(k in model) for k in asked]
        offsets, listed, values = ours.range(asked, asked[::-1])
        parts = [[k for k in keys if a <= k <= b] for a, b in zip(asked, asked[::-1])]
        assert listed.tolist() == sum(parts, []) and np.diff(offsets).tolist() == [len(part) for part in parts]
        assert values.tolist() == [model[k] for part in parts for k in part]
        above = [next((k for k in keys if k > a), None) for a in asked]
        nearest, _, is_there = ours.successors(asked)
        assert [k if there else None for k, there in zip(nearest.tolist(), is_there)] == above
        assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours) == SortedMap.from_bytes(bytes(ours))
        if keys:
            assert ours.first() == (keys[0], model[keys[0]]) and ours.last() == (keys[-1], model[keys[-1]])
            assert ours[keys[0]:keys[-1]][0].tolist() == keys[:-1]
            assert ours.popitem() == (keys[-1], model[keys[-1]]) and ours.pop(keys[-1], None) is None

    check()


TRADE = np.dtype([("price", "f8"), ("volume", "u4"), ("venue", "u4")])


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_structured_values(device, tmp_path):
    trades = np.zeros(5, TRADE)
    trades["price"], trades["volume"] = np.arange(5) / 4, np.arange(5)
    last = SortedMap(value="V16", device=device)
    last.update(np.arange(5), trades)
    values, found = last.get_many([3, 9, 1])
    assert values.dtype == "V16" and found.tolist() == [True, False, True]
    assert (values.view(TRADE)[[0, 2]] == trades[[3, 1]]).all() and values[1].tolist() == bytes(16)
    out = np.empty(2, TRADE)
    assert last.get_many([4, 2], out=out)[0] is out and (out == trades[[4, 2]]).all()
    last[7] = trades[1]
    assert np.frombuffer(last[7], TRADE)[0] == trades[1] == np.frombuffer(last[1], TRADE)[0]
    last.update([8, 9], trades[::2][:2])
    assert (last[8:][1].view(TRADE) == trades[[0, 2]]).all()
    path = tmp_path / "trades"
    last.save(path)
    for again in (SortedMap.load(path), SortedMap.load(path, device=DEVICE), SortedMap.mmap(path)):
        assert again.get_many([3])[0].view(TRADE)[0] == trades[3] and "uint64 to V16" in repr(again)
    last |= last.copy()
    assert (last | last) == last


def test_every_form_of_rows():
    rows = np.arange(4 * 32, dtype=np.uint8).reshape(4, 32)
    wanted = SortedMap(value="V32")
    wanted.update(range(4), [bytes(row) for row in rows])
    for values in (rows, rows.view("V32").ravel(), rows.view("S32").ravel(), rows.view("c16").view("V32").ravel(),
                   list(rows.view("V32").ravel().tolist()), np.array([bytes(row) for row in rows], dtype=object)):
        ours = SortedMap(value="V32")
        ours.update(range(4), values)
        assert ours == wanted
    short = SortedMap(value="V32")
    short.update(range(4), rows[:, :12].copy())
    assert short[1] == bytes(rows[1, :12]) + bytes(20)
    names = SortedMap(key="S8")
    for keys in (["ash", "oak"], [b"ash", b"oak"], np.array(["ash", "oak"], "S3"), np.array(["ash", "oak"], "S8")):
        names.update(keys, [1, 2])
        assert list(names) == [b"ash", b"oak"] and names["oak"] == names[b"oak"] == 2 and names.keys().dtype == "S8"
        names.clear()
    pa = pytest.importorskip("pyarrow")
    names.update(pa.array(["oak", "ash"]), pa.array([2, 1]))
    assert list(names.items()) == [(b"ash", 1), (b"oak", 2)]


def test_bad_input():
    wide, names = SortedMap(value="V16"), SortedMap(key="S8")
    names.update(["ash"], [1])
    saved = bytes(names)
    for keys in (["ninebytes"], np.zeros(1, "S9"), np.zeros((1, 9), np.uint8)):
        with pytest.raises(ValueError, match="9 bytes: this map has 8"):
            names.update(keys, [1])
        with pytest.raises(ValueError, match="this map has 8"):
            names.get_many(keys)
    for value in (bytes(17), np.zeros(1, "V17")[0]):
        with pytest.raises(ValueError, match="17 bytes: this map has 16"):
            wide[1] = value
    with pytest.raises(ValueError, match="item 1: 17 bytes"):
        wide.update([1, 2], [b"", bytes(17)])
    with pytest.raises(ValueError, match="items of 24 bytes"):
        wide.update([1], np.zeros(1, "V24"))
    for values in ([1], np.zeros(1, np.uint64), np.zeros(1, bool)):
        with pytest.raises(TypeError):
            wide.update([1], values)
    for values in (np.zeros(1), np.zeros(1, [("a", "O")]), np.zeros((1, 2, 3), np.uint8), np.zeros((1, 2))):
        with pytest.raises((TypeError, ValueError)):
            wide.update([1], values)
    with pytest.raises(ValueError, match="gaps"):
        wide.update(range(2), np.zeros((2, 16), np.uint8)[:, ::2])
    with pytest.raises(TypeError, match="are bytes"):
        names[7] = 1
    with pytest.raises(TypeError):
        names[None]
    with pytest.raises(OverflowError, match="default=3"):
        wide.get_many([1], 3)
    for out in (np.zeros(1, "V15"), np.zeros(1, np.uint64), np.zeros(2, "V16"), np.zeros(1, [("a", "O"), ("b", "u8")])):
        with pytest.raises(ValueError, match="out:"):
            wide.get_many([1], out=out)
    for wrong in ({"key": "S9"}, {"value": "V12"}, {"key": "S8", "value": "V32"}, {"key": "V16", "value": "V16"}):
        with pytest.raises(ValueError, match="there are maps from .*uint64 to V16"):
            SortedMap(**wrong)
    with pytest.raises(ValueError, match="a map of S8 to uint64 and one of uint64 to V16"):
        names.merge(wide)
    assert bytes(names) == saved and len(wide) == 0


def test_device_arrays_have_numbers():
    keys = warpset.Device(DEVICE).array([1, 2])
    wide, names = SortedMap(value="V16", device=DEVICE), SortedMap(key="S8", device=DEVICE)
    for work in (lambda: wide.update(keys, keys), lambda: wide.get_many(keys), lambda: wide.range(keys, keys),
                 lambda: names.update(keys, keys), lambda: names.contains(keys), lambda: names.delete(keys)):
        with pytest.raises(TypeError, match="device arrays have numbers"):
            work()
    owners = SortedMap(key="V16", device=DEVICE)
    for work in (lambda: owners.update(keys, keys), lambda: owners.range(keys, keys), lambda: owners.get_many(keys)):
        with pytest.raises(TypeError, match="device arrays have numbers"):
            work()
    wide.update([1], [b"a"])
    assert wide.contains(keys).tolist() == [True, False]   # its keys are numbers
