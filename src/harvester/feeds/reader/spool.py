"""Parsed rows on disk, block by block, so that a run reads its file only once.

A run holds a lock on its directory. The directory of a killed run has no lock, and the next run on that machine removes
it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from harvester.guards.artifacts import translated_disk_errors

PREFIX = "spool-"


class Spool:
    """A directory of blocks in Arrow format, deleted at the end of the run.

    Attributes:
        leaves_out: whether rows of the file are not here, because they came from the row cache.

    Raises:
        DiskFull: the disk is full; so does `add`.
    """

    def __init__(self, parent: Path) -> None:
        with translated_disk_errors(parent):
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Under the lock of the parent: a new directory that is not locked yet must not look abandoned.
            with _locked(parent):
                for path in parent.glob(f"{PREFIX}*"):
                    with suppress(BlockingIOError, FileNotFoundError), _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                        shutil.rmtree(path, ignore_errors=True)
                self._directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
                self._lock = _lock(self._directory)
        #: The last line of each block.
        self._ends: list[int] = []
        self.leaves_out = False

    def add(self, rows: pl.DataFrame) -> None:
        """Store one block; blocks come in the order of the file."""
        # Contiguous texts are read in half the time that string views take.
        block = rows.write_ipc_stream(None, compat_level=pl.CompatLevel.oldest())
        # Written here and not by polars, whose errors lack the number that identifies a full disk.
        with translated_disk_errors(self._directory.parent), block.getbuffer() as data:
            self._block_path(len(self._ends)).write_bytes(data)
        self._ends.append(int(rows["line"][-1]))

    def count_missing(self, lines: NDArray[np.int64]) -> int:
        """Return how many of these lines (ascending) have no stored row."""
        return len(lines) - sum(block.height for block in self.rows(lines, []))

    def path(self, name: str) -> Path:
        """Return a path for another file, which is deleted at the end of the run unless it was moved."""
        return self._directory / name

    def rows(self, lines: NDArray[np.int64], columns: list[str]) -> Iterator[pl.DataFrame]:
        """Yield the rows of these lines (ascending), one frame for each block that has some.

        Each frame has an additional column `place`: the position of its line in `lines`.
        """
        start = 0
        for number, end in enumerate(self._ends):
            stop = start + int(np.searchsorted(lines[start:], end, side="right"))
            if stop > start:
                block = pl.read_ipc_stream(self._block_path(number), columns=["line", *columns])
                wanted = pl.DataFrame({"line": lines[start:stop], "place": np.arange(start, stop)})
                if wanted["line"].equals(block["line"]):
                    yield block.with_columns(wanted["place"])
                else:
                    yield block.join(wanted, on="line", how="inner", maintain_order="left")
            start = stop

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _block_path(self, number: int) -> Path:
        return self._directory / f"{number}.arrow"


def _lock(directory: Path, strength: int = fcntl.LOCK_EX) -> int:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, strength)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def _locked(directory: Path, strength: int = fcntl.LOCK_EX) -> Iterator[None]:
    descriptor = _lock(directory, strength)
    try:
        yield
    finally:
        os.close(descriptor)
