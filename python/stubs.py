"""Writes `warpset/_warpset.pyi`, the types of the extension module; with `--check`, says whether it is as it would be.

Run it after a change of a class, where `maturin develop` has installed the package. The module itself provides names and
types of numbers; the types of keys, arrays and answers are in the tables below. A parameter or answer in none of them is
an error.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from warpset import _warpset

STUB = Path(__file__).parent / "warpset" / "_warpset.pyi"

IMPORTS = """\
# Keys, values and items of a `SortedMap` are arrays and iterators, not the views that its base class promises.
# mypy: disable-error-code="override"
# pyright: reportIncompatibleMethodOverride=false

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from os import PathLike
from typing import Any, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias, TypeVar, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, CapsuleType

class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class _DeviceArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...

_T = TypeVar("_T")
_K = TypeVar("_K", bound=int | bytes)
_V = TypeVar("_V", bound=int | bytes | None)
_Key: TypeAlias = SupportsIndex | str | bytes
_HostKeys: TypeAlias = Iterable[_Key | None] | Buffer | _ArrowArray | _ArrowStream
_Keys: TypeAlias = _HostKeys | _DeviceArray
_Ordered: TypeAlias = _HostKeys | Iterable[float | None]
_Batches: TypeAlias = Iterable[_Key | _Keys | None] | Buffer | _ArrowArray | _ArrowStream | _DeviceArray
_HostSequence: TypeAlias = str | bytes | Buffer
_Sequence: TypeAlias = _HostSequence | _DeviceArray
_Sequences: TypeAlias = Iterable[str | bytes | Buffer | None] | Buffer | _ArrowArray | _ArrowStream
_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_Place: TypeAlias = Device | str
_Progress: TypeAlias = Callable[[int, int], object]
_Integers: TypeAlias = Literal["uint64", "uint32"] | type[np.uint64 | np.uint32] | np.dtype[np.uint64 | np.uint32]
_Unsigned: TypeAlias = NDArray[np.uint64] | NDArray[np.uint32]

__version__: str
"""

# Types of parameters: by class, method and name, by class or method and name, or by name.
PARAMETERS = {
    "keys": "_Keys",
    "SplitBlockBloom.update.keys": "_Batches",
    "BlockedBloom.update.keys": "_Batches",
    "QuotientFilter.update.keys": "_Batches",
    "StringMap.key": "str | bytes",
    "StringMap.keys": "_HostKeys",
    "StringMap.values": "_HostKeys",
    "RangeFilter.keys": "_Ordered",
    "RangeFilter.firsts": "_Ordered",
    "RangeFilter.lasts": "_Ordered",
    "RangeFilter.__new__.key": 'Literal["uint64", "int64", "float64", "bytes"] | type[np.generic] | np.dtype[Any]',
    "RangeFilter.__contains__.key": "_Key | float",
    "any_in.first": "_Key | float",
    "any_in.last": "_Key | float",
    "RangeFilter.count_at_most.out": "Buffer",
    "DynamicRangeFilter.keys": "_Ordered",
    "DynamicRangeFilter.firsts": "_Ordered",
    "DynamicRangeFilter.lasts": "_Ordered",
    "DynamicRangeFilter.__new__.key": 'Literal["uint64", "int64", "float64", "bytes"] | type[np.generic] | np.dtype[Any]',
    "DynamicRangeFilter.key": "_Key | float",
    "key": "_Key",
    "StaticSet.__new__.key": "_Integers",
    "StaticMap.__new__.key": "_Integers",
    "StaticMap.__new__.value": "_Integers",
    "__setitem__.value": "_V",
    "values": "_Keys",
    "lows": "_Keys",
    "highs": "_Keys",
    "kmers": "_Keys",
    "kmer": "_Key",
    "__contains__.kmer": "_Key",
    "SequenceFilter.__contains__.kmer": "_HostSequence",
    "sequence": "_Sequence",
    "letters.sequence": "_HostSequence",
    "minimizers.sequence": "_HostSequence",
    "sequences": "_Sequences",
    "files": "_Path | Iterable[_Path]",
    "path": "_Path",
    "matched": "_Path",
    "unmatched": "_Path",
    "device": "_Place",
    "out": "Buffer | _DeviceArray",
    "found": "Buffer",
    "progress": "_Progress",
    "data": "Buffer",
    "_memo": "object",
    "stream": "object",
    "requested_schema": "object",
    "default": "object",
    "other": "object",
    "cleanup": "float",
    "threads": "SupportsIndex",
    "__class_getitem__.items": "object",
}
# Of parameters that are names.
NAMES = {
    "QuotientFilter.kind": '"rank-select", "standard"',
    "kind": '"recsplit", "consensus", "placement"',
    "duplicates": '"dropped", "kept", "counted"',
    "by": '"sum", "min", "max", "or"',
    "form": '"bool", "bitmap", "arrow"',
}
COUNTS = "NDArray[np.uint64]"
# Types of answers: by class and method, or by method.
ANSWERS = {
    "__reduce__": "tuple[Any, ...]",
    "__class_getitem__": "Any",
    "KmerIterator.__next__": "str | tuple[str, int]",
    "KmerCounter.histogram": COUNTS,
    "KmerCounter.arrays": f"tuple[{COUNTS} | Any, {COUNTS}]",
    "SequenceFilter.count": f"tuple[{COUNTS}, {COUNTS}]",
    "minimizers": f"tuple[{COUNTS}, {COUNTS} | Any]",
    "DeviceArray.get": "NDArray[Any]",
    "DeviceArray.tolist": "list[int] | list[bool]",
    "DeviceArray.__cuda_array_interface__": "dict[str, Any]",
    "StaticSet.keys": "_Unsigned",
    "StaticMap.keys": "_Unsigned",
    "StaticMap.values": "_Unsigned",
    "StaticMap.items": "Iterator[tuple[int, int]]",
    "StaticMap.__getitem__": "int",
    "Maplet.values": COUNTS,
    "count_at_most": COUNTS,
    "StaticSet.__iter__": "Iterator[int]",
    "StaticMap.__iter__": "Iterator[int]",
    "SortedMap.__iter__": "Iterator[_K]",
    "SortedMap.keys": "NDArray[Any]",
    "SortedMap.values": "NDArray[Any]",
    "SortedMap.items": "Iterator[tuple[_K, _V]]",
    "SortedMap.first": "tuple[_K, _V]",
    "SortedMap.last": "tuple[_K, _V]",
    "SortedMap.popitem": "tuple[_K, _V]",
    ".load": "Any",  # the class that the file says
    # A file does not tell a type checker its types.
    "SortedMap.load": "SortedMap[Any, Any]",
    "SortedMap.from_bytes": "SortedMap[Any, Any]",
    "SortedMap.mmap": "SortedMap[Any, Any]",
}


def on_either_side(name, parameters, host, device="DeviceArray"):
    """Returns the overloads of a method with answers in the place of its keys."""
    on_host, there = parameters.replace("{keys}", "_HostKeys"), parameters.replace("{keys}", "_DeviceArray")
    return [f"def {name}(self, {there}) -> {device}: ...", f"def {name}(self, {on_host}) -> {host}: ..."]


def in_each_form(name, keys, there=True):
    """Returns the overloads of a method with answers in several forms."""
    shared = "threads: SupportsIndex | None = None"
    if name == "matches":
        shared = "min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, " + shared
    kind = {"keys": "_HostKeys", "sequences": "_Sequences", "sequence": "_HostSequence"}.get(keys, "_Ordered")
    method = "def {}(self, {}: {}, /, *, form: Literal[{}, {}{}) -> {}: ..."
    forms = [(kind, '"bool"] = "bool"', "Buffer", "NDArray[np.bool_]"), (kind, '"bitmap"]', "Buffer", "NDArray[np.uint8]"),
             (kind, '"arrow"]', None, "BooleanArray")]
    if there:
        forms.insert(0, ("_DeviceArray", '"bool"] = "bool"', "_DeviceArray", "DeviceArray"))
    return [
        method.format(name, keys, kind, form, f"out: {out} | None = None, " if out else "", shared, answer)
        for kind, form, out, answer in forms
    ]


NUMBERS = "{}: {{keys}}, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None"
MANY = "keys: {keys}, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None"
ENDS = "lows: {keys}, highs: {keys}, /, *, threads: SupportsIndex | None = None"
MADE = "def __new__(cls, items: {2} | None = None, /, *, {3}batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[{0}, {1}]: ..."


def made():
    """Yields the overloads of the constructor of a `SortedMap`, by the types of keys and values."""
    wide = ' = "uint64"'
    for key, keys in {"int": '"uint64", "int64", "uint32"', "bytes": '"S8", "V16"'}.items():
        for value, values in {"int": '"uint64", "uint32"', "bytes": '"V16", "V32"', "None": "None"}.items():
            types = f"key: Literal[{keys}]{wide if key == 'int' else ''}, "
            types += f"value: Literal[{values}]{wide if value == 'int' else ''}, "
            mapping = f"Mapping[{key}, {value}]" + (f" | Mapping[str, {value}]" if key == "bytes" else "")
            one = "int" if key == "int" else "bytes | str"
            items = f"{mapping} | Iterable[{one if value == 'None' else f'tuple[{one}, {value}]'}]"
            if (key, value) != ("bytes", "None"):
                yield MADE.format(key, value, items, types)
    other = "type[np.generic] | np.dtype[Any]"
    types = f"key: Literal['uint64'] | {other} = 'uint64', value: Literal['uint64'] | {other} | None = 'uint64', "
    yield MADE.format("Any", "Any", "Mapping[Any, Any] | Iterable[Any]", types.replace("'", '"'))


# Methods of several types: by class and method, or by method.
OVERLOADS = {
    "contains": in_each_form("contains", "keys"),
    "RangeFilter.contains": [line.replace("ordered:", "keys:") for line in in_each_form("contains", "ordered", there=False)],
    "DynamicRangeFilter.contains": [line.replace("ordered:", "keys:") for line in in_each_form("contains", "ordered", there=False)],
    "may_contain": in_each_form("may_contain", "firsts: _Ordered, lasts", there=False),
    "SortedMap.contains": on_either_side("contains", NUMBERS.format("keys"), "NDArray[np.bool_]"),
    "test_and_add": in_each_form("test_and_add", "keys", there=False),
    "contains_windows": in_each_form("contains_windows", "sequence"),
    "matches": in_each_form("matches", "sequences", there=False),
    "index": on_either_side("index", NUMBERS.format("keys"), COUNTS),
    "__call__": on_either_side("__call__", NUMBERS.format("keys"), COUNTS),
    "QuotientFilter.count": on_either_side("count", NUMBERS.format("keys"), COUNTS),
    "KmerCounter.count": on_either_side("count", NUMBERS.format("kmers"), COUNTS),
    "count_range": on_either_side("count_range", ENDS.replace("threads", "out: Buffer | _DeviceArray | None = None, threads"), COUNTS),
    "range": on_either_side("range", ENDS, f"tuple[{COUNTS}, NDArray[Any], NDArray[Any]]", "tuple[DeviceArray, DeviceArray, Any]"),
    "StaticMap.get_many": on_either_side("get_many", MANY, "tuple[_Unsigned, NDArray[np.bool_]]", "tuple[DeviceArray, DeviceArray]"),
    "StaticFunction.get_many": on_either_side("get_many", MANY, f"tuple[{COUNTS}, NDArray[np.bool_]]", "tuple[DeviceArray, DeviceArray]"),
    "StringMap.get_many": [f"def get_many(self, {MANY.format(keys='_HostKeys').replace(' | _DeviceArray', '')}) -> tuple[{COUNTS}, NDArray[np.bool_]]: ..."],
    "Maplet.get_many": on_either_side("get_many", MANY, f"tuple[{COUNTS}, NDArray[np.bool_]]", "tuple[DeviceArray, DeviceArray]"),
    "SortedMap.get_many": on_either_side("get_many", MANY, "tuple[NDArray[Any], NDArray[np.bool_]]", "tuple[Any, DeviceArray]"),
    "successors": ["def successors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]: ..."],
    "predecessors": ["def predecessors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]: ..."],
    "StaticMap.get": ["def get(self, key: _Key, /, default: None = None) -> int | None: ...",
                      "def get(self, key: _Key, /, default: _T) -> int | _T: ..."],
    "StaticFunction.get": ["def get(self, key: _Key, /, default: None = None) -> int | None: ...",
                           "def get(self, key: _Key, /, default: _T) -> int | _T: ..."],
    "Maplet.get": ["def get(self, key: _Key, /, default: None = None) -> int | None: ...",
                   "def get(self, key: _Key, /, default: _T) -> int | _T: ..."],
    "StringMap.get": ["def get(self, key: str | bytes, /, default: None = None) -> int | None: ...",
                      "def get(self, key: str | bytes, /, default: _T) -> int | _T: ..."],
    "KmerCounter.get": ["def get(self, kmer: _Key, /, default: None = None) -> int | None: ...",
                        "def get(self, kmer: _Key, /, default: _T) -> int | _T: ..."],
    "SortedMap.get": ["def get(self, key: _Key, /, default: None = None) -> _V | None: ...",
                      "def get(self, key: _Key, /, default: _T) -> _V | _T: ..."],
    "SortedMap.setdefault": ["def setdefault(self: SortedMap[_K, None], key: _Key, /, default: None = None) -> None: ...",
                             "def setdefault(self, key: _Key, /, default: _V) -> _V: ..."],
    "SortedMap.pop": ["def pop(self, key: _Key, /) -> _V: ...", "def pop(self, key: _Key, default: _T, /) -> _V | _T: ..."],
    "SortedMap.update": [
        "def update(self, keys: Mapping[_K, _V] | Iterable[tuple[_K, _V]] | _Keys, /, *, threads: SupportsIndex | None = None) -> None: ...",
        "def update(self, keys: _Keys, values: _Keys, /, *, threads: SupportsIndex | None = None) -> None: ..."],
    "SortedMap.__getitem__": ["def __getitem__(self, key: slice, /) -> tuple[NDArray[Any], NDArray[Any]]: ...",
                              "def __getitem__(self, key: _Key, /) -> _V: ..."],
    "SortedMap.__delitem__": ["def __delitem__(self, key: _Key | slice, /) -> None: ..."],
    "SortedMap.__new__": list(made()),
}
BASES = {"SortedMap": "MutableMapping[_K, _V]"}


def entry(table, owner, method, name=None):
    """Returns the most specific entry of a table for a method, or for its parameter."""
    last = [name] if name else []
    for path in ([owner, method, *last], [method, *last], [owner, *last] if name else [], last):
        if path and ".".join(path) in table:
            return table[".".join(path)]
    return None


def typed(line, owner):
    """Returns the lines in place of one that the module gave."""
    found = re.match(r"( *)def (\w+)\((.*)\) -> (.*?)(: \.\.\.|:)$", line)
    if not found:
        return [line]
    indent, method, parameters, answer, end = found.groups()
    if overloads := entry(OVERLOADS, owner, method):
        # The docstring, if there is one, follows the last.
        overloads = [*overloads[:-1], overloads[-1].removesuffix(" ..." if end == ":" else "")]
        mark = [f"{indent}@overload"] if len(overloads) > 1 else []
        return [line for overload in overloads for line in [*mark, indent + overload]]

    def parameter(match):
        name, kind = match.groups()
        if kind == "str":
            names = entry(NAMES, owner, method, name)
            return f"{name}: Literal[{names}]" if names else match[0]
        kind = entry(PARAMETERS, owner, method, name)
        if kind is None:
            sys.exit(f"{owner}.{method}: the type of `{name}` is in no table")
        return f"{name}: {kind}"

    parameters = re.sub(r"(\w+): (Any|Incomplete|str)\b(?! \|.*PathLike)", parameter, parameters)
    if re.match(r"__i(or|and|add)__$", method):
        answer = owner  # such operators return their left side
    answer = entry(ANSWERS, owner, method) or answer
    if re.search(r"\b(Any|Incomplete)\b", answer) and not entry(ANSWERS, owner, method):
        sys.exit(f"{owner}.{method}: the type of its answer is in no table")
    if owner in BASES:
        answer = re.sub(rf"\b{owner}\b(?!\[)", f"{owner}[_K, _V]", answer)
        parameters = re.sub(rf": {owner}\b", f": {owner}[_K, _V]", parameters)
    return [f"{indent}def {method}({parameters}) -> {answer}{end}"]


def generated():
    with tempfile.TemporaryDirectory() as folder:
        command = ["maturin", "generate-stubs", "--quiet", "--features", "stubs", "--out", folder]
        subprocess.run(command, check=True, cwd=Path(__file__).parent)
        text = (Path(folder) / "warpset" / "_warpset.pyi").read_text()
    owner, lines = "", []
    for line in text.splitlines():
        if re.match("from .* import |import |def __getattr__", line):
            continue
        if line.startswith(("class ", "def ")):
            owner = line.removeprefix("class ").rstrip(":") if line.startswith("class ") else ""
            line = line.replace(f"class {owner}:", f"class {owner}({BASES[owner]}):") if owner in BASES else line
        lines += typed(line, owner)
    start = next(place for place, line in enumerate(lines) if line.startswith(("@final", "class ")))
    lines[start:start] = IMPORTS.splitlines()
    # Exceptions, which the module does not describe.
    for name in sorted(_warpset.__all__):
        kind = getattr(_warpset, name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            lines.append(f'\nclass {name}({kind.__base__.__name__}):\n    """\n    {kind.__doc__}\n    """')
    return compact("\n".join(lines)).rstrip() + "\n"


def compact(text):
    """Moves docstrings to the line of their first quotation marks, and the last ones to the end of a single line."""
    docstring = re.compile(r'^( *)"""\n\1(.*?)(\n\1)"""$', re.DOTALL | re.MULTILINE)
    is_long = re.compile(r'\n|"$')
    return docstring.sub(lambda m: f'{m[1]}"""{m[2]}{m[3] if is_long.search(m[2]) else ""}"""', text)


if __name__ == "__main__":
    if "--check" not in sys.argv:
        STUB.write_text(generated())
    elif STUB.read_text() != generated():
        sys.exit(f"{STUB.name} is not what the classes say: run `python stubs.py`")
