"""Kept pages: compressed files named by the hash of the page, and a row for each page of a target.

    pages/ab/cdef...zst     the bytes of a page, as the shop sent them, never changed
    pages/.part-...         a file that is being written
    pages/.lock             keeps the clean-up from removing a file that is written again at that moment

The file is there before its row, and a row is deleted before its file, so a crash leaves at most a file without a row.
The clean-up removes those once they are an hour old: longer than any writer needs.
"""

import fcntl
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import structlog
import zstandard
from django.conf import settings
from django.db import connection

from harvester.engine.job import RunningJob
from harvester.guards.artifacts import DIRECTORY_MODE, FILE_MODE, artifact_path, translated_disk_errors
from harvester.kernel.errors import TerminalError
from harvester.kernel.ids import uuid7
from harvester.runs.models import RunPart
from harvester.scraping.models import KeptPage

log = structlog.get_logger(__name__)

DIRECTORY: Final = "pages"
#: Bytes of a page; what is larger is never fetched to its end, and a kept file that claims to be is damaged.
MOST_PAGE_BYTES: Final = 10 * 1024 * 1024
#: Halves the size again compared with gzip at its default, at two milliseconds for a usual page.
LEVEL: Final = 3
#: Bytes that are free before a page is requested: the largest page for some threads at once.
LEAST_FREE: Final = 64 * 1024 * 1024
#: Seconds after which a file without a row belongs to nobody: a writer adds the row within seconds.
ORPHAN_SECONDS: Final = 3600.0
#: Rows that one transaction of the clean-up deletes.
BATCH: Final = 1_000
GIGABYTE: Final = 1_000_000_000
_PART_PREFIX: Final = ".part-"
_LOCK_NAME: Final = ".lock"

#: What is deleted first where pages take too much room.
ANY, WRITTEN, QUARANTINED, NEWEST = 0, 1, 2, 3

# The page of a target is its newest one, whatever its outcome. `since` is what passed since the end of the response.
_KEEP = """
INSERT INTO kept_pages (id, hash, source_id, target_id, run_no, url, status, content_type, bytes, stored_bytes,
    fetched_at, keep_until)
SELECT %(id)s, %(hash)s, %(source)s, %(target)s, %(run_no)s, %(url)s, %(status)s, %(type)s, %(bytes)s, %(stored)s,
    at, at + interval '2 days' FROM (SELECT clock_timestamp() - %(since)s * interval '1 second' AS at) now
ON CONFLICT (target_id, hash) DO UPDATE SET fetched_at = excluded.fetched_at, run_no = excluded.run_no,
    url = excluded.url, status = excluded.status, content_type = excluded.content_type,
    stored_bytes = excluded.stored_bytes, keep_until = greatest(kept_pages.keep_until, excluded.keep_until)
RETURNING fetched_at
"""
# What was read from the pages of judged parts. A page whose observation is that of a price is kept for 14 days.
_NOTE = """
UPDATE kept_pages k SET found = p.found, outcome = p.outcome, version = p.version,
    importance = greatest(k.importance, p.is_written::int),
    keep_until = greatest(k.keep_until,
        k.fetched_at + CASE WHEN p.is_written THEN interval '14 days' ELSE interval '2 days' END)
FROM (
    SELECT p.*, EXISTS (
        SELECT FROM prices l WHERE l.source_id = t.source_id AND l.observed_at = p.observed_at
        AND l.source_product_id = coalesce(t.product_id, t.pinned_product_id)) AS is_written
    FROM run_parts p JOIN scrape_targets t ON t.id = p.target_id
    WHERE p.id = ANY (%(parts)s) AND p.begun_at = ANY (%(days)s)
) p
WHERE k.target_id = p.target_id AND k.hash = p.page
"""
# A page is needed while it is the newest of its target or an open or resolved entry of quarantine shows it.
_IS_NEWEST = """
NOT EXISTS (SELECT FROM kept_pages newer WHERE newer.target_id = k.target_id
            AND (newer.fetched_at, newer.id) > (k.fetched_at, k.id))
"""
_IS_SHOWN = "EXISTS (SELECT FROM quarantine q WHERE q.target_id = k.target_id AND q.page = k.hash)"
_DELETE_OLD = f"""
DELETE FROM kept_pages WHERE id IN (
    SELECT k.id FROM kept_pages k
    WHERE k.keep_until < clock_timestamp() AND NOT (k.target_id IS NOT NULL AND {_IS_NEWEST}) AND NOT {_IS_SHOWN}
    LIMIT %(most)s)
RETURNING stored_bytes
"""  # noqa: S608 - put together from constants
# One file may belong to several rows.
_SIZE = "SELECT coalesce(sum(size), 0) FROM (SELECT max(stored_bytes) AS size FROM kept_pages GROUP BY hash) files"
# The least important pages, the oldest first, until what is over the limit is gone.
_DELETE_LEAST = f"""
WITH ranked AS (
    SELECT k.id, k.stored_bytes,
        CASE WHEN k.target_id IS NOT NULL AND {_IS_NEWEST} THEN 3 WHEN {_IS_SHOWN} THEN 2 ELSE k.importance END AS rank,
        k.fetched_at
    FROM kept_pages k
), counted AS (
    SELECT id, sum(stored_bytes) OVER (ORDER BY rank, fetched_at, id) - stored_bytes AS before FROM ranked
), chosen AS (SELECT id FROM counted WHERE before < %(over)s ORDER BY before LIMIT %(most)s)
DELETE FROM kept_pages k USING chosen WHERE k.id = chosen.id RETURNING k.stored_bytes
"""  # noqa: S608 - put together from constants
_KNOWN = "SELECT DISTINCT hash FROM kept_pages WHERE hash = ANY (%s)"
_DELETE_REQUESTS = "DELETE FROM fetch_requests WHERE created_at < clock_timestamp() - interval '7 days'"


class PageMissing(TerminalError):
    """A kept page is no longer there, or its file is damaged."""

    code = "PAGE_MISSING"


@dataclass(frozen=True, kw_only=True)
class StoredBody:
    """The file of a page.

    Attributes:
        hash: SHA-256 of the bytes, in hexadecimal.
        size: of the bytes.
        stored: of the file.
    """

    hash: str
    size: int
    stored: int


@dataclass(frozen=True, kw_only=True)
class CleanedUp:
    """What a clean-up deleted."""

    expired: int = 0
    over_limit: int = 0
    files: int = 0
    file_bytes: int = 0


_local = threading.local()


def has_room() -> bool:
    """Return whether the disk has room for pages."""
    try:
        status = os.statvfs(_root())
    except FileNotFoundError:  # no page was ever kept
        return True
    return status.f_bavail * status.f_frsize >= LEAST_FREE


def store_body(body: bytes) -> StoredBody:
    """Write the bytes of a page to their file, unless they are there.

    Not flushed: after a power loss the page is fetched again, because reading back compares the hash.
    """
    name = hashlib.sha256(body).hexdigest()
    root = _root()
    path = _path(name)
    with translated_disk_errors(root):
        try:
            with _locked(root, fcntl.LOCK_SH):
                # The clean-up sees that it is in use again.
                os.utime(path)
                return StoredBody(hash=name, size=len(body), stored=path.stat().st_size)
        except FileNotFoundError:
            path.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        if not hasattr(_local, "compressor"):
            _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
        packed = _local.compressor.compress(body)
        part = root / f"{_PART_PREFIX}{secrets.token_hex(12)}"
        try:
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(packed)
            with _locked(root, fcntl.LOCK_SH):
                part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return StoredBody(hash=name, size=len(body), stored=len(packed))


def read_body(name: str) -> bytes:
    """Return the bytes of a kept page.

    Raises:
        PageMissing: the file is not there, or it is not what it was. A damaged one is removed.
    """
    path = _path(name)
    with translated_disk_errors(_root()):
        try:
            packed = path.read_bytes()
        except FileNotFoundError:
            raise PageMissing(f"The page {name[:12]} is no longer kept. Read it from the shop again.") from None
        try:
            with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
                body: bytes = reader.read(MOST_PAGE_BYTES + 1)
        except zstandard.ZstdError:
            body = b""
        if len(body) > MOST_PAGE_BYTES or hashlib.sha256(body).hexdigest() != name:
            path.unlink(missing_ok=True)
            raise PageMissing(f"The file of page {name[:12]} was damaged and is removed. Read it from the shop again.")
    return body


def keep(
    cursor: Any,
    body: StoredBody,
    *,
    url: str,
    status: int,
    content_type: str,
    since: float,
    source_id: UUID | None = None,
    target_id: UUID | None = None,
    run_no: int | None = None,
) -> datetime:
    """Add the row of a page whose file is there; return when the response ended. The transaction is the caller's.

    Args:
        cursor: of the caller's transaction.
        body: its file.
        url: where it came from, after redirects.
        status: of the response.
        content_type: of the response.
        since: seconds since the end of the response.
        source_id: the source, if there is one yet.
        target_id: the target, if there is one yet.
        run_no: the run that fetched it.
    """
    values = {
        "id": uuid7(), "hash": body.hash, "source": source_id, "target": target_id, "run_no": run_no, "url": url,
        "status": status, "type": content_type[:200], "bytes": body.size, "stored": body.stored, "since": since,
    }  # fmt: skip
    cursor.execute(_KEEP, values)
    observed_at: datetime = cursor.fetchone()[0]
    return observed_at


def note_readings(cursor: Any, parts: Sequence[RunPart]) -> None:
    """Write to kept pages what was read from them, once their batch is judged. The transaction is the caller's."""
    pages = [part for part in parts if part.page]
    if pages:
        values = {"parts": [part.pk for part in pages], "days": list({part.begun_at for part in pages})}
        cursor.execute(_NOTE, values)


def newest(target_id: UUID) -> KeptPage | None:
    """Return the newest kept page of a target."""
    return KeptPage.objects.filter(target_id=target_id).order_by("-fetched_at", "-id").first()


def clean_up(job: RunningJob) -> dict[str, Any]:
    """Delete pages that are no longer needed: rows in batches, then the files that no row needs."""
    expired = _delete_rows(job, _DELETE_OLD, {})
    over_limit = 0
    with connection.cursor() as cursor:
        cursor.execute(_SIZE)
        over = int(cursor.fetchone()[0]) - int(settings.CONFIG.keep_pages_gb * GIGABYTE)
    while over > 0:
        with job.transaction() as database, database.cursor() as cursor:
            # Each statement ranks all pages, so it deletes many.
            cursor.execute(_DELETE_LEAST, {"over": over, "most": 20 * BATCH})
            sizes = [size for (size,) in cursor.fetchall()]
        if not sizes:
            break
        over_limit += len(sizes)
        over -= sum(sizes)
        job.check()
    files, file_bytes = _remove_orphans(job)
    with job.transaction() as database, database.cursor() as cursor:
        cursor.execute(_DELETE_REQUESTS)
    done = {"expired": expired, "over_limit": over_limit, "files": files, "file_bytes": file_bytes}
    log.info("PAGES_CLEANED_UP", **done)
    return done


def _delete_rows(job: RunningJob, statement: str, values: dict[str, Any]) -> int:
    total = 0
    while True:
        with job.transaction() as database, database.cursor() as cursor:
            cursor.execute(statement, {**values, "most": BATCH})
            deleted = len(cursor.fetchall())
        total += deleted
        job.check()
        if deleted < BATCH:
            return total


def _remove_orphans(job: RunningJob) -> tuple[int, int]:
    """Remove old files without a row, and parts of killed writers. Return how many, and their bytes."""
    root, before = _root(), time.time() - ORPHAN_SECONDS
    files = size = 0
    with translated_disk_errors(root):
        for part in root.glob(f"{_PART_PREFIX}*"):
            with suppress(FileNotFoundError):
                if part.stat().st_mtime < before:
                    part.unlink()
        for directory in sorted(path for path in root.glob("??") if path.is_dir()):
            job.check()
            names = {directory.name + path.stem: path for path in directory.glob("*.zst")}
            with connection.cursor() as cursor:
                cursor.execute(_KNOWN, [list(names)])
                known = {name for (name,) in cursor.fetchall()}
            for path in (path for name, path in names.items() if name not in known):
                with suppress(FileNotFoundError), _locked(root, fcntl.LOCK_EX):
                    status = path.stat()
                    if status.st_mtime < before:
                        path.unlink()
                        files += 1
                        size += status.st_size
    return files, size


def _root() -> Path:
    return settings.CONFIG.home / DIRECTORY


def _path(name: str) -> Path:
    return artifact_path(_root(), name).with_suffix(".zst")


@contextmanager
def _locked(root: Path, strength: int) -> Iterator[None]:
    descriptor = os.open(root / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, strength)
        yield
    finally:
        os.close(descriptor)
