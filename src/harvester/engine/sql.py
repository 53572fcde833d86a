"""All statements that write the engine's tables, and the reads that claims depend on.

Locks, by strength, and why:

* a claim takes ready rows FOR UPDATE SKIP LOCKED: no claimer waits, and no two get the same row;
* a fenced transaction holds FOR KEY SHARE on its own job row: it does not block heartbeats, and makes every
  FOR UPDATE of that row (the rescuer's, a forced ending's) skip it or wait;
* heartbeats and endings take FOR NO KEY UPDATE in the order of ids, so that they cannot deadlock;
* the rescuer takes FOR NO KEY UPDATE SKIP LOCKED first: it skips a row that any live session holds, and a frozen
  worker's own fence does not block it. Once the writers are gone it takes FOR UPDATE NOWAIT in the same transaction,
  which fails if a writer has resumed and opened a new fence. The only lock that does not block it is that of the
  attempt's own writer, which has ended the job in its transaction and froze before it committed;
* only claimers lock rows of job_lanes, and they never wait for one.

A statement with a lease always means a running job: only those have one. It leaves the state out on purpose. With it,
the planner may read the index of all running jobs, in which an old snapshot elsewhere (a dump, a report) keeps every
job that ever ran (measured: 288 million entries read for 250,000 jobs).

`statement_timestamp()` is used where an index is searched with it, because it is stable within a statement;
`clock_timestamp()` where the exact time is recorded.
"""

READY = "state IN ('pending', 'retryable')"

# The priority of a lane without waiting jobs.
_NO_PRIORITY = -32768

# Notifies workers at commit: the priority and the queue of a new job.
_NOTIFY = "pg_notify('harvester_jobs', priority || ' ' || queue)"

# Inserts jobs, their first events and the wakeups of their lanes, and notifies listening workers at commit.
# A job whose dedupe key is taken by an open job is not in the answer.
ENQUEUE = f"""
WITH made AS (
    INSERT INTO jobs (kind, queue, lane, dedupe_key, args, priority, run_at, max_attempts)
    SELECT i.kind, i.queue, i.lane, i.dedupe_key, i.args, i.priority,
           coalesce(i.run_at, statement_timestamp() + i.delay * interval '1 second'), i.max_attempts
    FROM unnest(%(kind)s::text[], %(queue)s::text[], %(lane)s::text[], %(dedupe_key)s::text[],
                %(args)s::jsonb[], %(priority)s::smallint[], %(run_at)s::timestamptz[],
                %(delay)s::float8[], %(max_attempts)s::smallint[])
         WITH ORDINALITY
         AS i(kind, queue, lane, dedupe_key, args, priority, run_at, delay, max_attempts, place)
    ORDER BY i.place
    ON CONFLICT (dedupe_key) WHERE dedupe_key IS NOT NULL AND state IN ('pending', 'running', 'retryable')
    DO NOTHING
    RETURNING id, queue, lane, run_at, dedupe_key, priority
), logged AS (
    INSERT INTO job_events (job_id, state, attempt) SELECT id, 'pending', 0 FROM made
), woken AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at)
    SELECT queue, lane, min(run_at) FROM made WHERE lane IS NOT NULL GROUP BY queue, lane
), notified AS (
    SELECT count({_NOTIFY}) AS pairs FROM (SELECT DISTINCT queue, priority FROM made) AS p
)
SELECT made.id, made.dedupe_key, notified.pairs FROM made, notified ORDER BY made.id
"""

OPEN_JOB_BY_DEDUPE_KEY = """
SELECT id FROM jobs
WHERE dedupe_key = %(dedupe_key)s AND state IN ('pending', 'running', 'retryable')
"""

# The (queue, priority) pairs with waiting jobs without a lane, found by jumping from one to the next in the index; for
# each, when its first future job is due. An empty list of queues means all of them.
LOOK = f"""
WITH RECURSIVE queues AS (
    (SELECT queue FROM jobs WHERE lane IS NULL AND {READY} ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT n.queue FROM queues q CROSS JOIN LATERAL
        (SELECT queue FROM jobs WHERE lane IS NULL AND {READY} AND queue > q.queue ORDER BY queue LIMIT 1) n
), wanted AS (
    SELECT queue FROM queues WHERE cardinality(%(queues)s::text[]) = 0 OR queue = ANY (%(queues)s::text[])
), pairs AS (
    SELECT w.queue, f.priority FROM wanted w CROSS JOIN LATERAL
        (SELECT priority FROM jobs WHERE lane IS NULL AND {READY} AND queue = w.queue
         ORDER BY priority DESC LIMIT 1) f
    UNION ALL
    SELECT p.queue, n.priority FROM pairs p CROSS JOIN LATERAL
        (SELECT priority FROM jobs WHERE lane IS NULL AND {READY} AND queue = p.queue AND priority < p.priority
         ORDER BY priority DESC LIMIT 1) n
)
SELECT p.queue, p.priority,
       EXISTS (SELECT FROM jobs WHERE lane IS NULL AND {READY} AND queue = p.queue AND priority = p.priority
               AND run_at <= statement_timestamp()) AS due,
       (SELECT extract(epoch FROM run_at - statement_timestamp())::float8
        FROM jobs WHERE lane IS NULL AND {READY} AND queue = p.queue AND priority = p.priority
        AND run_at > statement_timestamp() ORDER BY run_at LIMIT 1) AS next_in
FROM pairs p
ORDER BY p.priority DESC, p.queue
"""

# Turns the wakeups after a remembered place into rows of job_lanes; the place is remembered because an old snapshot
# elsewhere keeps all deleted wakeups in the index. It never waits: a frozen process may hold a lane in its open claim,
# and a claimer that waited for it would claim nothing at all. So the wakeups of locked lanes stay for later, and a new
# lane is inserted only by the claimer that gets its advisory lock, because an insert would wait for another insert of
# the same key. (Lanes share 256 of these locks: the server's table of locks is small.)
# A known lane is written even if it seems to be awake: it may have been put to sleep since this snapshot.
# A lane that rests never wakes earlier, so the statements that look for due lanes need not know about rests. Wakeups
# that only set a rest wake nothing: their time is infinity.
LANES_WAKE = f"""
WITH news AS MATERIALIZED (
    SELECT id, queue, lane, wake_at, concurrency, not_before, ends_rest FROM job_lane_wakeups
    WHERE id > %(after)s
      AND (cardinality(%(queues)s::text[]) = 0 OR queue = ANY (%(queues)s::text[]))
    ORDER BY id LIMIT 10000 FOR UPDATE SKIP LOCKED
), wanted AS MATERIALIZED (
    SELECT queue, lane, min(wake_at) AS wake_at,
           (array_agg(concurrency ORDER BY id DESC) FILTER (WHERE concurrency IS NOT NULL))[1] AS concurrency,
           (SELECT priority FROM jobs j WHERE j.queue = n.queue AND j.lane = n.lane AND {READY}
            ORDER BY priority DESC LIMIT 1) AS priority,
           max(not_before) AS not_before, bool_or(ends_rest) AS ends_rest
    FROM news n GROUP BY queue, lane
), known AS MATERIALIZED (
    SELECT l.queue, l.lane, w.wake_at, w.concurrency, w.priority,
           CASE WHEN w.ends_rest THEN w.not_before ELSE greatest(l.not_before, w.not_before) END AS not_before
    FROM wanted w JOIN job_lanes l ON l.queue = w.queue AND l.lane = w.lane
    FOR UPDATE OF l SKIP LOCKED
), moved AS (
    UPDATE job_lanes l SET wake_at = greatest(least(l.wake_at, k.wake_at), k.not_before),
        priority = greatest(l.priority, k.priority), concurrency = coalesce(k.concurrency, l.concurrency),
        not_before = k.not_before
    FROM known k WHERE l.queue = k.queue AND l.lane = k.lane
), listed AS (
    INSERT INTO job_lanes (queue, lane, wake_at, priority, concurrency, not_before)
    SELECT queue, lane, greatest(wake_at, not_before), coalesce(priority, {_NO_PRIORITY}), coalesce(concurrency, 1),
           not_before FROM (
        SELECT * FROM wanted w
        WHERE NOT EXISTS (SELECT FROM job_lanes l WHERE l.queue = w.queue AND l.lane = w.lane)
        OFFSET 0) AS fresh
    WHERE pg_try_advisory_xact_lock(1751216750, hashtext(queue || chr(10) || lane) & 255)
    ON CONFLICT (queue, lane) DO NOTHING
    RETURNING queue, lane
), gone AS (
    DELETE FROM job_lane_wakeups u USING news n
    WHERE u.id = n.id AND (n.queue, n.lane) IN (SELECT queue, lane FROM known UNION ALL SELECT * FROM listed)
    RETURNING u.id
)
SELECT coalesce(min(n.id) FILTER (WHERE g.id IS NULL) - 1, max(n.id)), count(*) - count(g.id)
FROM news n LEFT JOIN gone g ON g.id = n.id
"""

# Locks lanes that are due, those with the most urgent job first. Their jobs are counted and claimed by the next
# statement, whose snapshot is newer than these locks: counting in this one would miss a claim that was just committed
# elsewhere.
LANES_LOCK = """
SELECT queue, lane FROM job_lanes
WHERE (cardinality(%(queues)s::text[]) = 0 OR queue = ANY (%(queues)s::text[]))
  AND wake_at <= statement_timestamp() AND wake_at < 'infinity'
ORDER BY priority DESC, wake_at LIMIT %(most)s
FOR UPDATE SKIP LOCKED
"""

LANES_NEXT = """
SELECT extract(epoch FROM wake_at - statement_timestamp())::float8 FROM job_lanes
WHERE (cardinality(%(queues)s::text[]) = 0 OR queue = ANY (%(queues)s::text[]))
  AND wake_at < 'infinity'
ORDER BY wake_at LIMIT 1
"""

# Sets when to look at the locked lanes again, and with which priority: never while full (an ending wakes them), else
# when their first waiting job is due, and not while they rest.
LANES_SLEEP = f"""
WITH held AS MATERIALIZED (
    SELECT l.queue, l.lane, l.not_before, l.concurrency <= (
        SELECT count(*) FROM jobs j WHERE j.queue = l.queue AND j.lane = l.lane AND j.state = 'running') AS is_full
    FROM unnest(%(lane_queues)s::text[], %(lanes)s::text[]) AS u(queue, lane)
    JOIN job_lanes l ON l.queue = u.queue AND l.lane = u.lane
), next AS MATERIALIZED (
    SELECT h.queue, h.lane, greatest(coalesce(first.run_at, 'infinity'), h.not_before) AS wake_at,
           coalesce(top.priority, {_NO_PRIORITY}) AS priority
    FROM held h
    LEFT JOIN LATERAL (
        SELECT run_at FROM jobs j
        WHERE NOT h.is_full AND j.queue || chr(10) || j.lane = h.queue || chr(10) || h.lane AND j.lane IS NOT NULL
          AND {READY} ORDER BY run_at LIMIT 1) first ON true
    LEFT JOIN LATERAL (
        SELECT priority FROM jobs j WHERE NOT h.is_full AND j.queue = h.queue AND j.lane = h.lane AND {READY}
        ORDER BY priority DESC LIMIT 1) top ON true
)
UPDATE job_lanes l SET wake_at = n.wake_at, priority = n.priority FROM next n
WHERE l.queue = n.queue AND l.lane = n.lane AND (l.wake_at, l.priority) <> (n.wake_at, n.priority)
"""

# Wakes lanes whose wakeup was lost; only for maintenance, not needed in normal operation. The lanes with waiting jobs
# are found by jumping from one to the next in the index.
LANES_REPAIR = f"""
WITH RECURSIVE waiting AS (
    (SELECT queue, lane FROM jobs WHERE lane IS NOT NULL AND {READY} ORDER BY queue, lane LIMIT 1)
    UNION ALL
    SELECT n.queue, n.lane FROM waiting w CROSS JOIN LATERAL
        (SELECT queue, lane FROM jobs WHERE lane IS NOT NULL AND {READY} AND (queue, lane) > (w.queue, w.lane)
         ORDER BY queue, lane LIMIT 1) n
)
INSERT INTO job_lane_wakeups (queue, lane, wake_at)
SELECT w.queue, w.lane, n.run_at
FROM waiting w
CROSS JOIN LATERAL (
    SELECT run_at FROM jobs j
    WHERE j.queue || chr(10) || j.lane = w.queue || chr(10) || w.lane AND j.lane IS NOT NULL AND {READY}
    ORDER BY run_at LIMIT 1) n
LEFT JOIN job_lanes l ON l.queue = w.queue AND l.lane = w.lane
WHERE coalesce(l.wake_at, 'infinity') > greatest(n.run_at, l.not_before)
  AND (SELECT count(*) FROM jobs j WHERE j.queue = w.queue AND j.lane = w.lane AND j.state = 'running')
      < coalesce(l.concurrency, 1)
  AND NOT EXISTS (SELECT FROM job_lane_wakeups u WHERE u.queue = w.queue AND u.lane = w.lane)
"""

_CLAIMED = """
UPDATE jobs SET state = 'running', lease = %(lease)s::uuid, attempt = attempt + 1, worker = %(worker)s,
    started_at = clock_timestamp(), heartbeat_at = clock_timestamp(), progress = NULL
WHERE id = ANY (ARRAY(SELECT id FROM picked))
RETURNING id, kind, queue, lane, args::text AS args, priority, run_at, attempt, max_attempts, lease
"""

_WITHOUT_LANE_TEMPLATE = f"""
SELECT j.id, j.priority, j.run_at
FROM unnest(%(levels)s::smallint[]) AS level(priority)
CROSS JOIN LATERAL (
    SELECT c.id, c.priority, c.run_at
    FROM unnest(%(pair_queues)s::text[], %(pair_priorities)s::smallint[], %(after_at)s::timestamptz[],
                %(after_id)s::bigint[]) AS p(queue, priority, run_at, id)
    CROSS JOIN LATERAL (
        SELECT id, priority, run_at FROM jobs
        WHERE queue = p.queue AND priority = p.priority AND lane IS NULL AND {READY}
          AND run_at <= statement_timestamp() AND (run_at, id) > (p.run_at, p.id){{only}}
        ORDER BY run_at, id LIMIT %(most)s FOR UPDATE SKIP LOCKED) c
    WHERE p.priority = level.priority
    ORDER BY c.run_at, c.id LIMIT %(most)s) j
LIMIT %(most)s
"""
_WITHOUT_LANE = _WITHOUT_LANE_TEMPLATE.format(only="")
_URGENT = _WITHOUT_LANE_TEMPLATE.format(only=" AND kind = ANY (%(kinds)s::text[])")

_LOGGED = """
logged AS (
    INSERT INTO job_events (job_id, state, attempt, worker) SELECT id, 'running', attempt, %(worker)s FROM claimed
)
SELECT id, kind, queue, lane, args, priority, run_at, attempt, max_attempts, lease FROM claimed
"""

# Claims up to `most` due jobs without a lane, starting after the remembered place of each pair. The priorities are read
# one after the other up to the limit, so that a lower one is read only if slots are left; within a priority, the queues
# share one order.
CLAIM = f"WITH picked AS ({_WITHOUT_LANE}), claimed AS ({_CLAIMED}), {_LOGGED}"
# The same with jobs of some kinds only, for their reserved slot, and only at high priorities, which have no backlog of
# other kinds.
CLAIM_URGENT = f"WITH picked AS ({_URGENT}), claimed AS ({_CLAIMED}), {_LOGGED}"

# The same plus the jobs of the lanes that this transaction has locked: as many of each lane as its concurrency allows,
# with priority deciding between all of them.
CLAIM_WITH_LANES = f"""
WITH room AS (
    SELECT l.queue, l.lane, l.concurrency - (
        SELECT count(*) FROM jobs j WHERE j.queue = l.queue AND j.lane = l.lane AND j.state = 'running') AS free
    FROM unnest(%(lane_queues)s::text[], %(lanes)s::text[]) AS u(queue, lane)
    JOIN job_lanes l ON l.queue = u.queue AND l.lane = u.lane
), in_lanes AS (
    SELECT j.id, j.priority, j.run_at FROM room r CROSS JOIN LATERAL (
        SELECT id, priority, run_at FROM jobs
        WHERE queue = r.queue AND lane = r.lane AND {READY} AND run_at <= statement_timestamp()
        ORDER BY priority DESC, run_at, id LIMIT least(greatest(r.free, 0), %(most)s) FOR UPDATE SKIP LOCKED) j
), without_lane AS ({_WITHOUT_LANE}),
picked AS (
    SELECT id FROM (SELECT * FROM in_lanes UNION ALL SELECT * FROM without_lane) AS candidates
    ORDER BY priority DESC, run_at, id LIMIT %(most)s
), claimed AS ({_CLAIMED}), {_LOGGED}
"""

# The jobs claimed under these leases, queried after the answer to a claim was lost.
CLAIMED_UNDER = """
SELECT id, lease FROM jobs WHERE state = 'running' AND lease = ANY (%(leases)s::uuid[])
"""

# The jobs that a claim would take, for `worker --dry-run`; locks nothing. A lane gives no more than its concurrency
# allows, and nothing while it rests; the last changes of both may still be among the wakeups.
PREVIEW = f"""
WITH due AS (
    SELECT id, kind, queue, lane, priority, run_at, attempt, max_attempts,
           row_number() OVER (PARTITION BY queue, lane ORDER BY priority DESC, run_at, id) AS place
    FROM jobs
    WHERE {READY} AND run_at <= statement_timestamp()
      AND (cardinality(%(queues)s::text[]) = 0 OR queue = ANY (%(queues)s::text[]))
)
SELECT id, kind, queue, lane, priority, run_at, attempt, max_attempts FROM due d
WHERE lane IS NULL OR place <= coalesce(
    (SELECT concurrency FROM job_lane_wakeups w
     WHERE w.queue = d.queue AND w.lane = d.lane AND w.concurrency IS NOT NULL ORDER BY w.id DESC LIMIT 1),
    (SELECT concurrency FROM job_lanes l WHERE l.queue = d.queue AND l.lane = d.lane), 1)
    - (SELECT count(*) FROM jobs r WHERE r.queue = d.queue AND r.lane = d.lane AND r.state = 'running')
  AND coalesce((
    SELECT greatest(max(w.not_before), CASE WHEN NOT coalesce(bool_or(w.ends_rest), false) THEN (
        SELECT not_before FROM job_lanes l WHERE l.queue = d.queue AND l.lane = d.lane) END)
    FROM job_lane_wakeups w WHERE w.queue = d.queue AND w.lane = d.lane), statement_timestamp())
    <= statement_timestamp()
ORDER BY priority DESC, run_at, id LIMIT %(most)s
"""

# One heartbeat for all jobs of a worker. A locked row is skipped, so that the other jobs do not wait for it. The
# heartbeat thread repeats it immediately.
HEARTBEAT = """
WITH held AS (
    SELECT * FROM unnest(%(ids)s::bigint[], %(leases)s::uuid[], %(progress)s::jsonb[]) AS h(id, lease, progress)
), alive AS (
    SELECT j.id FROM jobs j JOIN held h ON h.id = j.id AND h.lease = j.lease
    ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE jobs j SET heartbeat_at = clock_timestamp(), progress = coalesce(h.progress, j.progress)
FROM held h
WHERE j.id = h.id AND j.lease = h.lease AND j.id IN (SELECT id FROM alive)
RETURNING j.id, j.lease, j.cancel_requested_at IS NOT NULL
"""

# Which of these leases are still valid, queried for those that a heartbeat did not reach.
STILL_HELD = """
SELECT j.id, j.lease FROM jobs j
JOIN unnest(%(ids)s::bigint[], %(leases)s::uuid[]) AS h(id, lease) ON h.id = j.id AND h.lease = j.lease
"""

# The first statement of a fenced transaction. FOR KEY SHARE is the only strength that does not block heartbeats and
# still blocks the rescuer until this transaction ends.
FENCE = """
SELECT cancel_requested_at IS NOT NULL FROM jobs
WHERE id = %(id)s AND lease = %(lease)s FOR KEY SHARE
"""

# Sessions that write for an attempt have its lease in their name, so that they can be ended if their process freezes.
# Set outside of transactions, because a rollback would remove the name.
WRITER = "SELECT set_config('application_name', %(name)s, false)"
WRITER_NAME = "harvester job {lease}"

# The job was asked to stop, and would otherwise have continued.
_STOPPED = "(e.state IN ('pending', 'retryable') AND j.cancel_requested_at IS NOT NULL)"

# Ends attempts in batches. A request to cancel overrides another attempt. Lanes with free capacity are woken, after the
# rest that an attempt asked for.
_SETTLE = """
WITH ending AS (
    SELECT * FROM jsonb_to_recordset(%(endings)s::jsonb)
    AS e(id bigint, lease uuid, state text, delay float8, refund smallint, rest float8, result text, progress text,
         error_type text, error text, traceback text, detail text)
), held AS (
    SELECT j.id FROM jobs j JOIN ending e ON e.id = j.id AND e.lease = j.lease
    ORDER BY j.id FOR {strength} OF j
), done AS (
    UPDATE jobs j SET
        state = CASE WHEN {stopped} THEN 'cancelled' ELSE e.state END,
        finished_at = CASE WHEN {stopped} OR e.state IN ('succeeded', 'failed', 'cancelled')
                           THEN clock_timestamp() END,
        run_at = CASE WHEN e.delay IS NULL THEN j.run_at
                      ELSE clock_timestamp() + e.delay * interval '1 second' END,
        attempt = j.attempt - e.refund, lease = NULL,
        result = e.result::jsonb, progress = coalesce(e.progress::jsonb, j.progress),
        error_type = CASE WHEN e.state = 'succeeded' THEN NULL ELSE coalesce(e.error_type, j.error_type) END,
        error = CASE WHEN e.state = 'succeeded' THEN NULL ELSE coalesce(e.error, j.error) END,
        traceback = CASE WHEN e.state = 'succeeded' THEN NULL ELSE coalesce(e.traceback, j.traceback) END
    FROM ending e WHERE j.id = e.id AND j.lease = e.lease AND j.id IN (SELECT id FROM held)
    RETURNING j.id, e.lease, j.queue, j.lane, j.state, j.attempt, j.worker, e.detail, e.rest
), logged AS (
    INSERT INTO job_events (job_id, state, attempt, worker, detail)
    SELECT id, state, attempt, worker, detail FROM done
), woken AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at, not_before)
    SELECT queue, lane, statement_timestamp(), clock_timestamp() + max(rest) * interval '1 second'
    FROM done WHERE lane IS NOT NULL GROUP BY queue, lane
)
SELECT id, lease, state FROM done
"""

# The handler has returned, so no fenced transaction of it can be open.
SETTLE = _SETTLE.format(strength="NO KEY UPDATE", stopped=_STOPPED)
# The handler may still be running (timed out, or the worker stops): FOR UPDATE waits for, or fails on, a fenced
# transaction that could still commit.
SETTLE_BY_FORCE = _SETTLE.format(strength="UPDATE", stopped=_STOPPED)

# Running jobs without a heartbeat for too long. Locked rows are left out: a heartbeat cannot reach them either, so
# their silence proves nothing. FOR NO KEY UPDATE, because the fence of a frozen worker must not hide its job.
STUCK = """
SELECT id, lease, heartbeat_at, kind, queue, worker, attempt, max_attempts FROM jobs
WHERE state = 'running' AND heartbeat_at < clock_timestamp() - %(stuck)s * interval '1 second'
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""

# The silent jobs that STUCK leaves out, with the transaction that last locked or updated their rows.
STUCK_AND_LOCKED = """
SELECT id, lease, heartbeat_at, kind, queue, worker, attempt, max_attempts, xmax::text FROM jobs
WHERE state = 'running' AND heartbeat_at < clock_timestamp() - %(stuck)s * interval '1 second'
  AND NOT id = ANY (%(seen)s::bigint[])
ORDER BY id
"""

# The transactions and subtransactions of the sessions that write for an attempt.
TRANSACTIONS_OF_WRITERS = """
SELECT l.transactionid::text FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'transactionid' AND l.granted AND l.mode = 'ExclusiveLock' AND a.application_name = %(name)s
"""

# The transactions that share a row lock. Fails if the id is that of a single transaction.
SHARERS = "SELECT xid::text FROM pg_get_multixact_members(%(xmax)s::text::xid) WHERE mode <> 'keysh'"

# Ends the sessions that write for a job, and waits until they are gone.
END_WRITERS = """
SELECT pg_terminate_backend(a.pid, 5000)
FROM jobs j JOIN pg_stat_activity a ON a.application_name = %(name)s AND a.datname = current_database()
WHERE j.id = %(id)s AND j.lease = %(lease)s AND j.state = 'running'
"""

# Ends dispatch sessions that have been in one transaction for too long. It takes milliseconds unless the process is
# frozen, and then its locked jobs and lanes would be skipped forever: for the server, a client that has not ended its
# pipeline is active, so that no timeout applies.
END_FROZEN_DISPATCH = """
SELECT pid, pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE application_name = 'harvester dispatch' AND datname = current_database() AND pid <> pg_backend_pid()
  AND xact_start < clock_timestamp() - %(stuck)s * interval '1 second'
"""

# The first step of a rescue: lock the row, if it is free and the job has had no heartbeat since. From here to the end
# of the transaction, heartbeats and endings are blocked, while the fences of its writers still hold.
RESCUE_LOCK = """
SELECT id FROM jobs
WHERE id = %(id)s AND lease = %(lease)s AND state = 'running' AND heartbeat_at = %(heartbeat_at)s
FOR NO KEY UPDATE SKIP LOCKED
"""

# The last step: takes a stuck job from its worker, once its writers are gone. A writer that has resumed and opened a
# new fence makes it fail, and the job is unchanged: FOR UPDATE conflicts with every fence, and NOWAIT because that
# writer may take any time. The attempt was counted at claim, so none is added.
RESCUE = f"""
WITH lost AS (
    SELECT id FROM jobs
    WHERE id = %(id)s AND lease = %(lease)s AND state = 'running' AND heartbeat_at = %(heartbeat_at)s
    FOR UPDATE NOWAIT
), taken AS (
    UPDATE jobs j SET
        state = CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
                     WHEN attempt >= max_attempts THEN 'failed' ELSE 'retryable' END,
        finished_at = CASE WHEN cancel_requested_at IS NOT NULL OR attempt >= max_attempts
                           THEN clock_timestamp() END,
        run_at = clock_timestamp(), lease = NULL,
        error_type = 'WORKER_LOST', error = %(error)s, traceback = NULL
    WHERE id IN (SELECT id FROM lost)
    RETURNING id, queue, lane, priority, state, attempt, worker
), logged AS (
    INSERT INTO job_events (job_id, state, attempt, worker, detail)
    SELECT id, state, attempt, worker, %(error)s FROM taken
), woken AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at)
    SELECT queue, lane, statement_timestamp() FROM taken WHERE lane IS NOT NULL
), notified AS (
    SELECT count({_NOTIFY}) AS pairs FROM taken
)
SELECT taken.state, notified.pairs FROM taken, notified
"""

# A person asks a job to stop: immediately if it waits, at its next check if it runs; its worker is notified.
CANCEL = """
WITH target AS (
    SELECT id, state AS before FROM jobs WHERE id = %(id)s AND state IN ('pending', 'running', 'retryable')
    FOR NO KEY UPDATE
), asked AS (
    UPDATE jobs j SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()),
        state = CASE WHEN t.before = 'running' THEN j.state ELSE 'cancelled' END,
        finished_at = CASE WHEN t.before = 'running' THEN NULL ELSE clock_timestamp() END
    FROM target t WHERE j.id = t.id
    RETURNING j.id, j.state, j.attempt, t.before
), logged AS (
    INSERT INTO job_events (job_id, state, attempt, detail)
    SELECT id, state, attempt, 'cancel requested' FROM asked
), notified AS (
    SELECT count(pg_notify('harvester_cancels', id::text)) AS workers FROM asked WHERE state = 'running'
)
SELECT asked.before, asked.state, notified.workers FROM asked, notified
"""

# The same for many, without waiting for one that somebody else is changing; returns how many.
CANCEL_MANY = """
WITH target AS (
    SELECT id, state AS before FROM jobs WHERE id = ANY (%(ids)s::bigint[])
      AND state IN ('pending', 'running', 'retryable')
    ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
), asked AS (
    UPDATE jobs j SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp()),
        state = CASE WHEN t.before = 'running' THEN j.state ELSE 'cancelled' END,
        finished_at = CASE WHEN t.before = 'running' THEN NULL ELSE clock_timestamp() END
    FROM target t WHERE j.id = t.id
    RETURNING j.id, j.state, j.attempt
), logged AS (
    INSERT INTO job_events (job_id, state, attempt, detail)
    SELECT id, state, attempt, 'cancel requested' FROM asked
), notified AS (
    SELECT count(pg_notify('harvester_cancels', id::text)) AS workers FROM asked WHERE state = 'running'
)
SELECT (SELECT count(*) FROM asked), notified.workers FROM notified
"""

# A person retries an ended or waiting job: now, with all its attempts.
RETRY = f"""
WITH target AS (
    SELECT id FROM jobs WHERE id = %(id)s AND state IN ('failed', 'cancelled', 'retryable') FOR UPDATE
), again AS (
    UPDATE jobs j SET state = 'pending', attempt = 0, run_at = clock_timestamp(), finished_at = NULL,
        cancel_requested_at = NULL, progress = NULL
    WHERE id IN (SELECT id FROM target)
    RETURNING id, queue, lane, priority, run_at
), logged AS (
    INSERT INTO job_events (job_id, state, attempt, detail)
    SELECT id, 'pending', 0, 'retried' FROM again
), woken AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at) SELECT queue, lane, run_at FROM again WHERE lane IS NOT NULL
), notified AS (
    SELECT count({_NOTIFY}) AS pairs FROM again
)
SELECT again.id, notified.pairs FROM again, notified
"""

# Deletes ended jobs in batches; the states are part of the condition, so that no open job can be deleted.
CLEAN_UP = """
DELETE FROM jobs WHERE id IN (
    SELECT id FROM jobs
    WHERE finished_at < clock_timestamp() - %(days)s * interval '1 day'
      AND state = ANY (%(states)s::text[]) AND state IN ('succeeded', 'failed', 'cancelled')
      AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s::text[]))
    ORDER BY finished_at LIMIT %(most)s FOR UPDATE SKIP LOCKED)
"""

# A result may become useless earlier than the job's record.
FORGET_RESULTS = """
UPDATE jobs SET result = NULL
WHERE kind = %(kind)s AND result IS NOT NULL AND finished_at < clock_timestamp() - %(hours)s * interval '1 hour'
"""

CLEAN_UP_LANES = """
DELETE FROM job_lanes WHERE (queue, lane) IN (
    SELECT l.queue, l.lane FROM job_lanes l
    WHERE l.wake_at = 'infinity' AND l.concurrency = 1 AND coalesce(l.not_before <= statement_timestamp(), true)
      AND NOT EXISTS (SELECT FROM jobs j WHERE j.queue = l.queue AND j.lane = l.lane
                      AND j.state IN ('pending', 'running', 'retryable'))
    FOR UPDATE SKIP LOCKED)
"""

# Inserted as a wakeup like all changes of a lane: a lock on its row until the end of the caller's transaction would
# block all claimers.
SET_LANE_CONCURRENCY = """
WITH asked AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at, concurrency)
    VALUES (%(queue)s, %(lane)s, statement_timestamp(), %(concurrency)s) RETURNING queue
)
SELECT pg_notify('harvester_jobs', '0 ' || queue) FROM asked
"""

# Inserted as a wakeup for the same reason. A lane whose rest is shortened has to be looked at, because it may be due.
REST_LANE = """
WITH asked AS (
    INSERT INTO job_lane_wakeups (queue, lane, wake_at, not_before, ends_rest)
    VALUES (%(queue)s, %(lane)s, CASE WHEN %(shorten)s THEN statement_timestamp() ELSE 'infinity' END,
            clock_timestamp() + %(seconds)s * interval '1 second', %(shorten)s) RETURNING queue
)
SELECT pg_notify('harvester_jobs', '0 ' || queue) FROM asked WHERE %(shorten)s
"""

# Registers a periodic job, and changes its next time only if its cron line changed.
REGISTER_PERIODIC = """
INSERT INTO periodic_jobs (name, kind, cron, next_at)
VALUES (%(name)s, %(kind)s, %(cron)s, %(next_at)s)
ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, cron = excluded.cron, next_at = excluded.next_at
WHERE (periodic_jobs.kind, periodic_jobs.cron) IS DISTINCT FROM (excluded.kind, excluded.cron)
"""

# A due time belongs to the scheduler that gets the row; next_at only moves forward, so no time is taken twice if the
# clock is set back.
DUE_PERIODIC = """
SELECT name, kind, cron, next_at, clock_timestamp() FROM periodic_jobs
WHERE next_at <= clock_timestamp() AND name = ANY (%(names)s::text[])
ORDER BY next_at FOR UPDATE SKIP LOCKED
"""

ADVANCE_PERIODIC = """
UPDATE periodic_jobs SET last_at = next_at, next_at = %(next_at)s, last_job_id = coalesce(%(job_id)s, last_job_id)
WHERE name = %(name)s
"""

NEXT_PERIODIC = """
SELECT extract(epoch FROM min(next_at) - clock_timestamp())::float8 FROM periodic_jobs
WHERE name = ANY (%(names)s::text[])
"""

PERIODIC_PLANS = """
SELECT name, cron, next_at, last_at, clock_timestamp() FROM periodic_jobs
WHERE name = ANY (%(names)s::text[]) AND next_at > clock_timestamp() FOR UPDATE SKIP LOCKED
"""

PLAN_PERIODIC = "UPDATE periodic_jobs SET next_at = %(next_at)s WHERE name = %(name)s"

# How long the oldest transaction with a snapshot has been open. Until it ends, no dead rows can be vacuumed.
OLDEST_SNAPSHOT = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)::float8 FROM pg_stat_activity
WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
