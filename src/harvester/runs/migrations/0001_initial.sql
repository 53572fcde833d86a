-- Runs of every kind. Capabilities keep the figures of their runs in tables of their own.

CREATE TABLE runs (
    id              uuid PRIMARY KEY,
    no              bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind            text COLLATE "C" NOT NULL CHECK (kind IN ('AFFILIATE_FEED', 'SCRAPE', 'ACTOR')),
    subject_id      uuid NOT NULL,
    source_id       uuid,
    trigger         text COLLATE "C" NOT NULL,
    status          text COLLATE "C" NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED')),
    outcome         text COLLATE "C"
                    CHECK (outcome IN ('PROMOTED', 'HELD', 'APPROVED', 'REJECTED', 'OVERTAKEN', 'SKIPPED', 'QUARANTINED', 'EMPTY')),
    started_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at     timestamptz,
    duration_ms     bigint,
    job_id          bigint UNIQUE, -- mutant: job-has-one-run
    lease           uuid,
    attempt         smallint NOT NULL DEFAULT 1,
    stage           text COLLATE "C",
    next_try_at     timestamptz,
    timings         jsonb NOT NULL DEFAULT '{}',
    artifact_hash   text COLLATE "C",
    observed_at     timestamptz,
    verdict         jsonb NOT NULL DEFAULT '[]',
    error_code      text COLLATE "C",
    error           text,
    decided_at      timestamptz,
    decided_by      text,
    decision_reason text CONSTRAINT decision_reason_length CHECK (char_length(decision_reason) <= 1000),
    ignored_at      timestamptz,
    ignored_by      text,
    ignored_reason  text CONSTRAINT ignored_reason_length CHECK (char_length(ignored_reason) <= 1000),
    refuses_file    boolean NOT NULL DEFAULT false,
    CONSTRAINT runs_finished_when_ended CHECK ((status = 'RUNNING') = (finished_at IS NULL))
);
CREATE INDEX runs_source ON runs (source_id, started_at);
CREATE INDEX runs_subject ON runs (subject_id, no);
CREATE INDEX runs_started ON runs (started_at);
CREATE UNIQUE INDEX runs_one_held_per_subject ON runs (kind, subject_id) WHERE outcome = 'HELD'; -- mutant: one-held-run
CREATE INDEX runs_ignored ON runs (no) WHERE ignored_at IS NOT NULL;
-- Lists of runs are filtered by these and ordered by number.
CREATE INDEX runs_by_status ON runs (status, no);
CREATE INDEX runs_by_outcome ON runs (outcome, no);
CREATE INDEX runs_by_kind ON runs (kind, no);
CREATE TRIGGER keep_run_identity BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION keep_run_identity();

COMMENT ON TABLE runs IS 'One row per run: where everything that came in has come from.';
COMMENT ON COLUMN runs.no IS 'Counts up; people call runs by it, and volume tables refer to it.';
COMMENT ON COLUMN runs.kind IS 'The registered kind of run; each kind has a table of its own with the figures of its runs.';
COMMENT ON COLUMN runs.subject_id IS 'What it is a run of; for a run of a feed, the feed. Never changes.';
COMMENT ON COLUMN runs.source_id IS 'The source whose prices it may change; null if it changes none. Never changes.';
COMMENT ON COLUMN runs.trigger IS 'Why it began; never changes.';
COMMENT ON COLUMN runs.outcome IS 'The outcome of a run that succeeded: PROMOTED, SKIPPED, QUARANTINED, EMPTY, or HELD and then APPROVED, REJECTED or OVERTAKEN.';
COMMENT ON COLUMN runs.job_id IS 'The job that does it; never changes.';
COMMENT ON COLUMN runs.lease IS 'The lease of the attempt that works on it.';
COMMENT ON COLUMN runs.stage IS 'The step that it is at, or ended in.';
COMMENT ON COLUMN runs.next_try_at IS 'When the next attempt starts, after one that failed.';
COMMENT ON COLUMN runs.timings IS 'Milliseconds of each step, in all attempts.';
COMMENT ON COLUMN runs.artifact_hash IS 'Hash of the file that it read; once set it never changes, so that a retry does not mix two files.';
COMMENT ON COLUMN runs.observed_at IS 'The time that its prices have.';
COMMENT ON COLUMN runs.verdict IS 'What each gate said, with its figures and thresholds.';
COMMENT ON COLUMN runs.error_code IS 'Why it failed, as a stable code.';
COMMENT ON COLUMN runs.decided_by IS 'Who approved or rejected it.';
COMMENT ON COLUMN runs.ignored_at IS 'Since when its prices do not count.';
COMMENT ON COLUMN runs.refuses_file IS 'The run is ignored, and its file is refused when it comes again. Not part of change detection, which settings, upgrades and corrections clear.';

CREATE TABLE run_parts (
    id          uuid PRIMARY KEY,
    run_id      uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    target_id   uuid NOT NULL,
    job_id      bigint UNIQUE,
    outcome     text COLLATE "C",
    detail      jsonb NOT NULL DEFAULT '{}',
    observed_at timestamptz,
    ended_at    timestamptz,
    UNIQUE (run_id, target_id),
    CONSTRAINT run_parts_outcome_when_ended CHECK ((outcome IS NULL) = (ended_at IS NULL))
);

COMMENT ON TABLE run_parts IS 'Parts of the runs that consist of parts, such as pages. Written by the job of the part; the last one ends the run.';
COMMENT ON COLUMN run_parts.target_id IS 'What the part reads, such as a page; a run reads nothing twice.';
COMMENT ON COLUMN run_parts.outcome IS 'Its outcome; null: its job has not ended.';
COMMENT ON COLUMN run_parts.detail IS 'What was found, or why nothing was.';
COMMENT ON COLUMN run_parts.observed_at IS 'When it was observed, by the clock of the database.';
