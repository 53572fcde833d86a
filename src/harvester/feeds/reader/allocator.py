"""Freed memory stays with the process while a run reads its file, and is returned when the run ends.

By default, the allocator returns every large piece to the kernel at once and requests it again for the next block: a
third of the kernel's time while a catalog is read.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LIBC = ctypes.CDLL(None)
#: From <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Bytes that may be free at the end of the heap; more than a run ever frees.
_KEPT_FREE: Final = 256 << 20
#: Pieces from this size are mapped separately; the most that the library allows.
_MAPPED_FROM: Final = 32 << 20
#: The default of both.
_DEFAULT: Final = 128 << 10

_lock = threading.Lock()
_runs = 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep freed memory until the last such context of the process ends."""
    _count_runs(1)
    try:
        yield
    finally:
        _count_runs(-1)


def _count_runs(change: int) -> None:
    """Keep memory from the first run on, and return it after the last. C libraries other than GNU's are left alone."""
    global _runs
    with _lock:
        before, _runs = _runs, _runs + change
        if bool(before) == bool(_runs) or not hasattr(_LIBC, "malloc_trim"):
            return
        _LIBC.mallopt(_MMAP_THRESHOLD, _MAPPED_FROM if _runs else _DEFAULT)
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_FREE if _runs else _DEFAULT)
        if not _runs:
            _LIBC.malloc_trim(0)
