#!/usr/bin/env python3
"""TPC-H's queries by duckdb or polars on the files that `joins write` wrote, in the same words.

peers.py {duckdb,polars} FOLDER [--rounds N] [--threads N] [--answers FOLDER] [QUERY...]

Prints medians of seconds on the clock and of processor seconds. Compares the answers with those that `joins tpch
--answers` wrote: numbers may be apart by a millionth, as engines sum and round them in their own ways.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time

TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]


def start(peer, folder, threads):
    """A function from SQL to rows, and the version of the peer."""
    files = {table: f"{folder}/{table}/*.parquet" for table in TABLES}
    if peer == "duckdb":
        import duckdb

        connection = duckdb.connect(config={"threads": threads})
        for table, paths in files.items():
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{paths}')")
        return lambda sql: connection.execute(sql).fetchall(), duckdb.__version__
    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars

    context = polars.SQLContext({table: polars.scan_parquet(paths) for table, paths in files.items()})
    return lambda sql: context.execute(sql).collect().rows(), polars.__version__


def cell(value):
    """A number as such, anything else as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        # Averages and quotients of decimals have six digits after the point in some engines.
        return abs(a - b) <= 1e-6 * max(abs(a), abs(b), 1.0)
    return a == b


def in_order(rows):
    """Rows that a query takes for equal come in any order."""
    return sorted(rows, key=lambda row: [(0, float(f"{x:.4g}"), "") if isinstance(x, float) else (1, 0.0, x) for x in row])


def equal(found, expected):
    found, expected = in_order(found), in_order(expected)
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    for mine, other in zip(found, expected):
        if len(mine) != len(other) or not all(map(same, mine, other)):
            return f"{mine}, not {other}"
    return "equal"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["duckdb", "polars"])
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--answers", type=pathlib.Path)
    parser.add_argument("query", nargs="*", type=int)
    options = parser.parse_intermixed_args()
    run, version = start(options.peer, options.folder, options.threads)
    text = (pathlib.Path(__file__).parent / "src" / "tpch.sql").read_text()
    queries = [query for query in text.split(";") if query.strip()]
    print(f"| query | {options.peer} {version}: s | cpu s | answer |\n| --- | ---: | ---: | --- |")
    sums, wrong = [0.0, 0.0], 0
    for number, sql in enumerate(queries, 1):
        if options.query and number not in options.query:
            continue
        costs, verdict = [], "not compared"
        try:
            for turn in range(options.rounds + 1):
                started, before = time.perf_counter(), time.process_time()
                rows = run(sql)
                # The first round reads files.
                if turn > 0:
                    costs.append((time.perf_counter() - started, time.process_time() - before))
        except Exception as error:  # a peer's own error of whatever kind: its query counts as not answered
            print(f"| {number} | | | {type(error).__name__}: {str(error).splitlines()[0][:100]} |")
            wrong += 1
            continue
        if options.answers:
            lines = (options.answers / f"{number}.txt").read_text().splitlines()
            verdict = equal([[cell(x) for x in row] for row in rows], [[cell(x) for x in line.split("|")] for line in lines])
            wrong += verdict != "equal"
        medians = [statistics.median(cost) for cost in zip(*costs)]
        sums = [sum(pair) for pair in zip(sums, medians)]
        print(f"| {number} | {medians[0]:.3f} | {medians[1]:.3f} | {verdict} |", flush=True)
    print(f"| all | {sums[0]:.3f} | {sums[1]:.3f} | {wrong} not equal |")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
