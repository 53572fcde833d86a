"""Parsed rows on the disk, block by block: a run reads its file once and comes back for the rows that matter.

A run holds a lock on its directory as long as it lives. What a killed one left has no lock any more, and the next run
on that machine removes it.
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

from harvester.guards.artifacts import told_plainly

PREFIX = "spool-"


class Spool:
    """A directory of blocks in Arrow's own format, gone with the run.

    Attributes:
        leaves_out: whether there are rows of the file that are not here, because they were known.

    Raises:
        DiskFull: there is no room; so does `add`.
    """

    def __init__(self, parent: Path) -> None:
        with told_plainly(parent):
            parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Under the lock of all: nobody may take a directory that is not locked yet for one that was left.
            with _locked(parent):
                _remove_left(parent)
                self._directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
                self._lock = _lock(self._directory)
        #: The last line of each block.
        self._ends: list[int] = []
        self.leaves_out = False

    def add(self, rows: pl.DataFrame) -> None:
        """Keep one block; blocks come in the order of the file."""
        # Texts behind each other are read in half the time that texts with a pointer to each take.
        block = rows.write_ipc_stream(None, compat_level=pl.CompatLevel.oldest())
        # Written here and not by polars, whose errors do not tell a full disk by its number.
        with told_plainly(self._directory.parent), block.getbuffer() as data:
            self._path(len(self._ends)).write_bytes(data)
        self._ends.append(int(rows["line"][-1]))

    def lacks(self, lines: NDArray[np.int64]) -> int:
        """Of how many of these lines (ascending) no row was kept."""
        return len(lines) - sum(block.height for block in self.rows(lines, []))

    def beside(self, name: str) -> Path:
        """A path for something else that is gone with the run, unless it was moved elsewhere."""
        return self._directory / name

    def rows(self, lines: NDArray[np.int64], columns: list[str]) -> Iterator[pl.DataFrame]:
        """The rows of these lines (ascending), one frame for each block that has some.

        Each frame has a column `place` beside those asked for: where its line stands in `lines`.
        """
        start = 0
        for number, end in enumerate(self._ends):
            stop = start + int(np.searchsorted(lines[start:], end, side="right"))
            if stop > start:
                block = pl.read_ipc_stream(self._path(number), columns=["line", *columns])
                yield _picked(block, lines[start:stop], np.arange(start, stop))
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

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.arrow"


def _picked(block: pl.DataFrame, lines: NDArray[np.int64], places: NDArray[np.int64]) -> pl.DataFrame:
    """The rows of these lines, with the place of each."""
    if np.array_equal(lines, block["line"].to_numpy()):
        return block.with_columns(place=pl.Series(places))
    wanted = pl.DataFrame({"line": lines, "place": places})
    return block.join(wanted, on="line", how="inner", maintain_order="left")


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


def _remove_left(parent: Path) -> None:
    """Remove the directories of runs that live no more."""
    for path in parent.glob(f"{PREFIX}*"):
        with suppress(BlockingIOError, FileNotFoundError), _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
            shutil.rmtree(path, ignore_errors=True)
