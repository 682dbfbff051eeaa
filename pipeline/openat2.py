"""Opens files below a folder with openat2(2), through no link that leads out of it. `ctypes` is slow to load."""

from __future__ import annotations

import ctypes
import os
from typing import Final

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_OPENAT2: Final = 437  # the same number on every architecture
_BENEATH: Final = 0x08 | 0x02  # RESOLVE_BENEATH, RESOLVE_NO_MAGICLINKS


class _How(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_below(top: int, path: bytes, flags: int) -> int:
    """Return a descriptor of the file or folder at *path* below the folder *top*.

    Raises:
        OSError: it cannot be opened, or a link leads out of the folder.
    """
    how = _How(flags, 0, _BENEATH)
    found: int = _LIBC.syscall(_OPENAT2, top, path, ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
