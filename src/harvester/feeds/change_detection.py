"""What a feed keeps about the file that was ingested last, to detect a new one."""

from typing import Final

from harvester.catalog.corrections import were_changed
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.settings import SETTINGS
from harvester.runs.models import Run

#: Raise it when the same file would be read differently: then every feed reads its file again.
PARSER_VERSION: Final = 11
INGESTED: Final = (
    *("last_remote_mtime", "last_remote_size", "last_content_hash", "last_ingested_run_no", "last_parser_version"),
)
#: Settings that lead to another file or to other rows: after a change, the next run must not skip the file.
REREAD_SETTINGS: Final = frozenset(name for name, setting in SETTINGS.items() if setting.rereads)


def expect_a_file(feed: Feed) -> tuple[str, ...]:
    """Begin a run: a file that an older parser read is read again. Return the columns that the caller has to save.

    From now on, a missing version means that the file was forgotten on request during the run.
    """
    if feed.last_parser_version != PARSER_VERSION:
        forget_ingested(feed)
    feed.last_parser_version = PARSER_VERSION
    return INGESTED


def remember_ingested(feed: Feed, run: Run) -> None:
    """Let later runs compare with the file of this one, unless it was forgotten meanwhile. The caller saves."""
    feed.last_ingested_run_no = run.no
    if feed.last_parser_version is not None:
        figures = FeedRun.objects.get(pk=run.pk)
        feed.last_remote_mtime, feed.last_remote_size = figures.remote_mtime, figures.remote_size
        feed.last_content_hash = run.artifact_hash


def forget_if_corrected(feed: Feed, run: Run) -> None:
    """After a promotion: let the file be read again if corrections changed since the run began. The caller saves.

    If a product lost or regained its offer meanwhile, the difference does not show whether the run saw it.
    """
    if were_changed(feed.source_id, since=run.started_at):
        forget_ingested(feed)


def forget_ingested(feed: Feed) -> tuple[str, ...]:
    """Let the next run read the file even if it is unchanged; return the columns that the caller has to save."""
    for name in INGESTED:
        setattr(feed, name, None)
    return INGESTED
