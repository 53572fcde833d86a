"""What a feed remembers of the file that was ingested last, to see whether there is a new one."""

from typing import Final

from harvester.catalog.models import Run
from harvester.feeds.models import Feed, FeedRun

#: Raise it whenever the same file would be read differently: then every feed reads its file again.
PARSER_VERSION: Final = 1
INGESTED: Final = (
    *("last_remote_mtime", "last_remote_size", "last_content_hash", "last_ingested_run_no", "last_parser_version"),
)


def remember_ingested(feed: Feed, run: Run) -> None:
    """Later runs compare with the file of this one. Saved by the caller."""
    figures = FeedRun.objects.get(pk=run.pk)
    feed.last_remote_mtime, feed.last_remote_size = figures.remote_mtime, figures.remote_size
    feed.last_content_hash, feed.last_ingested_run_no = run.artifact_hash, run.no
    feed.last_parser_version = PARSER_VERSION


def forget_ingested(feed: Feed) -> tuple[str, ...]:
    """Have the next run read the file even if it is the same; answers the columns that the caller has to save."""
    for name in INGESTED:
        setattr(feed, name, None)
    return INGESTED


def was_read_by_another_parser(feed: Feed) -> bool:
    return feed.last_parser_version not in (None, PARSER_VERSION)
