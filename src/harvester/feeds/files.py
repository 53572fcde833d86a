"""Handing out the file that a run has read, as the partner wrote it. Audited: it may hold what pages would redact."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import BinaryIO
from uuid import UUID

from django.db import transaction

from harvester.catalog.models import Run
from harvester.feeds.decide import run_of
from harvester.feeds.models import Feed
from harvester.feeds.store import artifact_store
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict
from harvester.ops import audit

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
#: Of the name that the file has at the partner's.
LONGEST_NAME = 100


@dataclass(frozen=True, kw_only=True)
class KeptFile:
    """A file to hand out.

    Attributes:
        content: open for reading; whoever got it closes it.
        name: harmless in every file system.
    """

    content: BinaryIO
    name: str


def is_kept(run: Run) -> bool:
    """Whether the file of a run can still be had on this machine."""
    return run.artifact_hash is not None and artifact_store().has(run.artifact_hash)


def hand_out(actor: Actor, run_id: UUID) -> KeptFile:
    """Open the file of a run.

    Raises:
        RunNotFound: there is no such run of a feed.
        Conflict: the run has read no file, or none that was whole.
        ArtifactMissing: it is not kept any more.
    """
    feed, run = run_of(run_id)
    if run.artifact_hash is None:
        raise Conflict(f"Run {run.no} has read no whole file, so there is none to have.")
    content = artifact_store().open(run.artifact_hash)
    with transaction.atomic():
        detail = {"feed": str(feed.id), "sha256": run.artifact_hash}
        audit.record(actor, "RUN_FILE_DOWNLOADED", "run", run.id, detail=detail)
    return KeptFile(content=content, name=_name(feed, run))


def _name(feed: Feed, run: Run) -> str:
    known = _UNSAFE.sub("_", PurePosixPath(feed.path).name)[-LONGEST_NAME:].lstrip(".")
    return f"run-{run.no}-{known or 'catalog'}"
