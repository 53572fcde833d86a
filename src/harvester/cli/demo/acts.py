"""What each part of the story shows, and what proves that it came out. Needs Django."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from harvester.cli.demo import kinds as kinds  # noqa: PLC0414 - registers the kinds of jobs
from harvester.cli.job_views import database_now, details
from harvester.engine.enqueue import enqueue
from harvester.engine.states import ENDED, JobState

Details = list[dict[str, Any]]
Proof = Callable[[Details], bool]
#: Seconds. Far beyond the demo, so that the job is still there to be looked at.
LATER = 3600.0
LANE = "demo-shop.example"


@dataclass
class Act:
    """One thing that is shown.

    Attributes:
        title: what happens.
        shows: what that means.
        job_ids: the jobs.
        wanted: the state in which they must end up.
        proof: what else must be true of them.
    """

    title: str
    shows: str
    job_ids: Sequence[int]
    wanted: JobState = JobState.SUCCEEDED
    proof: Proof = field(default=lambda _jobs: True)
    jobs: Details = field(default_factory=list)

    def look(self) -> bool:
        """Whether it is over; what was seen is kept."""
        self.jobs = [details(job_id) for job_id in self.job_ids]
        over = (*ENDED, self.wanted)
        return all(job["state"] in over for job in self.jobs)

    @property
    def came_out(self) -> bool:
        return all(job["state"] == self.wanted for job in self.jobs) and self.proof(self.jobs)

    @property
    def attempts(self) -> int:
        return sum(len(job["attempts"]) for job in self.jobs)

    @property
    def seconds(self) -> float | None:
        if any(job["finished_at"] is None for job in self.jobs):
            return None
        began = min(job["created_at"] for job in self.jobs)
        return float((max(job["finished_at"] for job in self.jobs) - began).total_seconds())


def all_acts() -> dict[str, Act]:
    """Enqueue the jobs of every act; the one that takes longest comes first."""
    killed = Act(
        "loses its worker to kill -9",
        "the job is rescued, and another worker finishes it",
        [enqueue("demo.long_import").job_id],
        proof=_was_rescued,
    )
    return {"killed": killed, **_endings(), **_ways()}


def _endings() -> dict[str, Act]:
    """How a job can end."""
    return {
        "succeeds": Act("succeeds", "the plain case", [enqueue("demo.greet", {"name": "world"}).job_id]),
        "retried": Act(
            "fails once",
            "tried again by itself, and succeeds",
            [enqueue("demo.flaky_fetch").job_id],
            proof=lambda jobs: len(jobs[0]["attempts"]) == 2,  # noqa: PLR2004 - the first fails, the second succeeds
        ),
        "failed": Act(
            "cannot succeed",
            "fails at once, stays visible, can be retried by a person",
            [enqueue("demo.broken_feed").job_id],
            JobState.FAILED,
            lambda jobs: len(jobs[0]["attempts"]) == 1,
        ),
        "cancelled": Act(
            "is cancelled while it runs",
            "stops at its next check",
            [enqueue("demo.endless_crawl").job_id],
            JobState.CANCELLED,
        ),
    }


def _ways() -> dict[str, Act]:
    """What can happen to a job on its way."""
    now = database_now()
    return {
        "snoozed": Act(
            "asks to come back later",
            "waits without a slot and without losing an attempt",
            [enqueue("demo.polite_fetch", {"put_in_at": now.timestamp()}, run_at=now).job_id],
            proof=lambda jobs: _has_event(jobs[0], "snoozed") and jobs[0]["attempt"] == 1,
        ),
        "progress": Act(
            "says how far it is",
            "live progress, in the portal as well",
            [enqueue("demo.import_catalog", {"rows": 60}).job_id],
            proof=lambda jobs: bool(jobs[0]["progress"]),
        ),
        "lane": Act(
            "shares its lane with two others",
            "they run one after the other, on any number of workers",
            [enqueue("demo.one_at_a_time", {"page": page}, lane=LANE).job_id for page in (1, 2, 3)],
            proof=_one_after_the_other,
        ),
        "later": Act(
            "is for later",
            "waits for its time, and survives restarts",
            [enqueue("demo.nightly_report", delay=LATER, dedupe_key="demo:nightly").job_id],
            JobState.PENDING,
        ),
    }


def _has_event(job: dict[str, Any], word: str) -> bool:
    return any(word in (event["detail"] or "") for event in job["events"])


def _was_rescued(jobs: Details) -> bool:
    """Two attempts by two workers, the first of which was lost."""
    attempts = jobs[0]["attempts"]
    outcomes = [attempt["outcome"] for attempt in attempts]
    return outcomes == [JobState.RETRYABLE, JobState.SUCCEEDED] and attempts[0]["worker"] != attempts[1]["worker"]


def _one_after_the_other(jobs: Details) -> bool:
    runs = sorted((run["started_at"], run["ended_at"]) for job in jobs for run in job["attempts"])
    return len(runs) == len(jobs) and all(first[1] <= second[0] for first, second in itertools.pairwise(runs))
