"""The package as a whole: its names, docstrings, types, and programs."""

import ast
import doctest
import inspect
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
    assert set(stubbed) == set(_warpset.__all__)
    for kind in STRUCTURES:
        methods = {node.name for node in stubbed[kind.__name__].body if isinstance(node, ast.FunctionDef)}
        assert {name for name in dir(kind) if name[0] != "_"} <= methods


def test_types(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    right = tmp_path / "right.py"
    right.write_text(
        """
import pathlib
import warpset

trees = warpset.SplitBlockBloom(1000, fpr=0.01, device="cpu")
trees |= trees.copy()
more: warpset.SplitBlockBloom = trees | trees
size: int = len(more) + more.nbytes
more.save(pathlib.Path("trees"))
counts = warpset.QuotientFilter(1000, kind="standard", duplicates="kept").count([1])
devices: list[warpset.Device] = warpset.devices()
try:
    trees.update(["ash"], threads=2)
except warpset.FullError as error:
    wrong: ValueError = error
"""
    )
    assert mypy.run(["--strict", str(right)])[2] == 0, mypy.run(["--strict", str(right)])[0]
    for line in ["warpset.SplitBlockBloom()", "warpset.SplitBlockBloom(10, 0.5)", "warpset.SplitBlockBloom(10).fpr = 1",
                 "warpset.SplitBlockBloom(10) | 3 + 'a'", "len(warpset.devices)"]:
        wrong = tmp_path / "wrong.py"
        wrong.write_text(f"import warpset\n{line}\n")
        assert mypy.run([str(wrong)])[2] == 1, line


