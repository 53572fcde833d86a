"""Parsed rows on the disk, block by block: a run reads its file once and comes back for the rows that matter."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

PREFIX = "spool-"


class Spool:
    """A directory of blocks in Arrow's own format, gone with the run."""

    def __init__(self, parent: Path) -> None:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        self._blocks = 0

    def add(self, rows: pl.DataFrame) -> None:
        """Keep one block; blocks come in the order of the file."""
        rows.write_ipc(self._path(self._blocks))
        self._blocks += 1

    def rows(self, lines: NDArray[np.int64], columns: list[str]) -> Iterator[pl.DataFrame]:
        """The rows of these lines (ascending), one frame for each block that has some.

        Each frame has a column `place` beside those asked for: where its line stands in `lines`.
        """
        start = 0
        for number in range(self._blocks):
            if start == len(lines):
                return
            block = pl.read_ipc(self._path(number), columns=["line", *columns])
            stop = start + int(np.searchsorted(lines[start:], int(block["line"][-1]), side="right"))
            if stop > start:
                wanted = pl.DataFrame({"line": lines[start:stop], "place": np.arange(start, stop)})
                yield block.join(wanted, on="line", how="inner", maintain_order="left")
            start = stop

    def close(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.arrow"
