"""Rates of the package beside those of the crate, rbloom and datasketches, and with arrays of CuPy, PyTorch, JAX and Numba.

`cargo build --release --example rates`, then `python bench.py --rust target/release/examples/rates`. Each row is the best of
five runs. Without `--rust` there are no rows of the crate; libraries that are not installed are left out.
"""

import argparse
import importlib
import math
import os
import subprocess
import time
from pathlib import Path

import numpy as np

import warpset


def optional(name):
    try:
        return importlib.import_module(name)
    except Exception:  # a library built for another CUDA fails in its own ways
        return None


def rate(items, work, rounds=5):
    work()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return items / best


def host(keys, rates):
    words = [f"a string of 32 bytes: {i:010}" for i in range(len(keys) // 4)]
    out = np.zeros(len(keys), dtype=bool)
    for threads in [1, os.cpu_count()]:
        bloom = warpset.SplitBlockBloom(1 << 27, bits_per_key=16)
        name = f"256 MiB, threads={threads}"
        rates[f"add, {name}"] = rate(len(keys), lambda: bloom.update(keys, threads=threads))
        rates[f"contains, {name}"] = rate(len(keys), lambda: bloom.contains(keys, out=out, threads=threads))
        rates[f"contains, new array, {name}"] = rate(len(keys), lambda: bloom.contains(keys, threads=threads))
    small = warpset.SplitBlockBloom(1 << 20, bits_per_key=16)
    if pa := optional("pyarrow"):
        column = pa.array(words)
        rates["strings added, threads=1"] = rate(len(words), lambda: small.update(column, threads=1))
        rates["strings asked, threads=1"] = rate(len(words), lambda: small.contains(column, threads=1))
    ten = keys[:10]

    def calls(number=100_000):
        for _ in range(number):
            small.contains(ten)

    rates["calls on ten keys"] = rate(100_000, calls)
    few, listed = 1_000_000, keys[:1_000_000].tolist()
    million = keys[:few]
    ours = warpset.SplitBlockBloom(few, fpr=0.01)
    rates["1 M keys of an array added"] = rate(few, lambda: ours.update(million))
    rates["1 M keys of an array asked"] = rate(few, lambda: ours.contains(million))
    rates["1 M keys of a list added"] = rate(few, lambda: ours.update(listed))
    rates["1 M keys of a list asked"] = rate(few, lambda: ours.contains(listed))
    rates["key by key, in"] = rate(few, lambda: [key in ours for key in listed])
    if rbloom := optional("rbloom"):
        theirs = rbloom.Bloom(few, 0.01)
        rates["rbloom: 1 M keys of a list added"] = rate(few, lambda: theirs.update(listed))
        rates["rbloom: key by key, in"] = rate(few, lambda: [key in theirs for key in listed])
    if datasketches := optional("datasketches"):  # has no Bloom filter for Python; its set of hashes is the closest
        theirs = datasketches.update_theta_sketch(lg_k=20)
        rates["datasketches: keys of theta, one by one"] = rate(few, lambda: [theirs.update(key) for key in listed], 1)


def arrays(keys):
    """The same keys as arrays of libraries of GPUs, with what waits for them."""
    if cupy := optional("cupy"):
        yield "CuPy", cupy.asarray(keys)
    if torch := optional("torch"):
        yield "PyTorch", torch.from_numpy(keys.view(np.int64)).cuda()
    if jax := optional("jax"):
        jax.config.update("jax_enable_x64", True)
        yield "JAX", jax.block_until_ready(jax.numpy.asarray(keys))
    if cuda := optional("numba.cuda"):
        yield "Numba", cuda.to_device(keys)


def device(keys, rates):
    gpu = warpset.Device("cuda")
    for size, n in [("16 MiB", 1 << 23), ("256 MiB", 1 << 27)]:
        for library, there in [("", gpu.array(keys)), *arrays(keys)]:
            bloom = warpset.SplitBlockBloom(n, bits_per_key=16, device=gpu)
            name = ", ".join(filter(None, [size, "cuda", library]))
            rates[f"add, {name}"] = rate(len(keys), lambda: (bloom.update(there), gpu.synchronize()))
            out = bloom.contains(there)
            rates[f"contains, {name}"] = rate(len(keys), lambda: (bloom.contains(there, out=out), gpu.synchronize()))
            rates[f"contains, new array, {name}"] = rate(len(keys), lambda: (bloom.contains(there), gpu.synchronize()))


def bars(path, title, rows):
    """A bar for each row of name and millions per second, on a scale of powers of ten."""
    least, most = math.floor(math.log10(min(rows.values()))), math.ceil(math.log10(max(rows.values())))
    lines = [f'<text x="10" y="22" font-weight="bold">{title}</text>']
    for place, (name, value) in enumerate(rows.items()):
        top, width = 40 + 26 * place, 420 * (math.log10(value) - least) / (most - least)
        lines.append(f'<text x="300" y="{top + 14}" text-anchor="end">{name}</text>')
        colour = "#b0b0b0" if name[0].islower() else "#2a78b5"
        lines.append(f'<rect x="308" y="{top}" width="{width:.0f}" height="19" fill="{colour}"/>')
        lines.append(f'<text x="{314 + width:.0f}" y="{top + 14}">{value:,.{0 if value >= 100 else 1}f}</text>')
    bottom = 40 + 26 * len(rows)
    for power in range(least, most + 1):
        x = 308 + 420 * (power - least) / (most - least)
        lines.append(f'<path d="M{x:.0f} 36V{bottom}" stroke="#888" stroke-dasharray="2 4"/>')
        lines.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:,.6g}</text>')
    lines.append(f'<text x="518" y="{bottom + 34}" text-anchor="middle">million keys per second</text>')
    size = f'width="820" height="{bottom + 44}"'
    Path(path).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="13">\n'
        f'<rect {size} fill="white"/>\n' + "\n".join(lines) + "\n</svg>\n"
    )


def plots(folder, rates):
    """What `docs/python.md` shows."""

    def chosen(**names):
        return {name: rates[row] / 1e6 for name, row in names.items() if row in rates}

    lists = {
        "rbloom, key by key": "rbloom: key by key, in",
        "Warpset, key by key": "key by key, in",
        "Warpset, from a list": "1 M keys of a list asked",
        "Warpset, from an array": "1 M keys of an array asked",
    }
    bars(Path(folder) / "python-lists.svg", "Lookups of 1 million integers in a filter of 1 MB", chosen(**lists))
    cores = os.cpu_count()
    places = {
        "One core": "contains, 256 MiB, threads=1",
        f"{cores} cores": f"contains, 256 MiB, threads={cores}",
        **{f"GPU, {library} array": f"contains, 256 MiB, cuda, {library}" for library in ["CuPy", "PyTorch", "JAX", "Numba"]},
    }
    bars(Path(folder) / "python-arrays.svg", "Lookups of arrays in a filter of 256 MiB", chosen(**places))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rust", help="the executable `rates`")
    parser.add_argument("--keys", type=int, default=1 << 24)
    parser.add_argument("--plots", help="a folder for plots")
    options = parser.parse_args()
    keys = np.arange(1, options.keys + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rates, rust = {}, {}
    if options.rust:
        lines = subprocess.run([options.rust, str(options.keys)], check=True, capture_output=True, text=True).stdout
        rust = {name: float(value) for name, value in (line.split("\t") for line in lines.splitlines())}
    host(keys, rates)
    if warpset.devices():
        device(keys, rates)
    print(f"{'':44}{'M/s':>12}{'of the crate':>14}")
    for name, value in rates.items():
        of_rust = rust.get(name) or rust.get(name.rsplit(", ", 1)[0]) if "cuda" in name else rust.get(name)
        ratio = f"{value / of_rust:14.2f}" if of_rust else ""
        print(f"{name:44}{value / 1e6:12.2f}{ratio}")
    if options.plots:
        plots(options.plots, rates)


if __name__ == "__main__":
    main()
