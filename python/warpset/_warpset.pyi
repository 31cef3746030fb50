"""
Sets, filters, dictionaries and perfect hash functions on CPUs and NVIDIA GPUs.
"""


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
    """
    A binary fuse filter: a set of known keys that never changes, the smallest and fastest for a yes or no.

    `keys` are the keys in an array or a list; equal ones count once, nulls are left out.

    - `bits`: of each fingerprint, 8, 16 or 32, which takes 9, 18 or 36 bits per key, for a rate of false positives
      of `2**-bits`.
    - `arity`: 4 takes a twentieth less memory than 3 and more time. `sharded=True` is built faster, on many cores
      and on a GPU, and takes some more memory.
    - `seed`: other seeds make other false positives. `device`: where it is built and asked. `threads` bounds the
      threads that build.

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
        """
        How many different keys there are.
        """
    def __new__(cls, /, keys: _Keys, *, bits: SupportsIndex = 8, arity: SupportsIndex = 3, sharded: bool = False, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> BinaryFuse: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits(self, /) -> int:
        """
        Bits of each fingerprint: 8, 16 or 32.
        """
    @property
    def bits_per_key(self, /) -> float:
        """
        Bits of memory for each key.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> BinaryFuse:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> BinaryFuse:
        """
        From `bytes(…)` of such a structure.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @staticmethod
    def mmap(path: _Path) -> BinaryFuse:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that it takes.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    def to(self, /, device: _Place) -> BinaryFuse:
        """
        A copy on another device, or on the host with `"cpu"`.
        """

@final
class BlockedBloom:
    """
    A Bloom filter of blocks of 64 to 1024 bits: fewer bits per key than a split-block filter at rates far from 1 %.

    `n` is the number of different keys that it is made for; give the rate of false positives as `fpr`, 0.01 unless
    given, or the size as `bits_per_key`. `block_bits`: 64, 128, 256, 512 or 1024; `hashes`: bits per key, chosen by the rate if it is
    not given; `seed`: other seeds make other false positives.

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
        """
        About how many different keys there are, from the share of bits that are set; `OverflowError` if all
        of them are.
        """
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, bits_per_key: SupportsFloat | SupportsIndex | None = None, block_bits: SupportsIndex | None = None, hashes: SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> BlockedBloom: ...
    def __or__(self, other: object, /) -> BlockedBloom: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """
        Adds one key: an `int`, `str` or `bytes`.
        """
    def clear(self, /) -> None:
        """
        Removes all keys and keeps the memory.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> BlockedBloom:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives as the filter is now.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> BlockedBloom:
        """
        From `bytes(…)` of such a structure.
        """
    def intersect(self, /, other: BlockedBloom) -> None:
        """
        Keeps the keys that both filters may hold; the rate of false positives is at most the larger one.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    def merge(self, /, other: BlockedBloom) -> None:
        """
        Adds what another filter with the same parameters holds; of a quotient filter the size may differ.
        """
    @staticmethod
    def mmap(path: _Path) -> BlockedBloom:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that the bits take.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Adds keys and says which were new: of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> BlockedBloom:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds keys: those of an array, or of an iterable of keys or of arrays, which is never held whole.

        Nulls are left out. If an array does not fit, none of it is added; those that came before it in an
        iterable, a chunked array or a stream are. Ctrl-C stops a long call, which has added some keys then.
        `threads` bounds the threads that work on it; by default as many as the machine has.
        """

@final
class BooleanArray:
    """
    Answers as an Arrow array of booleans: pass it to `pyarrow.array`, `polars.Series` or another library of Arrow.
    """
    def __arrow_c_array__(self, /, requested_schema: object | None = None) -> tuple[CapsuleType, CapsuleType]: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...

@final
class Device:
    """
    A GPU, by its number; or the emulator of one, slow and meant for tests.

    `Device("cuda:0")` opens the first GPU of the machine, `Device("cuda")` the first one that can be used,
    `Device("emulator")` an emulator. Structures take either such an object or its name.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, /, name: str) -> Device: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def array(self, /, keys: _Keys) -> DeviceArray:
        """
        Copies integers to the device: an array as `update` takes it, nulls left out.
        """
    def letters(self, /, sequence: _HostSequence) -> DeviceArray:
        """
        Copies the letters of a sequence to the device, as a `SequenceFilter` there takes them: an array of `uint8`.
        """
    @property
    def memory(self, /) -> tuple[int, int]:
        """
        Bytes of memory: free, and in all.
        """
    @property
    def name(self, /) -> str:
        """
        What the driver calls it.
        """
    def synchronize(self, /) -> None:
        """
        Waits for all work on the device.
        """

@final
class DeviceArray:
    """
    An array on a device: keys copied there, or answers. CuPy, PyTorch, Numba and JAX take it without a copy, since it
    has `__cuda_array_interface__` and `__dlpack__`: `cupy.asarray(answers)`, `torch.from_dlpack(answers)`.

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
        """
        A capsule with the items, for another library. They are ready for every stream.
        """
    def __dlpack_device__(self, /) -> tuple[int, int]: ...
    def __len__(self, /) -> int: ...
    def __repr__(self, /) -> str: ...
    @property
    def device(self, /) -> Device:
        """
        Where it is.
        """
    @property
    def dtype(self, /) -> str:
        """
        The type of the items, as NumPy names it.
        """
    def get(self, /) -> NDArray[Any]:
        """
        A copy in host memory: an array of NumPy, or a `memoryview` where NumPy is not installed.
        """
    def tolist(self, /) -> list[int] | list[bool]:
        """
        The items as a list.
        """

@final
class KmerCounter:
    """
    Counts the k-mers of FASTA and FASTQ files exactly, plain or gzip, of both strands: a k-mer and its reverse
    complement are the same one, named by the smaller of the two. Letters other than A, C, G, T end a k-mer.

    `files` is a path or a list of paths; without any the counter begins empty. `k` is 1 to 32 bases.

    - `min_count`: k-mers of which there are fewer copies are left out.
    - `memory`: bytes of host memory that may be used, about; where they do not suffice, `OutOfMemoryError`.
    - `device`: what counts, and where the counts lie then.
    - `threads` bounds the threads that read and count; by default as many as the machine has.
    - `progress` is called now and then as `progress(done, bytes)`. An exception in it stops the count, as Ctrl-C
      does.

    K-mers are `str` or `bytes` of letters, in arrays or lists; or integers, 2 bits per base, the first base highest,
    A 0, C 1, G 2, T 3, which have to be those that `arrays` and `minimizers` give. `len` is the number of different k-mers.

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
        """
        How many different k-mers there are.
        """
    def __new__(cls, /, files: _Path | Iterable[_Path] | None = None, *, k: SupportsIndex = 31, min_count: SupportsIndex = 1, memory: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> KmerCounter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def arrays(self, /) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """
        All k-mers as integers, 2 bits per base, the first base highest, A 0, C 1, G 2, T 3, and their numbers of copies: two arrays of `uint64`,
        in no order.
        """
    def copy(self, /) -> KmerCounter:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    @overload
    def count(self, kmers: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count(self, kmers: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        How many copies there are of each k-mer, as an array of `uint64`, or `out` filled. Nulls have none. For
        k-mers on a device the counts are there too.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> KmerCounter:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def get(self, kmer: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, kmer: _Key, /, default: _T) -> int | _T:
        """
        How many copies there are of one k-mer, or `default` if there is none.
        """
    def histogram(self, /, most: SupportsIndex = 10000) -> NDArray[np.uint64]:
        """
        How many different k-mers have each number of copies, as an array of `uint64` of `most + 1` items: the last
        one is how many have that many or more.
        """
    def items(self, /) -> KmerIterator:
        """
        All k-mers in letters, each with its number of copies, as they are now, in no order.
        """
    @property
    def k(self, /) -> int:
        """
        Bases per k-mer.
        """
    def keep(self, /, min_count: SupportsIndex) -> None:
        """
        Removes k-mers of which there are fewer copies than `min_count`.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    def merge(self, /, other: KmerCounter) -> None:
        """
        Adds what another counter of the same `k` holds.
        """
    @staticmethod
    def mmap(path: _Path) -> KmerCounter:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that the counts take.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    def screen(self, files: _Path | Iterable[_Path], /, *, matched: _Path | None = None, unmatched: _Path | None = None, min_hits: SupportsIndex = 1, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> tuple[int, int]:
        """
        Splits the reads of FASTA and FASTQ files by how many of their k-mers are here: those with at least
        `min_hits` go to the file `matched`, the others to `unmatched`, unchanged and in their order; without a file
        they are only counted. Returns how many match and how many do not.
        """
    def to(self, /, device: _Place) -> KmerCounter:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def total(self, /) -> int:
        """
        How many k-mers there are, copies included.
        """
    def update(self, files: _Path | Iterable[_Path], /, *, memory: SupportsIndex | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> None:
        """
        Adds the k-mers of more files: a path, or a list of paths.
        """
    def update_sequences(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds the k-mers of sequences: letters in an array or a list of `str` or `bytes`, each one a sequence of its
        own.
        """

@final
class KmerIterator:
    """
    K-mers in letters, alone or with their numbers of copies.
    """
    def __iter__(self, /) -> KmerIterator: ...
    def __length_hint__(self, /) -> int: ...
    def __next__(self, /) -> str | tuple[str, int]: ...

@final
class PerfectHash:
    """
    A minimal perfect hash function: maps `n` known keys to the numbers from 0 to `n - 1`, each key to its own, in
    1.46 to 3 bits per key, without storing the keys. Values of keys then lie in a plain array.

    `keys` are the keys in an array or a list, all different; a key that is there twice raises `DuplicateKeyError`.
    Nulls are left out.

    - `kind`: `"recsplit"`, or `"consensus"`, which is built in less time for as few bits, and asked in more.
    - `bits_per_key`: the space, from 1.53 on with RecSplit and from 1.46 on with Consensus: less takes longer to
      build. Instead of it RecSplit has `leaf_size`, 2 to 24 (default 12), Consensus `overhead`, the bits per key
      beyond the 1.4427 that are needed (default 0.05), and both have `bucket_size` (default 1000 and 2400).
    - `load_factor`, with RecSplit: below 1, to 0.75, the function is smaller, but some numbers below `values` are
      nobody's. `keys_per_value`, with RecSplit: how many keys share a number, 2 to 24.
    - `seed`: other seeds give other numbers.
    - `device`: where it is built and asked; keys that are on a device need that device here.
    - `threads` bounds the threads that build; by default as many as the machine has.
    - `progress` is called now and then as `progress(done, keys)`; a device counts the keys once as it hashes them
      and once as it builds. An exception in it stops the build, as Ctrl-C does.

    Equal values are equal keys, whatever array they are in. Other keys have any of the numbers: a `StaticFilter`
    knows most of them.

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
        """
        What `index` gives.
        """
    def __copy__(self, /) -> PerfectHash: ...
    def __deepcopy__(self, /, _memo: object) -> PerfectHash: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __len__(self, /) -> int:
        """
        How many keys there are.
        """
    def __new__(cls, /, keys: _Keys, *, kind: Literal["recsplit", "consensus"] = "recsplit", bits_per_key: SupportsFloat | SupportsIndex | None = None, leaf_size: SupportsIndex | None = None, bucket_size: SupportsIndex | None = None, overhead: SupportsFloat | SupportsIndex | None = None, load_factor: SupportsFloat | SupportsIndex | None = None, keys_per_value: SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> PerfectHash: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """
        Bits of memory for each key.
        """
    def copy(self, /) -> PerfectHash:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> PerfectHash:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        The number of each key, as an array of `uint64`, or `out` filled. Other keys have any of the numbers, nulls
        `2**64 - 1`. For keys on a device the numbers are there too.
        """
    def index_one(self, /, key: _Key) -> int:
        """
        The number of one key: an `int`, `str` or `bytes`.
        """
    @property
    def kind(self, /) -> str:
        """
        `"recsplit"` or `"consensus"`.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @staticmethod
    def mmap(path: _Path) -> PerfectHash:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that it takes.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    def to(self, /, device: _Place) -> PerfectHash:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    @property
    def values(self, /) -> int:
        """
        The bound that all numbers are below: the number of keys, unless there is a load factor or several keys
        share a number.
        """

@final
class QuotientFilter:
    """
    A quotient filter: a set or multiset of keys that can also count them, forget them, merge and grow.

    `n` is the number of different keys that it is made for, with their repetitions if `duplicates="kept"`; `fpr`
    the rate of false positives, 0.01 unless given. A filter that is full raises `FullError` and stays as it was:
    `double()` makes room.

    - `kind`: `"rank-select"`, whose lookups cost the same at any load; or `"standard"`, for large batches into
      half-empty filters on a GPU.
    - `duplicates`: what a second copy of a key does. `"dropped"`: nothing, the filter is a set. `"kept"`: it takes
      more room. `"counted"`: it is counted in little room, for `"rank-select"`.
    - `key_bits`: makes the filter exact for integers from 0 to `2**key_bits - 1`: no key is taken for another.
      `fpr` then has no effect.
    - `max_load`: the share of slots that may be used; `seed`: other seeds make other false positives.

    Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array they are in. `len` is the number
    of copies stored.

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
        """
        How many copies are stored; of equal keys one, if duplicates are dropped.
        """
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, kind: Literal["rank-select", "standard"] = "rank-select", duplicates: Literal["dropped", "kept", "counted"] = "dropped", key_bits: SupportsIndex | None = None, max_load: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None) -> QuotientFilter: ...
    def __or__(self, other: object, /) -> QuotientFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """
        Adds one key: an `int`, `str` or `bytes`.
        """
    @property
    def capacity(self, /) -> int:
        """
        The most slots that keys may take: different keys if duplicates are dropped, copies if they are kept.
        """
    def clear(self, /) -> None:
        """
        Removes all keys and keeps the memory.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> QuotientFilter:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    @overload
    def count(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        How many copies of each key are stored, as an array of `uint64`, or `out` filled: never fewer than were
        added, and 0 or 1 if duplicates are dropped. Nulls have none. For keys on a device the counts are there too.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    def count_one(self, /, key: _Key) -> int:
        """
        How many copies of one key are stored: never fewer than were added.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    def discard(self, /, key: _Key) -> bool:
        """
        Removes one copy of one key, and says whether there was one.
        """
    def double(self, /) -> None:
        """
        Makes room for twice as many keys, at the same rate of false positives per key.
        """
    @property
    def duplicates(self, /) -> str:
        """
        `"dropped"`, `"kept"` or `"counted"`.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives as the filter is now.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> QuotientFilter:
        """
        From `bytes(…)` of such a structure.
        """
    def halve(self, /) -> None:
        """
        Halves the memory, if the keys fit in what is left.
        """
    @property
    def kind(self, /) -> str:
        """
        `"rank-select"` or `"standard"`.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @property
    def load_factor(self, /) -> float:
        """
        The slots in use, as a share of all.
        """
    def merge(self, /, other: QuotientFilter) -> None:
        """
        Adds what another filter with the same parameters holds; of a quotient filter the size may differ.
        """
    @staticmethod
    def mmap(path: _Path) -> QuotientFilter:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that the slots take.
        """
    def remove(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        Removes one copy of each key, and says how many copies that took out.

        Remove only keys that were added: another key may look the same to the filter, and a copy of it be taken
        out.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Adds keys and says which were new: of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> QuotientFilter:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds keys: those of an array, or of an iterable of keys or of arrays, which is never held whole.

        Nulls are left out. If an array does not fit, none of it is added; those that came before it in an
        iterable, a chunked array or a stream are. Ctrl-C stops a long call, which has added some keys then.
        `threads` bounds the threads that work on it; by default as many as the machine has.
        """

@final
class SequenceFilter:
    """
    A Bloom filter of the k-mers of sequences, which takes sequences as they are: neighbouring k-mers share a block
    of memory, so that a read touches a few cache lines instead of one per k-mer.

    `n` is the number of different k-mers that it is made for. K-mers have `k` bases, 9 to 32, and are canonical:
    those of both strands are one. None has a letter other than A, C, G, T in it, in either case.

    - `bits_per_kmer`: its size. With 16 bits fewer than one foreign k-mer in 100,000 is found (`k=31`).
    - `s`: bases per s-mer, of which a k-mer has `k - s + 1`, that all have to be there; `m`: bases of the minimizer
      by which a block is chosen. Both are chosen by `k` and `n` if they are not given.

    A sequence is a `str`, `bytes` or an array of `uint8`, read where it is. Sequences are a list or another
    iterable of these, an array of strings of NumPy or Arrow, or an array of `uint8` with a sequence per row.

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
        """
        Whether one k-mer, `k` bases, may be in the filter.
        """
    def __copy__(self, /) -> SequenceFilter: ...
    def __deepcopy__(self, /, _memo: object) -> SequenceFilter: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ior__(self, other: object, /) -> SequenceFilter: ...
    def __new__(cls, /, n: SupportsIndex, *, k: SupportsIndex = 31, bits_per_kmer: SupportsFloat | SupportsIndex = 16.0, s: SupportsIndex | None = None, m: SupportsIndex | None = None, device: _Place | None = None) -> SequenceFilter: ...
    def __or__(self, other: object, /) -> SequenceFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, sequence: _Sequence, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds the k-mers of one sequence. For a filter on a device it may be letters there, an array of `uint8`, in
        which any letter that is no base, a line end for one, ends a sequence.
        """
    def clear(self, /) -> None:
        """
        Removes all k-mers and keeps the memory.
        """
    @overload
    def contains_windows(self, sequence: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains_windows(self, sequence: _HostSequence, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        For each window of `k` letters of one sequence whether it is a k-mer that may be in the filter: an array of
        booleans, or `out` filled; `form` as in `matches`. False where a letter is no base.

        Letters on a device are an array of `uint8`, and have their answers there: bit `i % 32` of word `i // 32` of
        an array of `uint32` for the window that begins with letter `i`; a letter that is no base ends a sequence.
        """
    def copy(self, /) -> SequenceFilter:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """
        Two arrays of `uint64`: how many k-mers of each sequence may be in the filter, and how many it has. Nulls
        have none. K-mers that repeat count each time.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    def expected_fpr(self, /, n: SupportsIndex) -> float:
        """
        The rate of false positives in theory, were `n` different k-mers of random sequences in the filter.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives as the filter is now, of k-mers that share no s-mer with its own.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SequenceFilter:
        """
        From `bytes(…)` of such a structure.
        """
    @property
    def k(self, /) -> int:
        """
        Bases per k-mer.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @property
    def m(self, /) -> int:
        """
        Bases of the minimizer by which a block is chosen.
        """
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["bitmap"], out: Buffer | None = None, min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def matches(self, sequences: _Sequences, /, *, form: Literal["arrow"], min_hits: SupportsIndex = 1, min_share: SupportsFloat | SupportsIndex = 0.0, threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether enough k-mers of each sequence may be in the filter, at least `min_hits` and at least `min_share`
        of those that it has: an array of booleans, or `out` filled. Nulls never match.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an array
        of Arrow.
        """
    def merge(self, /, other: SequenceFilter) -> None:
        """
        Adds what another filter with the same parameters holds.
        """
    @staticmethod
    def mmap(path: _Path) -> SequenceFilter:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that the bits take.
        """
    @property
    def s(self, /) -> int:
        """
        Bases per s-mer.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    def to(self, /, device: _Place) -> SequenceFilter:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def update(self, sequences: _Sequences, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds the k-mers of sequences: those of an array, or of an iterable, which is never held whole.

        Nulls are left out. If an item of an iterable is no sequence, those that came before it may be in the
        filter. `threads` bounds the threads that work on them; by default as many as the machine has.
        """

@final
class SortedMap(MutableMapping[_K, _V]):
    """
    A dictionary in the order of its keys, from integers or byte strings to integers or rows of bytes, that takes
    updates in batches: a GPU LSM.

    - `items`: a `dict` or another mapping, or pairs, as `update` takes them.
    - `key` and `value`: `"uint64"` to `"uint64"`, `"uint32"`, `"V16"`, `"V32"` or None; `"int64"` to `"uint64"` or
      None; `"uint32"` to `"uint32"`; `"S8"` to `"uint64"` or `"V16"`; `"V16"` to `"uint64"`. With None it is an
      ordered set: all values are `None`. Integers of any array are taken if the type has them; `OverflowError`
      tells which one it has not.
    - `"S8"` are byte strings of up to 8 bytes, in the order of these. `"V16"` and `"V32"` are up to 16 and 32
      bytes, as keys in their order (UUIDs by their `bytes`, addresses by `packed`): items of NumPy's structured,
      void, string and complex types, rows of `uint8`, or `bytes`, to which zeros are added. Answers are arrays of
      that type, `.view(dtype)` makes items again, or give an `out=` of yours.
    - `batch_size`: keys of the updates that are expected, a power of two; larger ones make updates cheaper. 65536
      unless given.
    - `cleanup`: when elements that were removed or replaced are dropped from memory: a share of all that may be
      such (a `float`), a number of updates (an `int`), or None for calls of `cleanup()` alone.

    It is a `collections.abc.MutableMapping`, but `keys()` and `values()` are arrays, `items()` is an iterator, and
    it is equal only to maps of its own types. For many keys use the methods that take arrays, which are far faster:
    `update`, `increment`, `delete`, `get_many`. A null among keys is none: it is left out, and found nowhere.
    Device arrays, for a map there, have exactly the
    types of the map, and their keys are unsigned.

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
        """
        `SortedMap[int, bytes]`, for annotations.
        """
    def __contains__(self, key: _Key, /) -> bool: ...
    def __copy__(self, /) -> SortedMap[_K, _V]: ...
    def __deepcopy__(self, /, _memo: object) -> SortedMap[_K, _V]: ...
    def __delitem__(self, key: _Key | slice, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    @overload
    def __getitem__(self, key: slice, /) -> tuple[NDArray[Any], NDArray[Any]]: ...
    @overload
    def __getitem__(self, key: _Key, /) -> _V:
        """
        The value of a key, or `(keys, values)` of a slice: arrays of the elements from its start up to its stop,
        which is not part of it.
        """
    def __ior__(self, other: object, /) -> SortedMap[_K, _V]: ...
    def __iter__(self, /) -> Iterator[_K]:
        """
        Iterates over the keys, ascending, in a copy of them: the map may change meanwhile.
        """
    def __len__(self, /) -> int:
        """
        How many keys there are. After an update, the first call walks through all of them.
        """
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
        """
        Drops elements that were removed or replaced. Answers stay as they are, memory and time for them shrink.
        """
    def clear(self, /) -> None:
        """
        Removes everything.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]:
        """
        Whether each key is there: an array of booleans, or `out` filled. For keys on a device the answers are
        there too.
        """
    def copy(self, /) -> SortedMap[_K, _V]:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    @overload
    def count_range(self, lows: _DeviceArray, highs: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def count_range(self, lows: _HostKeys, highs: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        How many keys there are from each of `lows` to that of `highs`, both included, as an array of `uint64`, or
        `out` filled. For ends on a device the counts are there too.
        """
    def delete(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Removes keys, whether they are there or not.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    def first(self, /) -> tuple[_K, _V]:
        """
        The smallest key, with its value; `KeyError` if the map is empty.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SortedMap[_K, _V]:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def get(self, key: _Key, /, default: None = None) -> _V | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> _V | _T:
        """
        The value of a key, or `default` if it is absent.
        """
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[Any, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """
        The values of keys, `default` for absent ones, and an array of booleans that says which keys are
        there: new arrays, or `out` and `found` filled. For keys on a device the answers are there too.
        """
    def increment(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds one to the value, a number, of each key for each time that it occurs; keys without value begin at 0.

        >>> import warpset
        >>> counts = warpset.SortedMap()
        >>> counts.increment([3, 1, 3])
        >>> list(counts.items())
        [(1, 1), (3, 2)]
        """
    def items(self, /) -> Iterator[tuple[_K, _V]]:
        """
        Iterates over pairs of keys and values, ascending, in a copy of both: the map may change meanwhile. As
        arrays they are `map[:]`.
        """
    def keys(self, /) -> NDArray[Any]:
        """
        All keys, ascending, as an array.
        """
    def last(self, /) -> tuple[_K, _V]:
        """
        The largest key, with its value; `KeyError` if the map is empty.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    def merge(self, /, other: SortedMap[_K, _V]) -> None:
        """
        Inserts what another map of the same types has; where both have a key, the other one's value counts.
        """
    @staticmethod
    def mmap(path: _Path) -> SortedMap[_K, _V]:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that elements and search indexes take.
        """
    @overload
    def pop(self, key: _Key, /) -> _V: ...
    @overload
    def pop(self, key: _Key, default: _T, /) -> _V | _T:
        """
        Removes a key and gives its value; if it is absent, gives `default`, or raises `KeyError` if none is named.
        """
    def popitem(self, /) -> tuple[_K, _V]:
        """
        Removes the largest key and gives it with its value; `KeyError` if the map is empty.
        """
    def predecessors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """
        The largest key below each key, which need not be there: arrays `keys, values, found`, 0 where there is
        none.
        """
    @overload
    def range(self, lows: _DeviceArray, highs: _DeviceArray, /, *, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray, Any]: ...
    @overload
    def range(self, lows: _HostKeys, highs: _HostKeys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[np.uint64], NDArray[Any], NDArray[Any]]:
        """
        The elements from each of `lows` to that of `highs`, both included: three arrays `offsets, keys, values`,
        where range `i` has places `offsets[i]` to `offsets[i + 1]` of the others. For ends on a device they are
        there too.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @overload
    def setdefault(self: SortedMap[_K, None], key: _Key, /, default: None = None) -> None: ...
    @overload
    def setdefault(self, key: _Key, /, default: _V) -> _V:
        """
        The value of a key, which gets the value `default` before if it is absent.
        """
    @property
    def stored(self, /) -> int:
        """
        Elements that are stored: keys with their values, and what the next cleanup drops.
        """
    def successors(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
        """
        The smallest key above each key, which need not be there: arrays `keys, values, found`, 0 where there is
        none.
        """
    def to(self, /, device: _Place) -> SortedMap[_K, _V]:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    @overload
    def update(self, keys: Mapping[_K, _V] | Iterable[tuple[_K, _V]] | _Keys, /, *, threads: SupportsIndex | None = None) -> None: ...
    @overload
    def update(self, keys: _Keys, values: _Keys, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Inserts keys with their values, as arrays of one length, those of a `dict` or another mapping, or those of
        an iterable of pairs; replaces the values of keys that are there. Of equal keys the last one counts. A set
        takes keys alone.
        """
    def upsert(self, keys: _Keys, values: _Keys, /, *, by: Literal["sum", "min", "max", "or"] = "sum", threads: SupportsIndex | None = None) -> None:
        """
        Combines values, numbers, with those that keys have: a key without value gets the combination of its values
        here. `by`: `"sum"`, modulo 2 to the bits of a value; `"min"`, `"max"`; or `"or"`, of their bits.

        >>> import warpset
        >>> last = warpset.SortedMap({1: 10})
        >>> last.upsert([1, 2, 2], [5, 7, 9], by="max")
        >>> list(last.items())
        [(1, 10), (2, 9)]
        """
    def values(self, /) -> NDArray[Any]:
        """
        All values, in the order of their keys, as an array; None for a set.
        """

@final
class SplitBlockBloom:
    """
    Apache Parquet's split-block Bloom filter: fast, at about 1 % or 0.1 % false positives.

    `n` is the number of different keys that it is made for; give the rate of false positives as `fpr`, 0.01 unless
    given, or the size as `bits_per_key`. Keys are `int`, `str` and `bytes`; equal values are equal keys, whatever array they are in.

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
        """
        About how many different keys there are, from the share of bits that are set; `OverflowError` if all
        of them are.
        """
    def __new__(cls, /, n: SupportsIndex, *, fpr: SupportsFloat | SupportsIndex | None = None, bits_per_key: SupportsFloat | SupportsIndex | None = None, device: _Place | None = None) -> SplitBlockBloom: ...
    def __or__(self, other: object, /) -> SplitBlockBloom: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    def add(self, /, key: _Key) -> None:
        """
        Adds one key: an `int`, `str` or `bytes`.
        """
    def clear(self, /) -> None:
        """
        Removes all keys and keeps the memory.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> SplitBlockBloom:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives as the filter is now.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> SplitBlockBloom:
        """
        From `bytes(…)` of such a structure.
        """
    def intersect(self, /, other: SplitBlockBloom) -> None:
        """
        Keeps the keys that both filters may hold; the rate of false positives is at most the larger one.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    def merge(self, /, other: SplitBlockBloom) -> None:
        """
        Adds what another filter with the same parameters holds; of a quotient filter the size may differ.
        """
    @staticmethod
    def mmap(path: _Path) -> SplitBlockBloom:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that the bits take.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def test_and_add(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Adds keys and says which were new: of equal keys at most the first is. `form` and `out` as in
        `contains`.
        """
    def to(self, /, device: _Place) -> SplitBlockBloom:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def update(self, keys: _Batches, /, *, threads: SupportsIndex | None = None) -> None:
        """
        Adds keys: those of an array, or of an iterable of keys or of arrays, which is never held whole.

        Nulls are left out. If an array does not fit, none of it is added; those that came before it in an
        iterable, a chunked array or a stream are. Ctrl-C stops a long call, which has added some keys then.
        `threads` bounds the threads that work on it; by default as many as the machine has.
        """

@final
class StaticFilter:
    """
    A set of known keys that never changes: a perfect hash function, and a few bits of each key at its number. It
    gives each member a number of its own, and rejects other keys, but for a share of `fpr`.

    `keys` are the keys in an array or a list, all different; a key that is there twice raises `DuplicateKeyError`.
    Nulls are left out.

    - `fpr`: the rate of false positives, at most, from 2**-32 on (default 0.01); or `bits`, 1 to 32, that are
      stored of each key, for a rate of `2**-bits`.
    - `kind`: `"consensus"`, which is smaller and built in less time, or `"recsplit"`, which is asked in less.
    - `leaf_size`, `bucket_size`, `overhead`, `seed`, `device`, `threads`, `progress`: those of `PerfectHash`.

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
        """
        How many keys there are.
        """
    def __new__(cls, /, keys: _Keys, *, fpr: SupportsFloat | SupportsIndex | None = None, bits: SupportsIndex | None = None, kind: Literal["recsplit", "consensus"] = "consensus", leaf_size: SupportsIndex | None = None, bucket_size: SupportsIndex | None = None, overhead: SupportsFloat | SupportsIndex | None = None, seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None, progress: _Progress | None = None) -> StaticFilter: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits(self, /) -> int:
        """
        Bits that are stored of each key.
        """
    @property
    def bits_per_key(self, /) -> float:
        """
        Bits of memory for each key.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> StaticFilter:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @property
    def fpr(self, /) -> float:
        """
        The rate of false positives.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticFilter:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        The number of each key, below `len`, as an array of `uint64`, or `out` filled. Nulls, and keys that are
        surely no members, have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """
        The number of one key, or `None` if it is surely no member.
        """
    @property
    def kind(self, /) -> str:
        """
        `"recsplit"` or `"consensus"`.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @staticmethod
    def mmap(path: _Path) -> StaticFilter:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that it takes.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    def to(self, /, device: _Place) -> StaticFilter:
        """
        A copy on another device, or on the host with `"cpu"`.
        """

@final
class StaticMap:
    """
    An exact map from integers to integers that never changes: a lookup reads a byte, one cache line and the value.

    `keys` are integers from 0 to `2**64 - 1` in an array or a list, `values` as many; of equal keys the last one
    counts.

    - `key` and `value`: `"uint64"` or `"uint32"`.
    - `seed`: other seeds give other numbers. `device`: where it is built and asked. `threads` bounds the threads
      that build.

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
        """
        Iterates over the keys, in the order of their numbers.
        """
    def __len__(self, /) -> int:
        """
        How many keys there are.
        """
    def __new__(cls, /, keys: _Keys, values: _Keys, *, key: _Integers = ..., value: _Integers = ..., seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> StaticMap: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """
        Bits of memory for each key.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> StaticMap:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticMap:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def get(self, key: _Key, /, default: None = None) -> int | None: ...
    @overload
    def get(self, key: _Key, /, default: _T) -> int | _T:
        """
        The value of a key, or `default` if it is not there.
        """
    @overload
    def get_many(self, keys: _DeviceArray, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[DeviceArray, DeviceArray]: ...
    @overload
    def get_many(self, keys: _HostKeys, /, default: SupportsIndex = 0, *, out: Buffer | _DeviceArray | None = None, found: Buffer | None = None, threads: SupportsIndex | None = None) -> tuple[_Unsigned, NDArray[np.bool_]]:
        """
        The values of keys, `default` for those that are not there, and an array of booleans that says which are:
        new arrays, or `out` and `found` filled. For keys on a device the answers are there too.
        """
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        The number of each key, below `slots` and its own, as an array of `uint64`, or `out` filled. Nulls,
        and keys that are not there, have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """
        The number of one key, or `None` if it is not there.
        """
    def items(self, /) -> Iterator[tuple[int, int]]:
        """
        Iterates over pairs of keys and values, in the order of the keys' numbers.
        """
    def keys(self, /) -> _Unsigned:
        """
        All keys, in the order of their numbers, as an array of the set's or map's type.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @staticmethod
    def mmap(path: _Path) -> StaticMap:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that keys and values take.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @property
    def slots(self, /) -> int:
        """
        The bound that all numbers are below: the places for keys, of which some are free.
        """
    def to(self, /, device: _Place) -> StaticMap:
        """
        A copy on another device, or on the host with `"cpu"`.
        """
    def values(self, /) -> _Unsigned:
        """
        All values, in the order of their keys' numbers, as an array of the map's type.
        """

@final
class StaticSet:
    """
    An exact set of integers that never changes: a lookup reads a byte and one cache line, and is never wrong.

    `keys` are integers from 0 to `2**64 - 1` in an array or a list, in any order; equal ones count once.

    - `key`: `"uint64"`, 72.4 bits per key, or `"uint32"`, 36.2 bits per key.
    - `seed`: other seeds give other numbers. `device`: where it is built and asked. `threads` bounds the threads
      that build.

    Each key has a number of its own below `slots`, so values may lie in an array. Keys of any integer type may be
    asked for: those that the set's type has no value for are not in it.

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
        """
        Iterates over the keys, in the order of their numbers.
        """
    def __len__(self, /) -> int:
        """
        How many keys there are.
        """
    def __new__(cls, /, keys: _Keys, *, key: _Integers = ..., seed: SupportsIndex | None = None, device: _Place | None = None, threads: SupportsIndex | None = None) -> StaticSet: ...
    def __reduce__(self, /) -> tuple[Any, ...]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bits_per_key(self, /) -> float:
        """
        Bits of memory for each key.
        """
    @overload
    def contains(self, keys: _DeviceArray, /, *, form: Literal["bool"] = "bool", out: _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bool"] = "bool", out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.bool_]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["bitmap"], out: Buffer | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint8]: ...
    @overload
    def contains(self, keys: _HostKeys, /, *, form: Literal["arrow"], threads: SupportsIndex | None = None) -> BooleanArray:
        """
        Whether each key is in the set or map, or may be in the filter: an array of booleans, or `out` filled. Nulls
        are in none.

        `form="bitmap"` gives the answers as bits of an array of `uint8`, lowest first; `form="arrow"` as an
        array of Arrow. For keys on a device the answers are booleans there.
        """
    def copy(self, /) -> StaticSet:
        """
        A copy, in host memory if this one is in a mapped file.
        """
    def count_contained(self, keys: _Keys, /, *, threads: SupportsIndex | None = None) -> int:
        """
        How many of the keys are in the set or map, or may be in the filter.
        """
    @property
    def device(self, /) -> str:
        """
        Where it is: `"cpu"`, `"cuda:0"` and so on.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, device: _Place | None = None) -> StaticSet:
        """
        From `bytes(…)` of such a structure.
        """
    @overload
    def index(self, keys: _DeviceArray, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> DeviceArray: ...
    @overload
    def index(self, keys: _HostKeys, /, *, out: Buffer | _DeviceArray | None = None, threads: SupportsIndex | None = None) -> NDArray[np.uint64]:
        """
        The number of each key, below `slots` and its own, as an array of `uint64`, or `out` filled. Nulls,
        and keys that are not there, have `2**64 - 1`.
        """
    def index_one(self, /, key: _Key) -> int | None:
        """
        The number of one key, or `None` if it is not there.
        """
    def keys(self, /) -> _Unsigned:
        """
        All keys, in the order of their numbers, as an array of the set's or map's type.
        """
    @staticmethod
    def load(path: _Path, /, *, device: _Place | None = None) -> Any:
        """
        Reads a file that `save` wrote.
        """
    @staticmethod
    def mmap(path: _Path) -> StaticSet:
        """
        Opens a file that `save` wrote where it lies: processes that map it share its memory. It cannot be
        changed; `copy()` and `load` give what can. Nothing may write the file meanwhile; `save` may replace it.
        `pickle` carries the file's name.
        """
    @property
    def nbytes(self, /) -> int:
        """
        Bytes of memory that keys and values take.
        """
    def save(self, /, path: _Path) -> None:
        """
        Writes a file, which every backend and every language that has Warpset reads.
        """
    @property
    def slots(self, /) -> int:
        """
        The bound that all numbers are below: the places for keys, of which some are free.
        """
    def to(self, /, device: _Place) -> StaticSet:
        """
        A copy on another device, or on the host with `"cpu"`.
        """

def devices() -> list[Device]:
    """
    All GPUs of this machine that can be used; an empty list if there are none, or no driver.
    """

def load(path: _Path, /, *, device: _Place | None = None) -> Any:
    """
    Reads a file that any structure's `save` wrote, as an object of its class. That of a `KmerCounter` holds a quotient
    filter, and is read as one.

    >>> import os, tempfile, warpset
    >>> path = os.path.join(tempfile.mkdtemp(), "trees")
    >>> warpset.BinaryFuse(["ash", "birch"]).save(path)
    >>> "ash" in warpset.load(path)
    True
    """

def minimizers(sequence: _HostSequence, *, k: SupportsIndex = 31, w: SupportsIndex = 15, rotation: SupportsIndex = 7) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """
    The canonical minimizers of a sequence of DNA: of each window of `w` consecutive k-mers the one with the least hash,
    the same on both strands if `k + w` is even.

    `sequence` is a `str`, `bytes` or an array of `uint8`; no window has a letter other than A, C, G, T, in either case.
    Returns two arrays of `uint64`: where each minimizer begins, ascending; and the smaller of the k-mer and its reverse
    complement, as the integers of `KmerCounter`: 2 bits per base, the first base highest, A 0, C 1, G 2, T 3.

    - `k`: 1 to 32 bases. `w`: 1 to 64 k-mers.
    - `rotation`: bits by which the hash is rotated per base; 7 gives the minimizers of the crate `simd-minimizers`, 1
      those of Deacon's indexes.

    >>> import warpset
    >>> positions, kmers = warpset.minimizers("ACGTTGCATTNGACCAGT", k=5, w=3)
    >>> other = warpset.minimizers(b"ACTGGTCNAATGCAACGT", k=5, w=3)   # the other strand
    >>> kmers.tolist() == other[1].tolist()[::-1], max(positions.tolist()) < 14
    (True, True)
    """


class DeviceError(OSError):
    """
    There is no such device, or it failed.
    """

class DuplicateKeyError(ValueError):
    """
    A key is there twice, where all have to differ.
    """

class FileError(OSError):
    """
    A file or saved bytes cannot be read: they are damaged, end early, or hold something else. Where the system refuses a file, that is its `OSError`, such as `FileNotFoundError`, with `errno` and `filename`.
    """

class FullError(ValueError):
    """
    A structure has no room for the keys; it is as it was before.
    """

class OutOfMemoryError(MemoryError):
    """
    Memory of the machine or of a device is not there; the structure is as it was before.
    """
