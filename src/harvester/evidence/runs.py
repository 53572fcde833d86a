"""Runs of actors: what `harvester.runs` needs to know about them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import connection as database
from django.db.models.functions import Now

from harvester.engine.errors import Snooze
from harvester.engine.job import RunningJob
from harvester.evidence import actors
from harvester.evidence.gates import GATES, ActorFacts
from harvester.evidence.jobs import RETRY, RUN
from harvester.evidence.models import ActorRun, Connection
from harvester.kernel.actor import system
from harvester.kernel.errors import TerminalError
from harvester.ops import audit
from harvester.runs import lifecycle
from harvester.runs.alerts import run_is_held
from harvester.runs.context import RunContext
from harvester.runs.endings import complete, succeed
from harvester.runs.gates import judge
from harvester.runs.kinds import Applied, HoldingKind, JobRunKind
from harvester.runs.models import Run
from harvester.runs.states import PROMOTED, RunOutcome, RunTrigger

#: The first half of the key of a connection's lock; "actr". The second is a hash of its id.
ACTOR_LOCK: Final = 0x61637472
#: Seconds until a run that has not ended is looked at again.
POLL_SECONDS: Final = 10.0

# A row is real if it has an id and is not a note about an error.
_REAL: Final = "item ? 'id' AND NOT item ?| ARRAY['error', 'errorCode', 'errorDescription', 'noResults']"
_KEEP_ROWS = """
INSERT INTO raw_items (run_id, place, item) SELECT %(run)s, r.place, r.item
FROM jsonb_array_elements(%(rows)s::jsonb) WITH ORDINALITY AS r (item, place)
"""
_FORGET_ROWS = "DELETE FROM raw_items WHERE run_id = %(run)s"
_COUNT_REAL = f"SELECT count(*) FROM raw_items WHERE run_id = %(run)s AND {_REAL}"  # noqa: S608 - constants only
_ITEMS = f"""
INSERT INTO evidence_items AS e (connection_id, item_key, run_no, item)
SELECT DISTINCT ON (item ->> 'id') %(connection)s, item ->> 'id', %(no)s, item
FROM raw_items WHERE run_id = %(run)s AND {_REAL} ORDER BY item ->> 'id', place DESC
ON CONFLICT (connection_id, item_key) DO UPDATE SET run_no = excluded.run_no, item = excluded.item
WHERE e.item <> excluded.item
"""  # noqa: S608 - constants only


class StartUnknown(TerminalError):
    """It is unknown whether the actor was started."""

    code = "START_UNKNOWN"


class ActorFailed(TerminalError):
    """The actor ended without success."""

    code = "ACTOR_FAILED"


@dataclass(frozen=True)
class _Locked:
    """What is known of a locked connection: the time by the database's clock."""

    moment: datetime


class ActorRuns(JobRunKind, HoldingKind):
    """A run starts an actor once, waits for its end, and keeps its rows; accepted rows become items."""

    name = "ACTOR"
    label = "Actor run"
    subject = "connection"
    actor = system("evidence")
    job_kind = RUN
    retry = RETRY
    stages: ClassVar = {
        "start": "Start the actor",
        "wait": "Wait for its end",
        "fetch": "Fetch its rows",
        "judge": "Judge, promote or hold",
    }
    figure_labels: ClassVar = {"rows": "rows", "real_rows": "real rows", "items_written": "items written"}
    list_columns: ClassVar = {"rows": "rows", "products": "items_written"}
    gates = GATES
    decision_figures = ("rows", "real_rows")

    def find_or_none(self, subject_id: UUID | str) -> Connection | None:
        try:
            return Connection.objects.filter(pk=subject_id).first()
        except ValidationError:
            return None

    def lock(self, cursor: Any, subject: Connection) -> tuple[Connection, _Locked]:
        locked = Connection.objects.select_for_update().get(pk=subject.pk)
        cursor.execute("SELECT clock_timestamp()")
        return locked, _Locked(cursor.fetchone()[0])

    def lock_key(self, subject: Connection) -> tuple[int, int]:
        return ACTOR_LOCK, subject.pk.int % 2**31

    def log_fields(self, subject: Connection) -> dict[str, str]:
        return {"connection_id": str(subject.pk), "actor": subject.actor}

    def source_id(self, subject: Connection) -> None:  # noqa: ARG002 - an actor run changes no prices
        return None

    def subject_names(self, subject_ids: Collection[UUID]) -> dict[UUID, str]:
        return dict(Connection.objects.filter(pk__in=subject_ids).values_list("pk", "name"))

    def shown_figures(self, run_ids: Collection[UUID]) -> dict[UUID, dict[str, Any]]:
        found = ActorRun.objects.filter(pk__in=run_ids).values("run_id", *self.figure_labels)
        return {figures.pop("run_id"): figures for figures in found}

    def is_wanted(self, subject: Connection, trigger: RunTrigger) -> bool:  # noqa: ARG002 - only people ask
        return subject.enabled

    def begin(self, run: Run, subject: Connection, **more: Any) -> None:  # noqa: ARG002 - for kinds with parts
        ActorRun.objects.create(run=run, connection=subject)

    def attempt(self, context: RunContext) -> None:
        with context.step("start"):
            figures = self._started(context)
        with context.step("wait"):
            status = actors.status(context.subject, figures.remote_run_id or "")
            if status not in actors.FINAL:
                raise Snooze(POLL_SECONDS, f"the actor is {status}")
            if status != "SUCCEEDED":
                raise ActorFailed(f"The actor ended as {status}. Nothing was changed.")
        with context.step("fetch"):
            found = actors.rows(context.subject, figures.dataset_id or "")
        with context.step("judge"), context.job.transaction(), database.cursor() as cursor:
            subject, state = self.lock(cursor, context.subject)
            self._end(context, cursor, subject, state, found)

    def _started(self, context: RunContext) -> ActorRun:
        """Start the actor unless an earlier attempt did."""
        figures = ActorRun.objects.get(pk=context.run.pk)
        if figures.remote_run_id:
            return figures
        if figures.start_sent_at:
            raise StartUnknown(
                "The actor was asked to start and the answer was lost. It is not asked again, because that might cost "
                "twice. Look at the runs of the actor, then run the connection again."
            )
        with context.job.transaction():
            context.note(start_sent_at=Now())
        started = actors.start(context.subject)
        with context.job.transaction():
            context.note(remote_run_id=started.run_id, dataset_id=started.dataset_id)
        return ActorRun.objects.get(pk=context.run.pk)

    def _end(self, context: RunContext, cursor: Any, subject: Connection, state: _Locked, found: list[Any]) -> None:
        run = context.run
        values = {"run": run.pk, "rows": json.dumps(found)}
        cursor.execute(_FORGET_ROWS, values)
        cursor.execute(_KEEP_ROWS, values)
        cursor.execute(_COUNT_REAL, values)
        [real] = cursor.fetchone()
        accepted = ActorRun.objects.filter(connection=subject, run__outcome__in=PROMOTED).order_by("-run__no")
        before = accepted.values_list("real_rows", flat=True).first() or 0
        verdict = judge(self.gates, ActorFacts(rows=len(found), real=real, real_before=before), None)
        context.note(rows=len(found), real_rows=real)
        context.note_verdict(verdict)
        outcome = RunOutcome.PROMOTED if verdict.passed else RunOutcome.HELD
        succeed(context, outcome, state.moment, observed_at=state.moment if verdict.passed else None)
        detail: dict[str, Any] = {"connection": str(subject.pk), "rows": len(found), "real_rows": real}
        if verdict.passed:
            detail["items_written"] = self._write_items(context, cursor)
            audit.record(self.actor, "RUN_PROMOTED", "run", run.id, detail=detail)
        else:
            detail["gates"] = [finding.gate for finding in verdict.holding]
            audit.record(self.actor, "RUN_HELD", "run", run.id, detail=detail)
            run_is_held(self, subject, run, verdict)
        complete(context, outcome)

    def _write_items(self, context: RunContext, cursor: Any) -> int:
        run = context.run
        cursor.execute(_ITEMS, {"connection": context.subject.pk, "run": run.pk, "no": run.no})
        written = int(cursor.rowcount)
        context.note(items_written=written)
        return written

    def failed(self, subject: Connection, run: Run, *, is_counted: bool, run_follows: bool) -> None:
        """Nothing follows: a connection runs only when somebody asks."""

    def figures(self, run: Run) -> dict[str, int]:
        found = ActorRun.objects.filter(pk=run.pk).values(*self.decision_figures).get()
        return {name: value or 0 for name, value in found.items()}

    def write_figures(self, run: Run, figures: Mapping[str, Any]) -> None:
        ActorRun.objects.filter(pk=run.pk).update(**figures)

    def apply(self, context: RunContext, cursor: Any, subject: Connection, state: _Locked) -> Applied:  # noqa: ARG002
        written = self._write_items(context, cursor)
        return Applied(moment=state.moment, observed_at=state.moment, detail={"items_written": written})

    def discard(self, context: RunContext, cursor: Any, state: _Locked) -> Applied:  # noqa: ARG002 - rows stay to be seen
        return Applied(moment=state.moment)


ACTOR_RUNS: Final = ActorRuns()


def run_connection(job: RunningJob, connection_id: str, trigger: str) -> dict[str, Any] | None:
    """Run an actor once."""
    return lifecycle.execute(ACTOR_RUNS, job, connection_id, trigger)
