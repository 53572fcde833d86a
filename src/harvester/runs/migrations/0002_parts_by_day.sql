-- Parts of runs by the day on which their run began, so that old ones are dropped and not deleted one by one.
-- `begun_at` is that of the run, so the unique indexes mean what they would mean without it.

ALTER TABLE run_parts RENAME TO old_run_parts;
ALTER TABLE old_run_parts RENAME CONSTRAINT run_parts_outcome_when_ended TO old_run_parts_outcome;

CREATE TABLE run_parts (
    id          uuid NOT NULL,
    begun_at    timestamptz NOT NULL,
    run_id      uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
    target_id   uuid NOT NULL,
    job_id      bigint,
    outcome     text COLLATE "C",
    detail      jsonb NOT NULL DEFAULT '{}',
    found       jsonb,
    page        text COLLATE "C",
    version     text COLLATE "C",
    observed_at timestamptz,
    ended_at    timestamptz,
    judged_at   timestamptz,
    CONSTRAINT run_parts_key PRIMARY KEY (id, begun_at),
    CONSTRAINT run_parts_once UNIQUE (run_id, target_id, begun_at),
    CONSTRAINT run_parts_one_job UNIQUE (job_id, begun_at),
    CONSTRAINT run_parts_outcome_when_ended CHECK ((outcome IS NULL) = (ended_at IS NULL)),
    CONSTRAINT run_parts_judged_when_ended CHECK (judged_at IS NULL OR ended_at IS NOT NULL)
) PARTITION BY RANGE (begun_at);
CREATE INDEX run_parts_target ON run_parts (target_id, ended_at);
-- What a capability counts before it begins more, and what waits for its batch.
CREATE INDEX run_parts_open ON run_parts (run_id) WHERE outcome IS NULL;
CREATE INDEX run_parts_unjudged ON run_parts (run_id) WHERE outcome IS NOT NULL AND judged_at IS NULL;
CREATE TABLE run_parts_default PARTITION OF run_parts DEFAULT;
SELECT make_part_days(14);

INSERT INTO run_parts (id, begun_at, run_id, target_id, job_id, outcome, detail, observed_at, ended_at, judged_at)
SELECT p.id, r.started_at, p.run_id, p.target_id, p.job_id, p.outcome, p.detail, p.observed_at, p.ended_at,
    CASE WHEN r.status <> 'RUNNING' THEN p.ended_at END
FROM old_run_parts p JOIN runs r ON r.id = p.run_id;
DROP TABLE old_run_parts;

COMMENT ON TABLE run_parts IS 'Parts of the runs that consist of parts, such as pages. Written by the job of the part; the last one ends the run. Whole days are dropped after 30 days.';
COMMENT ON COLUMN run_parts.begun_at IS 'When its run began.';
COMMENT ON COLUMN run_parts.target_id IS 'What the part reads, such as a page; a run reads nothing twice.';
COMMENT ON COLUMN run_parts.outcome IS 'Its outcome; null: its job has not ended.';
COMMENT ON COLUMN run_parts.detail IS 'Why it ended like that, and the places that were looked at, for people.';
COMMENT ON COLUMN run_parts.found IS 'What was read and waits for its batch to be judged, such as an offer.';
COMMENT ON COLUMN run_parts.page IS 'Hash of the kept response.';
COMMENT ON COLUMN run_parts.version IS 'The version of the code that read it, such as that of a site file.';
COMMENT ON COLUMN run_parts.observed_at IS 'When it was observed, by the clock of the database.';
COMMENT ON COLUMN run_parts.judged_at IS 'When the batch that it belongs to was judged; null: it waits.';
