"""Counts of k-mers, against `collections.Counter`."""

import copy
import gzip
import pickle
import signal
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warpset
from conftest import DEVICE
from warpset import KmerCounter

COMPLEMENT = str.maketrans("ACGT", "TGCA")
sequences = st.lists(st.text("ACGTacgtN>\n", max_size=60), max_size=6)


def model(sequences, k):
    counts = Counter()
    for sequence in sequences:
        sequence = sequence.upper().replace("\n", "")
        for i in range(len(sequence) - k + 1):
            kmer = sequence[i : i + k]
            if set(kmer) <= set("ACGT"):
                counts[min(kmer, kmer.translate(COMPLEMENT)[::-1])] += 1
    return counts


def random(seed, count, length):
    letters = np.random.default_rng(seed).choice(list("ACGT"), (count, length))
    return ["".join(row) for row in letters]


def write(path, sequences):
    """FASTA, or FASTQ; compressed if the name says so."""
    if ".fq" in path.name:
        text = "".join(f"@{i}\n{s}\n+\n{'I' * len(s)}\n" for i, s in enumerate(sequences))
    else:
        text = "".join(f">{i}\n{s}\n" for i, s in enumerate(sequences))
    (gzip.open if path.suffix == ".gz" else open)(path, "wt").write(text)
    return path


@settings(max_examples=80, deadline=None)
@given(first=sequences, second=sequences, k=st.sampled_from([1, 3, 4, 16, 17, 32]), min_count=st.integers(0, 3))
def test_like_a_counter(first, second, k, min_count):
    ours, other, counts = KmerCounter(k=k), KmerCounter(k=k), model(first, k)
    ours.update_sequences(first)
    other.update_sequences([sequence.encode() for sequence in second])
    assert dict(ours.items()) == counts and (len(ours), ours.total(), ours.k) == (len(counts), counts.total(), k)
    both, counts = ours + other, counts + model(second, k)
    ours += other
    assert both == ours == pickle.loads(pickle.dumps(ours)) == copy.deepcopy(ours)
    assert sorted(ours) == sorted(counts)
    kmers = list(counts) + ["A" * k, "C" * k]
    turned = [kmer.translate(COMPLEMENT)[::-1].lower() for kmer in kmers]
    assert ours.count(kmers).tolist() == [counts[kmer] for kmer in kmers] == ours.count(turned).tolist()
    assert all(ours[kmer] == counts[kmer] and (kmer in ours) == (counts[kmer] > 0) for kmer in kmers)
    codes, copies = ours.arrays()
    assert sorted(copies.tolist()) == sorted(counts.values()) and (ours.count(codes) == copies).all()
    assert ours.histogram(4).tolist() == [sum(min(c, 4) == n for c in counts.values()) for n in range(5)]
    ours.keep(min_count)
    assert dict(ours.items()) == {kmer: count for kmer, count in counts.items() if count >= min_count}


@pytest.mark.parametrize("k", [33, 41, 48, 63])
def test_long_kmers(k, tmp_path):
    genome = "".join(random(7, 1, 300))
    counts = model([genome, genome[50:200]], k)
    ours = KmerCounter(write(tmp_path / "a.fa", [genome, genome[50:200]]), k=k)
    assert dict(ours.items()) == counts and ours.total() == counts.total()
    asked = [*counts, "A" * k, None]
    assert list(ours.count(asked)) == [*counts.values(), 0, 0]
    assert list(ours.count([])) == [] and list(ours.count([None])) == [0]
    codes, copies = ours.arrays()
    code = lambda kmer: int(kmer.translate(str.maketrans("ACGT", "0123")), 4)
    assert dict(zip(codes, map(int, copies))) == {code(kmer): n for kmer, n in counts.items()}
    ours.save(tmp_path / "a.kmers")
    assert KmerCounter.load(tmp_path / "a.kmers") == ours == ours.copy()
    positions, found = warpset.minimizers(genome, k=k, w=4)
    canonical = [min(kmer, kmer.translate(COMPLEMENT)[::-1]) for kmer in (genome[i : i + k] for i in positions)]
    assert found == [code(kmer) for kmer in canonical]
    with pytest.raises(TypeError, match="pass letters"):
        ours.count([1, 2])


def test_files(tmp_path):
    first, second = random(1, 40, 200), random(2, 30, 300)
    plain, zipped = write(tmp_path / "a.fa", first), write(tmp_path / "b.fq.gz", second)
    ours, counts = KmerCounter([plain, str(zipped)], k=21), model(first + second, 21)
    assert dict(ours.items()) == counts
    one = KmerCounter(plain, k=21, threads=1, memory=1 << 30)
    one.update(zipped, threads=3)
    assert one == ours
    often = model(first * 2 + second, 21)
    assert dict(KmerCounter([plain, plain, zipped], k=21, min_count=2).items()) == {
        kmer: count for kmer, count in often.items() if count >= 2
    }
    path = tmp_path / "table.kmers"
    ours.save(path)
    assert KmerCounter.load(path) == ours == KmerCounter.from_bytes(bytes(ours))
    mapped, kmers = KmerCounter.mmap(path), list(counts)
    assert mapped.count(kmers).tolist() == [counts[kmer] for kmer in kmers] and len(mapped) == len(counts)
    assert dict(mapped.items()) == counts and mapped[kmers[0]] == counts[kmers[0]] and "mapped from" in repr(mapped)
    assert pickle.loads(pickle.dumps(mapped)).total() == counts.total()
    assert mapped.screen(plain) == ours.screen(plain)
    for change in (lambda: mapped.update(plain), lambda: mapped.update_sequences(first), lambda: mapped.keep(2),
                   lambda: mapped.merge(ours)):
        with pytest.raises(ValueError, match="mapped"):
            change()
    assert repr(ours).startswith("KmerCounter(k=21, ") and ours.nbytes > 0


@pytest.mark.parametrize("k", [3, 17])
def test_on_a_device(k, tmp_path):
    reads = random(3, 4, 60)
    path = write(tmp_path / "a.fa", reads)
    here, there = KmerCounter(path, k=k), KmerCounter(path, k=k, device=DEVICE)
    assert there == here and there.device == DEVICE and here.to(DEVICE) == there.to("cpu")
    assert len(there) == len(here) and dict(there.items()) == dict(here.items())
    codes, counts = there.arrays()
    answers = there.count(warpset.Device(DEVICE).array(codes))
    assert isinstance(answers, warpset.DeviceArray) and answers.tolist() == counts.tolist()
    there.update_sequences(reads)
    here += here
    assert there == here and there[reads[0][:k]] == here[reads[0][:k]]
    there.keep(4)
    here.keep(4)
    assert dict(there.items()) == dict(here.items()) and there.histogram(9).tolist() == here.histogram(9).tolist()
    assert len(KmerCounter(k=k, device=DEVICE)) == 0
    with pytest.raises(ValueError, match="in host memory"):
        here.count(warpset.Device(DEVICE).array(codes))


def test_reads_are_screened(tmp_path):
    genome, noise = random(4, 1, 500)[0], random(5, 20, 60)
    reads = write(tmp_path / "reads.fa", [genome[i : i + 50] for i in range(0, 450, 50)] + noise)
    table = KmerCounter(write(tmp_path / "genome.fa", [genome]), k=25)
    assert table.screen(reads) == table.screen([reads], threads=2, min_hits=26) == (9, 20)
    assert table.screen(reads, min_hits=27) == (0, 29)
    yes, no = tmp_path / "yes", tmp_path / "no"
    assert table.screen(reads, matched=yes, unmatched=no) == (9, 20)
    assert (yes.read_text() + no.read_text()) == reads.read_text()
    with pytest.raises(ValueError, match="read and written"):
        table.screen(reads, matched=reads)


def test_kmers_in_arrays():
    ours = KmerCounter(k=4)
    assert not ours and ours.total() == 0 and list(ours) == [] and "ACGT" not in ours
    ours.update_sequences(np.array(["ACGTT", "TTGC"], dtype="S"))
    ours.update_sequences([])
    assert ours.count(np.array([b"AACG", b"GCAA"], dtype="S")).tolist() == [1, 1]
    assert ours.count(np.array([0b00_01_10_11], dtype=np.uint8)).tolist() == [ours["ACGT"]] == [ours[0b00_01_10_11]] == [1]
    out = np.zeros(2, dtype=np.uint64)
    assert ours.count(["ACGT", b"CCCC"], out=out) is out and out.tolist() == [1, 0]


def test_sequences_of_arrow():
    pa = pytest.importorskip("pyarrow")
    ours, counts = KmerCounter(k=3), model(["ACGTT", "TTGC"], 3)
    ours.update_sequences(pa.chunked_array([["ACGTT", None], [], ["TTGC"]], pa.string()))
    assert dict(ours.items()) == counts
    assert ours.count(pa.chunked_array([["ACG", None], ["AAA"]], pa.string())).tolist() == [counts["ACG"], 0, 0]


def test_damaged_files(tmp_path):
    ours = KmerCounter(k=9)
    ours.update_sequences(random(6, 5, 100))
    saved = bytes(ours)
    for place in (1, 20, 60, len(saved) // 2, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            KmerCounter.from_bytes(saved[:place] + bytes([saved[place] ^ 1]) + saved[place + 1 :])
    for end in (0, 10, 128, len(saved) - 1):
        with pytest.raises(warpset.FileError):
            KmerCounter.from_bytes(saved[:end])
    other = tmp_path / "other.warpset"
    warpset.QuotientFilter(100).save(other)
    for read in (KmerCounter.load, KmerCounter.mmap):
        with pytest.raises(warpset.FileError, match="no table of k-mers"):
            read(other)
        with pytest.raises(FileNotFoundError, match="none"):
            read(tmp_path / "none")
    for name, text, message in [
        ("text", "hello", "begins with 'h'"),
        ("cut.fq", "@a\nACGT\n+\nII", "it ends at line 4"),
    ]:
        (tmp_path / name).write_text(text)
        with pytest.raises(warpset.FileError, match=message):
            KmerCounter(tmp_path / name, k=3)
    zipped = write(tmp_path / "cut.fa.gz", random(7, 9, 99))
    zipped.write_bytes(zipped.read_bytes()[:-9])
    with pytest.raises(warpset.FileError, match="cut.fa.gz"):
        ours.update(zipped)
    with pytest.raises(FileNotFoundError, match="missing"):
        ours.screen(tmp_path / "missing")
    assert bytes(ours) == saved


def test_bad_input(tmp_path):
    path = write(tmp_path / "a.fa", ["ACGTACGTNNN"])
    for wrong, message in [
        ({"k": 0}, "1 to 63"),
        ({"k": 64}, "1 to 63"),
        ({"k": 9}, "9 bases"),
        ({"k": 3, "device": "gpu"}, "emulator"),
    ]:
        with pytest.raises(ValueError, match=message):
            KmerCounter(path, **wrong)
    with pytest.raises(ValueError, match="no input"):
        KmerCounter([])
    with pytest.raises(MemoryError, match="allow"):
        KmerCounter(path, k=3, memory=1000)
    for files in (7, [7], object()):
        with pytest.raises(TypeError, match="path"):
            KmerCounter(files, k=3)
    ours = KmerCounter(path, k=3)
    for kmers in (["ACGT"], ["AC"], ["ACN"], [""]):
        with pytest.raises(ValueError, match="no 3-mer"):
            ours.count(kmers)
        with pytest.raises(ValueError, match="no 3-mer"):
            ours[kmers[0]]
    for kmers in (7, "ACG", None, [1.5], np.array([0.5])):
        with pytest.raises(TypeError):
            ours.count(kmers)
    for key in (1.5, None, ["ACG"]):
        with pytest.raises(TypeError):
            ours[key]
    with pytest.raises(TypeError, match="not integers"):
        ours.update_sequences([1, 2])
    with pytest.raises(TypeError):
        ours.update_sequences("ACGT")
    with pytest.raises(ValueError, match="same k"):
        ours += KmerCounter(k=4)
    with pytest.raises(TypeError):
        ours + Counter()
    with pytest.raises(MemoryError):
        ours.histogram(2**62)
    assert ours != "counter" and ours.total() == 6


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return write(tmp_path_factory.mktemp("reads") / "large.fa", random(8, 2000, 2000))


def test_progress(large):
    told, size = [], large.stat().st_size
    KmerCounter(large, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (size, size) and all(0 <= done <= total == size for done, total in told)

    def stop(done, total):
        raise KeyError("enough")

    for work in (KmerCounter, KmerCounter().update, KmerCounter().screen):
        with pytest.raises(KeyError, match="enough"):
            work([large] * 50, threads=1, progress=stop)


def test_signals_stop_a_count(large, interrupts):
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        KmerCounter([large] * 200, threads=1)


def test_threads_on_one_counter():
    ours, reads = KmerCounter(k=11), random(9, 20, 200)

    def work():
        for read in reads:
            ours.update_sequences([read])
            ours.count(["A" * 11] * 500)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert dict(ours.items()) == model(reads * 3, 11)
