"""The rows of each feed's last promoted file, kept so that the next run parses only what is new.

    known/<source>.rows     of one source, mode 0600, replaced in one step

It saves time and decides nothing: without it, or if anything about it is not as it should be, the whole file is parsed.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

from harvester.feeds.change_detection import PARSER_VERSION
from harvester.feeds.reader import Parsing
from harvester.feeds.reader.row_cache.reader import KeptRows
from harvester.feeds.reader.row_cache.reuse import Known
from harvester.feeds.reader.row_cache.writer import KeptWriter
from harvester.feeds.reader.spool import Spool
from harvester.feeds.run_context import Work
from harvester.guards.artifacts import told_plainly

DIRECTORY = "known"
SUFFIX = ".rows"


def known_path(source_id: UUID) -> Path:
    return settings.CONFIG.home / DIRECTORY / f"{source_id}{SUFFIX}"


@contextmanager
def knowing(work: Work, parsing: Parsing, spool: Spool, *, looks: bool) -> Iterator[KeptWriter | None]:
    """Let a file be parsed with what is known, unless nothing is to be looked for, and its own rows be written.

    Nothing is known and nothing written of a file whose rows depend on the moment.
    """
    if parsing.key is None:
        with suppress(OSError):
            known_path(work.feed.source_id).unlink(missing_ok=True)
        yield None
        return
    key = f"{work.feed.source_id} {PARSER_VERSION} {work.feed.encoding} {parsing.key}"
    with ExitStack() as opened:
        kept = KeptRows.open(known_path(work.feed.source_id), key) if looks else None
        if kept:
            opened.enter_context(kept)
        writer = opened.enter_context(KeptWriter(spool.beside(DIRECTORY), key))
        parsing.use(Known(kept, writer))
        yield writer


def keep(work: Work, written: KeptWriter | None) -> None:
    """The run was promoted: the next one looks for its rows. That this fails is no failure of the run."""
    if written is None:
        return
    try:
        written.publish(known_path(work.feed.source_id))
    except OSError as error:
        work.log.warning("KNOWN_ROWS_NOT_KEPT", reason=os.strerror(error.errno) if error.errno else str(error))


def forget_all_but(source_ids: set[UUID]) -> int:
    """Remove what is kept for sources that have no feed any more; how many files those were."""
    directory, kept = settings.CONFIG.home / DIRECTORY, {str(source_id) for source_id in source_ids}
    gone = [path for path in directory.glob(f"*{SUFFIX}") if path.stem not in kept]
    with told_plainly(directory):
        for path in gone:
            path.unlink(missing_ok=True)
    return len(gone)
