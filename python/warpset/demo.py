"""Three jobs on generated data, beside the usual tools: `python -m warpset.demo`.

Needs pyarrow. Also measures polars, pandas and rbloom, if they are installed, and each GPU of the machine.
"""

import argparse
import importlib
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import warpset


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def timed(work, rounds=3):
    """Returns the best time of a few runs, in seconds, and the result of `work`."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
        if best > 2:
            break
    return best, result


class Table:
    """Prints rates as they are measured."""

    def __init__(self, title, unit, answer):
        print(f"\n{title}\n{'':34}{unit:>12}{'seconds':>10}  {answer}")
        self.first = None

    def row(self, name, items, work, rounds=3):
        seconds, answer = timed(work, rounds)
        print(f"  {name:32}{items / seconds / 1e6:12.1f}{seconds:10.3f}  {answer:,}", flush=True)


def deduplicate(rows, folder, devices):
    """Counts the different words of a column of a Parquet file."""
    pa, pq = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    path = folder / "visits.parquet"
    numbers = random.Random(1).choices(range(rows // 3), k=rows)
    pq.write_table(pa.table({"user": [f"user-{number:09}" for number in numbers]}), path)
    column = pq.read_table(path)["user"]

    def ours():
        seen = warpset.QuotientFilter(rows, fpr=1e-9)
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(1 << 20):
                seen.update(batch.column(0))
        return len(seen)

    table = Table(f"Different strings among {rows:,} of a Parquet column", "M rows/s", "different")
    table.row("warpset.QuotientFilter, with reading", rows, ours)
    table.row("set, from a list", rows, lambda words=column.to_pylist(): len(set(words)), 1)
    table.row("pyarrow unique", rows, lambda: len(column.unique()), 1)
    if polars := optional("polars"):
        series = polars.Series(column)
        table.row("polars n_unique", rows, series.n_unique, 1)
    if pandas := optional("pandas"):
        series_ = pandas.Series(column.to_pylist())
        table.row("pandas nunique", rows, series_.nunique, 1)


def join(rows, folder, devices):
    """Joins a large table with a small one that few rows of the large one have a partner in."""
    pa, pq = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    pc = importlib.import_module("pyarrow.compute")
    numbers = random.Random(2)
    few = pa.array(numbers.sample(range(rows), rows // 100), pa.int64())
    pq.write_table(pa.table({"key": few, "name": few}), folder / "small.parquet")
    many = pa.table({"key": pa.array(numbers.choices(range(rows), k=rows), pa.int64()), "price": range(rows)})
    pq.write_table(many, folder / "large.parquet")
    small, large = pq.read_table(folder / "small.parquet"), pq.read_table(folder / "large.parquet")

    def screened():
        filter = warpset.SplitBlockBloom(len(few), fpr=0.01)
        filter.update(small["key"])
        return len(large.filter(pa.array(filter.contains(large["key"], form="arrow"))).join(small, "key", join_type="inner"))

    table = Table(f"{rows:,} rows joined with {len(few):,}", "M rows/s", "rows")
    table.row("pyarrow join, screened by warpset", rows, screened)
    table.row("pyarrow join", rows, lambda: len(large.join(small, "key", join_type="inner")))
    if polars := optional("polars"):
        left, right = polars.from_arrow(large), polars.from_arrow(small)
        table.row("polars join", rows, lambda: len(left.join(right, "key")))

    keys, asked = few.to_numpy(), large["key"].to_numpy()
    table = Table(f"{rows:,} lookups among {len(few):,} keys", "M keys/s", "found")
    for place in ["cpu", *map(str, devices)]:
        filter = warpset.SplitBlockBloom(len(few), fpr=0.001, device=place)
        there = asked
        if place != "cpu":
            there = warpset.Device(place).array(asked)
            filter.update(warpset.Device(place).array(keys))
        else:
            filter.update(keys)
        table.row(f"warpset.SplitBlockBloom, {place}", rows, lambda: filter.count_contained(there))
    table.row("pyarrow is_in", rows, lambda: pc.sum(pc.is_in(large["key"], few)).as_py())
    one_by_one = asked[:1_000_000].tolist()
    table.row("set, key by key", len(one_by_one), lambda known=set(keys.tolist()): sum(key in known for key in one_by_one))
    if rbloom := optional("rbloom"):
        bloom = rbloom.Bloom(len(few), 0.001)
        bloom.update(keys.tolist())
        table.row("rbloom, key by key", len(one_by_one), lambda: sum(key in bloom for key in one_by_one))


def kmers(rows, folder, devices):
    """Counts the k-mers of 31 bases in reads of a genome."""
    bases, draw = rows // 10, random.Random(3)
    genome = "".join(draw.choices("ACGT", k=bases))
    starts = [draw.randrange(bases - 150) for _ in range(rows // 150)]
    path = folder / "reads.fasta"
    path.write_text("".join(f">{start}\n{genome[start : start + 150]}\n" for start in starts))
    table = Table(f"31-mers in {len(starts) * 150:,} bases of reads", "M bases/s", "different")
    for place in ["cpu", *map(str, devices)]:
        table.row(f"warpset.KmerCounter, {place}", len(starts) * 150,
                  lambda: len(warpset.KmerCounter(path, k=31, device=place)))

    def counter(part):
        complement = str.maketrans("ACGT", "TGCA")
        counts = Counter()
        for start in part:
            read = genome[start : start + 150]
            back = read.translate(complement)[::-1]
            counts.update(min(read[i : i + 31], back[119 - i : 150 - i]) for i in range(120))
        return len(counts)

    part = starts[:2000]
    table.row("collections.Counter, of 2,000 reads", len(part) * 150, lambda: counter(part), 1)


def main():
    parser = argparse.ArgumentParser(prog="python -m warpset.demo", description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of each table (default: %(default)s)")
    rows = parser.parse_args().rows
    if rows < 1000:
        parser.error("--rows: 1000 or more")
    if not optional("pyarrow"):
        sys.exit("the demo needs pyarrow: pip install pyarrow")
    devices = warpset.devices()
    print("Devices: cpu" + "".join(f", {device} ({device.name})" for device in devices))
    with tempfile.TemporaryDirectory() as folder:
        for job in [deduplicate, join, kmers]:
            job(rows, Path(folder), devices)


if __name__ == "__main__":
    main()
