"""Memory that a run lets go of is kept for its next block, and given back when the run has ended.

Left to themselves, the allocators give every large piece back to the kernel at once and ask for it again with the next
block: a third of the kernel's time in reading a catalog.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LIBC = ctypes.CDLL(None)
#: Their numbers in <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
#: Bytes that may be free at the end of the heap; more than a run ever has.
_KEPT_FREE: Final = 256 << 20
#: Bytes from which on a piece has pages of its own; the most that the library allows.
_ON_ITS_OWN: Final = 32 << 20
#: What both are where nobody says anything.
_USUAL: Final = 128 << 10

_changing = threading.Lock()
_runs = 0


@contextmanager
def memory_kept() -> Iterator[None]:
    """Keep what is let go of until the last such block of the process ends."""
    _count(1)
    try:
        yield
    finally:
        _count(-1)


def _count(change: int) -> None:
    """The first run has memory kept, and the last one gives it back. Other C libraries than GNU's do as they like."""
    global _runs
    with _changing:
        before, _runs = _runs, _runs + change
        if bool(before) == bool(_runs) or not hasattr(_LIBC, "malloc_trim"):
            return
        _LIBC.mallopt(_MMAP_THRESHOLD, _ON_ITS_OWN if _runs else _USUAL)
        _LIBC.mallopt(_TRIM_THRESHOLD, _KEPT_FREE if _runs else _USUAL)
        if not _runs:
            _LIBC.malloc_trim(0)
