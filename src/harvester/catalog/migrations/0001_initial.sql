-- Control tables: few rows, UUIDv7 keys made in Python, foreign keys.
CREATE TABLE retailers (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    website    text NOT NULL DEFAULT '',
    domain     text COLLATE "C" UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE sources (
    id                     uuid PRIMARY KEY,
    retailer_id            uuid NOT NULL REFERENCES retailers,
    name                   text NOT NULL UNIQUE CHECK (name <> ''),
    kind                   text COLLATE "C" NOT NULL CHECK (kind IN ('DIRECT', 'AFFILIATE_FEED', 'OTHER')),
    url                    text NOT NULL DEFAULT '',
    is_display_primary     boolean NOT NULL DEFAULT false,
    affiliate_network      text COLLATE "C",
    affiliate_account_id   text,
    affiliate_account_name text,
    tracking_template      text NOT NULL DEFAULT '',
    upc_trusted            boolean NOT NULL DEFAULT false,
    visibility             text COLLATE "C" NOT NULL DEFAULT 'ELIGIBLE'
                           CHECK (visibility IN ('ELIGIBLE', 'INELIGIBLE')),
    -- Freshness. No expiry means never stale; that is for sources without a feed.
    expiry_hours           smallint CONSTRAINT expiry_hours_range CHECK (expiry_hours BETWEEN 1 AND 168), -- mutant: expiry-hours
    max_hold_hours         smallint NOT NULL DEFAULT 168 CHECK (max_hold_hours BETWEEN 1 AND 720),
    frozen                 interval NOT NULL DEFAULT '0' CHECK (frozen >= '0'),
    held_run_no            bigint,
    held_since             timestamptz,
    last_promoted_run_no   bigint,
    last_promoted_at       timestamptz,
    last_promoted_count    bigint,
    last_promoted_hash     text COLLATE "C",
    last_observed_at       timestamptz,
    content_hash_version   smallint NOT NULL DEFAULT 0,
    price_heartbeat_hours  smallint NOT NULL DEFAULT 24 CHECK (price_heartbeat_hours BETWEEN 1 AND 720),
    -- Governance, for whoever fetches from this source.
    enabled                boolean NOT NULL DEFAULT true,
    rate_per_minute        integer CHECK (rate_per_minute > 0),
    failure_streak         integer NOT NULL DEFAULT 0,
    last_success_at        timestamptz,
    last_failure_at        timestamptz,
    paused_until           timestamptz,
    created_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT held_run_and_time CHECK ((held_run_no IS NULL) = (held_since IS NULL))
);
CREATE INDEX sources_retailer ON sources (retailer_id);
CREATE UNIQUE INDEX sources_one_primary_per_retailer ON sources (retailer_id) WHERE is_display_primary;

-- Provenance of everything that came in. `no` is what volume tables carry.
CREATE TABLE runs (
    id              uuid PRIMARY KEY,
    no              bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    kind            text COLLATE "C" NOT NULL CHECK (kind IN ('AFFILIATE_FEED', 'SCRAPE', 'ACTOR', 'MANUAL')),
    source_id       uuid REFERENCES sources,
    trigger         text COLLATE "C" NOT NULL,
    status          text COLLATE "C" NOT NULL CHECK (status IN ('RUNNING', 'SUCCEEDED', 'FAILED')),
    outcome         text COLLATE "C"
                    CHECK (outcome IN ('PROMOTED', 'HELD', 'APPROVED', 'REJECTED', 'OVERTAKEN', 'SKIPPED')),
    started_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    finished_at     timestamptz,
    duration_ms     bigint,
    job_id          bigint UNIQUE, -- mutant: job-has-one-run
    lease           uuid,
    attempt         smallint NOT NULL DEFAULT 1,
    stage           text COLLATE "C",
    artifact_hash   text COLLATE "C",
    observed_at     timestamptz,
    error_code      text COLLATE "C",
    error           text,
    decided_at      timestamptz,
    decided_by      text,
    decision_reason text,
    ignored_at      timestamptz,
    ignored_by      text,
    ignored_reason  text,
    CONSTRAINT runs_finished_when_ended CHECK ((status = 'RUNNING') = (finished_at IS NULL))
);
CREATE INDEX runs_source ON runs (source_id, started_at);
CREATE INDEX runs_started ON runs (started_at);
CREATE UNIQUE INDEX runs_one_held_per_source ON runs (source_id) WHERE outcome = 'HELD'; -- mutant: one-held-run
CREATE INDEX runs_ignored ON runs (no) WHERE ignored_at IS NOT NULL;

-- A run's trigger, its number and, once known, the hash of what it read never change: a retry must not mix two files.
CREATE FUNCTION keep_run_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.trigger IS DISTINCT FROM OLD.trigger OR NEW.source_id IS DISTINCT FROM OLD.source_id
       OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.job_id IS DISTINCT FROM OLD.job_id
       OR (OLD.artifact_hash IS NOT NULL AND NEW.artifact_hash IS DISTINCT FROM OLD.artifact_hash) THEN
        RAISE EXCEPTION 'what a run is, and what it read, never change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER keep_run_identity BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION keep_run_identity();

-- Volume tables: keys begin with source_id, no foreign keys, so that they can be sharded by source and filled fast.
CREATE SEQUENCE source_products_id;
CREATE TABLE source_products (
    source_id      uuid NOT NULL,
    id             bigint NOT NULL,
    identity_type  smallint NOT NULL CHECK (identity_type BETWEEN 1 AND 4),
    identity_value text COLLATE "C" NOT NULL,
    content_hash   bigint NOT NULL,
    title          text NOT NULL,
    url            text NOT NULL,
    tracked_url    text,
    image_url      text,
    brand          text,
    category       text,
    description    text,
    item_id        text COLLATE "C",
    sku            text COLLATE "C",
    gtin           text COLLATE "C",
    mpn            text COLLATE "C",
    url_hash       text COLLATE "C",
    created_run_no bigint NOT NULL,
    updated_run_no bigint NOT NULL,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (source_id, id)
) WITH (fillfactor = 90);
CREATE UNIQUE INDEX source_products_identity ON source_products (source_id, identity_type, identity_value)
    INCLUDE (id, content_hash);
CREATE INDEX source_products_gtin ON source_products (gtin) WHERE gtin IS NOT NULL;
CREATE INDEX source_products_url ON source_products (source_id, url_hash) WHERE identity_type < 4;

-- The current state of every product that was promoted and has a price. Derived: it must equal the slow rule over
-- prices, row for row. seen_until is null while the last promoted run saw the product.
CREATE TABLE offers (
    source_id        uuid NOT NULL,
    product_id       bigint NOT NULL,
    currency         text COLLATE "C" NOT NULL,
    amount           numeric(14, 4) NOT NULL,
    original_amount  numeric(14, 4),
    in_stock         boolean NOT NULL,
    observed_at      timestamptz NOT NULL,
    run_no           bigint NOT NULL,
    -- What the next run compares with: the newest price that was released, uncorrected. Without a signature the next
    -- run writes, whatever it sees.
    last_run_type    text COLLATE "C" NOT NULL,
    last_signature   uuid,
    last_amount      numeric(14, 4),
    last_currency    text COLLATE "C",
    last_priced_at   timestamptz,
    seen_until       timestamptz,
    absence_accepted boolean NOT NULL DEFAULT false,
    tsv              tsvector NOT NULL,
    PRIMARY KEY (source_id, product_id)
) WITH (fillfactor = 80);
CREATE INDEX offers_price ON offers (currency, amount, product_id);
CREATE INDEX offers_tsv ON offers USING gin (tsv);
-- Newest products first. Their numbers never change, so this index costs updates nothing but what they pay anyway.
CREATE INDEX offers_newest ON offers (product_id);

-- When a product loses its last readable price its offer goes, and what was known of its presence stays here, so that
-- a price that may be read again does not make a product look seen that was missing.
CREATE TABLE hidden_offers (
    source_id            uuid NOT NULL,
    product_id           bigint NOT NULL,
    seen_until           timestamptz,
    absence_accepted     boolean NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    PRIMARY KEY (source_id, product_id)
);

-- Released prices, appended by promotion only.
CREATE TABLE prices (
    source_id         uuid NOT NULL,
    source_product_id bigint NOT NULL,
    observed_at       timestamptz NOT NULL,
    run_no            bigint NOT NULL,
    signature         uuid NOT NULL,
    run_type          text COLLATE "C" NOT NULL,
    amount            numeric(14, 4) NOT NULL CHECK (amount > 0), -- mutant: price-decimals
    currency          text COLLATE "C" NOT NULL,
    original_amount   numeric(14, 4),
    promotion         text,
    in_stock          boolean NOT NULL,
    created_at        timestamptz NOT NULL
) PARTITION BY RANGE (observed_at);
CREATE UNIQUE INDEX prices_once ON prices (source_id, source_product_id, observed_at, run_no, signature);
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON prices FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON prices EXECUTE FUNCTION refuse_change();
CREATE TABLE prices_default PARTITION OF prices DEFAULT;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON prices_default EXECUTE FUNCTION refuse_change();
SELECT make_partitions('prices', 3);

-- The whole difference of a held run: what promotion would do with each product. A row may carry content and a price
-- at once; the lines of products that are missing are made up, below zero.
CREATE TABLE held_changes (
    source_id       uuid NOT NULL,
    run_no          bigint NOT NULL,
    line            bigint NOT NULL,
    is_new          boolean NOT NULL,
    is_content      boolean NOT NULL,
    is_price        boolean NOT NULL,
    is_back         boolean NOT NULL,
    is_missing      boolean NOT NULL,
    has_offer       boolean NOT NULL,
    product_id      bigint,
    identity_type   smallint,
    identity_value  text COLLATE "C",
    content_hash    bigint,
    title           text,
    url             text,
    tracked_url     text,
    image_url       text,
    brand           text,
    category        text,
    description     text,
    item_id         text COLLATE "C",
    sku             text COLLATE "C",
    gtin            text COLLATE "C",
    mpn             text COLLATE "C",
    url_hash        text COLLATE "C",
    amount          numeric(14, 4),
    currency        text COLLATE "C",
    original_amount numeric(14, 4),
    promotion       text,
    in_stock        boolean,
    signature       uuid,
    PRIMARY KEY (source_id, run_no, line)
);

-- What the newest promoted run replaced, so that a person can see what a title or an address was.
CREATE TABLE replaced_contents (
    source_id   uuid NOT NULL,
    product_id  bigint NOT NULL,
    run_no      bigint NOT NULL,
    title       text NOT NULL,
    url         text NOT NULL,
    tracked_url text,
    image_url   text,
    brand       text,
    category    text,
    description text,
    item_id     text COLLATE "C",
    sku         text COLLATE "C",
    gtin        text COLLATE "C",
    mpn         text COLLATE "C",
    url_hash    text COLLATE "C",
    PRIMARY KEY (source_id, product_id)
);

-- Which products a run did not see, in arrays: half a million rows would cost more to delete than all of the rest.
CREATE TABLE run_absences (
    source_id   uuid NOT NULL,
    run_no      bigint NOT NULL,
    part        integer NOT NULL,
    product_ids bigint[] NOT NULL,
    PRIMARY KEY (source_id, run_no, part)
);

-- How prices are read, not what was observed: a correction hides or scales prices of a scope and a window.
CREATE TABLE price_corrections (
    id            uuid PRIMARY KEY,
    scope         text COLLATE "C" NOT NULL CHECK (scope IN ('PRODUCT', 'RETAILER', 'SOURCE', 'RUN')),
    retailer_id   uuid REFERENCES retailers,
    source_id     uuid REFERENCES sources,
    product_id    bigint,
    run_no        bigint,
    observed_from timestamptz,
    observed_to   timestamptz,
    action        text COLLATE "C" NOT NULL CHECK (action IN ('IGNORE', 'MULTIPLIER')),
    multiplier    numeric(12, 6) CHECK (multiplier > 0),
    reason        text NOT NULL CHECK (reason <> ''),
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_by    text,
    revoked_at    timestamptz,
    CONSTRAINT correction_names_its_scope CHECK (CASE scope
        WHEN 'RETAILER' THEN num_nonnulls(source_id, product_id, run_no) = 0 AND retailer_id IS NOT NULL
        WHEN 'SOURCE' THEN num_nonnulls(retailer_id, product_id, run_no) = 0 AND source_id IS NOT NULL
        WHEN 'PRODUCT' THEN num_nonnulls(retailer_id, run_no) = 0 AND num_nonnulls(source_id, product_id) = 2
        WHEN 'RUN' THEN num_nonnulls(retailer_id, product_id) = 0 AND num_nonnulls(source_id, run_no) = 2 END),
    CONSTRAINT correction_multiplies_by_something CHECK ((action = 'MULTIPLIER') = (multiplier IS NOT NULL)),
    CONSTRAINT correction_window CHECK (observed_from < observed_to)
);
CREATE INDEX price_corrections_valid ON price_corrections (scope) WHERE revoked_at IS NULL;

-- Canonical products, made by the resolver alone, and what they were recognised by.
CREATE TABLE products (
    id          uuid PRIMARY KEY,
    gtin        text COLLATE "C" UNIQUE,
    fingerprint text COLLATE "C" UNIQUE,
    title       text NOT NULL,
    brand       text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE product_links (
    source_id         uuid NOT NULL,
    source_product_id bigint NOT NULL,
    product_id        uuid,
    status            text COLLATE "C" NOT NULL CHECK (status IN ('LINKED', 'NEEDS_REVIEW', 'SKIPPED')),
    match_type        text COLLATE "C" CHECK (match_type IN ('GTIN', 'FINGERPRINT', 'MANUAL')),
    evidence          jsonb NOT NULL DEFAULT '{}',
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (source_id, source_product_id),
    CONSTRAINT linked_to_something CHECK ((status = 'LINKED') = (product_id IS NOT NULL))
);
CREATE INDEX product_links_product ON product_links (product_id) WHERE product_id IS NOT NULL;
CREATE INDEX product_links_review ON product_links (updated_at) WHERE status = 'NEEDS_REVIEW';

-- The clock of a source: it stands still while a run is held, for max_hold_hours at the most, and never jumps.
-- Reckoned without a time zone: a day of an interval has 23 or 25 hours in some zones on some days.
CREATE FUNCTION effective_now(moment timestamptz, frozen interval, held_since timestamptz, max_hold_hours smallint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (moment AT TIME ZONE 'UTC' - least(frozen + greatest(moment - held_since, interval '0'),
                                              max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC'
$$;

-- The one place that says what consumers see. An offer is active while its product was last seen no longer ago, by
-- its source's own clock, than the source's expiry; affiliate and other sources show only when they are the
-- retailer's display primary, a direct one also when the retailer has none.
CREATE VIEW source_windows AS
SELECT s.id AS source_id, s.retailer_id, s.kind, s.last_promoted_at, s.expiry_hours, s.visibility,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours) AS effective_now,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours)
           - s.expiry_hours * interval '1 hour' AS active_since,
       s.is_display_primary OR (s.kind = 'DIRECT' AND NOT EXISTS (
           SELECT FROM sources o WHERE o.retailer_id = s.retailer_id AND o.is_display_primary)) AS is_shown
FROM sources s;

CREATE VIEW active_offers AS
SELECT o.*, w.retailer_id, w.is_shown
FROM offers o JOIN source_windows w ON w.source_id = o.source_id
WHERE w.expiry_hours IS NULL OR coalesce(o.seen_until, w.last_promoted_at) >= w.active_since;

CREATE VIEW visible_offers AS SELECT * FROM active_offers WHERE is_shown;

-- What the corrections that are valid now make of one price: a factor, or null if one of them says to ignore it.
CREATE AGGREGATE numeric_product(numeric) (SFUNC = numeric_mul, STYPE = numeric, INITCOND = '1');
CREATE FUNCTION correction_factor(source uuid, product bigint, run bigint, observed timestamptz)
RETURNS numeric LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN coalesce(bool_or(c.action = 'IGNORE'), false) THEN NULL
                ELSE numeric_product(coalesce(c.multiplier, 1)) END
    FROM price_corrections c JOIN sources s ON s.id = source
    WHERE c.revoked_at IS NULL
      AND (c.observed_from IS NULL OR observed >= c.observed_from)
      AND (c.observed_to IS NULL OR observed < c.observed_to)
      AND CASE c.scope WHEN 'RETAILER' THEN c.retailer_id = s.retailer_id
                       WHEN 'SOURCE' THEN c.source_id = source
                       WHEN 'PRODUCT' THEN c.source_id = source AND c.product_id = product
                       ELSE c.source_id = source AND c.run_no = run END
$$;
-- A corrected amount has the decimals of the amount, two at the least.
CREATE FUNCTION corrected(amount numeric, factor numeric) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT round(amount * factor, greatest(scale(trim_scale(amount)), 2))
$$;

-- By what an offer is found: words of its title and brand, and its category and source as words that no text has.
CREATE FUNCTION offer_tokens(source uuid, title text, brand text, category text)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('simple', title || ' ' || coalesce(brand, '')) || array_to_tsvector(array_remove(ARRAY[
        'source:' || source, 'category:' || left(lower(category), 200), 'brand:' || left(lower(brand), 200)], NULL))
$$;

-- Looks for one such word, whatever characters it has.
CREATE FUNCTION word_query(word text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''')::tsquery
$$;

-- The slow truth that offers must equal: of each product the newest price that may be read. Prices of ignored runs
-- and ignored prices do not count, scraped ones only where the source allows them.
CREATE VIEW readable_prices AS
SELECT p.source_id, p.source_product_id AS product_id, p.currency,
       corrected(p.amount, f.factor) AS amount, corrected(p.original_amount, f.factor) AS original_amount,
       p.promotion, p.in_stock, p.observed_at, p.run_no, p.run_type, p.amount AS raw_amount
FROM prices p
JOIN sources s ON s.id = p.source_id
-- Most sources have no correction, and to look for one price by price costs thirty times as much as all the rest.
CROSS JOIN LATERAL (SELECT CASE WHEN EXISTS (
    SELECT FROM price_corrections c
    WHERE c.revoked_at IS NULL AND (c.source_id = s.id OR c.retailer_id = s.retailer_id))
    THEN correction_factor(p.source_id, p.source_product_id, p.run_no, p.observed_at) ELSE 1 END AS factor) f
WHERE f.factor IS NOT NULL
  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = p.run_no AND r.ignored_at IS NOT NULL)
  AND (p.run_type <> 'SCRAPE' OR s.visibility = 'ELIGIBLE');

CREATE VIEW current_prices AS
SELECT DISTINCT ON (source_id, product_id) *
FROM readable_prices ORDER BY source_id, product_id, observed_at DESC, run_no DESC;

-- The names that the specification of feeds uses. Nothing is written here: what is not in offers was never promoted.
CREATE VIEW source_product_presence AS
SELECT o.source_id, o.product_id AS source_product_id,
       coalesce(o.seen_until, s.last_promoted_at) AS last_seen_at,
       coalesce(o.seen_until, s.last_promoted_at) AS last_seen_success_at
FROM offers o JOIN sources s ON s.id = o.source_id;

CREATE VIEW source_product_seen AS
SELECT s.last_promoted_run_no AS run_no, o.source_id, o.product_id AS source_product_id
FROM offers o JOIN sources s ON s.id = o.source_id WHERE o.seen_until IS NULL;

-- Staging: what a run read, and what it would change. One set of tables for each slot, made once: tables that come
-- and go with every run bloat the system's catalog. They are not logged; a run that is interrupted begins anew.
DO $$ BEGIN FOR slot IN 0..15 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE staged_rows_%s (
        line            bigint NOT NULL,
        identity_type   smallint NOT NULL,
        identity_value  text COLLATE "C" NOT NULL,
        content_hash    bigint NOT NULL,
        amount          numeric(14, 4) NOT NULL,
        currency        text COLLATE "C" NOT NULL,
        original_amount numeric(14, 4),
        promotion       text,
        in_stock        boolean NOT NULL,
        signature       uuid NOT NULL
    ) WITH (autovacuum_enabled = false)', slot);
    EXECUTE format('CREATE UNLOGGED TABLE staged_changes_%s (
        line            bigint NOT NULL,
        product_id      bigint NOT NULL,
        is_new          boolean NOT NULL,
        is_content      boolean NOT NULL,
        is_price        boolean NOT NULL,
        is_back         boolean NOT NULL,
        is_missing      boolean NOT NULL,
        has_offer       boolean NOT NULL,
        is_unsure       boolean NOT NULL,
        identity_type   smallint,
        identity_value  text COLLATE "C",
        content_hash    bigint,
        amount          numeric(14, 4),
        currency        text COLLATE "C",
        original_amount numeric(14, 4),
        promotion       text,
        in_stock        boolean,
        signature       uuid
    ) WITH (autovacuum_enabled = false)', slot);
    EXECUTE format('CREATE UNLOGGED TABLE staged_contents_%s (
        line        bigint NOT NULL,
        title       text NOT NULL,
        url         text NOT NULL,
        tracked_url text,
        image_url   text,
        brand       text,
        category    text,
        description text,
        item_id     text COLLATE "C",
        sku         text COLLATE "C",
        gtin        text COLLATE "C",
        mpn         text COLLATE "C",
        url_hash    text COLLATE "C"
    ) WITH (autovacuum_enabled = false)', slot);
END LOOP; END $$;

-- Only the owner may empty and analyse tables, and only of staging the application may ask for it.
CREATE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('TRUNCATE staged_rows_%s, staged_changes_%s, staged_contents_%s', slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    -- A dump or a report reads them; the next run that is alone gives the space back.
    EXECUTE format('DELETE FROM staged_rows_%s', slot);
    EXECUTE format('DELETE FROM staged_changes_%s', slot);
    EXECUTE format('DELETE FROM staged_contents_%s', slot);
END $$;
CREATE FUNCTION analyse_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public AS $$
BEGIN
    EXECUTE format('ANALYZE staged_rows_%s, staged_changes_%s, staged_contents_%s', slot, slot, slot);
END $$;
