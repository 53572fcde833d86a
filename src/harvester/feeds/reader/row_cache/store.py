"""The cache files: the rows of each source's last promoted file, so that the next run parses only new records.

    known/<source>.rows     of one source, mode 0600, replaced in one step

A cache only saves time: without it, or if anything about it is wrong, the whole file is parsed.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

from harvester.feeds.change_detection import PARSER_VERSION
from harvester.feeds.reader import Parsing
from harvester.feeds.reader.row_cache.file import CachedRows, CacheWriter
from harvester.feeds.reader.row_cache.reuse import RowCache
from harvester.feeds.reader.spool import Spool
from harvester.feeds.run_context import FeedRunContext
from harvester.guards.artifacts import translated_disk_errors

DIRECTORY = "known"
SUFFIX = ".rows"


def cache_path(source_id: UUID) -> Path:
    return settings.CONFIG.home / DIRECTORY / f"{source_id}{SUFFIX}"


@contextmanager
def use_cache(context: FeedRunContext, parsing: Parsing, spool: Spool, *, looks: bool) -> Iterator[CacheWriter | None]:
    """Let a file be parsed with the row cache, and its rows be written to a new one.

    With `looks` off, no rows are taken from the cache. There is none for a file whose rows depend on the moment.
    """
    if parsing.key is None:
        with suppress(OSError):
            cache_path(context.feed.source_id).unlink(missing_ok=True)
        yield None
        return
    key = f"{context.feed.source_id} {PARSER_VERSION} {context.feed.encoding} {parsing.key}"
    with ExitStack() as opened:
        cached = CachedRows.open(cache_path(context.feed.source_id), key) if looks else None
        if cached:
            opened.enter_context(cached)
        writer = opened.enter_context(CacheWriter(spool.path(DIRECTORY), key))
        parsing.use(RowCache(cached, writer))
        yield writer


def publish_cache(context: FeedRunContext, written: CacheWriter | None) -> None:
    """Make the rows of a promoted run the cache of the next one. If this fails, the run does not."""
    if written is None:
        return
    try:
        written.publish(cache_path(context.feed.source_id))
    except OSError as error:
        context.log.warning("KNOWN_ROWS_NOT_KEPT", reason=os.strerror(error.errno) if error.errno else str(error))


def remove_all_except(source_ids: set[UUID]) -> int:
    """Remove the caches of sources that have no feed any more; return how many."""
    directory, kept = settings.CONFIG.home / DIRECTORY, {str(source_id) for source_id in source_ids}
    gone = [path for path in directory.glob(f"*{SUFFIX}") if path.stem not in kept]
    with translated_disk_errors(directory):
        for path in gone:
            path.unlink(missing_ok=True)
    return len(gone)
