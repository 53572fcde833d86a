CREATE TABLE feeds (
    id                      uuid PRIMARY KEY,
    source_id               uuid NOT NULL UNIQUE REFERENCES sources,
    lock_no                 integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    network                 text COLLATE "C" NOT NULL,
    status                  text COLLATE "C" NOT NULL DEFAULT 'DRAFT'
                            CHECK (status IN ('DRAFT', 'ENABLED', 'PAUSED', 'DISABLED')),
    -- When it runs.
    schedule_hours          smallint CHECK (schedule_hours IN (1, 2, 4, 6, 12, 24)),
    next_run_at             timestamptz,
    manual_run_requested_at timestamptz,
    consecutive_failures    integer NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    last_run_at             timestamptz,
    retired_at              timestamptz,
    -- Where the file is.
    transport               text COLLATE "C" NOT NULL DEFAULT 'SFTP' CHECK (transport IN ('SFTP', 'FTP')),
    host                    text NOT NULL DEFAULT '',
    port                    integer CHECK (port BETWEEN 1 AND 65535),
    path                    text NOT NULL DEFAULT '',
    username                text NOT NULL DEFAULT '',
    host_keys               text NOT NULL DEFAULT '',
    seen_host_key           text NOT NULL DEFAULT '',
    secret_version          integer NOT NULL DEFAULT 0,
    secret_fields           jsonb NOT NULL DEFAULT '[]',
    -- How it is read.
    format                  text COLLATE "C" NOT NULL DEFAULT 'CSV' CHECK (format = 'CSV'),
    compression             text COLLATE "C" NOT NULL DEFAULT 'NONE' CHECK (compression IN ('NONE', 'GZIP')),
    encoding                text COLLATE "C" NOT NULL DEFAULT '',
    default_currency        text COLLATE "C" NOT NULL DEFAULT '',
    decimal_style           text COLLATE "C" NOT NULL DEFAULT '',
    unknown_stock           text COLLATE "C" NOT NULL DEFAULT 'IN_STOCK'
                            CHECK (unknown_stock IN ('IN_STOCK', 'OUT_OF_STOCK', 'REJECT')),
    kept_parameters         jsonb NOT NULL DEFAULT '[]',
    use_manifest            boolean NOT NULL DEFAULT true,
    takes_file_as_is        boolean NOT NULL DEFAULT false,
    -- Limits and gates.
    max_file_bytes          bigint CHECK (max_file_bytes > 0),
    max_rows                integer CHECK (max_rows > 0),
    max_products            integer CHECK (max_products > 0),
    thresholds              jsonb NOT NULL DEFAULT '{}',
    accepts_url_identity    boolean NOT NULL DEFAULT false,
    unchanged_means_seen    boolean NOT NULL DEFAULT false,
    -- The file of the last run that ingested one, to see whether there is a new one.
    last_remote_mtime       timestamptz,
    last_remote_size        bigint,
    last_content_hash       text COLLATE "C",
    last_ingested_run_no    bigint,
    last_parser_version     integer,
    created_by              text NOT NULL,
    created_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT scheduled_only_when_enabled CHECK (next_run_at IS NULL OR status = 'ENABLED'),
    CONSTRAINT retired_feeds_do_not_run CHECK (retired_at IS NULL OR status IN ('PAUSED', 'DISABLED')),
    CONSTRAINT retired_feeds_have_no_credentials CHECK (retired_at IS NULL OR secret_fields = '[]')
);
CREATE INDEX feeds_due ON feeds (next_run_at) WHERE status = 'ENABLED' AND next_run_at IS NOT NULL;

COMMENT ON TABLE feeds IS 'How the catalog of a source is fetched and read. One feed per source. People write the settings, runs their state.';
COMMENT ON COLUMN feeds.lock_no IS 'The second half of the advisory lock that keeps its runs and decisions apart.';
COMMENT ON COLUMN feeds.network IS 'The affiliate network, which says how its files look.';
COMMENT ON COLUMN feeds.schedule_hours IS 'Hours between two runs; null: manual.';
COMMENT ON COLUMN feeds.manual_run_requested_at IS 'When somebody asked for a run that has not started.';
COMMENT ON COLUMN feeds.consecutive_failures IS 'Final failures in a row; three disable the feed.';
COMMENT ON COLUMN feeds.retired_at IS 'When it was retired for good; its runs and prices stay.';
COMMENT ON COLUMN feeds.host_keys IS 'Approved host keys, one per line.';
COMMENT ON COLUMN feeds.seen_host_key IS 'The key that the server showed last.';
COMMENT ON COLUMN feeds.secret_version IS 'Goes up with each change of the credentials.';
COMMENT ON COLUMN feeds.secret_fields IS 'Names of the credentials that were entered.';
COMMENT ON COLUMN feeds.encoding IS 'Empty: found out.';
COMMENT ON COLUMN feeds.default_currency IS 'Of prices without one; empty: such rows are rejected.';
COMMENT ON COLUMN feeds.decimal_style IS 'The decimal separator of prices with two readings; empty: such rows are rejected.';
COMMENT ON COLUMN feeds.unknown_stock IS 'What a stock text means that is empty or not understood.';
COMMENT ON COLUMN feeds.kept_parameters IS 'Parameters of links that choose a product, although elsewhere they only track.';
COMMENT ON COLUMN feeds.use_manifest IS 'Compare files with the partner''s manifest, where the network has one.';
COMMENT ON COLUMN feeds.takes_file_as_is IS 'The next run takes a file whose last record may be cut.';
COMMENT ON COLUMN feeds.max_file_bytes IS 'Null: the default; the same for the other limits.';
COMMENT ON COLUMN feeds.thresholds IS 'Thresholds of gates that differ from the defaults, by name.';
COMMENT ON COLUMN feeds.accepts_url_identity IS 'Do not hold runs whose products have no ID or SKU.';
COMMENT ON COLUMN feeds.unchanged_means_seen IS 'An unchanged file confirms its products; otherwise their offers still expire.';

CREATE TABLE feed_runs (
    run_id                  uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    feed_id                 uuid NOT NULL REFERENCES feeds,
    skipped_reason          text COLLATE "C",
    -- The file.
    remote_mtime            timestamptz,
    remote_size             bigint,
    manifest_rows           bigint,
    download_bytes          bigint,
    fetched_hash            text COLLATE "C",
    fetched_at              timestamptz,
    file_end                text COLLATE "C" CHECK (file_end IN ('NEWLINE', 'PROVEN', 'LEFT_OUT', 'TAKEN')),
    rows_read               bigint,
    rows_parsed             bigint,
    -- Its difference to the last promoted run.
    products_upserted       bigint,
    products_new            bigint,
    products_changed        bigint,
    products_missing        bigint,
    products_back           bigint,
    products_expired        bigint,
    products_rejected       bigint,
    prices_due              bigint,
    prices_written          bigint,
    -- What the gates and warnings look at.
    error_count             bigint NOT NULL DEFAULT 0,
    duplicate_key_count     bigint NOT NULL DEFAULT 0,
    url_hash_fallback_count bigint,
    identity_upgrades       bigint,
    known_products          bigint,
    shocked_products        bigint,
    active_count_before     bigint,
    seen_success_count      bigint,
    would_expire_count      bigint,
    is_partial              boolean NOT NULL DEFAULT false CHECK (NOT is_partial), -- mutant: never-partial
    rejects                 jsonb NOT NULL DEFAULT '{}',
    warnings                jsonb NOT NULL DEFAULT '{}',
    notices                 jsonb NOT NULL DEFAULT '[]',
    dialect                 jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX feed_runs_feed ON feed_runs (feed_id);

COMMENT ON TABLE feed_runs IS 'What a run of a feed read and found, next to its row in runs. Written by the run, and by decisions.';
COMMENT ON COLUMN feed_runs.skipped_reason IS 'Why a skipped run had nothing to do.';
COMMENT ON COLUMN feed_runs.manifest_rows IS 'Rows that the partner''s manifest names.';
COMMENT ON COLUMN feed_runs.fetched_hash IS 'Hash of the file that it downloaded, read or not.';
COMMENT ON COLUMN feed_runs.fetched_at IS 'When it had downloaded the file; a run that is approved later gets its prices as of then.';
COMMENT ON COLUMN feed_runs.file_end IS 'How the file ends: NEWLINE; without one but PROVEN whole; with its last record LEFT_OUT or TAKEN.';
COMMENT ON COLUMN feed_runs.rows_parsed IS 'Rows that could be used.';
COMMENT ON COLUMN feed_runs.products_upserted IS 'Unique valid products of the file.';
COMMENT ON COLUMN feed_runs.products_changed IS 'Products whose content changed.';
COMMENT ON COLUMN feed_runs.products_missing IS 'Products that the file no longer contains.';
COMMENT ON COLUMN feed_runs.products_back IS 'Missing products that it contains again.';
COMMENT ON COLUMN feed_runs.products_expired IS 'Products that expired since the last promotion.';
COMMENT ON COLUMN feed_runs.products_rejected IS 'Rows that were rejected.';
COMMENT ON COLUMN feed_runs.prices_due IS 'Price changes: prices that promotion would record.';
COMMENT ON COLUMN feed_runs.duplicate_key_count IS 'Rows of products that the file has already.';
COMMENT ON COLUMN feed_runs.url_hash_fallback_count IS 'Products without an ID or SKU, matched by URL.';
COMMENT ON COLUMN feed_runs.identity_upgrades IS 'Products that have a stronger ID than before and so count as new.';
COMMENT ON COLUMN feed_runs.known_products IS 'Products that have had a price before.';
COMMENT ON COLUMN feed_runs.shocked_products IS 'Of these, those whose price moved by more than the threshold of a shock.';
COMMENT ON COLUMN feed_runs.active_count_before IS 'Products on sale before the run.';
COMMENT ON COLUMN feed_runs.seen_success_count IS 'Of these, those that it saw.';
COMMENT ON COLUMN feed_runs.would_expire_count IS 'Of these, those that it did not see.';
COMMENT ON COLUMN feed_runs.is_partial IS 'Always false: a run reads the whole file or fails.';
COMMENT ON COLUMN feed_runs.rejects IS 'Rejected rows by code.';
COMMENT ON COLUMN feed_runs.warnings IS 'Rows with warnings by code.';
COMMENT ON COLUMN feed_runs.notices IS 'Warnings about the run as a whole.';
COMMENT ON COLUMN feed_runs.dialect IS 'How the file was read: encoding, delimiter, columns.';

CREATE TABLE feed_run_samples (
    run_id uuid NOT NULL REFERENCES feed_runs ON DELETE CASCADE,
    code   text COLLATE "C" NOT NULL,
    place  smallint NOT NULL,
    line   bigint NOT NULL,
    row    text NOT NULL,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, code, place)
);

COMMENT ON TABLE feed_run_samples IS 'The first rejected rows, and rows with warnings, of each code. Written by the run.';
COMMENT ON COLUMN feed_run_samples.place IS 'Counts the samples of a code.';
COMMENT ON COLUMN feed_run_samples.line IS 'Line of the file.';
COMMENT ON COLUMN feed_run_samples.row IS 'The row, shortened.';

CREATE TABLE feed_days (
    day      date PRIMARY KEY,
    promoted bigint NOT NULL,
    skipped  bigint NOT NULL,
    held     bigint NOT NULL,
    failed   bigint NOT NULL,
    prices   bigint NOT NULL,
    rejects  bigint NOT NULL,
    visible  bigint NOT NULL
);

COMMENT ON TABLE feed_days IS 'Figures of past days of all feeds, in UTC, so that a page does not compute a month. Written by an hourly job.';
COMMENT ON COLUMN feed_days.promoted IS 'Runs that started that day and were promoted or approved.';
COMMENT ON COLUMN feed_days.held IS 'Runs that were held, whatever was decided.';
COMMENT ON COLUMN feed_days.prices IS 'Prices that these runs recorded.';
COMMENT ON COLUMN feed_days.rejects IS 'Rows that they rejected.';
COMMENT ON COLUMN feed_days.visible IS 'Offers that consumers saw at the end of the day.';
