"""Sets, filters, dictionaries and perfect hash functions for millions of keys, on CPUs and NVIDIA GPUs."""

from collections.abc import Mapping as _Mapping
from collections.abc import MutableMapping as _MutableMapping

from . import _warpset
from ._warpset import *  # noqa: F403

__all__ = _warpset.__all__
__version__: str = _warpset.__version__

_MutableMapping.register(SortedMap)  # noqa: F405
_Mapping.register(StaticMap)  # noqa: F405


def _unpickle(kind, data, device):
    """Restores a pickled structure on its device, or on the host if that device is missing."""
    try:
        return kind.from_bytes(data, device=device)
    except DeviceError:  # noqa: F405
        return kind.from_bytes(data)
