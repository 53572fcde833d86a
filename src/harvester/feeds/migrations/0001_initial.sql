-- How a source's catalog is fetched and read. One feed for each source.
CREATE TABLE feeds (
    id                      uuid PRIMARY KEY,
    source_id               uuid NOT NULL UNIQUE REFERENCES sources,
    -- The second half of the advisory lock that keeps a feed's runs and decisions apart.
    lock_no                 integer GENERATED ALWAYS AS IDENTITY UNIQUE,
    network                 text COLLATE "C" NOT NULL,
    status                  text COLLATE "C" NOT NULL DEFAULT 'DRAFT'
                            CHECK (status IN ('DRAFT', 'ENABLED', 'PAUSED', 'DISABLED')),
    schedule_hours          smallint CHECK (schedule_hours IN (1, 2, 4, 6, 12, 24)),
    next_run_at             timestamptz,
    manual_run_requested_at timestamptz,
    consecutive_failures    integer NOT NULL DEFAULT 0 CHECK (consecutive_failures >= 0),
    last_run_at             timestamptz,
    transport               text COLLATE "C" NOT NULL DEFAULT 'SFTP' CHECK (transport IN ('SFTP', 'FTP')),
    host                    text NOT NULL DEFAULT '',
    port                    integer CHECK (port BETWEEN 1 AND 65535),
    path                    text NOT NULL DEFAULT '',
    username                text NOT NULL DEFAULT '',
    -- Approved host keys, one on each line, and the one that the server showed last.
    host_keys               text NOT NULL DEFAULT '',
    seen_host_key           text NOT NULL DEFAULT '',
    -- Goes up with each change of the sealed credentials; beside it the names of what they hold.
    secret_version          integer NOT NULL DEFAULT 0,
    secret_fields           jsonb NOT NULL DEFAULT '[]',
    format                  text COLLATE "C" NOT NULL DEFAULT 'CSV' CHECK (format = 'CSV'),
    compression             text COLLATE "C" NOT NULL DEFAULT 'NONE' CHECK (compression IN ('NONE', 'GZIP')),
    encoding                text COLLATE "C" NOT NULL DEFAULT '',
    default_currency        text COLLATE "C" NOT NULL DEFAULT '',
    decimal_style           text COLLATE "C" NOT NULL DEFAULT '',
    use_manifest            boolean NOT NULL DEFAULT true,
    -- Without a limit the default holds.
    max_file_bytes          bigint CHECK (max_file_bytes > 0),
    max_rows                integer CHECK (max_rows > 0),
    max_products            integer CHECK (max_products > 0),
    -- Thresholds of the gates that differ from the defaults, by name.
    thresholds              jsonb NOT NULL DEFAULT '{}',
    accepts_url_identity    boolean NOT NULL DEFAULT false,
    unchanged_means_seen    boolean NOT NULL DEFAULT false,
    -- The file of the last run that ingested, to see whether there is a new one.
    last_remote_mtime       timestamptz,
    last_remote_size        bigint,
    last_content_hash       text COLLATE "C",
    last_ingested_run_no    bigint,
    last_parser_version     integer,
    created_by              text NOT NULL,
    created_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT scheduled_only_when_enabled CHECK (next_run_at IS NULL OR status = 'ENABLED')
);
CREATE INDEX feeds_due ON feeds (next_run_at) WHERE status = 'ENABLED' AND next_run_at IS NOT NULL;

-- The figures of a feed's run, beside its row in runs.
CREATE TABLE feed_runs (
    run_id                  uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    feed_id                 uuid NOT NULL REFERENCES feeds,
    next_try_at             timestamptz,
    skipped_reason          text COLLATE "C",
    remote_mtime            timestamptz,
    remote_size             bigint,
    manifest_rows           bigint,
    download_bytes          bigint,
    rows_read               bigint,
    rows_parsed             bigint,
    products_upserted       bigint,
    products_new            bigint,
    products_changed        bigint,
    products_missing        bigint,
    products_back           bigint,
    products_expired        bigint,
    products_rejected       bigint,
    prices_written          bigint,
    prices_due              bigint,
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
    -- What the gates said: one object for each, with its figures and thresholds.
    verdict                 jsonb NOT NULL DEFAULT '[]',
    rejects                 jsonb NOT NULL DEFAULT '{}',
    warnings                jsonb NOT NULL DEFAULT '{}',
    dialect                 jsonb NOT NULL DEFAULT '{}',
    timings                 jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX feed_runs_feed ON feed_runs (feed_id);

-- The first rows of each kind that were refused or looked odd.
CREATE TABLE feed_run_samples (
    run_id uuid NOT NULL REFERENCES feed_runs ON DELETE CASCADE,
    code   text COLLATE "C" NOT NULL,
    place  smallint NOT NULL,
    line   bigint NOT NULL,
    row    text NOT NULL,
    reason text NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, code, place)
);
