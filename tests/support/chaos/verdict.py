"""What must be true when everything is over, read from the database alone."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.support.chaos.kinds import FINISHING, KEYED
from tests.support.tables import rows

TABLES = {FINISHING: "chaos_finishing", KEYED: "chaos_keyed"}

#: Leases of one lane that overlap in time.
OVERLAPS = """
WITH changes AS (
    SELECT j.lane, e.job_id, e.state, e.at AS began,
           lead(e.at) OVER (PARTITION BY e.job_id ORDER BY e.id) AS ended
    FROM job_events e JOIN jobs j ON j.id = e.job_id WHERE j.lane IS NOT NULL
), leases AS (
    SELECT *, max(ended) OVER (PARTITION BY lane ORDER BY began ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        AS busy_until
    FROM changes WHERE state = 'running'
)
SELECT lane, job_id FROM leases WHERE began < busy_until
"""


def violations(acknowledged: Iterable[str]) -> Iterator[str]:
    left = rows("SELECT id, state, error_type FROM jobs WHERE state <> 'succeeded' ORDER BY id")
    yield from (f"job {job_id} is {state} ({error})" for job_id, state, error in left)
    twice = rows("SELECT job_id FROM job_events WHERE state = 'succeeded' GROUP BY job_id HAVING count(*) > 1")
    yield from (f"job {job_id} ended more than once" for (job_id,) in twice)
    for kind, table in TABLES.items():
        yield from _wrong_effects(kind, table, set(acknowledged))
    yield from (f"{lane} was given to job {job_id} while it was taken" for lane, job_id in rows(OVERLAPS))


def _wrong_effects(kind: str, table: str, acknowledged: set[str]) -> Iterator[str]:
    jobs = {key for (key,) in rows("SELECT args->>'key' FROM jobs WHERE kind = %s", kind)}
    effects = Counter(key for (key,) in rows(f"SELECT key FROM {table}"))
    yield from (f"the effect of {key} ({kind}) is lost" for key in sorted(jobs - set(effects)))
    yield from (f"{key} ({kind}) has {times} effects" for key, times in effects.items() if times != 1)
    yield from (f"{key} ({kind}) has an effect and no job" for key in sorted(set(effects) - jobs))
    everywhere = {key for (key,) in rows("SELECT args->>'key' FROM jobs")}
    yield from (f"{key} was acknowledged and is gone" for key in sorted(acknowledged - everywhere))


def figures(logs: Path) -> dict[str, int]:
    """Figures for the table; none of them is right or wrong."""
    rescued = "SELECT count(*) FROM job_events WHERE detail LIKE '%% stopped responding for %%'"
    said = Counter(_events(logs))
    return {
        "jobs": rows("SELECT count(*) FROM jobs")[0][0],
        "attempts": rows("SELECT count(*) FROM job_events WHERE state = 'running'")[0][0],
        "jobs rescued": rows(rescued)[0][0],
        "claims given back after a lost answer": _details("claimed, but the answer to the claim was lost"),
        "jobs handed back by stopping workers": _details("handed back by a stopping worker"),
        "endings refused because the lease was lost": said["JOB_LEASE_LOST"],
        "dispatch sessions of frozen workers ended": said["FROZEN_DISPATCH_ENDED"],
    }


def _details(detail: str) -> int:
    return rows("SELECT count(*) FROM job_events WHERE detail = %s", detail)[0][0]


def _events(logs: Path) -> Iterator[str]:
    for log in logs.glob("*.log"):
        for line in log.read_text().splitlines():
            yield from (word for word in line.split() if word.isupper() and "_" in word)


def deadlocks(server_log: Path) -> Iterator[str]:
    found = server_log.read_text(errors="replace").count("deadlock detected")
    if found:
        yield f"the server's log has {found} deadlocks"
