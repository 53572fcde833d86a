"""Downloaded files, stored under the hash of their content.

    artifacts/ab/cdef...        a complete artifact, mode 0600, never changed
    artifacts/.part-...         an artifact that is being written, locked by its writer
    artifacts/.prune.lock       separates pruning from the last step of a writer

A file gets its final name only when it is complete on the disk, so a crash leaves either nothing or a part that
`sweep` removes. The same content is one file, no matter how often it is written.
"""

import errno
import fcntl
import hashlib
import os
import re
import secrets
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from harvester.guards.durable_files import sync_directory
from harvester.kernel.errors import ConfigError, TerminalError, TransientError

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
PART_PREFIX = ".part-"
LOCK_NAME = ".prune.lock"
#: Longer than any transfer may take.
SWEEP_SECONDS = 24 * 60 * 60.0
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


class DiskFull(TransientError):
    """There is not enough disk space for the artifact."""

    code = "DISK_FULL"


class ArtifactStoreFailed(TransientError):
    """The disk of the artifacts does not work."""

    code = "ARTIFACT_STORE_FAILED"


class ArtifactStoreForbidden(ConfigError):
    """Harvester may not write to the artifact directory."""

    code = "ARTIFACT_STORE_FORBIDDEN"


class ArtifactMissing(TerminalError):
    """The artifact has been deleted."""

    code = "ARTIFACT_MISSING"


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A stored file.

    Attributes:
        sha256: the hash of its content in hexadecimal, which is its name.
        size: bytes.
    """

    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """What a cleanup removed."""

    files: int = 0
    bytes: int = 0


class ArtifactStore:
    """A directory of artifacts. Any number of processes may share it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def writer(self) -> "ArtifactWriter":
        """Start an artifact; `with store.writer() as writer` removes it unless it is committed."""
        with translated_disk_errors(self._root):
            _make_directory(self._root)
            return ArtifactWriter(self._root)

    def open(self, sha256: str) -> BinaryIO:
        """Open an artifact for reading.

        Raises:
            ArtifactMissing: there is none with that hash.
        """
        path = artifact_path(self._root, sha256)
        with translated_disk_errors(self._root):
            try:
                return path.open("rb")
            except FileNotFoundError:
                raise ArtifactMissing(f"The artifact {sha256} has been deleted. Download the file again.") from None

    def has(self, sha256: str) -> bool:
        return artifact_path(self._root, sha256).is_file()

    def prune(self, before: datetime, protected: Collection[str] = ()) -> Pruned:
        """Remove artifacts that were last written before a time, except for the protected ones.

        Writing the same content again counts.
        """
        if before.tzinfo is None:
            raise ValueError("the time needs a time zone")
        kept = frozenset(protected)
        removed = [size for path in self._artifacts() if (size := self._remove_old(path, before, kept)) is not None]
        return Pruned(files=len(removed), bytes=sum(removed))

    def sweep(self, older_than_seconds: float = SWEEP_SECONDS) -> int:
        """Remove parts of killed writers; running writers hold a lock on their part."""
        removed, before = 0, time.time() - older_than_seconds
        with translated_disk_errors(self._root):
            for path in _listed(self._root):
                if not path.name.startswith(PART_PREFIX):
                    continue
                with suppress(FileNotFoundError, BlockingIOError), path.open("rb") as part:
                    if os.fstat(part.fileno()).st_mtime < before:
                        fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        path.unlink()
                        removed += 1
        return removed

    def _artifacts(self) -> Iterator[Path]:
        with translated_disk_errors(self._root):
            for directory in _listed(self._root):
                if not directory.name.startswith(".") and directory.is_dir():
                    yield from (path for path in _listed(directory) if _HASH.fullmatch(directory.name + path.name))

    def _remove_old(self, path: Path, before: datetime, kept: frozenset[str]) -> int | None:
        """Remove one artifact if it is old; return its size."""
        if path.parent.name + path.name in kept:
            return None
        with translated_disk_errors(self._root), suppress(FileNotFoundError):
            if path.stat().st_mtime >= before.timestamp():
                return None
            with _prune_lock(self._root, fcntl.LOCK_EX):
                status = path.stat()
                if status.st_mtime < before.timestamp():
                    path.unlink()
                    return status.st_size
        return None


class ArtifactWriter:
    """Writes one artifact while hashing it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._digest = hashlib.sha256()
        self._size = 0
        self._part = root / f"{PART_PREFIX}{secrets.token_hex(12)}"
        self._descriptor: int | None = os.open(
            self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE
        )
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def write(self, block: bytes, /) -> None:
        """Append to the artifact.

        Raises:
            DiskFull: there is no space; the artifact is removed.
        """
        with self._open_part() as descriptor:
            rest = memoryview(block)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        self._digest.update(block)
        self._size += len(block)

    def commit(self) -> Artifact:
        """Make the artifact durable under its final name."""
        artifact = Artifact(sha256=self._digest.hexdigest(), size=self._size)
        with self._open_part() as descriptor:
            os.fsync(descriptor)
            path = artifact_path(self._root, artifact.sha256)
            _make_directory(path.parent)
            # The lock keeps pruning from checking the old file and then removing the new one.
            with _prune_lock(self._root, fcntl.LOCK_SH):
                self._part.replace(path)
            sync_directory(path.parent)
            sync_directory(self._root)
        self.discard()
        return artifact

    def discard(self) -> None:
        """Remove the part; after a commit this does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._part.unlink(missing_ok=True)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    @contextmanager
    def _open_part(self) -> Iterator[int]:
        """Yield the open file; any error removes it."""
        if self._descriptor is None:
            raise ValueError("this artifact was already committed or discarded")
        try:
            with translated_disk_errors(self._root):
                yield self._descriptor
        except BaseException:
            self.discard()
            raise


def artifact_path(root: Path, sha256: str) -> Path:
    """Return the path of the artifact with that hash."""
    if not _HASH.fullmatch(sha256):
        raise ValueError("the name of an artifact has 64 hexadecimal digits")
    return root / sha256[:2] / sha256[2:]


def _make_directory(path: Path) -> None:
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except FileNotFoundError:
        return []


@contextmanager
def _prune_lock(root: Path, strength: int) -> Iterator[None]:
    descriptor = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, strength)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def translated_disk_errors(root: Path) -> Iterator[None]:
    """Raise errors of the disk as Harvester's own, which decide about retries."""
    try:
        yield
    except OSError as error:
        # The error below has its own traceback; the original one would keep the unwritten data in memory.
        cause, reason = error.with_traceback(None), os.strerror(error.errno or errno.EIO)
        if error.errno in _NO_ROOM:
            raise DiskFull(
                f"There is not enough space in {root}: {reason}. No partial file was left. Free some space; it will "
                "be retried later."
            ) from cause
        if error.errno in _NO_ACCESS:
            raise ArtifactStoreForbidden(
                f"Harvester cannot write in {root}: {reason}. Check its owner and mode."
            ) from cause
        raise ArtifactStoreFailed(
            f"{root} does not work: {reason}. It will be retried later; check the disk."
        ) from cause
