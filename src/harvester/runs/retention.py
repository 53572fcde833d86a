"""Deletes old runs, except those that other rows refer to. Prices and audit events are kept forever."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db import connection

from harvester.engine.job import RunningJob
from harvester.runs.kinds import all_kinds

BATCH = 1_000

# Materialized: some plans of a join would run the selection once per row, and each time find the next runs.
_DELETE = """
WITH old AS MATERIALIZED (
    SELECT r.id FROM runs r
    WHERE r.kind = %(kind)s AND r.started_at < %(before)s AND r.status <> 'RUNNING'
      AND r.outcome IS DISTINCT FROM 'HELD' AND r.ignored_at IS NULL AND NOT ({needed})
    ORDER BY r.started_at LIMIT %(most)s FOR UPDATE OF r SKIP LOCKED
)
DELETE FROM runs r USING old WHERE r.id = old.id RETURNING r.no, r.source_id
"""  # mutant: delete-runs


def delete_old_runs(job: RunningJob, before: datetime) -> Iterator[int]:
    """Delete runs that began before this moment, in batches, each in its own transaction; yield the number of each."""
    for kind in all_kinds():
        values: dict[str, Any] = {"kind": kind.name, "before": before, "most": BATCH}
        deleted = BATCH
        while deleted == BATCH:
            with job.transaction(), connection.cursor() as cursor:
                cursor.execute(_DELETE.format(needed=kind.needed_sql), values)
                gone = cursor.fetchall()
                deleted = len(gone)
                if gone:
                    kind.runs_deleted(cursor, gone)
            if deleted:
                yield deleted
