"""The package as a whole: its names, docstrings, types, and programs."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

import warpset
from warpset import _warpset

CLASSES = [kind for name in warpset.__all__ if inspect.isclass(kind := getattr(warpset, name))]
STRUCTURES = [kind for kind in CLASSES if hasattr(kind, "save")]


def test_names():
    assert set(_warpset.__all__) <= set(warpset.__all__)
    assert all(kind.__module__ == "warpset" for kind in CLASSES)
    assert not any(name.startswith("_") for name in warpset.__all__)


def documented():
    for name in warpset.__all__:
        value = getattr(warpset, name)
        yield name, value
        if inspect.isclass(value) and not issubclass(value, BaseException):
            yield from ((f"{name}.{method}", getattr(value, method)) for method in dir(value) if method[0] != "_")


@pytest.mark.parametrize("name,value", [pytest.param(*pair, id=pair[0]) for pair in documented()])
def test_docstrings(name, value):
    assert value.__doc__, f"{name} says nothing of itself"
    examples = doctest.DocTestParser().get_doctest(value.__doc__, {}, name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(examples).failed == 0


@pytest.mark.parametrize("kind", STRUCTURES, ids=lambda kind: kind.__name__)
def test_every_structure_has_an_example(kind):
    assert ">>>" in kind.__doc__


def test_stub_has_every_name():
    stub = ast.parse((Path(warpset.__file__).parent / "_warpset.pyi").read_text())
    stubbed = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert {name for name in stubbed if name[0] != "_"} == set(_warpset.__all__)
    for kind in STRUCTURES:
        methods = {node.name for node in stubbed[kind.__name__].body if isinstance(node, ast.FunctionDef)}
        assert {name for name in dir(kind) if name[0] != "_"} <= methods


RIGHT = """
import collections.abc
import pathlib
from typing import Any, assert_type

import numpy as np
import warpset
from numpy.typing import NDArray

trees = warpset.SplitBlockBloom(1000, fpr=0.01, device="cpu")
trees |= trees.copy()
more: warpset.SplitBlockBloom = trees | trees
size: int = len(more) + more.nbytes
for name in (pathlib.Path("trees"), "trees", b"trees"):
    more.save(name)
try:
    trees.update(["ash", None, b"elm"], threads=2)
    trees.update([np.arange(3), [1, 2]])
except warpset.FullError as error:
    wrong: ValueError = error
assert_type(trees.contains([1, 2]), NDArray[np.bool_])
assert_type(trees.contains(np.arange(3), form="bitmap"), NDArray[np.uint8])
assert_type(trees.contains(iter(["ash"]), form="arrow"), warpset.BooleanArray)
assert_type(trees.contains(warpset.Device("emulator").array([1])), warpset.DeviceArray)
assert_type(warpset.QuotientFilter(1000, kind="standard", duplicates="kept").count([1]), NDArray[np.uint64])
devices: list[warpset.Device] = warpset.devices()
prices = warpset.SortedMap({1: 2}, cleanup=None)
assert_type(prices, warpset.SortedMap[int, int])
assert_type(prices[1] + 1, int)
assert_type(prices.get(1), int | None)
assert_type(prices.pop(1, "none"), int | str)
standard: collections.abc.MutableMapping[int, int] = prices
assert_type(warpset.SortedMap(key="S8", value="V16"), warpset.SortedMap[bytes, bytes])
assert_type(list(warpset.SortedMap(value=None)), list[int])
any_types = warpset.SortedMap(key=np.uint32)
exact = warpset.StaticMap([1], [2], key="uint32", value=np.uint32)
assert_type(exact.get(1, default=None), int | None)
assert_type(sum(exact), int)
function = warpset.StaticFunction(["ash"], [1], value_bits=np.uint8(4))
assert_type(function.get("ash"), int | None)
assert_type(function.get_many(["ash"]), tuple[NDArray[np.uint64], NDArray[np.bool_]])
maplet = warpset.Maplet(10, value_bits=4)
assert_type(maplet.get("ash", default="none"), int | str)
assert_type(maplet.values("ash"), NDArray[np.uint64])
times = warpset.RangeFilter([1.5, None], key=np.float64, fpr_at=(0.01, 100))
assert_type(times.may_contain([1.5], np.arange(1)), NDArray[np.bool_])
assert_type(times.count_at_most([1], [2.5]), NDArray[np.uint64])
assert_type(times.any_in(last=7) and 2.5 in times, bool)
names = warpset.StringMap(["ash"], [1], kind="consensus")
assert_type(names.get(b"ash", default="none"), int | str)
assert_type(names.get_many(["ash"]), tuple[NDArray[np.uint64], NDArray[np.bool_]])
positions, kmers = warpset.minimizers("ACGT")
codes: NDArray[np.uint64] = kmers
counted: warpset.KmerCounter = warpset.KmerCounter(["a.fa", pathlib.Path("b.fa")], progress=lambda done, all: None)
version: str = warpset.__version__
read = warpset.load("trees", device=warpset.Device("emulator"))
assert_type(warpset.BinaryFuse.load("trees"), warpset.BinaryFuse)
assert_type(warpset.SortedMap.mmap("map"), warpset.SortedMap[Any, Any])
assert_type(warpset.SortedMap.load("map"), warpset.SortedMap[Any, Any])
"""

WRONG = [
    "warpset.SplitBlockBloom()", "warpset.SplitBlockBloom(10, 0.5)", "warpset.SplitBlockBloom(10).fpr = 1",
    "warpset.SplitBlockBloom(10) | 3 + 'a'", "len(warpset.devices)", "warpset.SplitBlockBloom(10).update([1.5])",
    "warpset.SplitBlockBloom(10).contains([1], form='bitmapp')", "warpset.PerfectHash([1], kind='nonsense')",
    "warpset.QuotientFilter(10, duplicates='doubled')", "warpset.SortedMap(key='float64')", "warpset.StaticSet([1], key='u64')",
    "warpset.SortedMap().upsert([1], [1], by='product')", "warpset.SplitBlockBloom(10).add(1.5)",
    "warpset.KmerCounter(7)", "warpset.SplitBlockBloom.load(7)", "warpset.BinaryFuse([1], width=8)",
    "warpset.SplitBlockBloom(10).contains([1], out=True)", "warpset.minimizers(7)", "warpset.StaticFunction([1])",
    "warpset.Maplet(10)", "warpset.Maplet(10, value_bits=4).merge(warpset.Maplet(10, value_bits=4), by='product')",
    "warpset.StringMap(['ash'])", "warpset.RangeFilter([1], key='text')",
]


@pytest.mark.parametrize("version", ["3.11", "3.14"])
def test_types(tmp_path, version):
    mypy = pytest.importorskip("mypy.api")
    right = tmp_path / "right.py"
    right.write_text(RIGHT)
    stub = Path(warpset.__file__).parent / "_warpset.pyi"
    checked = mypy.run(["--strict", "--python-version", version, str(right), str(stub)])
    assert checked[2] == 0, checked[0]
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import warpset\n" + "\n".join(WRONG) + "\n")
    found = mypy.run(["--python-version", version, str(wrong)])[0]
    assert [line for place, line in enumerate(WRONG, 2) if f"wrong.py:{place}: error" not in found] == []


def test_stub_has_no_any_for_arguments():
    text = (Path(warpset.__file__).parent / "_warpset.pyi").read_text()
    defined = [line for line in text.splitlines() if line.startswith(("    def ", "def ")) and "_arrow_c" not in line]
    assert not [line for line in defined if re.search(r"\w+: Any\b", line) or "Incomplete" in line]
