-- The tables of the engine. All statements that write them are in engine/sql.py.

-- The fill factor leaves room on each page, so that a heartbeat, which touches no index, stays on its page (HOT). Rows
-- die as fast as work is done, so autovacuum comes early.
CREATE TABLE jobs (
    id                  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind                text COLLATE "C" NOT NULL,
    queue               text COLLATE "C" NOT NULL,
    lane                text COLLATE "C",
    dedupe_key          text COLLATE "C",
    args                jsonb NOT NULL,
    priority            smallint NOT NULL,
    state               text COLLATE "C" NOT NULL DEFAULT 'pending',
    run_at              timestamptz NOT NULL,
    attempt             smallint NOT NULL DEFAULT 0,
    max_attempts        smallint NOT NULL,
    lease               uuid,
    worker              text,
    heartbeat_at        timestamptz,
    cancel_requested_at timestamptz,
    progress            jsonb,
    result              jsonb,
    error_type          text,
    error               text,
    traceback           text,
    created_at          timestamptz NOT NULL DEFAULT statement_timestamp(),
    started_at          timestamptz,
    finished_at         timestamptz,
    CONSTRAINT jobs_state CHECK (state IN ('pending', 'running', 'retryable', 'succeeded', 'failed', 'cancelled')),
    CONSTRAINT jobs_attempts CHECK (max_attempts > 0 AND attempt >= 0),
    CONSTRAINT jobs_leased_while_running CHECK ((state = 'running') = (lease IS NOT NULL)),
    CONSTRAINT jobs_finished_when_ended
        CHECK ((state IN ('succeeded', 'failed', 'cancelled')) = (finished_at IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- The order of claims: priority, then first in, first out. Jobs of a lane are found through their lane instead.
CREATE INDEX jobs_ready ON jobs (queue, priority DESC, run_at, id)
    WHERE lane IS NULL AND state IN ('pending', 'retryable');
CREATE INDEX jobs_lane_ready ON jobs (queue, lane, priority DESC, run_at, id)
    WHERE lane IS NOT NULL AND state IN ('pending', 'retryable');
-- When a lane with nothing due has to wake. Queue and lane are one expression here so that no other search can use
-- this index: the planner would find a lane's next job by sorting all of its jobs.
CREATE INDEX jobs_lane_next ON jobs ((queue || chr(10) || lane), run_at)
    WHERE lane IS NOT NULL AND state IN ('pending', 'retryable');
-- Few rows at any time: how full a lane is, and whose heartbeats have stopped.
CREATE INDEX jobs_running ON jobs (queue, lane) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_dedupe ON jobs (dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state IN ('pending', 'running', 'retryable');
-- Clean-up, and what was done in the last day.
CREATE INDEX jobs_finished ON jobs (finished_at, state, queue) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_failed ON jobs (id) WHERE state = 'failed';

COMMENT ON TABLE jobs IS 'One row per job: work that survives a crash of the worker that does it.';
COMMENT ON COLUMN jobs.kind IS 'Which handler runs it.';
COMMENT ON COLUMN jobs.queue IS 'Workers claim from the queues that they were started for.';
COMMENT ON COLUMN jobs.lane IS 'Jobs of one queue and lane share a concurrency.';
COMMENT ON COLUMN jobs.dedupe_key IS 'At most one open job (pending, running, retryable) has it.';
COMMENT ON COLUMN jobs.args IS 'The arguments of the handler.';
COMMENT ON COLUMN jobs.priority IS 'Higher ones are claimed first.';
COMMENT ON COLUMN jobs.state IS 'pending, running, retryable, succeeded, failed or cancelled.';
COMMENT ON COLUMN jobs.run_at IS 'Not claimed before.';
COMMENT ON COLUMN jobs.attempt IS 'Counted when the job is claimed.';
COMMENT ON COLUMN jobs.lease IS 'Made by each claim; a worker whose lease is no longer here has lost the job.';
COMMENT ON COLUMN jobs.worker IS 'Who claimed it last.';
COMMENT ON COLUMN jobs.heartbeat_at IS 'When the worker last reported that it is alive.';
COMMENT ON COLUMN jobs.cancel_requested_at IS 'When somebody asked a running job to stop.';
COMMENT ON COLUMN jobs.progress IS 'How far it is: done, total, note.';
COMMENT ON COLUMN jobs.result IS 'What the handler returned.';
COMMENT ON COLUMN jobs.error_type IS 'Type or code of the error of the last attempt.';
COMMENT ON COLUMN jobs.error IS 'Message of the error of the last attempt, redacted.';

-- PostgreSQL 16 has no identity columns on partitioned tables, so the number comes from a sequence.
CREATE SEQUENCE job_events_id;
CREATE TABLE job_events (
    id      bigint NOT NULL DEFAULT nextval('job_events_id'),
    job_id  bigint NOT NULL,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    state   text COLLATE "C" NOT NULL,
    attempt smallint NOT NULL,
    worker  text,
    detail  text
) PARTITION BY RANGE (at);
CREATE INDEX job_events_job ON job_events (job_id);
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON job_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON job_events EXECUTE FUNCTION refuse_change();
-- A row for which there is no month goes here, so that no write fails because a partition is missing.
CREATE TABLE job_events_default PARTITION OF job_events DEFAULT;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON job_events_default EXECUTE FUNCTION refuse_change();
SELECT make_partitions('job_events', 3);

COMMENT ON TABLE job_events IS 'Every change of state of every job. Append-only; whole months are dropped when they are old.';
COMMENT ON COLUMN job_events.state IS 'The state that the job came into.';
COMMENT ON COLUMN job_events.attempt IS 'The attempt of the job then.';
COMMENT ON COLUMN job_events.detail IS 'Why, for people.';

CREATE TABLE job_lanes (
    queue       text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    concurrency integer NOT NULL DEFAULT 1 CHECK (concurrency > 0),
    wake_at     timestamptz NOT NULL,
    priority    smallint NOT NULL DEFAULT -32768,
    PRIMARY KEY (queue, lane)
) WITH (fillfactor = 50);
-- With the priority, a claimer with few free slots looks at the right lanes.
CREATE INDEX job_lanes_due ON job_lanes (priority DESC, wake_at) WHERE wake_at < 'infinity';
CREATE INDEX job_lanes_next ON job_lanes (wake_at) WHERE wake_at < 'infinity';

COMMENT ON TABLE job_lanes IS 'Lanes: jobs that share a key share a concurrency. Only claimers lock its rows.';
COMMENT ON COLUMN job_lanes.concurrency IS 'How many jobs of the lane may run at once.';
COMMENT ON COLUMN job_lanes.wake_at IS 'When a claimer should look at it next; infinity while nothing waits or the lane is full.';
COMMENT ON COLUMN job_lanes.priority IS 'That of its most urgent waiting job.';

-- Sessions that give a lane work append here and lock nothing; only claimers touch job_lanes. That is why two sessions
-- that enqueue into the same lanes in opposite order cannot deadlock.
CREATE TABLE job_lane_wakeups (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    wake_at     timestamptz NOT NULL,
    concurrency integer CHECK (concurrency > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

COMMENT ON TABLE job_lane_wakeups IS 'Lanes that claimers should look at again. Claimers merge its rows into job_lanes and delete them.';
COMMENT ON COLUMN job_lane_wakeups.concurrency IS 'The new concurrency of the lane, if it was changed.';

CREATE TABLE periodic_jobs (
    name        text COLLATE "C" PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    cron        text NOT NULL,
    next_at     timestamptz NOT NULL,
    last_at     timestamptz,
    last_job_id bigint
);

COMMENT ON TABLE periodic_jobs IS 'Jobs that the scheduler enqueues by the clock. Written by the scheduler.';
COMMENT ON COLUMN periodic_jobs.cron IS 'Five fields: minute, hour, day, month, weekday; in UTC.';
COMMENT ON COLUMN periodic_jobs.last_job_id IS 'The job that it enqueued last.';
