-- What makes a table append-only: this trigger refuses changes to everybody, and `harvester migrate` gives the
-- application's role no more than SELECT and INSERT on every table that carries it.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only; % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

-- Makes the monthly partitions of a table, from this month up to `ahead` months from now. The application's role
-- owns nothing, so this runs with its owner's rights; it can only ever add partitions to partitioned tables.
-- A month is attached, because CREATE TABLE ... PARTITION OF would wait for, and hold up, everybody who writes.
-- A month that already has rows in the default partition (nobody made it in time) stays there.
CREATE FUNCTION make_partitions(parent regclass, ahead integer) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    first date;
    child text;
    made integer := 0;
    guarded boolean := EXISTS (SELECT FROM pg_trigger WHERE tgrelid = parent AND tgfoid = 'refuse_change'::regproc);
BEGIN
    IF NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = parent) THEN
        RAISE EXCEPTION '% is not partitioned', parent;
    END IF;
    FOR step IN 0..least(ahead, 24) LOOP
        first := date_trunc('month', now() AT TIME ZONE 'UTC')::date + make_interval(months => step);
        child := parent::text || to_char(first, '_YYYYMM');
        CONTINUE WHEN to_regclass(child) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE %I (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', child, parent);
            EXECUTE format('ALTER TABLE %s ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child,
                           first::text || ' 00:00:00+00', (first + interval '1 month')::date::text || ' 00:00:00+00');
        EXCEPTION WHEN check_violation THEN
            CONTINUE;
        END;
        IF guarded THEN
            EXECUTE format('CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON %I EXECUTE FUNCTION refuse_change()',
                           child);
        END IF;
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Drops the months of job_events that ended before a moment, and of no other table. That needs a moment in which
-- nobody writes; whoever comes meanwhile waits behind it, so it gives up soon.
CREATE FUNCTION drop_old_job_events(before timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    child text;
    dropped integer := 0;
BEGIN
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'job_events'::regclass AND c.relname ~ '^job_events_\d{6}$'
          AND (to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') AT TIME ZONE 'UTC' <= before
    LOOP
        EXECUTE format('DROP TABLE %I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;

-- One row per job. The fill factor leaves room on the page so that a heartbeat, which touches no index, stays
-- where it is (HOT). Dead rows pile up as fast as work is done, so autovacuum comes early.
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
    writer_pid          integer,
    writer_started      timestamptz,
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
-- Few rows at any time: how full a lane is, and who has not been heard of.
CREATE INDEX jobs_running ON jobs (queue, lane) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_dedupe ON jobs (dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state IN ('pending', 'running', 'retryable');
-- Clean-up, and what was done in the last day.
CREATE INDEX jobs_finished ON jobs (finished_at, state, queue) WHERE finished_at IS NOT NULL;
CREATE INDEX jobs_failed ON jobs (id) WHERE state = 'failed';

-- One row per transition, appended only; whole months are dropped.
-- (PostgreSQL 16 knows no identity columns on partitioned tables, hence the sequence.)
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
-- Nothing is ever refused for want of a partition: what no month takes, this one does.
CREATE TABLE job_events_default PARTITION OF job_events DEFAULT;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON job_events_default EXECUTE FUNCTION refuse_change();
SELECT make_partitions('job_events', 3);

-- A lane: jobs that share a key share a concurrency. wake_at is when a claimer should look at it next;
-- 'infinity' means that nothing waits, or that it is full and an ending will wake it. priority is that of its most
-- urgent waiting job, so that a claimer with few free slots looks at the right lanes.
CREATE TABLE job_lanes (
    queue       text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    concurrency integer NOT NULL DEFAULT 1 CHECK (concurrency > 0),
    wake_at     timestamptz NOT NULL,
    priority    smallint NOT NULL DEFAULT -32768,
    PRIMARY KEY (queue, lane)
) WITH (fillfactor = 50);
CREATE INDEX job_lanes_due ON job_lanes (priority DESC, wake_at) WHERE wake_at < 'infinity';
CREATE INDEX job_lanes_next ON job_lanes (wake_at) WHERE wake_at < 'infinity';

-- Whoever makes a lane worth a look appends here and locks nothing; only claimers touch job_lanes. That is why
-- two enqueuers with the same lanes in opposite order cannot deadlock.
CREATE TABLE job_lane_wakeups (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text COLLATE "C" NOT NULL,
    lane        text COLLATE "C" NOT NULL,
    wake_at     timestamptz NOT NULL,
    concurrency integer CHECK (concurrency > 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE periodic_jobs (
    name        text COLLATE "C" PRIMARY KEY,
    kind        text COLLATE "C" NOT NULL,
    cron        text NOT NULL,
    next_at     timestamptz NOT NULL,
    last_at     timestamptz,
    last_job_id bigint
);
