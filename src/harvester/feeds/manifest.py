"""The partner's manifest: rows and size that the file of a feed must have."""

import posixpath
from collections.abc import Collection
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from harvester.feeds.errors import ManifestUnreadable
from harvester.feeds.models import Feed
from harvester.feeds.networks import network_named
from harvester.feeds.notices import Notice, NoticeCode
from harvester.guards.remote import NotAFile, PermissionDenied, RemoteFileNotFound, RemoteFiles
from harvester.kernel.network import ManifestEntry
from harvester.kernel.xml_records import UnreadableXml

#: A manifest lists a few thousand files at most.
MAX_MANIFEST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What the manifest says about a file.

    Attributes:
        rows: number of rows, if the manifest has it.
        size: bytes, if the manifest has it.
        problem: why an entry for the file could not be used, as sentences.
    """

    rows: int | None = None
    size: int | None = None
    problem: str = ""

    def notices(self) -> list[Notice]:
        return [Notice(code=NoticeCode.MANIFEST_UNUSABLE, message=self.problem)] if self.problem else []


def read_expected(feed: Feed, remote: RemoteFiles, log: FilteringBoundLogger) -> Expected:
    """Return what the manifest says about the feed's file; nothing if it is missing or must not be read.

    Raises:
        ManifestUnreadable: it cannot be parsed.
    """
    network = network_named(feed.network)
    if not feed.use_manifest or not network.manifest_name or not network.read_manifest:
        return Expected()
    path = f"/{network.manifest_name}"
    try:
        document = remote.read_small(path, cap_bytes=MAX_MANIFEST_BYTES)
    except RemoteFileNotFound:
        return Expected()
    except (PermissionDenied, NotAFile) as refusal:
        log.info("MANIFEST_NOT_READABLE", path=path, error=str(refusal))
        return Expected()
    try:
        return expected_of(network.read_manifest(document), feed.path)
    except UnreadableXml as problem:
        raise ManifestUnreadable(
            f"The partner's manifest {path} cannot be read: {problem} Nothing was changed. If this persists, ask the "
            "partner, or switch the feed's manifest check off."
        ) from None


def expected_of(entries: Collection[ManifestEntry], path: str) -> Expected:
    """Return what the entries for a path say. An entry with the same letter case is preferred."""
    wanted = normalized(path)
    found = [entry for entry in entries if normalized(entry.location) == wanted]
    found = found or [entry for entry in entries if normalized(entry.location).casefold() == wanted.casefold()]
    problems = [f"its {unusable}" for entry in found for unusable in entry.unusable]
    rows = {entry.records for entry in found if entry.records is not None}
    sizes = {entry.size for entry in found if entry.size is not None}
    if len(rows) > 1:
        problems.append("its entries give different numbers of records")
    if len(sizes) > 1:
        problems.append("its entries give different sizes")
    problem = f"The manifest has an entry for {path} that cannot be used: {'; '.join(problems)}." if problems else ""
    checked = [name for name, values in (("rows", rows), ("size", sizes)) if len(values) == 1]
    if problem:
        problem += f" Checked by it: {' and '.join(checked) or 'nothing'}."
    return Expected(
        rows=rows.pop() if len(rows) == 1 else None, size=sizes.pop() if len(sizes) == 1 else None, problem=problem
    )


def normalized(path: str) -> str:
    """Return an absolute path without empty parts, `.` and `..`."""
    return posixpath.normpath("/" + path.strip().lstrip("/"))
