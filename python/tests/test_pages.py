"""Programs of the documentation run as they are printed, on small inputs."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import warpset

ROOT = Path(__file__).parents[2]
PAGES = ("docs/python.md", "python/README.md")


def programs():
    for page in PAGES:
        for program in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
            if "cupy" not in program:
                yield pytest.param(program, id=f"{page}: {program.splitlines()[-1][:40]}")


@pytest.mark.parametrize("program", list(programs()))
def test_program(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"user": [f"user {i % 500}" for i in range(5000)]}), "events.parquet")
    np.save("keys.npy", np.arange(10_000, dtype=np.uint64) * 977)
    letters = "".join(np.random.default_rng(1).choice(list("ACGT"), 6000))
    Path("host.fa").write_text(f">host\n{letters[:3000]}\n{letters[3000:]}\n")
    names = {
        "warpset": warpset,
        "column": np.arange(1000) * 1000,
        "firsts": np.arange(100),
        "lasts": np.arange(100) + 10,
        "from_here": 5,
        "batches": [np.arange(100), np.arange(50)],
        "sales": [(["tea", "salt"], [3, 4]), (["tea"], [5])],
        "reads": ["ACGT" * 30, letters[:200]],
        "trades": np.zeros(1000, [("price", "f8"), ("volume", "u4"), ("venue", "u4")]),
    }
    exec(program, names)
