"""Filters of k-mers that take sequences, against a set; minimizers, by their rule."""

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from test_kmers import COMPLEMENT, random
from warpset import SequenceFilter, minimizers

sequences = st.lists(st.text("ACGTacgtN-", max_size=80), max_size=5)


def windows(sequence, k):
    """The canonical k-mer of each window, `None` where a letter is no base."""
    sequence = sequence.upper()
    for i in range(len(sequence) - k + 1):
        kmer = sequence[i : i + k]
        yield min(kmer, kmer.translate(COMPLEMENT)[::-1]) if set(kmer) <= set("ACGT") else None


def model(sequences, k):
    return {kmer for sequence in sequences for kmer in windows(sequence, k)} - {None}


def forms(all):
    """The sequences in every form that holds them."""
    return [all, tuple(s.encode() for s in all), iter(all), (np.frombuffer(s.encode(), np.uint8) for s in all),
            [bytearray(s.encode()) for s in all], np.array(all, dtype=object), np.array(all, dtype="S")]


# The same examples each time: one k-mer in some millions is found by chance.
@settings(max_examples=60, deadline=None, derandomize=True)
@given(own=sequences, other=sequences, k=st.sampled_from([9, 15, 31, 32]), device=st.sampled_from(["cpu", DEVICE]))
def test_like_a_set(own, other, k, device):
    ours = SequenceFilter(200_000, k=k, bits_per_kmer=64, s=k, device=device)
    kmers = model(own, k)
    ours.update(own)
    found, total = ours.count(own + other)
    wanted = [[kmer in kmers for kmer in windows(sequence, k) if kmer] for sequence in own + other]
    assert total.tolist() == [len(each) for each in wanted]
    assert found.tolist() == [sum(each) for each in wanted]
    for sequence in own + other:
        wanted = [kmer in kmers for kmer in windows(sequence, k)]
        assert ours.contains_windows(sequence).tolist() == wanted
        turned = sequence.translate(COMPLEMENT | str.maketrans("acgt", "tgca"))[::-1]
        assert ours.contains_windows(turned.encode()).tolist() == wanted[::-1]
    for kmer in list(kmers)[:3]:
        assert kmer in ours and kmer.lower().encode() in ours
    one_by_one = SequenceFilter(200_000, k=k, bits_per_kmer=64, s=k)
    for sequence in own:
        one_by_one.add(sequence)
    assert one_by_one == ours == pickle.loads(pickle.dumps(ours)) == copy.deepcopy(ours)


def test_every_form_of_sequences():
    all = random(1, 7, 60)
    wanted = SequenceFilter(1000, k=21)
    wanted.update(all)
    counts = [column.tolist() for column in wanted.count(all)]
    assert counts == [[40] * 7] * 2
    for sequences in forms(all):
        ours = SequenceFilter(1000, k=21)
        ours.update(sequences)
        assert ours == wanted
    for sequences in forms(all):
        assert [column.tolist() for column in wanted.count(sequences)] == counts
    rows = np.frombuffer("".join(all).encode(), np.uint8).reshape(7, 60)
    for sequences in (rows, rows.view("S1"), rows[:, :]):
        ours = SequenceFilter(1000, k=21)
        ours.update(sequences, threads=1)
        assert ours == wanted and ours.matches(sequences, min_hits=40).all()
    for sequence in (all[0], all[0].encode(), bytearray(all[0].encode()), rows[0], rows[0].view("S1"), memoryview(rows[0])):
        ours = SequenceFilter(1000, k=21)
        ours.add(sequence)
        assert ours.count([sequence])[0].tolist() == [40] and ours.contains_windows(sequence).all()
    nothing = SequenceFilter(1000, k=21)
    for sequences in ([], iter([]), np.empty((0, 60), np.uint8), np.empty((9, 0), np.uint8), [""], ["ACGT"]):
        nothing.update(sequences)
    assert nothing == SequenceFilter(1000, k=21) and nothing.count([])[0].tolist() == []


def test_sequences_of_arrow():
    pa = pytest.importorskip("pyarrow")
    genome = random(2, 1, 100)[0]
    ours, wanted = SequenceFilter(1000, k=11), SequenceFilter(1000, k=11)
    reads = pa.chunked_array([[genome[:50], None], [], [genome[50:], "A" * 30]], pa.string())
    ours.update(reads)
    wanted.update([genome[:50], genome[50:], "A" * 30])
    assert ours == wanted
    assert [column.tolist() for column in ours.count(reads)] == [[40, 0, 40, 20]] * 2
    assert ours.matches(reads, min_hits=0).tolist() == [True, False, True, True]
    assert pa.array(ours.matches(reads, min_hits=40, form="arrow")).to_pylist() == [True, False, True, False]


def test_decisions():
    genome = random(3, 1, 400)[0]
    ours = SequenceFilter(1000, k=25, bits_per_kmer=64)
    ours.add(genome)
    half = genome[:37] + genome[37].translate(COMPLEMENT) + random(4, 1, 37)[0]   # 13 of 51 k-mers
    reads = [genome[:75], half, random(5, 1, 75)[0]]
    assert ours.matches(reads).tolist() == [True, True, False]
    assert ours.matches(reads, min_hits=13).tolist() == [True, True, False]
    assert ours.matches(reads, min_hits=14).tolist() == [True, False, False]
    assert ours.matches(reads, min_share=0.25).tolist() == [True, True, False]
    assert ours.matches(reads, min_share=0.26).tolist() == [True, False, False]
    assert ours.matches(reads, form="bitmap").tolist() == [0b011]
    out = np.ones(3, dtype=bool)
    assert ours.matches(reads, out=out, threads=2) is out and out.tolist() == [True, True, False]
    out = np.ones(51, dtype=bool)
    assert ours.contains_windows(half, out=out) is out and out.tolist() == [True] * 13 + [False] * 38
    assert np.unpackbits(ours.contains_windows(half, form="bitmap"), bitorder="little")[:51].tolist() == out.tolist()
    assert ours.contains_windows("ACGT").tolist() == []


def test_files(tmp_path):
    genome = random(6, 3, 2000)
    ours = SequenceFilter(10_000, k=31, bits_per_kmer=20, s=28, m=9)
    assert (ours.k, ours.s, ours.m) == (31, 28, 9) and ours.nbytes >= 10_000 * 20 // 8 and ours.fpr == 0
    ours.update(genome)
    assert 0 < ours.fpr < 0.001 and 0 < ours.expected_fpr(6_000) < ours.expected_fpr(60_000)
    path = tmp_path / "kmers.warpset"
    ours.save(path)
    assert SequenceFilter.load(path) == ours == SequenceFilter.from_bytes(bytes(ours))
    there = SequenceFilter.load(path, device=DEVICE)
    assert there == ours and there.device == DEVICE and bytes(there) == bytes(ours) and there.fpr == ours.fpr
    mapped = SequenceFilter.mmap(path)
    assert mapped.matches(genome).all() and genome[0][:31] in mapped and mapped.fpr == ours.fpr
    assert "mapped from" in repr(mapped) and pickle.loads(pickle.dumps(mapped)).k == 31
    for change in (lambda: mapped.add("A" * 40), lambda: mapped.update(genome), mapped.clear, lambda: mapped.merge(ours)):
        with pytest.raises(ValueError, match="mapped"):
            change()
    saved = bytes(ours)
    for damaged in (saved[:-1], saved[:50], saved[:200] + b"?" + saved[201:], b""):
        with pytest.raises(warpset.FileError):
            SequenceFilter.from_bytes(damaged)
    warpset.QuotientFilter(100).save(path)
    for read in (SequenceFilter.load, SequenceFilter.mmap):
        with pytest.raises(warpset.FileError):
            read(path)
    assert repr(ours).startswith("SequenceFilter(k=31, ")


@pytest.mark.parametrize("device", ["cpu", DEVICE])
def test_union(device):
    one, other = random(7, 1, 300)[0], random(8, 1, 300)[0]
    ours, theirs, wanted = (SequenceFilter(1000, k=17, device=device) for _ in range(3))
    ours.add(one)
    theirs.add(other)
    wanted.update([one, other])
    assert (ours | theirs) == wanted != ours
    ours |= theirs
    assert ours == wanted
    ours.merge(ours)
    assert ours == wanted
    ours.clear()
    assert ours == SequenceFilter(1000, k=17)
    for different in (SequenceFilter(1000, k=19), SequenceFilter(2000, k=17), SequenceFilter(1000, k=17, m=5)):
        with pytest.raises(ValueError, match="different parameters"):
            ours.merge(different)


def test_letters_on_a_device():
    emulator = warpset.Device(DEVICE)
    one, other = random(9, 2, 90)
    here, there = SequenceFilter(1000, k=13), SequenceFilter(1000, k=13, device=emulator)
    letters = emulator.letters(one + "\n" + other)
    assert letters.dtype == "uint8" and len(letters) == 181 and bytes(letters.tolist()).decode() == one + "\n" + other
    here.update([one, other])

    class Tensor:
        def __dlpack_device__(self):
            return letters.__dlpack_device__()

        def __dlpack__(self, **asked):
            return letters.__dlpack__(**asked)

    there.add(letters)
    assert there == here
    there.clear()
    there.add(Tensor())
    assert there == here
    answers = there.contains_windows(letters)
    assert isinstance(answers, warpset.DeviceArray) and answers.dtype == "uint32" and len(answers) == 6
    bits = np.unpackbits(answers.get().view(np.uint8), bitorder="little")
    assert bits.tolist() == [1] * 78 + [0] * 13 + [1] * 78 + [0] * 23
    keys = emulator.array([1, 2, 3])
    for wrong in (lambda: here.add(letters), lambda: here.contains_windows(letters)):
        with pytest.raises(ValueError, match="in host memory"):
            wrong()
    with pytest.raises(ValueError, match="`<u8`: letters"):
        there.add(keys)
    with pytest.raises(ValueError, match="leave `form` and `out` away"):
        there.contains_windows(letters, form="bitmap")
    with pytest.raises(TypeError, match="by `add`"):
        there.update(letters)
    with pytest.raises(ValueError, match="integers of 32 or 64 bits"):
        warpset.SplitBlockBloom(100, device=emulator).update(letters)


def test_bad_input():
    for wrong, message in [
        ({"k": 8}, "k is from 9"),
        ({"k": 64}, "to 63"),
        ({"s": 32}, "s at most k"),
        ({"m": 3}, "m from 4"),
        ({"bits_per_kmer": 0}, "positive number"),
        ({"bits_per_kmer": float("nan")}, "positive number"),
        ({"bits_per_kmer": 1e30}, "largest"),
        ({"device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            SequenceFilter(**({"n": 100} | wrong))
    ours = SequenceFilter(100, k=9)
    for sequence in (7, None, 1.5, ["ACGT"], np.zeros(9), np.zeros(9, np.uint16), np.zeros((2, 9), np.uint8)):
        for use in (ours.add, ours.contains_windows, lambda sequence: ours.count([sequence])):
            if sequence is None and use not in (ours.add, ours.contains_windows):
                continue  # a null among others
            with pytest.raises(TypeError, match="a sequence is"):
                use(sequence)
    for one in ("ACGT", b"ACGT", bytearray(9), np.zeros(9, np.uint8)):
        for use in (ours.update, ours.count, ours.matches):
            with pytest.raises(TypeError, match="one sequence where many"):
                use(one)
    for sequences in (7, None, 1.5):
        with pytest.raises(TypeError, match="holds no sequences"):
            ours.update(sequences)
    for sequences in ([1, 2], np.arange(9)):
        with pytest.raises(TypeError):
            ours.count(sequences)
    with pytest.raises(ValueError, match="gaps"):
        ours.add(np.zeros(18, np.uint8)[::2])
    with pytest.raises(ValueError, match="gaps"):
        ours.update(np.zeros((4, 18), np.uint8)[:, ::2])
    with pytest.raises(ValueError, match="ASCII"):
        ours.add("ACGTé")
    for kmer in ("ACGT", "ACGTACGTN", "ACGTACGTAC", ""):
        with pytest.raises(ValueError, match="no k-mer of 9 letters"):
            kmer in ours
    for fraction in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="from 0 to 1"):
            ours.matches(["ACGT"], min_share=fraction)
    with pytest.raises(ValueError, match="out:"):
        ours.matches(["ACGT"], out=np.zeros(2, bool))
    with pytest.raises(ValueError, match="there are"):
        ours.matches(["ACGT"], form="list")
    assert ours == SequenceFilter(100, k=9) and ours != "filter"


def test_threads_on_one_filter():
    ours, wanted, reads = SequenceFilter(10_000, k=21), SequenceFilter(10_000, k=21), random(10, 20, 400)
    wanted.update(reads)

    def work():
        for read in reads:
            ours.add(read)
            assert ours.count([read] * 3)[0].tolist() == [380] * 3

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert ours == wanted


@settings(max_examples=60, deadline=None)
@given(sequence=st.text("ACGTacgtN", max_size=150), k=st.sampled_from([1, 4, 21, 32]), w=st.sampled_from([1, 5, 64]))
def test_minimizers(sequence, k, w):
    positions, kmers = minimizers(sequence, k=k, w=w)
    letters = sequence.upper()

    def number(kmer):
        return sum("ACGT".index(base) << 2 * i for i, base in enumerate(reversed(kmer)))

    def canonical(at):
        kmer = letters[at : at + k]
        return min(number(kmer), number(kmer.translate(COMPLEMENT)[::-1]))

    taken = positions.tolist()
    assert taken == sorted(set(taken)) and kmers.tolist() == [canonical(at) for at in taken]
    whole = [i for i in range(len(letters) - k - w + 2) if set(letters[i : i + k + w - 1]) <= set("ACGT")]
    # Each window takes one of its k-mers, and each minimizer is taken by some window.
    assert all(any(i <= at < i + w for at in taken) for i in whole)
    assert all(any(i <= at < i + w for i in whole) for at in taken)
    if w == 1:
        assert taken == whole


def test_minimizers_of_both_strands():
    genome = random(11, 1, 5000)[0]
    positions, kmers = minimizers(np.frombuffer(genome.encode(), np.uint8))
    other, turned = minimizers(genome.translate(COMPLEMENT)[::-1].encode())
    assert turned.tolist() == kmers.tolist()[::-1]
    assert other.tolist() == [5000 - 31 - at for at in positions.tolist()[::-1]]
    assert len(positions) == pytest.approx(5000 * 2 / 16, rel=0.1)
    assert minimizers(genome, rotation=1)[0].tolist() != positions.tolist()
    for wrong in ({"k": 0}, {"k": 64}, {"w": 0}, {"w": 65}):
        with pytest.raises(ValueError, match="choose k from 1 to 32"):
            minimizers(genome, **wrong)
    for wrong in (7, [genome], None):
        with pytest.raises(TypeError, match="a sequence is"):
            minimizers(wrong)
