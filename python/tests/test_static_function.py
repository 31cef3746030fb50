"""Static functions: all keys have their values, for all types of keys, and filtered ones notice other keys."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_recsplit import different, words
from warpset import StaticFunction

KEYS = np.arange(3000, dtype=np.uint64) * 7919
OTHERS = np.arange(100_000, dtype=np.uint64) * 7919 + 1


def value_of(keys, bits=64):
    """Values of keys, the same in every test."""
    return (keys * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


@settings(max_examples=60, deadline=None)
@given(keys=words, bits=st.integers(1, 64), filtered=st.integers(0, 32), arity=st.sampled_from([3, 4]),
       sharded=st.booleans(), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_keys_have_their_values(keys, bits, filtered, arity, sharded, seed, data):
    keys, filtered = different(keys), min(filtered, 64 - bits)
    values = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=len(keys), max_size=len(keys)))
    settings = {"value_bits": bits, "filtered": filtered, "arity": arity, "sharded": sharded, "seed": seed}
    ours = StaticFunction(keys + keys[:3], values + values[:3], **settings)
    assert len(ours) == len(keys) and ours.value_bits == bits and ours.fpr == (2.0**-filtered if keys else 0)
    found = ours.get_many(keys)
    assert found[0].tolist() == values and found[0].dtype == np.uint64 and found[1].all()
    assert [ours.get(key) for key in keys] == values
    assert pickle.loads(pickle.dumps(ours)) == ours == copy.copy(ours)


def test_bits():
    for bits in (1, 5, 8, 16, 33, 64):
        values = value_of(KEYS, bits)
        ours, small = StaticFunction(KEYS, values), StaticFunction(KEYS, values, arity=4)
        assert ours.value_bits == int(values.max()).bit_length() == bits and small.bits_per_key < ours.bits_per_key
        assert ours.bits_per_key == 8 * ours.nbytes / 3000 < 1.5 * bits
    assert StaticFunction([1, 2], [0, 0]).value_bits == 1
    assert repr(StaticFunction(KEYS, value_of(KEYS, 5), filtered=8)).startswith("StaticFunction(3000 keys, values of 5 bits, ")


def test_other_keys():
    open, closed = StaticFunction(KEYS, value_of(KEYS, 5)), StaticFunction(KEYS, value_of(KEYS, 5), filtered=8)
    assert open.fpr == 1 and open.get_many(OTHERS)[1].all() and open.get(1) is not None
    values, found = closed.get_many(OTHERS, default=77)
    assert 200 < found.sum() < 600 and (values[~found] == 77).all() and (values[found] < 32).all()
    assert [closed.get(key) for key in OTHERS[:300]] == [
        int(value) if is_found else None for value, is_found in zip(values[:300], found)
    ]
    closed = StaticFunction(KEYS, value_of(KEYS, 5), filtered=32)
    assert closed.get(1) is None and closed.get(1, 7) == 7 == closed.get(1, default=7)
    nothing = StaticFunction([], [], filtered=1)
    assert nothing.get(7) is None and not nothing.get_many([1, 2])[1].any() and not nothing


@pytest.mark.parametrize("bits", [5, 16, 64])
def test_devices_give_the_same(bits):
    device, keys, values = warpset.Device(DEVICE), KEYS[:300], value_of(KEYS[:300], bits)
    there = StaticFunction(keys, values, value_bits=bits, device=DEVICE)
    here, (on_device, of_device) = StaticFunction(keys, values, value_bits=bits), map(device.array, (keys, values))
    assert there == here == StaticFunction(on_device, of_device, value_bits=bits, device=device)
    assert StaticFunction(on_device, of_device, device=device).value_bits == 64
    assert here.to(DEVICE) == there and there.to("cpu") == here and there.get(int(keys[5])) == values[5]
    assert there.get_many(keys)[0].tolist() == values.tolist()
    closed = StaticFunction(keys, value_of(keys, 5), filtered=32, device=DEVICE)
    asked = np.concatenate([keys[:99], OTHERS[:99]])
    found, flags = closed.get_many(device.array(asked))
    assert (found.tolist(), flags.tolist()) == tuple(answer.tolist() for answer in closed.get_many(asked))
    for wrong in (lambda: StaticFunction(on_device, of_device), lambda: here.get_many(on_device)):
        with pytest.raises(ValueError, match="in host memory"):
            wrong()


def test_arrays_and_nulls():
    small = np.arange(100, dtype=np.uint8)
    ours = StaticFunction(small, small)
    for same in (small.astype(np.int64), small.astype(np.int32)[::-1][::-1], small.tolist(), range(100)):
        assert StaticFunction(same, same) == ours and ours.get_many(same)[0].tolist() == list(range(100))
    same, flags = KEYS[:10].copy(), np.zeros(10, dtype=bool)
    values, found = StaticFunction(same, same).get_many(same, out=same, found=flags)
    assert values is same and found is flags and same.tolist() == KEYS[:10].tolist() and flags.all()
    pa = pytest.importorskip("pyarrow")
    text = [f"key {i}" for i in range(30)]
    chunks = pa.chunked_array([text[:7] + [None], [], text[7:]], pa.large_string())
    numbers = pa.array([*range(7), 99, *range(7, 30)], pa.uint16())
    ours = StaticFunction(chunks, numbers)
    assert ours == StaticFunction(text, range(30)) and ours.get("key 9") == ours.get(b"key 9") == 9
    values, found = ours.get_many(chunks, default=50)
    assert values.tolist() == [*range(7), 50, *range(7, 30)] and found.tolist() == [place != 7 for place in range(31)]
    with pytest.raises(ValueError, match="nulls"):
        StaticFunction([1, 2], [3, None])


def test_files(tmp_path):
    ours, path = StaticFunction(KEYS, value_of(KEYS, 11), filtered=4), tmp_path / "function"
    ours.save(path)
    again = StaticFunction.load(path)
    assert again == ours == StaticFunction.from_bytes(bytes(ours)) == StaticFunction.load(path, device=DEVICE)
    mapped = StaticFunction.mmap(path)
    assert mapped.get_many(KEYS)[0].tolist() == value_of(KEYS, 11).tolist() and mapped.get(7919) == ours.get(7919)
    assert (mapped.value_bits, mapped.fpr, len(mapped)) == (11, 1 / 16, 3000) and "mapped from" in repr(mapped)
    saved = bytes(ours)
    for place in (1, 20, 130, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            StaticFunction.from_bytes(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :])
    other = tmp_path / "other"
    warpset.SplitBlockBloom(100).save(other)
    with pytest.raises(warpset.FileError, match="SplitBlockBloom"):
        StaticFunction.load(other)


def test_threads():
    ours = StaticFunction(KEYS, value_of(KEYS, 11), sharded=True)
    assert all(StaticFunction(KEYS, value_of(KEYS, 11), sharded=True, threads=threads) == ours for threads in (1, 2))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda threads: ours.get_many(KEYS, threads=threads)[0].tolist(), [1, 2, 3, None]))
    assert answers == [value_of(KEYS, 11).tolist()] * 4


def test_bad_input():
    for wrong, message in [
        ({"value_bits": 0}, "1 to 64"), ({"value_bits": 65}, "1 to 64"), ({"filtered": 33}, "at most 32"),
        ({"value_bits": 40, "filtered": 30}, "at most 64"), ({"value_bits": 1}, "set `value_bits` to 2"),
        ({"arity": 5}, "3 or 4"), ({"device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            StaticFunction([1, 2], [2, 3], **wrong)
    with pytest.raises(warpset.DuplicateKeyError, match="3 and 4|4 and 3"):
        StaticFunction([1, 2, 1], [3, 5, 4])
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        StaticFunction([1, 2], [1])
    with pytest.raises(OverflowError):
        StaticFunction([1], [-1])
    for keys, values in ((7, [1]), ("ash", [1]), ([1.5], [1]), ([1], [1.5]), ([1], ["ash"]), ([1], None)):
        with pytest.raises(TypeError):
            StaticFunction(keys, values)
    ours = StaticFunction([1, 2], [3, 4])
    with pytest.raises(OverflowError):
        ours.get_many([1], default=2**64)
    for call in (lambda: 1 in ours, lambda: ours[1], lambda: list(ours), lambda: ours.get([1]), lambda: ours.get(None)):
        with pytest.raises(TypeError):
            call()
