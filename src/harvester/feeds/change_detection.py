"""What a feed remembers of the file that was ingested last, to see whether there is a new one."""

from typing import Final

from harvester.catalog.corrections import were_changed
from harvester.feeds.models import Feed, FeedRun
from harvester.runs.models import Run

#: Raise it whenever the same file would be read differently: then every feed reads its file again.
PARSER_VERSION: Final = 10
INGESTED: Final = (
    *("last_remote_mtime", "last_remote_size", "last_content_hash", "last_ingested_run_no", "last_parser_version"),
)
#: Another file, or the same file read another way: the next run must not take it for the one that is known.
READS_ANEW: Final = frozenset({
    "network", "transport", "host", "port", "path", "username", "encoding", "default_currency", "decimal_style",
    "unknown_stock", "kept_parameters", "max_file_bytes", "max_rows", "max_products",  # mutant: reads-anew
})  # fmt: skip


def expect_a_file(feed: Feed) -> tuple[str, ...]:
    """A run begins: a file that another parser read is read again. Answers the columns that the caller has to save.

    From now on a missing version says that somebody had the file forgotten while the run was at work.
    """
    if feed.last_parser_version != PARSER_VERSION:
        forget_ingested(feed)
    feed.last_parser_version = PARSER_VERSION
    return INGESTED


def remember_ingested(feed: Feed, run: Run) -> None:
    """Later runs compare with the file of this one, unless it was forgotten meanwhile. Saved by the caller."""
    feed.last_ingested_run_no = run.no
    if feed.last_parser_version is not None:
        figures = FeedRun.objects.get(pk=run.pk)
        feed.last_remote_mtime, feed.last_remote_size = figures.remote_mtime, figures.remote_size
        feed.last_content_hash = run.artifact_hash


def forget_if_corrected(feed: Feed, run: Run) -> None:
    """A run is promoted: have its file read again if corrections changed since it began. Saved by the caller.

    Where a product lost or regained its offer meanwhile, the difference does not tell whether the run saw it.
    """
    if were_changed(feed.source_id, since=run.started_at):
        forget_ingested(feed)


def forget_ingested(feed: Feed) -> tuple[str, ...]:
    """Have the next run read the file even if it is the same; answers the columns that the caller has to save."""
    for name in INGESTED:
        setattr(feed, name, None)
    return INGESTED
