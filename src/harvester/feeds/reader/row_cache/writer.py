"""Rows of a file written to the disk, to be found again by the hashes of their records.

    magic ─ block ─ block ─ ... ─ index ─ end
            ├ keys of the rows: two hashes and the line of each
            └ the rows in Arrow's own format, only what is compared, without their lines

The index names the blocks, and what the rows depend on beside their records. Everything has a checksum, so that
whatever is not exactly what was written counts as nothing.
"""

import json
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import numpy as np
import polars as pl
from isal import isal_zlib
from numpy.typing import NDArray

from harvester.feeds.reader.output_rows import ROW_COLUMNS, SCHEMA

KEPT: Final = pl.Schema({name: SCHEMA[name] for name in ROW_COLUMNS if name != "line"})
KEY: Final = np.dtype([("first", "<u8"), ("second", "<u4"), ("line", "<u4")])
MAGIC: Final = b"harvester rows 1\n"
#: Length and checksum of the index, at the very end.
END: Final = struct.Struct("<QL")
checksum = isal_zlib.crc32


class KeptBlock(NamedTuple):
    """Where a block stands, and the checksums of its two parts."""

    offset: int
    rows: int
    keys_sum: int
    rows_size: int
    rows_sum: int

    @property
    def keys_size(self) -> int:
        return self.rows * KEY.itemsize


class KeptWriter:
    """Writes the rows of one file. Once the disk refuses something, nothing more is written.

    Attributes:
        failure: what the disk said.
    """

    def __init__(self, path: Path, key: str) -> None:
        self._path = path
        self._key = key
        self._blocks: list[KeptBlock] = []
        self._position = 0
        self._is_whole = False
        self._lock = Lock()
        self.failure: OSError | None = None
        with self._noting_failure():
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._write(MAGIC)

    def add(self, keys: NDArray[Any], rows: pl.DataFrame) -> None:
        """Keep a block of rows with a key for each; any thread may, in any order."""
        if not len(keys):
            return
        data = rows.select(KEPT.names()).write_ipc_stream(None).getbuffer()
        keys_sum, rows_sum = checksum(keys), checksum(data)
        with self._lock, self._noting_failure():
            if self.failure is None:
                self._blocks.append(KeptBlock(self._position, len(keys), keys_sum, len(data), rows_sum))
                self._write(keys.tobytes())
                self._write(data)

    def finish(self, superseded: NDArray[np.int64]) -> None:
        """End the file. Rows of these lines, which later rows replace, are not to be found again."""
        if self.failure:
            return
        with self._noting_failure():
            if len(superseded):
                self._blocks = [self._without(block, superseded) for block in self._blocks]
            index = json.dumps({"key": self._key, "blocks": self._blocks}).encode()
            self._write(index)
            self._write(END.pack(len(index), checksum(index)))
            self._is_whole = True

    def publish(self, path: Path) -> None:
        """Put the file in its place, in one step.

        Raises:
            OSError: the disk refuses it, or has refused a part of it.
        """
        if self.failure or not self._is_whole:
            raise self.failure or OSError("the file was not read to its end")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path.replace(path)

    def close(self) -> None:
        """Let go of the file; it can still be published."""
        if self._position:
            os.close(self._file)
            self._position = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _without(self, block: KeptBlock, superseded: NDArray[np.int64]) -> KeptBlock:
        keys = np.frombuffer(bytearray(os.pread(self._file, block.keys_size, block.offset)), KEY)
        keys[np.isin(keys["line"], superseded)] = np.zeros((), KEY)
        os.pwrite(self._file, keys.tobytes(), block.offset)
        return block._replace(keys_sum=checksum(keys))

    def _write(self, data: bytes | memoryview) -> None:
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self._position += written
            rest = rest[written:]

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            # Its trace would keep the block that was being written, for as long as the run.
            self.failure = error.with_traceback(None)
