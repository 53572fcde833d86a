"""Read a remote file to its end, over any protocol, with checks of size, speed and completeness."""

import hashlib
import time
from collections.abc import Callable, Generator
from contextlib import closing
from io import BytesIO
from typing import Protocol

from harvester.guards.remote import (
    AuthenticationFailed,
    Downloaded,
    FileChanged,
    FileSizeLimitExceeded,
    OnProgress,
    PermissionDenied,
    ProtocolMismatch,
    RemoteFileNotFound,
    RemoteStat,
    RemoteTimedOut,
    Sink,
    TransferLimits,
    TransferTooLong,
    TransferTooSlow,
    TruncatedDownload,
)


class Pace:
    """Limits the time for each block, and ends a transfer that is too slow."""

    def __init__(self, limits: TransferLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._end = clock() + limits.total
        self._window_start = clock()
        self._window_bytes = 0

    def patience(self) -> float:
        """Return the seconds to wait for the next block."""
        left = self._end - self._clock()
        if left <= 0:
            raise TransferTooLong(
                f"The transfer took longer than {self._limits.total:g} s and was ended. It will be retried later; "
                "ask the partner why the server is slow, or for a smaller file."
            )
        return min(self._limits.idle, left)

    def note(self, count: int) -> None:
        """Count received bytes."""
        self._window_bytes += count
        elapsed = self._clock() - self._window_start
        if elapsed < self._limits.rate_window:
            return
        if self._window_bytes < elapsed * self._limits.least_rate:
            raise TransferTooSlow(
                f"Only {self._window_bytes} bytes were received in {elapsed:.1f} s; at least {self._limits.least_rate} "
                "per second are required. The transfer was ended and will be retried later."
            )
        self._window_start += elapsed
        self._window_bytes = 0


#: The server does not report size or time.
NO_FIGURES = RemoteStat(size=None, mtime=None)


class Stats(Protocol):
    """A source of size and time of files."""

    def stat(self, path: str) -> RemoteStat: ...


class BlockSource(Stats, Protocol):
    """What a protocol must provide: size and time of a file, and its bytes in order."""

    def blocks(self, path: str, pace: Pace) -> Generator[bytes, None, None]: ...


def stat_if_allowed(source: Stats, path: str) -> RemoteStat:
    """Return a file's size and time, or neither if the server refuses.

    Whether a file exists and may be read is decided by opening it: some servers refuse `stat` for files that they
    serve.
    """
    try:
        return source.stat(path)
    except (PermissionDenied, RemoteFileNotFound, ProtocolMismatch, AuthenticationFailed):
        return NO_FIGURES


def download(
    source: BlockSource,
    path: str,
    sink: Sink,
    *,
    cap_bytes: int,
    limits: TransferLimits,
    on_progress: OnProgress | None = None,
) -> Downloaded:
    """Read a file to its end, and check that its size and time did not change meanwhile."""
    before = stat_if_allowed(source, path)
    _refuse_too_large(path, before.size or 0, cap_bytes)
    digest, size, pace = hashlib.sha256(), 0, Pace(limits)
    with closing(_paced(source, path, pace)) as blocks:
        for block in blocks:
            size += len(block)
            _refuse_too_large(path, size, cap_bytes)
            digest.update(block)
            sink.write(block)
            if on_progress:
                on_progress(size, before.size)
    after: RemoteStat | None = before
    if before != NO_FIGURES:
        try:
            after = source.stat(path)
        except RemoteFileNotFound:
            after = None
    _check_complete(path, size, before, after)
    return Downloaded(size=size, sha256=digest.hexdigest(), stat=before)


def read_small(source: BlockSource, path: str, *, cap_bytes: int, limits: TransferLimits) -> bytes:
    """Read a small file into memory, with the same checks."""
    memory = BytesIO()
    download(source, path, memory, cap_bytes=cap_bytes, limits=limits)
    return memory.getvalue()


def _paced(source: BlockSource, path: str, pace: Pace) -> Generator[bytes, None, None]:
    with closing(source.blocks(path, pace)) as blocks:
        try:
            for block in blocks:
                pace.note(len(block))
                yield block
        except RemoteTimedOut:
            # If the total time is over, this raises the more exact error.
            pace.patience()
            raise


def _refuse_too_large(path: str, size: int, cap_bytes: int) -> None:
    if size > cap_bytes:  # mutant: file-size
        raise FileSizeLimitExceeded(
            f"{path!r} has {size} bytes or more, and at most {cap_bytes} are allowed. None of it is used. "
            "Check that the path is right; if it is, raise the limit."
        )


def _check_complete(path: str, size: int, before: RemoteStat, after: RemoteStat | None) -> None:
    tail = "None of it is used. It will be retried later."
    if after is None:
        raise FileChanged(f"{path!r} was removed while it was read. {tail}")
    if before != after:
        raise FileChanged(
            f"{path!r} was replaced while it was read ({_figures(before)}, then {_figures(after)}). {tail}"
        )
    if before.size is not None and size < before.size:
        raise TruncatedDownload(f"Only {size} of {before.size} bytes of {path!r} were received. {tail}")
    if before.size is not None and size > before.size:
        raise FileChanged(f"The server reported {before.size} bytes for {path!r}, but {size} were received. {tail}")


def _figures(stat: RemoteStat) -> str:
    mtime = stat.mtime.isoformat() if stat.mtime else "an unknown time"
    return f"{'unknown' if stat.size is None else stat.size} bytes of {mtime}"
