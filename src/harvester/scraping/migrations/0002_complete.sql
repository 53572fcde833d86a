-- Scraping: targets, the state of adapters, batches, quarantine, kept pages, overrides, imports, robots.txt.

-- Which adapter reads a page is the source's choice; the foreign key keeps both the same.
UPDATE sources s SET adapter_id = 'structured'
WHERE adapter_id IS NULL AND EXISTS (SELECT FROM scrape_targets t WHERE t.source_id = s.id);

ALTER TABLE scrape_targets
    ADD COLUMN adapter_id           text COLLATE "C" NOT NULL DEFAULT 'structured',
    ADD COLUMN canonical_url        text COLLATE "C",
    ADD COLUMN schedule             text,
    ADD COLUMN priority             smallint NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
    ADD COLUMN status               text COLLATE "C" NOT NULL DEFAULT 'ACTIVE'
                                    CHECK (status IN ('ACTIVE', 'PAUSED', 'BROKEN', 'STALE')),
    ADD COLUMN enabled              boolean NOT NULL DEFAULT true,
    ADD COLUMN robots_path_blocked  boolean NOT NULL DEFAULT false,
    ADD COLUMN due_at               timestamptz,
    ADD COLUMN recheck_at           timestamptz,
    ADD COLUMN recheck_reason       text COLLATE "C" CHECK (recheck_reason IN ('PRICE_MOVE', 'GONE', 'BROKEN')),
    ADD COLUMN last_scraped_at      timestamptz,
    ADD COLUMN last_success_at      timestamptz,
    ADD COLUMN last_status          text COLLATE "C",
    ADD COLUMN last_detail          text,
    ADD COLUMN consecutive_failures smallint NOT NULL DEFAULT 0,
    ADD COLUMN last_seen            jsonb,
    ADD COLUMN waiting              jsonb,
    ADD COLUMN pinned_product_id    bigint,
    ADD COLUMN pinned               jsonb,
    ADD COLUMN chosen               jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN moved_to             text,
    ADD COLUMN etag                 text,
    ADD COLUMN last_modified        text,
    ADD COLUMN last_full_fetch_at   timestamptz,
    ADD COLUMN page                 text COLLATE "C",
    ADD COLUMN notes                text NOT NULL DEFAULT '',
    ADD COLUMN updated_at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD CONSTRAINT recheck_has_a_reason CHECK ((recheck_at IS NULL) = (recheck_reason IS NULL));
UPDATE scrape_targets SET canonical_url = url;
ALTER TABLE scrape_targets
    ALTER COLUMN canonical_url SET NOT NULL,
    ALTER COLUMN adapter_id DROP DEFAULT,
    DROP CONSTRAINT scrape_targets_source_id_url_key,
    ADD CONSTRAINT scrape_targets_once UNIQUE (source_id, canonical_url),
    ADD CONSTRAINT scrape_targets_adapter FOREIGN KEY (source_id, adapter_id) REFERENCES sources (id, adapter_id)
        ON UPDATE CASCADE DEFERRABLE INITIALLY DEFERRED;
-- What the scheduler reads: due pages that may be read, oldest first within a priority.
CREATE INDEX scrape_targets_due ON scrape_targets (priority DESC, due_at)
    WHERE enabled AND status = 'ACTIVE' AND due_at IS NOT NULL;
CREATE INDEX scrape_targets_recheck ON scrape_targets (recheck_at) WHERE recheck_at IS NOT NULL;
CREATE INDEX scrape_targets_status ON scrape_targets (source_id, status);

COMMENT ON TABLE scrape_targets IS 'Pages of shops to be read. People write the settings; runs write what was seen.';
COMMENT ON COLUMN scrape_targets.url IS 'The address that is fetched, as it was given.';
COMMENT ON COLUMN scrape_targets.canonical_url IS 'The same without tracking, by which two spellings of one page are recognized.';
COMMENT ON COLUMN scrape_targets.schedule IS 'Cron expression in UTC; null: read on request only.';
COMMENT ON COLUMN scrape_targets.priority IS 'Higher is read first.';
COMMENT ON COLUMN scrape_targets.enabled IS 'The switch of people; only an enabled and ACTIVE page is read.';
COMMENT ON COLUMN scrape_targets.robots_path_blocked IS 'An admin blocked this page; false allows nothing that robots.txt does not.';
COMMENT ON COLUMN scrape_targets.due_at IS 'When it is read next by its schedule; missed moments make one job.';
COMMENT ON COLUMN scrape_targets.recheck_at IS 'When it is looked at a second time, before something doubtful is believed.';
COMMENT ON COLUMN scrape_targets.last_status IS 'Outcome of its last page.';
COMMENT ON COLUMN scrape_targets.consecutive_failures IS 'Pages in a row that failed; with five the target is BROKEN.';
COMMENT ON COLUMN scrape_targets.last_seen IS 'The last offer that was read, also of a source that is not shown.';
COMMENT ON COLUMN scrape_targets.waiting IS 'A price that moved far and waits for a second page with the same.';
COMMENT ON COLUMN scrape_targets.pinned_product_id IS 'The product that the first written offer was of.';
COMMENT ON COLUMN scrape_targets.pinned IS 'Its numbers as the page said them: a page with others is of another product.';
COMMENT ON COLUMN scrape_targets.chosen IS 'Where on its pages a person said that a field is: field -> place.';
COMMENT ON COLUMN scrape_targets.moved_to IS 'Where the shop says the page is now (301 or 308).';
COMMENT ON COLUMN scrape_targets.page IS 'Hash of its newest kept page.';

ALTER TABLE scrape_runs
    ADD COLUMN adapter_id        text COLLATE "C",
    ADD COLUMN adapter_version   text COLLATE "C",
    ADD COLUMN retailer_id       uuid REFERENCES retailers,
    ADD COLUMN requested_by      text,
    ADD COLUMN urls_succeeded    bigint NOT NULL DEFAULT 0,
    ADD COLUMN urls_failed       bigint NOT NULL DEFAULT 0,
    ADD COLUMN offers_valid      bigint NOT NULL DEFAULT 0,
    ADD COLUMN offers_dropped    bigint NOT NULL DEFAULT 0,
    ADD COLUMN zero_prices       bigint NOT NULL DEFAULT 0,
    ADD COLUMN oos_no_price      bigint NOT NULL DEFAULT 0,
    ADD COLUMN not_modified      bigint NOT NULL DEFAULT 0,
    ADD COLUMN batches_refused   bigint NOT NULL DEFAULT 0,
    ADD COLUMN failure_rate      numeric(5, 4),
    ADD COLUMN yield_rate        numeric(5, 4),
    ADD COLUMN drop_rate         numeric(5, 4),
    ADD COLUMN fields_found      jsonb NOT NULL DEFAULT '{}';

COMMENT ON COLUMN scrape_runs.pages IS 'Pages that were attempted.';
COMMENT ON COLUMN scrape_runs.offers IS 'Pages of which an offer was extracted.';
COMMENT ON COLUMN scrape_runs.urls_succeeded IS 'Pages that were read well, those without a change and those sold out without a price included.';
COMMENT ON COLUMN scrape_runs.urls_failed IS 'Pages whose outcome counts as a failure of the adapter.';
COMMENT ON COLUMN scrape_runs.offers_valid IS 'Offers that passed all checks.';
COMMENT ON COLUMN scrape_runs.fields_found IS 'Field -> on how many pages it was found.';

CREATE TABLE adapter_states (
    source_id              uuid NOT NULL REFERENCES sources,
    adapter_id             text COLLATE "C" NOT NULL,
    enabled                boolean NOT NULL DEFAULT true,
    disabled_at            timestamptz,
    disabled_reason        text COLLATE "C" CHECK (disabled_reason IN ('MANUAL', 'DRIFT_DETECTED', 'TOS_VIOLATION')),
    disabled_by            text,
    check_next_run         boolean NOT NULL DEFAULT false,
    check_run_no           bigint,
    baseline_failure_rate  numeric(5, 4),
    baseline_yield_rate    numeric(5, 4),
    baseline_sample_size   integer NOT NULL DEFAULT 0,
    baseline_updated_at    timestamptz,
    failed_batches         smallint NOT NULL DEFAULT 0,
    empty_batches          smallint NOT NULL DEFAULT 0,
    zero_price_batches     smallint NOT NULL DEFAULT 0,
    last_batch_failure_rate numeric(5, 4),
    backoff_until          timestamptz,
    backoff_seconds        integer NOT NULL DEFAULT 0,
    created_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (source_id, adapter_id),
    CONSTRAINT disabled_with_reason CHECK (enabled = (disabled_reason IS NULL))
);

COMMENT ON TABLE adapter_states IS 'How an adapter does on one source: whether it is on, its usual rates, failures in a row. One adapter reads many shops, and one redesigned shop must not switch off the others.';
COMMENT ON COLUMN adapter_states.check_next_run IS 'It was enabled again, and nobody has confirmed yet that what it reads is right.';
COMMENT ON COLUMN adapter_states.check_run_no IS 'The first run after that, for a person to check.';
COMMENT ON COLUMN adapter_states.failed_batches IS 'Batches in a row of which more than half failed; with two it is switched off.';
COMMENT ON COLUMN adapter_states.empty_batches IS 'Batches in a row without an offer.';
COMMENT ON COLUMN adapter_states.zero_price_batches IS 'Batches in a row with a price of zero.';
COMMENT ON COLUMN adapter_states.backoff_until IS 'The scheduler enqueues nothing before that, because most was refused.';

CREATE TABLE scrape_batches (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id        uuid NOT NULL REFERENCES sources,
    adapter_id       text COLLATE "C" NOT NULL,
    adapter_version  text COLLATE "C" NOT NULL,
    run_no           bigint NOT NULL,
    judged_at        timestamptz NOT NULL,
    attempts         integer NOT NULL,
    new_attempts     integer NOT NULL,
    failures         integer NOT NULL,
    offers           integer NOT NULL,
    zero_prices      integer NOT NULL,
    verdict          jsonb NOT NULL,
    is_refused       boolean NOT NULL
);
CREATE INDEX scrape_batches_recent ON scrape_batches (source_id, adapter_id, judged_at);

COMMENT ON TABLE scrape_batches IS 'Every batch of pages that was judged: the baseline of an adapter, and its chart.';
COMMENT ON COLUMN scrape_batches.new_attempts IS 'Pages that no earlier batch had counted.';

CREATE TABLE quarantine (
    id           uuid PRIMARY KEY,
    source_id    uuid NOT NULL REFERENCES sources,
    target_id    uuid NOT NULL REFERENCES scrape_targets ON DELETE CASCADE,
    run_no       bigint NOT NULL,
    part_id      uuid NOT NULL,
    reason       text COLLATE "C" NOT NULL,
    detail       text NOT NULL,
    adapter_id   text COLLATE "C" NOT NULL,
    version      text COLLATE "C" NOT NULL,
    found        jsonb,
    evidence     jsonb NOT NULL DEFAULT '[]',
    page         text COLLATE "C",
    observed_at  timestamptz NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    status       text COLLATE "C" NOT NULL DEFAULT 'OPEN'
                 CHECK (status IN ('OPEN', 'WRITTEN', 'DISMISSED', 'SUPERSEDED')),
    resolved_at  timestamptz,
    resolved_by  text,
    note         text,
    CONSTRAINT quarantine_resolved CHECK ((status = 'OPEN') = (resolved_at IS NULL))
);
-- One open entry for each page: a newer page of the target takes its place.
CREATE UNIQUE INDEX quarantine_open ON quarantine (target_id) WHERE status = 'OPEN';
CREATE INDEX quarantine_source ON quarantine (source_id, created_at);

COMMENT ON TABLE quarantine IS 'Pages that were read and not believed, for a person to look at. Deleted after 90 days.';
COMMENT ON COLUMN quarantine.found IS 'The offer as far as it was read.';
COMMENT ON COLUMN quarantine.status IS 'OPEN; WRITTEN: its offer was written after all; DISMISSED by a person; SUPERSEDED by a newer page.';

CREATE TABLE kept_pages (
    id           uuid PRIMARY KEY,
    hash         text COLLATE "C" NOT NULL,
    source_id    uuid NOT NULL REFERENCES sources,
    target_id    uuid NOT NULL REFERENCES scrape_targets ON DELETE CASCADE,
    run_no       bigint,
    url          text NOT NULL,
    status       smallint NOT NULL,
    content_type text NOT NULL,
    bytes        bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    fetched_at   timestamptz NOT NULL,
    importance   smallint NOT NULL DEFAULT 0,
    keep_until   timestamptz NOT NULL,
    found        jsonb
);
CREATE INDEX kept_pages_target ON kept_pages (target_id, fetched_at DESC);
CREATE INDEX kept_pages_old ON kept_pages (importance, keep_until);
CREATE INDEX kept_pages_hash ON kept_pages (hash);

COMMENT ON TABLE kept_pages IS 'Pages whose bytes are kept, compressed, in files named by their hash.';
COMMENT ON COLUMN kept_pages.importance IS 'What is deleted first when there is too much: 0 any page, 1 behind a written price, 2 in quarantine, 3 the newest of its target.';
COMMENT ON COLUMN kept_pages.found IS 'What was read from it then.';

CREATE TABLE scrape_overrides (
    id           uuid PRIMARY KEY,
    source_id    uuid NOT NULL REFERENCES sources,
    version      integer NOT NULL,
    places       jsonb NOT NULL,
    status       text COLLATE "C" NOT NULL DEFAULT 'DRAFT' CHECK (status IN ('DRAFT', 'ACTIVE', 'RETIRED')),
    backtest     jsonb,
    note         text NOT NULL DEFAULT '',
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    activated_by text,
    activated_at timestamptz,
    UNIQUE (source_id, version),
    CONSTRAINT overrides_tested CHECK (status = 'DRAFT' OR backtest IS NOT NULL)
);
CREATE UNIQUE INDEX scrape_overrides_active ON scrape_overrides (source_id) WHERE status = 'ACTIVE';

COMMENT ON TABLE scrape_overrides IS 'Where a source differs from its site file. A version counts once it was tested on kept pages and switched on.';
COMMENT ON COLUMN scrape_overrides.backtest IS 'What it would have read from kept pages, next to what was read then.';

CREATE TABLE scrape_imports (
    id          uuid PRIMARY KEY,
    status      text COLLATE "C" NOT NULL DEFAULT 'PREVIEW'
                CHECK (status IN ('PREVIEW', 'IMPORTING', 'DONE', 'CANCELLED')),
    name        text NOT NULL,
    rows        jsonb NOT NULL,
    refused     jsonb NOT NULL DEFAULT '[]',
    choices     jsonb NOT NULL DEFAULT '{}',
    results     jsonb NOT NULL DEFAULT '{}',
    created_by  text NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at timestamptz
);

COMMENT ON TABLE scrape_imports IS 'Lists of addresses that people pasted or uploaded: a preview, and then a job that adds targets. Doing it again adds nothing twice.';

CREATE TABLE robots_files (
    origin       text COLLATE "C" PRIMARY KEY,
    state        text COLLATE "C" NOT NULL CHECK (state IN ('RULES', 'NONE', 'UNAVAILABLE')),
    body         bytea,
    status       smallint,
    detail       text NOT NULL DEFAULT '',
    fetched_at   timestamptz NOT NULL,
    expires_at   timestamptz NOT NULL,
    failures     smallint NOT NULL DEFAULT 0,
    CONSTRAINT robots_body CHECK ((state = 'RULES') = (body IS NOT NULL)),
    CONSTRAINT robots_body_size CHECK (octet_length(body) <= 512000)
);

COMMENT ON TABLE robots_files IS 'The robots.txt of each scheme, host and port, for a day.';
COMMENT ON COLUMN robots_files.state IS 'RULES; NONE: there is none (4xx), all is allowed; UNAVAILABLE: nothing may be fetched.';
COMMENT ON COLUMN robots_files.failures IS 'Times in a row that it was unavailable; each doubles the wait.';
