-- Pages that belong to no target yet, what was read from a page then, tries of robots.txt, single fetches.

ALTER TABLE kept_pages
    ALTER COLUMN source_id DROP NOT NULL,
    ALTER COLUMN target_id DROP NOT NULL,
    ADD COLUMN outcome text COLLATE "C",
    ADD COLUMN version text COLLATE "C";
-- The same page of a target, read again, is one row: its time is that of the newest fetch.
CREATE UNIQUE INDEX kept_pages_once ON kept_pages (target_id, hash);
-- What the response cache asks for pages without a target.
CREATE INDEX kept_pages_url ON kept_pages (md5(url)) WHERE target_id IS NULL;

COMMENT ON COLUMN kept_pages.source_id IS 'Null: a page that somebody tried before there was a source.';
COMMENT ON COLUMN kept_pages.target_id IS 'Null: a page that somebody tried.';
COMMENT ON COLUMN kept_pages.fetched_at IS 'When it was fetched; of several fetches with the same bytes, the newest.';
COMMENT ON COLUMN kept_pages.outcome IS 'How reading it ended then; null: it was not judged.';
COMMENT ON COLUMN kept_pages.version IS 'The version of the adapter that read it then.';

ALTER TABLE robots_files ADD COLUMN tries smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN robots_files.tries IS 'Requests in a row that failed, since it was last known; with three it is unavailable.';

CREATE TABLE fetch_requests (
    id           uuid PRIMARY KEY,
    purpose      text COLLATE "C" NOT NULL CHECK (purpose IN ('TRY', 'NEW_SITE', 'ROBOTS')),
    url          text NOT NULL,
    source_id    uuid REFERENCES sources,
    requested_by text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_id       bigint,
    state        jsonb NOT NULL DEFAULT '{}',
    page         text COLLATE "C",
    observed_at  timestamptz,
    outcome      text COLLATE "C",
    result       jsonb,
    finished_at  timestamptz,
    CONSTRAINT fetch_requests_outcome CHECK ((outcome IS NULL) = (finished_at IS NULL))
);
CREATE INDEX fetch_requests_old ON fetch_requests (created_at);

COMMENT ON TABLE fetch_requests IS 'Single fetches that belong to no run: an address that somebody tries, the page of a new site, a check of robots.txt. Deleted after a week.';
COMMENT ON COLUMN fetch_requests.state IS 'How far it is: redirects that were followed.';
COMMENT ON COLUMN fetch_requests.page IS 'Hash of the kept response.';
COMMENT ON COLUMN fetch_requests.result IS 'What was read from where and why, for people.';
