"""A dump or a report keeps an old snapshot open: what was claimed meanwhile stays in the way of a naive claim."""

from contextlib import contextmanager

from psycopg import IsolationLevel

from harvester.engine import claim, sql
from harvester.engine.claim import _BEGINNING, Claimer
from harvester.engine.connections import connect
from harvester.engine.enqueue import NewJob, enqueue_many
from harvester.engine.outcomes import settle_in, succeeded

JOBS = 3000
BATCH = 50


def test_a_claim_with_an_old_snapshot_reads_as_little_as_the_first_one(database, monkeypatch):
    """Counted in pages, not in seconds. The thousands of rows claimed meanwhile cannot be cleaned up."""
    monkeypatch.setattr(claim, "FULL_LOOK_SECONDS", 3600)
    enqueue_many([NewJob(kind="test.noop")] * JOBS)
    with old_snapshot(), connect("test") as session:
        watched = Watched(session)
        claimer = Claimer(worker="w", queues=[])
        claim_and_end(watched, claimer)
        first = pages_read(session, watched.claim)
        for _ in range(JOBS // BATCH - 2):
            claim_and_end(watched, claimer)
        remembered = pages_read(session, watched.claim)
        forgotten = pages_read(session, watched.claim | beginning(watched.claim))
    assert remembered <= first + 2
    assert forgotten > 5 * remembered


def test_with_an_old_snapshot_no_ending_and_no_heartbeat_reads_all_jobs_that_ever_ran(database):
    """Counted in index entries: the running jobs are few, but what ran since the snapshot stays in their index."""
    enqueue_many([NewJob(kind="test.noop")] * JOBS)
    with old_snapshot(), connect("test") as session:
        session.execute("ANALYZE jobs")
        claimer = Claimer(worker="w", queues=[])
        before = entries_read(session)
        for _ in range(JOBS // BATCH):
            jobs = claimer.claim(session, BATCH)
            keys = {"ids": [job.id for job in jobs], "leases": [job.lease for job in jobs]}
            assert len(session.execute(sql.HEARTBEAT, {**keys, "progress": [None] * BATCH}).fetchall()) == BATCH
            assert len(session.execute(sql.STILL_HELD, keys).fetchall()) == BATCH
            with session.cursor() as cursor:
                settled = settle_in(cursor, [succeeded(job, None) for job in jobs])
            assert len(settled) == BATCH
        assert entries_read(session) - before < JOBS


def entries_read(session):
    session.execute("SELECT pg_stat_force_next_flush()")
    read = "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'jobs_running'"
    return session.execute(read).fetchone()[0]


class Watched:
    """A session that remembers with which values jobs were claimed last."""

    def __init__(self, session):
        self._session = session
        self.claim = {}

    def execute(self, query, values=None):
        if query == sql.CLAIM:
            self.claim = values
        return self._session.execute(query, values)

    def cursor(self):
        return self._session.cursor()


def claim_and_end(session, claimer):
    jobs = claimer.claim(session, BATCH)
    assert len(jobs) == BATCH
    with session.cursor() as cursor:
        settle_in(cursor, [succeeded(job, None) for job in jobs])


def pages_read(session, values):
    """The pages of index and table in which a claim looks for jobs."""
    with session.transaction(force_rollback=True):
        [plan] = session.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql.CLAIM}", values).fetchone()
    scans = [node for node in nodes(plan[0]["Plan"]) if node.get("Index Name") == "jobs_ready"]
    assert scans, plan
    return sum(scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] for scan in scans)


def nodes(plan):
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def beginning(values):
    moment, number = _BEGINNING
    return {"after_at": [moment] * len(values["after_at"]), "after_id": [number] * len(values["after_id"])}


@contextmanager
def old_snapshot():
    with connect("test") as session:
        session.isolation_level = IsolationLevel.REPEATABLE_READ
        with session.transaction():
            session.execute("SELECT count(*) FROM jobs")
            yield
