-- What the difference of a held run comes to: counts, groups and samples for people. The difference itself may have
-- half a million rows, goes with the decision and is never read by a page; this stays as long as the run.
CREATE TABLE run_differences (
    run_no  bigint PRIMARY KEY REFERENCES runs (no) ON DELETE CASCADE,
    told    jsonb NOT NULL,
    told_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Lists of runs are filtered by these and ordered by number.
CREATE INDEX runs_by_status ON runs (status, no);
CREATE INDEX runs_by_outcome ON runs (outcome, no);
