"""The files of runs, as partners wrote them, and the store that has them.

Downloads are audited: a file may have data that pages would redact.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO
from uuid import UUID

from django.conf import settings
from django.db import transaction

from harvester.feeds import queries
from harvester.feeds.models import FeedRun
from harvester.guards.artifacts import ArtifactStore
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict
from harvester.ops import audit
from harvester.runs.models import Run

DIRECTORY = "artifacts"


def artifact_store() -> ArtifactStore:
    """Return the store of this installation; machines share it by sharing the directory `artifacts` of the home."""
    return ArtifactStore(settings.CONFIG.home / DIRECTORY)


_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
#: Characters kept of the name that the file has on the partner's server.
LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file for a download.

    Attributes:
        content: open for reading; the caller closes it.
        name: harmless in every file system.
    """

    content: BinaryIO
    name: str


def is_kept(run: Run) -> bool:
    """Return whether the file of a run is available on this machine."""
    sha256 = hash_of(run)
    return sha256 is not None and artifact_store().has(sha256)


def hash_of(run: Run) -> str | None:
    """Return the hash of the file that a run read, or only downloaded before it failed; None without one.

    `artifact_hash` is set once a file is known to be complete, so that a retry reads the same one. `fetched_hash` is
    also set for a file that could not be read.
    """
    if run.artifact_hash is not None:
        return run.artifact_hash
    return FeedRun.objects.filter(pk=run.pk).values_list("fetched_hash", flat=True).first()


def hand_out(actor: Actor, run_id: UUID) -> KeptFile:
    """Open the file of a run with any outcome.

    Raises:
        RunNotFound: there is no such run of a feed.
        Conflict: the run has downloaded no file.
        ArtifactMissing: the file was deleted.
    """
    figures = queries.feed_run(run_id)
    feed, run = figures.feed, figures.run
    sha256 = hash_of(run)
    if sha256 is None:
        raise Conflict(f"Run {run.no} did not download a file, so none is available.")
    content = artifact_store().open(sha256)
    with transaction.atomic():
        detail = {"feed": str(feed.id), "sha256": sha256}
        audit.record(actor, "RUN_FILE_DOWNLOADED", "run", run.id, detail=detail)
    known = _UNSAFE.sub("_", PurePosixPath(feed.path).name)[-LONGEST_NAME:].lstrip(".")
    return KeptFile(content=content, name=f"run-{run.no}-{known or 'catalog'}")
