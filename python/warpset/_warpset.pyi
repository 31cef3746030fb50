"""Sets, filters, dictionaries and perfect hash functions on CPUs and NVIDIA GPUs."""


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
@final
class BinaryFuse:
    """Binary fuse filter: a set of known keys that never changes, the smallest and fastest for a yes or no.

    `keys` is an array or a list; equal keys count once, nulls are ignored.

    - `bits` per fingerprint, 8, 16 or 32: 9, 18 or 36 bits of memory per key, and a rate of false positives of
      `2**-bits`.
    - `arity`: 4 takes a twentieth less memory than 3, and more time. `sharded=True` builds faster, on many cores
      and on a GPU, and takes a little more memory.
    - `seed` changes which other keys are false positives. `device` is the place of the build and the lookups.
      `threads` limits the number of threads of the build.

    >>> import warpset
    >>> trees = warpset.BinaryFuse(["ash", "birch", "fir", "oak"], bits=16)
    >>> "ash" in trees, "rose" in trees, len(trees)
    (True, False, 4)
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> BinaryFuse: ...
    def __deepcopy__(self, /, _memo: object) -> BinaryFuse: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of different keys."""
    def __new__(cls, /, keys: _Keys, *, bits: SupportsIndex = 8, arity: SupportsIndex = 3, sharded: bool = False, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> BinaryFuse: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits(self, /) -> int:
        """Returns the bits per fingerprint: 8, 16 or 32."""
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> BinaryFuse:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the rate of false positives."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> BinaryFuse:
        """Reads `bytes(…)` of such a structure."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> BinaryFuse:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> BinaryFuse:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> BinaryFuse:
        """Copies the structure to another device, or to the host with `"cpu"`."""

@final
class BlockedBloom:
    """Bloom filter of blocks of 64 to 1024 bits: fewer bits per key than a split-block filter at rates far from 1 %.

    `n` is the expected number of different keys. The size follows from the rate of false positives `fpr`, 0.01 by
    default, or from `bits_per_key`. `block_bits` is 64, 128, 256, 512 or 1024. `hashes` is the number of bits set
    per key, by default chosen for the rate. `seed` changes which other keys are false positives.

    >>> import warpset
    >>> known = warpset.BlockedBloom(1000, fpr=0.0001, block_bits=512)
    >>> known.add(7)
    >>> 7 in known, 8 in known
    (True, False)
    """
    def __and__(self, other: object, /) -> BlockedBloom: ...
    def __bool__(self, /) -> bool: ...
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> BlockedBloom: ...
    def __deepcopy__(self, /, _memo: object) -> BlockedBloom: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __iand__(self, other: object, /) -> BlockedBloom: ...
    def __ior__(self, other: object, /) -> BlockedBloom: ...
    def __len__(self, /) -> int:
        """Estimates the number of different keys from the share of set bits; `OverflowError` if all bits are
        set.
        """
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, bits_per_key: SupportsFloat | SupportsIndex | None = None, block_bits: SupportsIndex | None = None, hashes: SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> BlockedBloom: ...
    def __or__(self, other: object, /) -> BlockedBloom: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """Adds one key: an `int`, `str` or `bytes`."""
    def clear(self, /) -> None:
        """Removes all keys and keeps the memory."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> BlockedBloom:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the current rate of false positives."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> BlockedBloom:
        """Reads `bytes(…)` of such a structure."""
    def intersect(self, /, other: BlockedBloom) -> None:
        """Keeps the keys that may be in both filters. The rate of false positives is at most the larger one."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> BlockedBloom:
        """Reads a file that `save` wrote."""
    def merge(self, /, other: BlockedBloom) -> None:
        """Adds the contents of another filter with the same parameters; quotient filters may differ in size."""
    @staticmethod
    def mmap(path: _Path) -> BlockedBloom:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the bits."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Adds keys and returns which of them were new; of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> BlockedBloom:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the keys of an array, or of an iterable of keys or of arrays, which is read piece by piece.

        Nulls are ignored. If an array does not fit, none of its keys are added; earlier arrays of an iterable,
        a chunked array or a stream are. Ctrl-C stops a long call after some of its keys. `threads` limits the
        number of threads (default: all of the machine).
        """

@final
class BooleanArray:
    """Answers as an Arrow array of booleans: pass it to `pyarrow.array`, `polars.Series` or another library of Arrow."""
    def __arrow_c_array__(self, /, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...

@final
class Device:
    """A GPU, or an emulator, which is slow and meant for tests.

    `Device("cuda:0")` opens the first GPU of the machine, `Device("cuda")` the first usable one, `Device("emulator")`
    an emulator. Structures take such an object or its name.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, name: str) -> Device: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def array(self, /, keys: _Keys) -> DeviceArray:
        """Copies integers to the device, from an array as `update` takes it, without its nulls."""
    def letters(self, /, sequence: _HostSequence) -> DeviceArray:
        """Copies the letters of a sequence to the device, as an array of `uint8` for a `SequenceFilter` there."""
    @property
    def memory(self, /) -> tuple[int, int]:
        """Returns free and total memory in bytes."""
    @property
    def name(self, /) -> str:
        """Returns the driver's name of the device."""
    def synchronize(self, /) -> None:
        """Waits for all work on the device."""

@final
class DeviceArray:
    """An array on a device: copied keys, or answers. CuPy, PyTorch, Numba and JAX take it without a copy by
    `__cuda_array_interface__` and `__dlpack__`: `cupy.asarray(answers)`, `torch.from_dlpack(answers)`.

    >>> import warpset
    >>> keys = warpset.Device("emulator").array([2, 3, 5, 7])
    >>> keys
    DeviceArray(4 items of uint64, emulator)
    >>> primes = warpset.SplitBlockBloom(100, fpr=0.001, device="emulator")
    >>> primes.update(keys)
    >>> primes.contains(keys).tolist()
    [True, True, True, True]
    """
    @property
    def __cuda_array_interface__(self, /) -> dict[str, Any]: ...
    def __dlpack__(self, /, *, stream: object | None = None, max_version: tuple[SupportsIndex, SupportsIndex] | None = None, dl_device: tuple[SupportsIndex, SupportsIndex] | None = None, copy: bool | None = None) -> CapsuleType:
        """Returns a capsule with the items for another library; they are ready on every stream."""
    def __dlpack_device__(self, /) -> tuple[int, int]: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def device(self, /) -> Device:
        """Returns the device."""
    @property
    def dtype(self, /) -> str:
        """Returns NumPy's name of the type of items."""
    def get(self, /) -> NDArray[Any]:
        """Copies the items to host memory: an array of NumPy, or a `memoryview` without NumPy."""
    def tolist(self, /) -> list[int] | list[bool]:
        """Returns the items as a list."""

@final
class DynamicRangeFilter:
    """Range filter with keys that are added and removed: answers whether any of its keys lies in a range, without the
    keys. A "no" is certain.

    `n` is the expected number of keys; of equal keys each takes a slot. Adding to a full filter raises `FullError`
    and leaves it unchanged; `double()` makes room. Nulls and NaNs are no keys.

    - `key` is the type of keys: `"uint64"`, `"int64"` or `"float64"`, to which other numbers are converted, or
      `"bytes"` for `str` and `bytes`. Strings count by their first 16 bytes.
    - `fpr_at=(rate, l)`, by default `(0.01, 100)`: a range of `l` keys without a key of the filter gets a wrong
      "yes" at a rate of at most `rate` while the filter has `n` keys.
    - `max_load` is the largest share of used slots, 0.95 by default. `seed` changes which other ranges get a "yes".
    - `device` is the place of the filter, which takes arrays of the host there too. A filter of `"bytes"` is on the
      host.

    Both ends of a range are included. A range with a null or a NaN as an end is empty, as is one that ends before
    it begins.

    >>> import warpset
    >>> times = warpset.DynamicRangeFilter(1000, fpr_at=(0.001, 60))
    >>> times.update([10_000, 20_000, 20_030])
    >>> times.may_contain([9_990, 20_010, 10**9], [10_049, 20_050, 10**9]).tolist()
    [True, True, False]
    >>> times.remove([20_030]), times.any_in(20_010, 20_050), 20_000 in times, len(times)
    (1, False, True, 2)
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key | float, /) -> bool: ...
    def __copy__(self, /) -> DynamicRangeFilter: ...
    def __deepcopy__(self, /, _memo: object) -> DynamicRangeFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of keys, repetitions included."""
    def __new__(cls, /, n: SupportsIndex, *, key: Literal["uint64", "int64", "float64", "bytes"] | type[np.generic] | np.dtype[Any] = ..., fpr_at: tuple[SupportsFloat | SupportsIndex, SupportsIndex] | None = None, max_load: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> DynamicRangeFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key | float) -> None:
        """Adds one key."""
    def any_in(self, /, first: _Key | float | None = None, last: _Key | float | None = None) -> bool:
        """Returns whether there may be a key from `first` to `last`. A range has no end where that is `None`."""
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @property
    def capacity(self, /) -> int:
        """Returns the most keys that fit."""
    def clear(self, /) -> None:
        """Removes all keys and keeps the memory."""
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key may be in the filter: an array of booleans, or `out`, filled. Nulls are in
        none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array.
        """
    def copy(self, /) -> DynamicRangeFilter:
        """Copies the structure, into host memory if it is in a mapped file."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    def discard(self, /, key: _Key | float) -> bool:
        """Removes one key, one of equal ones; returns whether there was one."""
    def double(self, /) -> None:
        """Doubles the memory, for twice as many keys at the same rate for each number of them."""
    @property
    def fpr(self, /) -> float:
        """Returns the rate at which single keys get a wrong "yes"."""
    def fpr_of(self, length: SupportsIndex, /) -> float:
        """Returns a bound of the rate at which ranges of `length` keys get a wrong "yes"."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> DynamicRangeFilter:
        """Reads `bytes(…)` of such a structure."""
    def halve(self, /) -> None:
        """Halves the memory, if the keys fit into it."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> DynamicRangeFilter:
        """Reads a file that `save` wrote."""
    @property
    def load_factor(self, /) -> float:
        """Returns the share of slots in use."""
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each range from one of `firsts` to one of `lasts` may have a key: an array of booleans,
        or `out`, filled. `form` as in `contains`.
        """
    def merge(self, /, other: DynamicRangeFilter) -> None:
        """Adds the keys of another filter of the same type of keys and seed, made for the same lengths of ranges, and
        for at least as low a rate or as many keys.
        """
    @staticmethod
    def mmap(path: _Path) -> DynamicRangeFilter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the slots."""
    def remove(self, keys: _Ordered, /, *, threads: SupportsIndex | None = None) -> int:
        """Removes one of each key; returns the number of keys removed.

        Remove only keys that were added: a key that was not may have the fingerprint of another key, and remove
        that.
        """
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> DynamicRangeFilter:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def update(self, keys: _Ordered, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the keys of an array or a list: all of them, or none if they do not fit."""

@final
class KmerCounter:
    """Exact counts of the k-mers of FASTA and FASTQ files, plain or gzip, on both strands: a k-mer and its reverse
    complement are one k-mer, named by the smaller of the two. K-mers contain only A, C, G and T.

    `files` is a path or a list of paths; without it the counter is empty. `k` is 1 to 63 bases, on a device and in
    mapped files at most 32.

    - `min_count`: k-mers with fewer copies are dropped.
    - `memory`: approximate limit of host memory in bytes, above which `OutOfMemoryError` is raised.
    - `device` is the place of the counting and of the counts.
    - `threads` limits the number of threads that read and count (default: all of the machine).
    - `progress` is called now and then as `progress(done, bytes)`. An exception in it stops the count, as Ctrl-C
      does.

    K-mers are letters as `str` or `bytes`, in arrays or lists, or up to 32 bases integers as `arrays` and
    `minimizers` return them: 2 bits per base, the first base highest, A 0, C 1, G 2, T 3. `len` is the number of
    different k-mers.

    >>> import warpset
    >>> counter = warpset.KmerCounter(k=4)
    >>> counter.update_sequences(["ACGTTGCAACGT", b"ttgc"])
    >>> counter["ACGT"], counter["TTGC"], counter["GCAA"], "CCCC" in counter
    (2, 3, 3, False)
    >>> counter.count(["ACGT", "CCCC"]).tolist()
    [2, 0]
    """
    def __add__(self, other: object, /) -> KmerCounter: ...
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, kmer: _Key, /) -> bool: ...
    def __copy__(self, /) -> KmerCounter: ...
    def __deepcopy__(self, /, _memo: object) -> KmerCounter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __getitem__(self, kmer: _Key, /) -> int: ...
    def __iadd__(self, other: object, /) -> KmerCounter: ...
    def __iter__(self, /) -> KmerIterator: ...
    def __len__(self, /) -> int:
        """Returns the number of different k-mers."""
    def __new__(cls, /, files: _Path | Iterable[_Path] | None = None, *, k: SupportsIndex = 31, min_count: SupportsIndex = 1, memory: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> KmerCounter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def arrays(self, /) -> tuple[NDArray[np.uint64] | Any, NDArray[np.uint64]]:
        """Returns all k-mers as integers, 2 bits per base, the first base highest, A 0, C 1, G 2, T 3, and their
        numbers of copies: two arrays of `uint64`, in no particular order. Above 32 bases the k-mers are a list of
        `int`.
        """
    def copy(self, /) -> KmerCounter:
        """Copies the structure, into host memory if it is in a mapped file."""
    @overload
    def count(self, kmers: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count(self, kmers: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of copies of each k-mer as an array of `uint64`, or `out`, filled. Nulls have 0. For
        k-mers on a device the counts are on the device.
        """
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> KmerCounter:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, kmer: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, kmer: _Key, /, default: _T) -> int | _T:
        """Returns the number of copies of one k-mer, or `default` if there are none."""
    def histogram(self, /, most: SupportsIndex = 10000) -> NDArray[np.uint64]:
        """Returns the number of different k-mers per number of copies, as an array of `uint64` with `most + 1` items;
        the last item includes all with more copies.
        """
    def items(self, /) -> KmerIterator:
        """Iterates over all k-mers in letters with their current numbers of copies, in no particular order."""
    @property
    def k(self, /) -> int:
        """Returns the bases per k-mer."""
    def keep(self, /, min_count: SupportsIndex) -> None:
        """Removes k-mers with fewer copies than `min_count`."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> KmerCounter:
        """Reads a file that `save` wrote."""
    def merge(self, /, other: KmerCounter) -> None:
        """Adds the counts of another counter with the same `k`."""
    @staticmethod
    def mmap(path: _Path) -> KmerCounter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the counts."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def screen(self, files: _Path | Iterable[_Path], /, *, matched: _Path | None = None, unmatched: _Path | None = None, min_hits: SupportsIndex = 1, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> tuple[int, int]:
        """Splits the reads of FASTA and FASTQ files by the number of their k-mers in the counter: reads with at least
        `min_hits` go to the file `matched`, the others to `unmatched`, unchanged and in order. Without a file they
        are only counted. Returns the number of reads that match and the number of those that do not.
        """
    def to(self, /, device: _Place) -> KmerCounter:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def total(self, /) -> int:
        """Returns the number of k-mers including copies."""
    def update(self, files: _Path | Iterable[_Path], /, *, memory: SupportsIndex | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> None:
        """Adds the k-mers of more files: a path, or a list of paths."""
    def update_sequences(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the k-mers of sequences, an array or a list of `str` or `bytes`; k-mers do not cross from one to the
        next.
        """

@final
class KmerIterator:
    """Iterator over k-mers in letters, alone or with their numbers of copies."""
    def __iter__(self, /) -> KmerIterator: ...
    def __length_hint__(self, /) -> int: ...
    def __next__(self, /) -> str | tuple[str, int]: ...

@final
class Maplet:
    """Maplet: a map that stores fingerprints in place of keys. It has updates, removal, merging and growth, like a
    quotient filter.

    `n` is the expected number of values, and `value_bits` the bits of each. A key's fingerprint and value have at
    most 64 bits. `fpr`, 0.01 by default, is the rate at which another key has a value, and at which a key has a
    value of another one besides its own. Inserting into a full maplet raises `FullError` and leaves it unchanged;
    `double()` makes room.

    - `duplicates` of a value of a key: `"dropped"` ignores them, `"kept"` stores each, `"counted"` stores counts in
      little memory, and has no `upsert`.
    - `key_bits` makes the maplet exact for integers from 0 to `2**key_bits - 1`; `fpr` is ignored.
    - `max_load` is the largest share of used slots. `seed` changes which keys share fingerprints.

    Keys are `int`, `str` and `bytes`, values integers from 0 to `2**value_bits - 1`. `len` is the number of values.
    Arrays on a device change and query a maplet on that device; values there are `uint64`.

    >>> import warpset
    >>> sold = warpset.Maplet(1000, value_bits=20, fpr=1e-6)
    >>> sold.upsert(["tea", "salt", "tea"], [3, 1, 4])
    2
    >>> sold.get("tea"), sold.get("oil"), "salt" in sold
    (7, None, True)
    >>> values, found = sold.get_many(["salt", "oil"], default=9)
    >>> values.tolist(), found.tolist()
    ([1, 9], [True, False])
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> Maplet: ...
    def __deepcopy__(self, /, _memo: object) -> Maplet: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of stored values."""
    def __new__(cls, /, n: SupportsIndex, *, value_bits: SupportsIndex, fpr: SupportsFloat | SupportsIndex | None = None, duplicates: Literal["dropped", "kept", "counted"] = "dropped", key_bits: SupportsIndex | None = None, max_load: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> Maplet: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def capacity(self, /) -> int:
        """Returns the most slots for values."""
    def clear(self, /) -> None:
        """Removes all values and keeps the memory."""
    def copy(self, /) -> Maplet:
        """Copies the structure, into host memory if it is in a mapped file."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    def double(self, /) -> None:
        """Doubles the memory, for twice as many values at the same rate per key."""
    @property
    def duplicates(self, /) -> str:
        """Returns `"dropped"`, `"kept"` or `"counted"`."""
    @property
    def fpr(self, /) -> float:
        """Returns the expected rate at which another key has a value."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> Maplet:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, key: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> int | _T:
        """Returns the value of a key, the least one if it has several, or `default`."""
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Returns the values of keys as an array of `uint64`, the least of several values and `default` for keys
        without one, and whether each key has one: new arrays, or `out` and `found`, filled. For keys on a device
        the answers are on the device.
        """
    def halve(self, /) -> None:
        """Halves the memory, if the values fit into it."""
    def insert(self, keys: _Keys, values: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Stores one of `values` beside the values of each key; returns the number of values added. Keys that are null
        are ignored with their values.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Maplet:
        """Reads a file that `save` wrote."""
    @property
    def load_factor(self, /) -> float:
        """Returns the share of slots in use."""
    def merge(self, other: Maplet, /, *, by: Literal["sum", "min", "max", "or"] | None = None) -> None:
        """Adds the values of another maplet with values of the same bits and fingerprints that are at least as long;
        with `by`, combines them as `upsert` does.
        """
    @staticmethod
    def mmap(path: _Path) -> Maplet:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the slots."""
    def remove(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Removes all values of keys; returns their number.

        Remove only keys that were inserted: a key that was not may have the fingerprint of another key.
        """
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> Maplet:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def upsert(self, keys: _Keys, values: _Keys, /, *, by: Literal["sum", "min", "max", "or"] = "sum", threads: SupportsIndex | None = None) -> int:
        """Combines numbers with the values of keys, which then have one value each; keys without a value get the
        combination of their numbers. `by` is `"sum"`, modulo 2 to the bits of a value; `"min"`; `"max"`; or `"or"`
        of the bits. Returns how many keys had no value.
        """
    @property
    def value_bits(self, /) -> int:
        """Returns the bits of a value."""
    def values(self, /, key: _Key) -> NDArray[np.uint64]:
        """Returns the different values of a key, ascending, as an array of `uint64`."""

@final
class PerfectHash:
    """Minimal perfect hash function: maps each of `n` known keys to its own number from 0 to `n - 1`, in 1.46 to 3
    bits per key, without storing the keys. Values of keys can then be stored in a plain array.

    `keys` is an array or a list of different keys; a repeated key raises `DuplicateKeyError`. Nulls are ignored.

    - `kind`: `"recsplit"`; `"consensus"`, which builds faster at the same size and has slower lookups; or
      `"placement"`, which has the fastest lookups, from 2 bits per key on.
    - `bits_per_key`: the size, at least 1.53 with RecSplit, 1.46 with Consensus and 1.95 with placement; smaller
      functions take longer to build. Alternatively RecSplit has `leaf_size`, 2 to 24 (default 12), Consensus
      `overhead`, the bits per key beyond the minimum of 1.4427 (default 0.05), placement `keys_per_seed`, 1 to 6
      (default 4.5), and all have `bucket_size` (default 1000, 2400 and 57,344).
    - `load_factor`, with RecSplit: from 0.75 to 1. Below 1 the function is smaller, but some numbers below `values`
      have no key. `keys_per_value`, with RecSplit: 2 to 24 keys share a number.
    - `seed` changes the numbers.
    - `device` is the place of the build and the lookups; keys on a device need that device here.
    - `threads` limits the number of threads of the build (default: all of the machine).
    - `progress` is called now and then as `progress(done, keys)`; a device counts each key twice, when hashing and
      when building. An exception in it stops the build, as Ctrl-C does.

    Equal values are equal keys, whatever array they come from. Other keys have arbitrary numbers; a `StaticFilter`
    detects most of them.

    >>> import warpset
    >>> function = warpset.PerfectHash(["ash", "birch", "fir", "oak"])
    >>> sorted(function(["oak", "fir", "birch", "ash"]).tolist())
    [0, 1, 2, 3]
    >>> heights = [None] * len(function)
    >>> heights[function.index_one("oak")] = 40
    >>> heights[function.index_one("oak")]
    40
    """
    def __bytes__(self, /) -> bytes: ...
    @overload
    def __call__(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def __call__(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of each key, as `index` does."""
    def __copy__(self, /) -> PerfectHash: ...
    def __deepcopy__(self, /, _memo: object) -> PerfectHash: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of keys."""
    def __new__(cls, /, keys: _Keys, *, kind: Literal["recsplit", "consensus", "placement"] = "recsplit", bits_per_key: SupportsFloat | SupportsIndex | None = None, leaf_size: SupportsIndex | None = None, bucket_size: SupportsIndex | None = None, overhead: SupportsFloat | SupportsIndex | None = None, keys_per_seed: SupportsFloat | SupportsIndex | None = None, load_factor: SupportsFloat | SupportsIndex | None = None, keys_per_value: SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> PerfectHash: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    def copy(self, /) -> PerfectHash:
        """Copies the structure, into host memory if it is in a mapped file."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> PerfectHash:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of each key as an array of `uint64`, or `out`, filled. Other keys have arbitrary numbers,
        nulls `2**64 - 1`. For keys on a device the numbers are on the device.
        """
    def index_one(self, /, key: _Key) -> int:
        """Returns the number of one key: an `int`, `str` or `bytes`."""
    @property
    def kind(self, /) -> str:
        """Returns `"recsplit"`, `"consensus"` or `"placement"`."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> PerfectHash:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> PerfectHash:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> PerfectHash:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    @property
    def values(self, /) -> int:
        """Returns the bound of the numbers: the number of keys, unless there is a load factor or several keys share a
        number.
        """

@final
class QuotientFilter:
    """Quotient filter: a set or multiset of keys with counts, removal, merging and growth.

    `n` is the expected number of different keys, or of copies if `duplicates="kept"`. `fpr` is the rate of false
    positives, 0.01 by default. Adding to a full filter raises `FullError` and leaves it unchanged; `double()` makes
    room.

    - `kind`: `"rank-select"` has lookups of the same cost at any load; `"standard"` is for large batches into
      half-empty filters on a GPU.
    - `duplicates`: `"dropped"` ignores further copies of a key, so the filter is a set. `"kept"` stores each copy.
      `"counted"` stores counts in little memory, with `"rank-select"` only.
    - `key_bits` makes the filter exact for integers from 0 to `2**key_bits - 1`, without false positives; `fpr` is
      ignored.
    - `max_load` is the largest share of used slots. `seed` changes which other keys are false positives.

    Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array they come from. `len` is the
    number of stored copies.

    >>> import warpset
    >>> words = warpset.QuotientFilter(1000, fpr=1e-6, duplicates="counted")
    >>> words.update(["ash", "birch", "ash"])
    >>> words.count(["ash", "birch", "fir"]).tolist()
    [2, 1, 0]
    >>> words.remove(["ash", "fir"])
    1
    >>> len(words), "ash" in words, words.discard("fir")
    (2, True, False)
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> QuotientFilter: ...
    def __deepcopy__(self, /, _memo: object) -> QuotientFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ior__(self, other: object, /) -> QuotientFilter: ...
    def __len__(self, /) -> int:
        """Returns the number of stored copies; of equal keys one, if duplicates are dropped."""
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, kind: Literal["rank-select", "standard"] = "rank-select", duplicates: Literal["dropped", "kept", "counted"] = "dropped", key_bits: SupportsIndex | None = None, max_load: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> QuotientFilter: ...
    def __or__(self, other: object, /) -> QuotientFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """Adds one key: an `int`, `str` or `bytes`."""
    @property
    def capacity(self, /) -> int:
        """Returns the most slots for keys: different keys if duplicates are dropped, copies if they are kept."""
    def clear(self, /) -> None:
        """Removes all keys and keeps the memory."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> QuotientFilter:
        """Copies the structure, into host memory if it is in a mapped file."""
    @overload
    def count(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of stored copies of each key as an array of `uint64`, or `out`, filled. It is never less
        than the number added, and 0 or 1 if duplicates are dropped. Nulls have 0. For keys on a device the counts
        are on the device.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    def count_one(self, /, key: _Key) -> int:
        """Returns the number of stored copies of one key, which is never less than the number added."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    def discard(self, /, key: _Key) -> bool:
        """Removes one copy of one key; returns whether there was one."""
    def double(self, /) -> None:
        """Doubles the memory, for twice as many keys at the same rate of false positives per key."""
    @property
    def duplicates(self, /) -> str:
        """Returns `"dropped"`, `"kept"` or `"counted"`."""
    @property
    def fpr(self, /) -> float:
        """Returns the current rate of false positives."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> QuotientFilter:
        """Reads `bytes(…)` of such a structure."""
    def halve(self, /) -> None:
        """Halves the memory, if the keys fit into it."""
    @property
    def kind(self, /) -> str:
        """Returns `"rank-select"` or `"standard"`."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> QuotientFilter:
        """Reads a file that `save` wrote."""
    @property
    def load_factor(self, /) -> float:
        """Returns the share of slots in use."""
    def merge(self, /, other: QuotientFilter) -> None:
        """Adds the contents of another filter with the same parameters; quotient filters may differ in size."""
    @staticmethod
    def mmap(path: _Path) -> QuotientFilter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the slots."""
    def remove(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Removes one copy of each key; returns the number of copies removed.

        Remove only keys that were added: a key that was not may have the fingerprint of another key, and remove
        that.
        """
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Adds keys and returns which of them were new; of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> QuotientFilter:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the keys of an array, or of an iterable of keys or of arrays, which is read piece by piece.

        Nulls are ignored. If an array does not fit, none of its keys are added; earlier arrays of an iterable,
        a chunked array or a stream are. Ctrl-C stops a long call after some of its keys. `threads` limits the
        number of threads (default: all of the machine).
        """

@final
class RangeFilter:
    """Range filter: a set of known keys that answers whether any of them lies in a range, without the keys. A "no" is
    certain.

    `keys` is an array or a list; equal keys count once, nulls and NaNs are ignored.

    - `key` is their type: `"uint64"`, `"int64"` or `"float64"`, to which other numbers are converted, or `"bytes"`
      for `str` and `bytes`. Strings count by their first 16 bytes.
    - `bits_per_key`, 3 to 60, by default 16: a range of `l` keys without a key of the filter gets a wrong "yes" at
      a rate of at most `l / 2**(bits_per_key - 2)`. `fpr_at=(rate, l)` chooses the bits by this rate instead.
    - `seed` changes which other ranges get a "yes".
    - `device` is the place of the filter, which takes arrays of the host there too. A filter of `"bytes"` is on the
      host. `threads` limits the number of threads of the build.

    Both ends of a range are included. A range with a null or a NaN as an end is empty, as is one that ends before
    it begins.

    >>> import warpset
    >>> squares = warpset.RangeFilter([i * i * 1000 for i in range(1000)], fpr_at=(0.01, 100))
    >>> squares.may_contain([8_900, 9_000, 10**9], [9_100, 9_000, 10**10]).tolist()
    [True, True, False]
    >>> squares.any_in(last=999), 4_000 in squares, squares.fpr_of(100) <= 0.01
    (True, True, True)
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key | float, /) -> bool: ...
    def __copy__(self, /) -> RangeFilter: ...
    def __deepcopy__(self, /, _memo: object) -> RangeFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of different keys."""
    def __new__(cls, /, keys: _Ordered, *, key: Literal["uint64", "int64", "float64", "bytes"] | type[np.generic] | np.dtype[Any] = ..., bits_per_key: SupportsFloat | SupportsIndex | None = None, fpr_at: tuple[SupportsFloat | SupportsIndex, SupportsIndex] | None = None, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> RangeFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def any_in(self, /, first: _Key | float | None = None, last: _Key | float | None = None) -> bool:
        """Returns whether there may be a key from `first` to `last`. A range has no end where that is `None`."""
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _Ordered, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key may be in the filter: an array of booleans, or `out`, filled. Nulls are in
        none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array.
        """
    def copy(self, /) -> RangeFilter:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_at_most(self, firsts: _Ordered, lasts: _Ordered, /, *, out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns an upper bound of the number of different keys in each range from one of `firsts` to one of `lasts`,
        as an array of `uint64`, or `out`, filled. Each other key counts too at the rate of wrong answers.
        """
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the rate at which single keys get a wrong "yes"."""
    def fpr_of(self, length: SupportsIndex, /) -> float:
        """Returns a bound of the rate at which ranges of `length` keys get a wrong "yes"."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> RangeFilter:
        """Reads `bytes(…)` of such a structure."""
    @property
    def is_exact(self, /) -> bool:
        """Whether no answer is wrong, because the keys are dense."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> RangeFilter:
        """Reads a file that `save` wrote."""
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def may_contain(self, firsts: _Ordered, lasts: _Ordered, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each range from one of `firsts` to one of `lasts` may have a key: an array of booleans,
        or `out`, filled. `form` as in `contains`.
        """
    @staticmethod
    def mmap(path: _Path) -> RangeFilter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> RangeFilter:
        """Copies the structure to another device, or to the host with `"cpu"`."""

@final
class SequenceFilter:
    """Bloom filter of k-mers that takes whole sequences: neighbouring k-mers share a block of memory, so a read
    touches a few cache lines instead of one per k-mer.

    `n` is the expected number of different k-mers. K-mers have `k` bases, 9 to 63, only A, C, G and T in either
    case, and are canonical: both strands have the same k-mers.

    - `bits_per_kmer`: the size. With 16 bits, fewer than one foreign k-mer in 100,000 is found (`k=31`).
    - `s`: bases per s-mer; a k-mer is found if all of its `k - s + 1` s-mers are. `m`: bases of the minimizer that
      chooses the block. By default both follow from `k` and `n`.

    A sequence is a `str`, `bytes` or an array of `uint8`, read in place. Sequences are a list or another iterable
    of these, an array of strings of NumPy or Arrow, or an array of `uint8` with one sequence per row.

    >>> import warpset
    >>> genome = "GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG"
    >>> known = warpset.SequenceFilter(1000, k=21)
    >>> known.add(genome)
    >>> reads = ["AAGCTAGCTTAGCTAGCCGATCGTGCATGCAA", "ACGT" * 8]   # the first one of the other strand
    >>> found, kmers = known.count(reads)
    >>> found.tolist(), kmers.tolist()
    ([12, 0], [12, 12])
    >>> known.matches(reads, min_hits=2, min_share=0.5).tolist()
    [True, False]
    >>> known.contains_windows(genome[:23]).tolist(), genome[:21] in known
    ([True, True, True], True)
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, kmer: _HostSequence, /) -> bool:
        """Whether one k-mer of `k` bases may be in the filter."""
    def __copy__(self, /) -> SequenceFilter: ...
    def __deepcopy__(self, /, _memo: object) -> SequenceFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ior__(self, other: object, /) -> SequenceFilter: ...
    def __new__(cls, /, n: SupportsIndex, *, k: SupportsIndex = 31, bits_per_kmer: SupportsFloat | SupportsIndex = 16.0, s: SupportsIndex | None = None, m: SupportsIndex | None = None, device: _Place | None = None) -> SequenceFilter: ...
    def __or__(self, other: object, /) -> SequenceFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, sequence: _Sequence, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the k-mers of one sequence. A filter on a device also takes letters there, an array of `uint8`; a
        letter that is no base, such as a line end, separates sequences.
        """
    def clear(self, /) -> None:
        """Removes all k-mers and keeps the memory."""
    @overload
    def contains_windows(self, sequence: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each window of `k` letters of one sequence is a k-mer that may be in the filter: an array of
        booleans, or `out`, filled; `form` as in `matches`. Windows with a letter that is no base are not.

        Letters on a device are an array of `uint8`. Their answers are an array of `uint32` there: bit `i % 32` of
        word `i // 32` for the window that starts at letter `i`. A letter that is no base separates sequences.
        """
    def copy(self, /) -> SequenceFilter:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns, per sequence, the number of k-mers that may be in the filter and the number of all k-mers,
        repetitions included: two arrays of `uint64`. Nulls have 0.
        """
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    def expected_fpr(self, /, n: SupportsIndex) -> float:
        """Computes the rate of false positives of `n` different k-mers of random sequences."""
    @property
    def fpr(self, /) -> float:
        """Returns the current rate of false positives among k-mers that share no s-mer with the contents."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SequenceFilter:
        """Reads `bytes(…)` of such a structure."""
    @property
    def k(self, /) -> int:
        """Returns the bases per k-mer."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> SequenceFilter:
        """Reads a file that `save` wrote."""
    @property
    def m(self, /) -> int:
        """Returns the bases of the minimizer that chooses a block."""
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["bitmap"], out: Buffer | None = None, min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["arrow"], min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether enough k-mers of each sequence may be in the filter, at least `min_hits` and at least the
        share `min_share` of all: an array of booleans, or `out`, filled. Nulls never match.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an Arrow
        array.
        """
    def merge(self, /, other: SequenceFilter) -> None:
        """Adds the contents of another filter with the same parameters."""
    @staticmethod
    def mmap(path: _Path) -> SequenceFilter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the bits."""
    @property
    def s(self, /) -> int:
        """Returns the bases per s-mer."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> SequenceFilter:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def update(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the k-mers of sequences in an array, or in an iterable, which is read piece by piece.

        Nulls are ignored. If an item of an iterable is no sequence, some of the earlier ones may have been added.
        `threads` limits the number of threads (default: all of the machine).
        """

@final
class SortedMap(MutableMapping[_K, _V]):
    """Dictionary in the order of its keys with updates in batches: a GPU LSM. Keys are integers or byte strings,
    values are integers or rows of bytes.

    - `items`: a `dict` or another mapping, or pairs, as in `update`.
    - `key` and `value`: `"uint64"` to `"uint64"`, `"uint32"`, `"V16"`, `"V32"` or None; `"int64"` to `"uint64"` or
      None; `"uint32"` to `"uint32"`; `"S8"` to `"uint64"` or `"V16"`; `"V16"` to `"uint64"`. With None it is an
      ordered set, and all values are `None`. Integers of any array are converted; one out of range raises
      `OverflowError`.
    - `"S8"` is byte strings of up to 8 bytes, in their order. `"V16"` and `"V32"` are up to 16 and 32 bytes, as
      keys in their order (the `bytes` of UUIDs, the `packed` form of addresses): items of NumPy's structured, void,
      string and complex types, rows of `uint8`, or `bytes`, padded with zeros. Answers are arrays of that type;
      `.view(dtype)` converts them back, or pass an `out=` of your type.
    - `batch_size`: expected number of keys per update, a power of two, 65536 by default. Larger batches are cheaper
      per key.
    - `cleanup`: limit of removed and replaced elements in memory, as a share of all (a `float`) or a number of
      updates (an `int`); with None, only calls of `cleanup()` drop them.

    The class is a `collections.abc.MutableMapping`, except that `keys()` and `values()` return arrays, `items()` an
    iterator, and only maps of the same types are equal. For many keys use the methods that take arrays, which are
    far faster: `update`, `increment`, `delete`, `get_many`. Nulls among keys are ignored, and never found. Device
    arrays, for a map on that device, have exactly the types of the map, with unsigned keys.

    >>> import warpset
    >>> prices = warpset.SortedMap(value="uint32")
    >>> prices.update([30, 10, 20], [300, 100, 200])
    >>> del prices[20]
    >>> prices[10], prices.get(20), len(prices)
    (100, None, 2)
    >>> values, found = prices.get_many([10, 20, 30], default=7)
    >>> values.tolist(), found.tolist()
    ([100, 7, 300], [True, False, True])
    >>> keys, values = prices[5:15]
    >>> keys.tolist(), values.tolist()
    ([10], [100])
    >>> list(prices.items())
    [(10, 100), (30, 300)]
    """
    def __bool__(self, /) -> bool: ...
    def __bytes__(self, /) -> bytes: ...
    @classmethod
    def __class_getitem__(cls, /, items: object) -> Any:
        """Returns the class, for annotations such as `SortedMap[int, bytes]`."""
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> SortedMap[_K, _V]: ...
    def __deepcopy__(self, /, _memo: object) -> SortedMap[_K, _V]: ...
    def __delitem__(self, key: _Key | slice, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __getitem__(self, key: _Key, /) -> _V:
        """Returns the value of a key, or the arrays `(keys, values)` of a slice, which excludes its stop."""
    def __ior__(self, other: object, /) -> SortedMap[_K, _V]: ...
    def __iter__(self, /) -> Iterator[_K]:
        """Iterates over the keys, ascending, in a copy: the map may change meanwhile."""
    def __len__(self, /) -> int:
        """Returns the number of keys. The first call after an update counts them."""
    @overload
    def __new__(cls, items: Mapping[int, int] | Iterable[tuple[int, int]] | None = None, /, *, key: Literal["uint64", "int64", "uint32"] = "uint64", value: Literal["uint64", "uint32"] = "uint64", batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[int, int]: ...
    @overload
    def __new__(cls, items: Mapping[int, bytes] | Iterable[tuple[int, bytes]] | None = None, /, *, key: Literal["uint64", "int64", "uint32"] = "uint64", value: Literal["V16", "V32"], batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[int, bytes]: ...
    @overload
    def __new__(cls, items: Mapping[int, None] | Iterable[int] | None = None, /, *, key: Literal["uint64", "int64", "uint32"] = "uint64", value: Literal[None], batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[int, None]: ...
    @overload
    def __new__(cls, items: Mapping[bytes, int] | Mapping[str, int] | Iterable[tuple[bytes | str, int]] | None = None, /, *, key: Literal["S8", "V16"], value: Literal["uint64", "uint32"] = "uint64", batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[bytes, int]: ...
    @overload
    def __new__(cls, items: Mapping[bytes, bytes] | Mapping[str, bytes] | Iterable[tuple[bytes | str, bytes]] | None = None, /, *, key: Literal["S8", "V16"], value: Literal["V16", "V32"], batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[bytes, bytes]: ...
    @overload
    def __new__(cls, items: Mapping[Any, Any] | Iterable[Any] | None = None, /, *, key: Literal["uint64"] | type[np.generic] | np.dtype[Any] = "uint64", value: Literal["uint64"] | type[np.generic] | np.dtype[Any] | None = "uint64", batch_size: SupportsIndex | None = None, cleanup: float | None = 0.5, device: _Place | None = None) -> SortedMap[Any, Any]: ...
    def __or__(self, other: object, /) -> SortedMap[_K, _V]: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def __setitem__(self, key: _Key, value: _V, /) -> None: ...
    def cleanup(self, /) -> None:
        """Drops removed and replaced elements from memory. Answers do not change, and become faster."""
    def clear(self, /) -> None:
        """Removes all elements."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]:
        """Returns whether each key is present: an array of booleans, or `out`, filled. For keys on a device the
        answers are on the device.
        """
    def copy(self, /) -> SortedMap[_K, _V]:
        """Copies the structure, into host memory if it is in a mapped file."""
    @overload
    def count_range(self, lows: _DeviceArray, highs: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count_range(self, lows: _HostKeys, highs: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Counts the keys from each of `lows` to the matching one of `highs`, both included, as an array of `uint64`,
        or `out`, filled. For ends on a device the counts are on the device.
        """
    def delete(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """Removes keys; absent ones are ignored."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    def first(self, /) -> tuple[_K, _V]:
        """Returns the smallest key with its value; `KeyError` if the map is empty."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SortedMap[Any, Any]:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, key: _Key, /, default: None = None) -> _V | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> _V | _T:
        """Returns the value of a key, or `default` if it is absent."""
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[Any, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Returns the values of keys, `default` for absent ones, and whether each key is present: new arrays, or `out`
        and `found`, filled. For keys on a device the answers are on the device.
        """
    def increment(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds one to the value of each key per occurrence; keys without value start at 0.

        >>> import warpset
        >>> counts = warpset.SortedMap()
        >>> counts.increment([3, 1, 3])
        >>> list(counts.items())
        [(1, 1), (3, 2)]
        """
    def items(self, /) -> Iterator[tuple[_K, _V]]:
        """Iterates over pairs of keys and values, ascending, in a copy: the map may change meanwhile. For arrays use
        `map[:]`.
        """
    def keys(self, /) -> NDArray[Any]:
        """Returns all keys, ascending, as an array."""
    def last(self, /) -> tuple[_K, _V]:
        """Returns the largest key with its value; `KeyError` if the map is empty."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> SortedMap[Any, Any]:
        """Reads a file that `save` wrote."""
    def merge(self, /, other: SortedMap[_K, _V]) -> None:
        """Inserts the elements of another map of the same types; its values replace existing ones."""
    @staticmethod
    def mmap(path: _Path) -> SortedMap[Any, Any]:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of elements and search indexes."""
    @overload
    def pop(self, key: _Key, /) -> _V: ...
    @overload
    def pop(self, key: _Key, default: _T, /) -> _V | _T:
        """Removes a key and returns its value; if it is absent, returns `default`, or raises `KeyError` without one."""
    def popitem(self, /) -> tuple[_K, _V]:
        """Removes the largest key and returns it with its value; `KeyError` if the map is empty."""
    def predecessors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Returns the largest key below each given key, which may be absent: arrays `keys, values, found`, with 0 if
        there is none.
        """
    @overload
    def range(self, lows: _DeviceArray, highs: _DeviceArray, /, *, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray, Any]: ...
    @overload
    def range(self, lows: _HostKeys, highs: _HostKeys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[Any], NDArray[Any]]:
        """Returns the elements from each of `lows` to the matching one of `highs`, both included: arrays
        `offsets, keys, values`, where range `i` has the places `offsets[i]` to `offsets[i + 1]`. For ends on a
        device they are on the device.
        """
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @overload
    def setdefault(self: SortedMap[_K, None], key: _Key, /, default: None = None) -> None: ...
    @overload
    def setdefault(self, key: _Key, /, default: _V) -> _V:
        """Returns the value of a key; an absent key first gets the value `default`."""
    @property
    def stored(self, /) -> int:
        """Returns the number of stored elements, including those that the next cleanup drops."""
    def successors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """Returns the smallest key above each given key, which may be absent: arrays `keys, values, found`, with 0 if
        there is none.
        """
    def to(self, /, device: _Place) -> SortedMap[_K, _V]:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    @overload
    def update(self, keys: Mapping[_K, _V] | Iterable[tuple[_K, _V]] | _Keys, /, *, threads: SupportsIndex | None = None) -> None: ...
    @overload
    def update(self, keys: _Keys, values: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """Inserts keys with one value each and replaces the values of existing keys. Keys and values are two arrays of
        the same length, a `dict` or another mapping, or an iterable of pairs. Of equal keys the last one counts. A
        set takes keys only.
        """
    def upsert(self, keys: _Keys, values: _Keys, /, *, by: Literal["sum", "min", "max", "or"] = "sum", threads: SupportsIndex | None = None) -> None:
        """Combines numbers with the values of keys; keys without value get the combination of their numbers. `by` is
        `"sum"`, modulo 2 to the bits of a value; `"min"`; `"max"`; or `"or"` of the bits.

        >>> import warpset
        >>> last = warpset.SortedMap({1: 10})
        >>> last.upsert([1, 2, 2], [5, 7, 9], by="max")
        >>> list(last.items())
        [(1, 10), (2, 9)]
        """
    def values(self, /) -> NDArray[Any]:
        """Returns all values, in the order of their keys, as an array; None for a set."""

@final
class SplitBlockBloom:
    """Apache Parquet's split-block Bloom filter: fast, with about 1 % or 0.1 % false positives.

    `n` is the expected number of different keys. The size follows from the rate of false positives `fpr`, 0.01 by
    default, or from `bits_per_key`. Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array
    they come from.

    >>> import warpset
    >>> seen = warpset.SplitBlockBloom(1_000_000, fpr=0.01)
    >>> seen.update(["ash", "birch"])
    >>> "ash" in seen, "oak" in seen
    (True, False)
    >>> seen.contains(["birch", "fir"]).tolist()
    [True, False]
    """
    def __and__(self, other: object, /) -> SplitBlockBloom: ...
    def __bool__(self, /) -> bool: ...
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> SplitBlockBloom: ...
    def __deepcopy__(self, /, _memo: object) -> SplitBlockBloom: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __iand__(self, other: object, /) -> SplitBlockBloom: ...
    def __ior__(self, other: object, /) -> SplitBlockBloom: ...
    def __len__(self, /) -> int:
        """Estimates the number of different keys from the share of set bits; `OverflowError` if all bits are
        set.
        """
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, bits_per_key: SupportsFloat | SupportsIndex | None = None, device: _Place | None = None) -> SplitBlockBloom: ...
    def __or__(self, other: object, /) -> SplitBlockBloom: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """Adds one key: an `int`, `str` or `bytes`."""
    def clear(self, /) -> None:
        """Removes all keys and keeps the memory."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> SplitBlockBloom:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the current rate of false positives."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SplitBlockBloom:
        """Reads `bytes(…)` of such a structure."""
    def intersect(self, /, other: SplitBlockBloom) -> None:
        """Keeps the keys that may be in both filters. The rate of false positives is at most the larger one."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> SplitBlockBloom:
        """Reads a file that `save` wrote."""
    def merge(self, /, other: SplitBlockBloom) -> None:
        """Adds the contents of another filter with the same parameters; quotient filters may differ in size."""
    @staticmethod
    def mmap(path: _Path) -> SplitBlockBloom:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of the bits."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Adds keys and returns which of them were new; of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> SplitBlockBloom:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """Adds the keys of an array, or of an iterable of keys or of arrays, which is read piece by piece.

        Nulls are ignored. If an array does not fit, none of its keys are added; earlier arrays of an iterable,
        a chunked array or a stream are. Ctrl-C stops a long call after some of its keys. `threads` limits the
        number of threads (default: all of the machine).
        """

@final
class StaticFilter:
    """Set of known keys that never changes: a perfect hash function with a few bits of each key at its number. Each
    member has its own number, and other keys are rejected, except for a share of `fpr`.

    `keys` is an array or a list of different keys; a repeated key raises `DuplicateKeyError`. Nulls are ignored.

    - `fpr`: the largest rate of false positives, at least 2**-32 (default 0.01); or `bits` stored per key, 1 to 32,
      for a rate of `2**-bits`.
    - `kind`: `"consensus"`, which is smallest, `"recsplit"`, which has faster lookups, or `"placement"`, which has
      the fastest.
    - `leaf_size`, `bucket_size`, `overhead`, `keys_per_seed`, `seed`, `device`, `threads` and `progress` as in
      `PerfectHash`.

    >>> import warpset
    >>> trees = warpset.StaticFilter(["ash", "birch", "fir", "oak"], bits=16)
    >>> "ash" in trees, "rose" in trees
    (True, False)
    >>> sorted(trees.index(["oak", "fir", "birch", "ash"]).tolist())
    [0, 1, 2, 3]
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> StaticFilter: ...
    def __deepcopy__(self, /, _memo: object) -> StaticFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of keys."""
    def __new__(cls, /, keys: _Keys, *, fpr: SupportsFloat | SupportsIndex | None = None, bits: SupportsIndex | None = None, kind: Literal["recsplit", "consensus", "placement"] = "consensus", leaf_size: SupportsIndex | None = None, bucket_size: SupportsIndex | None = None, overhead: SupportsFloat | SupportsIndex | None = None, keys_per_seed: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> StaticFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits(self, /) -> int:
        """Returns the bits stored per key."""
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> StaticFilter:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the rate of false positives."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticFilter:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of each key, below `len`, as an array of `uint64`, or `out`, filled. Nulls, and keys that
        are certainly no members, have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """Returns the number of one key, or `None` if it is certainly no member."""
    @property
    def kind(self, /) -> str:
        """Returns `"recsplit"`, `"consensus"` or `"placement"`."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> StaticFilter:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> StaticFilter:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> StaticFilter:
        """Copies the structure to another device, or to the host with `"cpu"`."""

@final
class StaticFunction:
    """Static function: a value for each of a set of known keys, in little more than the bits of the values, without
    the keys.

    `keys` is an array or a list, with one of `values` per key: integers from 0 to `2**64 - 1`. Equal keys with
    equal values count once; with different ones they raise `DuplicateKeyError`. Keys that are null are ignored with
    their values.

    - `value_bits` of each value, 1 to 64; by default those of the largest one (of values on a device all 64). A
      function takes 1.13 times as many bits per key.
    - `filtered`: bits of a fingerprint beside each value, at most 32, and 64 with those of the value. Other keys
      have no value, except at the rate `2**-filtered`; with 0, the default, they have arbitrary values.
    - `arity`: 4 takes a twentieth less memory than 3, and more time. `sharded=True` builds faster, on many cores
      and on a GPU, and takes a tenth more memory.
    - `seed` changes the values of other keys. `device` is the place of the build and the lookups. `threads` limits
      the number of threads of the build.

    >>> import warpset
    >>> heights = warpset.StaticFunction(["ash", "birch", "fir", "oak"], [35, 25, 60, 40], filtered=32)
    >>> heights.get("fir"), heights.get("rose"), heights.value_bits
    (60, None, 6)
    >>> values, found = heights.get_many(["oak", "rose"], default=7)
    >>> values.tolist(), found.tolist()
    ([40, 7], [True, False])
    """
    def __bytes__(self, /) -> bytes: ...
    def __copy__(self, /) -> StaticFunction: ...
    def __deepcopy__(self, /, _memo: object) -> StaticFunction: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of different keys."""
    def __new__(cls, /, keys: _Keys, values: _Keys, *, value_bits: SupportsIndex | None = None, filtered: SupportsIndex = 0, arity: SupportsIndex = 3, sharded: bool = False, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> StaticFunction: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    def copy(self, /) -> StaticFunction:
        """Copies the structure, into host memory if it is in a mapped file."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @property
    def fpr(self, /) -> float:
        """Returns the rate at which other keys have a value: `2**-filtered`, which is 1 by default."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticFunction:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, key: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> int | _T:
        """Returns the value of a key: an `int`, `str` or `bytes`; or `default` if it has none. Other keys than the
        function's have values at the rate `fpr`.
        """
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Returns the values of keys as an array of `uint64`, `default` for keys without one, and whether each key has
        one: new arrays, or `out` and `found`, filled. For keys on a device the answers are on the device. Other
        keys than the function's have values at the rate `fpr`; nulls have none.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> StaticFunction:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> StaticFunction:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> StaticFunction:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    @property
    def value_bits(self, /) -> int:
        """Returns the bits of a value."""

@final
class StaticMap:
    """Exact map from integers to integers that never changes. A lookup reads a byte, one cache line and the value.

    `keys` is an array or a list of integers from 0 to `2**64 - 1`, with one of `values` per key; of equal keys the
    last one counts.

    - `key` and `value`: `"uint64"` or `"uint32"`.
    - `seed` changes the numbers. `device` is the place of the build and the lookups. `threads` limits the number of
      threads of the build.

    >>> import warpset
    >>> squares = warpset.StaticMap([2, 3, 4], [4, 9, 16])
    >>> squares[3], squares.get(5), len(squares)
    (9, None, 3)
    >>> values, found = squares.get_many([2, 5], default=7)
    >>> values.tolist(), found.tolist()
    ([4, 7], [True, False])
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> StaticMap: ...
    def __deepcopy__(self, /, _memo: object) -> StaticMap: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __getitem__(self, key: _Key, /) -> int: ...
    def __iter__(self, /) -> Iterator[int]:
        """Iterates over the keys, in the order of their numbers."""
    def __len__(self, /) -> int:
        """Returns the number of keys."""
    def __new__(cls, /, keys: _Keys, values: _Keys, *, key: _Integers = ..., value: _Integers = ..., seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> StaticMap: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> StaticMap:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticMap:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, key: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> int | _T:
        """Returns the value of a key, or `default` if it is absent."""
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[_Unsigned, NDArray[np.bool_]]:
        """Returns the values of keys, `default` for absent ones, and whether each key is present: new arrays, or `out`
        and `found`, filled. For keys on a device the answers are on the device.
        """
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of each key, unique and below `slots`, as an array of `uint64`, or `out`, filled.
        Nulls and absent keys have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """Returns the number of one key, or `None` if it is absent."""
    def items(self, /) -> Iterator[tuple[int, int]]:
        """Iterates over pairs of keys and values, in the order of the keys' numbers."""
    def keys(self, /) -> _Unsigned:
        """Returns all keys, in the order of their numbers, as an array of the type of keys."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> StaticMap:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> StaticMap:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of keys and values."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @property
    def slots(self, /) -> int:
        """Returns the bound of the numbers: the number of slots for keys, some of them empty."""
    def to(self, /, device: _Place) -> StaticMap:
        """Copies the structure to another device, or to the host with `"cpu"`."""
    def values(self, /) -> _Unsigned:
        """Returns all values, in the order of their keys' numbers, as an array of the type of values."""

@final
class StaticSet:
    """Exact set of integers that never changes. A lookup reads a byte and one cache line, and has no false positives.

    `keys` is an array or a list of integers from 0 to `2**64 - 1` in any order; equal keys count once.

    - `key`: `"uint64"`, 72.4 bits per key, or `"uint32"`, 36.2 bits per key.
    - `seed` changes the numbers. `device` is the place of the build and the lookups. `threads` limits the number of
      threads of the build.

    Each key has its own number below `slots`, so values can be stored in an array. Lookups take keys of any integer
    type; numbers out of the range of the set's type are not in it.

    >>> import warpset
    >>> primes = warpset.StaticSet([2, 3, 5, 7])
    >>> 5 in primes, 6 in primes, len(primes)
    (True, False, 4)
    >>> primes.contains([1, 2, 3, 4]).tolist()
    [False, True, True, False]
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> StaticSet: ...
    def __deepcopy__(self, /, _memo: object) -> StaticSet: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __iter__(self, /) -> Iterator[int]:
        """Iterates over the keys, in the order of their numbers."""
    def __len__(self, /) -> int:
        """Returns the number of keys."""
    def __new__(cls, /, keys: _Keys, *, key: _Integers = ..., seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> StaticSet: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """Returns the bits of memory per key."""
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """Returns whether each key is in the set or map, or may be in the filter: an array of booleans, or `out`,
        filled. Nulls are in none.

        `form="bitmap"` returns an array of `uint8` with one bit per answer, lowest first; `form="arrow"` an
        Arrow array. For keys on a device the answers are booleans on the device.
        """
    def copy(self, /) -> StaticSet:
        """Copies the structure, into host memory if it is in a mapped file."""
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """Counts the keys that are in the set or map, or may be in the filter."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticSet:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """Returns the number of each key, unique and below `slots`, as an array of `uint64`, or `out`, filled.
        Nulls and absent keys have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """Returns the number of one key, or `None` if it is absent."""
    def keys(self, /) -> _Unsigned:
        """Returns all keys, in the order of their numbers, as an array of the type of keys."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> StaticSet:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> StaticSet:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory of keys and values."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    @property
    def slots(self, /) -> int:
        """Returns the bound of the numbers: the number of slots for keys, some of them empty."""
    def to(self, /, device: _Place) -> StaticSet:
        """Copies the structure to another device, or to the host with `"cpu"`."""

@final
class StringMap:
    """String map: an exact map from known strings, or any bytes, to integers that never changes: the keys' bytes, a
    perfect hash function, and 16 bytes per key.

    `keys` is an array or a list of different `str` and `bytes`, with one of `values` per key: integers from 0 to
    `2**64 - 1`. A repeated key raises `DuplicateKeyError`. Keys that are null are ignored with their values.

    - `kind` of the function: `"placement"`, which is asked fastest, `"consensus"` or `"recsplit"`, as in
      `PerfectHash`. `seed` changes the order of the keys in memory.
    - `threads` limits the number of threads of the build, and `progress` is called now and then as `progress(done,
      keys)`.

    The map is in host memory or in a mapped file, not on devices.

    >>> import warpset
    >>> heights = warpset.StringMap(["ash", "birch", "fir", "oak"], [35, 25, 60, 40])
    >>> heights.get("fir"), heights.get("rose"), "oak" in heights, len(heights)
    (60, None, True, 4)
    >>> values, found = heights.get_many(["oak", "rose"], default=7)
    >>> values.tolist(), found.tolist()
    ([40, 7], [True, False])
    """
    def __bytes__(self, /) -> bytes: ...
    def __contains__(self, key: str | bytes, /) -> bool: ...
    def __copy__(self, /) -> StringMap: ...
    def __deepcopy__(self, /, _memo: object) -> StringMap: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """Returns the number of keys."""
    def __new__(cls, /, keys: _HostKeys, values: _HostKeys, *, kind: Literal["recsplit", "consensus", "placement"] = "placement", seed: SupportsIndex | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> StringMap: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def copy(self, /) -> StringMap:
        """Copies the structure, into host memory if it is in a mapped file."""
    @property
    def device(self, /) -> str:
        """Returns the place of the structure: `"cpu"`, `"cuda:0"` and so on."""
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StringMap:
        """Reads `bytes(…)` of such a structure."""
    @overload
    def get(self, key: str | bytes, /, default: None = None) -> int | None: ...
    @overload
    def get(self, key: str | bytes, /, default: _T) -> int | _T:
        """Returns the value of a key, a `str` or `bytes`; or `default` if it has none."""
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Returns the values of keys as an array of `uint64`, `default` for other keys and nulls, and whether each key
        has one: new arrays, or `out` and `found`, filled.
        """
    @property
    def kind(self, /) -> str:
        """Returns `"recsplit"`, `"consensus"` or `"placement"`."""
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> StringMap:
        """Reads a file that `save` wrote."""
    @staticmethod
    def mmap(path: _Path) -> StringMap:
        """Maps a file that `save` wrote: processes that map it share its memory. The structure is read-only;
        `copy()` and `load` return ones that can change. No process may write into the file meanwhile; `save`
        may replace it. `pickle` stores the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """Returns the bytes of memory, those of the keys among them."""
    def save(self, /, path: _Path) -> None:
        """Writes a file that Warpset reads in every language and on every backend."""
    def to(self, /, device: _Place) -> StringMap:
        """Copies the structure to another device, or to the host with `"cpu"`."""

def devices() -> list[Device]:
    """Returns all usable GPUs of this machine; an empty list without a GPU or driver."""

def load(path: _Path, /, *, device: _Place | None = None) -> Any:
    """Reads a file that any structure's `save` wrote, as an object of its class. The file of a `KmerCounter` contains a
    quotient filter and is read as one.

    >>> import os, tempfile, warpset
    >>> path = os.path.join(tempfile.mkdtemp(), "trees")
    >>> warpset.BinaryFuse(["ash", "birch"]).save(path)
    >>> "ash" in warpset.load(path)
    True
    """

def minimizers(sequence: _HostSequence, *, k: SupportsIndex = 31, w: SupportsIndex = 15, rotation: SupportsIndex = 7) -> tuple[NDArray[np.uint64], NDArray[np.uint64] | Any]:
    """Returns the canonical minimizers of a sequence of DNA: in each window of `w` consecutive k-mers the k-mer with the
    least hash. Both strands have the same ones if `k + w` is even.

    `sequence` is a `str`, `bytes` or an array of `uint8`; windows contain only A, C, G and T, in either case. The
    result is two arrays of `uint64`: the position of each minimizer, ascending, and the smaller of the k-mer and its
    reverse complement, as an integer of `KmerCounter`: 2 bits per base, the first base highest, A 0, C 1, G 2, T 3;
    above 32 bases they are a list of `int`.

    - `k`: 1 to 63 bases. `w`: 1 to 64 k-mers.
    - `rotation`: number of bits that the hash is rotated per base; 7 gives the minimizers of the crate
      `simd-minimizers`, 1 those of Deacon's indexes.

    >>> import warpset
    >>> positions, kmers = warpset.minimizers("ACGTTGCATTNGACCAGT", k=5, w=3)
    >>> other = warpset.minimizers(b"ACTGGTCNAATGCAACGT", k=5, w=3)   # the other strand
    >>> kmers.tolist() == other[1].tolist()[::-1], max(positions.tolist()) < 14
    (True, True)
    """


class DeviceError(OSError):
    """There is no such device, or it failed."""

class DuplicateKeyError(ValueError):
    """A key occurs twice where all keys have to differ."""

class FileError(OSError):
    """A file or saved bytes are damaged, truncated or of another kind. If the system refuses access to a file, the error is its `OSError`, such as `FileNotFoundError`, with `errno` and `filename`."""

class FullError(ValueError):
    """A structure has no room for the keys; it is unchanged."""

class OutOfMemoryError(MemoryError):
    """Not enough memory on the machine or a device; the structure is unchanged."""
