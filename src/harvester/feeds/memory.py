"""What a feed remembers of the file that was ingested last, to see whether there is a new one."""

from typing import Final

from harvester.catalog.models import Run
from harvester.feeds.models import Feed, FeedRun

#: Raise it whenever the same file would be read differently: then every feed reads its file again.
PARSER_VERSION: Final = 1
INGESTED: Final = (
    *("last_remote_mtime", "last_remote_size", "last_content_hash", "last_ingested_run_no", "last_parser_version"),
)
#: Another file, or the same file read another way: the next run must not take it for the one that is known.
READS_ANEW: Final = frozenset({
    "network", "transport", "host", "port", "path", "username", "encoding", "default_currency", "decimal_style",
    "max_file_bytes", "max_rows", "max_products",
})  # fmt: skip


def remember_ingested(feed: Feed, run: Run, read_as: Feed) -> None:
    """Later runs compare with the file of this one. Saved by the caller.

    Unless the feed was changed while the run was at work: then the file was read as nobody wants it any more.
    """
    figures = FeedRun.objects.get(pk=run.pk)
    feed.last_ingested_run_no, feed.last_parser_version = run.no, PARSER_VERSION
    if any(getattr(feed, name) != getattr(read_as, name) for name in READS_ANEW):
        feed.last_remote_mtime = feed.last_remote_size = feed.last_content_hash = None
        return
    feed.last_remote_mtime, feed.last_remote_size = figures.remote_mtime, figures.remote_size
    feed.last_content_hash = run.artifact_hash


def forget_ingested(feed: Feed) -> tuple[str, ...]:
    """Have the next run read the file even if it is the same; answers the columns that the caller has to save."""
    for name in INGESTED:
        setattr(feed, name, None)
    return INGESTED


def was_read_by_another_parser(feed: Feed) -> bool:
    return feed.last_parser_version not in (None, PARSER_VERSION)
