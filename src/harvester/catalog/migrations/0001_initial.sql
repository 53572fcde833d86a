-- The tables of the catalog. First the control tables: few rows, UUIDv7 keys made in Python, foreign keys.

CREATE TABLE retailers (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (name <> ''),
    website    text NOT NULL DEFAULT '',
    domain     text COLLATE "C" UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE retailers IS 'Companies that sell. Written by people, and by the import of shops.';
COMMENT ON COLUMN retailers.domain IS 'The domain of the website; null: without a website.';

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
    -- The clock of its offers.
    expiry_hours           smallint CONSTRAINT expiry_hours_range CHECK (expiry_hours BETWEEN 1 AND 168), -- mutant: expiry-hours
    max_hold_hours         smallint NOT NULL DEFAULT 168 CHECK (max_hold_hours BETWEEN 1 AND 720),
    frozen                 interval NOT NULL DEFAULT '0' CHECK (frozen >= '0'),
    held_run_no            bigint,
    held_since             timestamptz,
    -- The last promoted run, which the next one is compared with.
    last_promoted_run_no   bigint,
    last_promoted_at       timestamptz,
    last_promoted_count    bigint,
    last_promoted_hash     text COLLATE "C",
    last_observed_at       timestamptz,
    content_hash_version   smallint NOT NULL DEFAULT 0,
    price_heartbeat_hours  smallint NOT NULL DEFAULT 24 CHECK (price_heartbeat_hours BETWEEN 1 AND 720),
    -- For work that fetches from the source.
    enabled                boolean NOT NULL DEFAULT true,
    rate_per_minute        integer CHECK (rate_per_minute > 0),
    last_success_at        timestamptz,
    last_failure_at        timestamptz,
    paused_until           timestamptz,
    created_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT held_run_and_time CHECK ((held_run_no IS NULL) = (held_since IS NULL))
);
CREATE INDEX sources_retailer ON sources (retailer_id);
CREATE UNIQUE INDEX sources_one_primary_per_retailer ON sources (retailer_id) WHERE is_display_primary;

COMMENT ON TABLE sources IS 'Ways in which the offers of a retailer reach us. People write the settings; promotion, holds and decisions write the clock and the last promoted run. Everything that changes offers locks the row of their source.';
COMMENT ON COLUMN sources.kind IS 'DIRECT (the retailer itself), AFFILIATE_FEED or OTHER.';
COMMENT ON COLUMN sources.is_display_primary IS 'Consumers see the offers of this source of the retailer; at most one.';
COMMENT ON COLUMN sources.tracking_template IS 'Makes a tracked link of a product''s address.';
COMMENT ON COLUMN sources.upc_trusted IS 'Its GTINs may link products.';
COMMENT ON COLUMN sources.visibility IS 'INELIGIBLE: scraped prices do not count; others always do.';
COMMENT ON COLUMN sources.expiry_hours IS 'Hours after it was last seen that an offer disappears; null: never.';
COMMENT ON COLUMN sources.max_hold_hours IS 'The most hours for which the clock stops while a run is held.';
COMMENT ON COLUMN sources.frozen IS 'How long the clock was stopped since the last promotion, without the current hold.';
COMMENT ON COLUMN sources.held_run_no IS 'The run that waits for a decision.';
COMMENT ON COLUMN sources.held_since IS 'When the clock stopped.';
COMMENT ON COLUMN sources.last_promoted_at IS 'When its products were last seen: at its promotion, or when its file was still the same later.';
COMMENT ON COLUMN sources.last_promoted_count IS 'How many products that run had.';
COMMENT ON COLUMN sources.last_promoted_hash IS 'Hash of what that run read.';
COMMENT ON COLUMN sources.last_observed_at IS 'The newest time that a price of the source has.';
COMMENT ON COLUMN sources.content_hash_version IS 'Which rule computed the content hashes of its products.';
COMMENT ON COLUMN sources.price_heartbeat_hours IS 'Unchanged prices are recorded again after so many hours.';

-- The difference itself may have half a million rows, is deleted with the decision, and no page reads it.
CREATE TABLE run_differences (
    run_no      bigint PRIMARY KEY REFERENCES runs (no) ON DELETE CASCADE,
    summary     jsonb NOT NULL,
    computed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE run_differences IS 'What a held run would change, as a summary: counts, groups and samples. Stays as long as the run. Written when the run is held.';

CREATE TABLE price_corrections (
    id            uuid PRIMARY KEY,
    scope         text COLLATE "C" NOT NULL CHECK (scope IN ('PRODUCT', 'RETAILER', 'SOURCE', 'RUN')),
    retailer_id   uuid REFERENCES retailers,
    source_id     uuid REFERENCES sources,
    product_id    bigint,
    run_no        bigint,
    extent        text COLLATE "C" NOT NULL DEFAULT 'WINDOW' CHECK (extent IN ('OBSERVED', 'WINDOW')),
    observed_from timestamptz,
    observed_to   timestamptz,
    action        text COLLATE "C" NOT NULL CHECK (action IN ('IGNORE', 'MULTIPLIER', 'SET')),
    multiplier    numeric(12, 6) CHECK (multiplier > 0),
    set_amount    numeric(14, 4) CHECK (set_amount > 0),
    set_currency  text COLLATE "C",
    reason        text NOT NULL CHECK (reason <> '')
                  CONSTRAINT correction_reason_length CHECK (char_length(reason) <= 1000),
    created_by    text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_by    text,
    revoked_at    timestamptz,
    CONSTRAINT correction_names_its_scope CHECK (CASE scope
        WHEN 'RETAILER' THEN num_nonnulls(source_id, product_id, run_no) = 0 AND retailer_id IS NOT NULL
        WHEN 'SOURCE' THEN num_nonnulls(retailer_id, product_id, run_no) = 0 AND source_id IS NOT NULL
        WHEN 'PRODUCT' THEN num_nonnulls(retailer_id, run_no) = 0 AND num_nonnulls(source_id, product_id) = 2
        WHEN 'RUN' THEN num_nonnulls(retailer_id, product_id) = 0 AND num_nonnulls(source_id, run_no) = 2 END),
    CONSTRAINT correction_window CHECK (observed_from < observed_to),
    CONSTRAINT observed_has_no_window CHECK (extent = 'WINDOW' OR num_nonnulls(observed_from, observed_to) = 0),
    CONSTRAINT correction_multiplies_by_something CHECK ((action = 'MULTIPLIER') = (multiplier IS NOT NULL)),
    CONSTRAINT correction_sets_something
        CHECK (num_nonnulls(set_amount, set_currency) = CASE action WHEN 'SET' THEN 2 ELSE 0 END),
    CONSTRAINT correction_sets_one_product CHECK (action <> 'SET' OR scope = 'PRODUCT')
);
CREATE INDEX price_corrections_valid ON price_corrections (scope) WHERE revoked_at IS NULL;

COMMENT ON TABLE price_corrections IS 'How prices are read, not what was observed. Written by people; never deleted, only revoked.';
COMMENT ON COLUMN price_corrections.scope IS 'Which prices it is about: those of a product, a retailer, a source or a run.';
COMMENT ON COLUMN price_corrections.extent IS 'OBSERVED: the prices shown when it was made, until the next different price of each product. WINDOW: every price between two moments, either of which may be open.';
COMMENT ON COLUMN price_corrections.action IS 'IGNORE wins, then the newest SET; MULTIPLIER multiplies.';

-- The prices that OBSERVED corrections are for. The facts carry no mark of a correction; the function
-- correction_applies compares these rows with them.
CREATE TABLE corrected_prices (
    source_id     uuid NOT NULL,
    product_id    bigint NOT NULL,
    correction_id uuid NOT NULL,
    run_type      text COLLATE "C" NOT NULL,
    amount        numeric(14, 4) NOT NULL,
    currency      text COLLATE "C" NOT NULL,
    after_at      timestamptz NOT NULL,
    anchored_at   timestamptz NOT NULL,
    PRIMARY KEY (source_id, product_id, correction_id)
);

COMMENT ON TABLE corrected_prices IS 'The prices, as observed, that an OBSERVED correction was made for. Written with the correction.';
COMMENT ON COLUMN corrected_prices.run_type IS 'Only prices of this kind of run continue or end it.';
COMMENT ON COLUMN corrected_prices.after_at IS 'It applies to prices observed after this: the last different price before.';
COMMENT ON COLUMN corrected_prices.anchored_at IS 'The price it was made for; the first different price behind it ends it.';

-- Volume tables: their keys begin with source_id and they have no foreign keys, so that they can be sharded by source
-- and filled fast.

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
    -- Defaults, because reading two times for every new product took a sixth of its COPY.
    created_at     timestamptz NOT NULL DEFAULT transaction_timestamp(),
    updated_at     timestamptz NOT NULL DEFAULT transaction_timestamp(),
    PRIMARY KEY (source_id, id)
) WITH (fillfactor = 90);
CREATE UNIQUE INDEX source_products_identity ON source_products (source_id, identity_type, identity_value)
    INCLUDE (id, content_hash);
CREATE INDEX source_products_gtin ON source_products (gtin) WHERE gtin IS NOT NULL;
-- SKUs and item ids of products with another identity. The index of identities has the others, and having them twice
-- would make cold runs slower. There is no index of url_hash: nothing is found by it alone, and it took a tenth of them.
CREATE INDEX source_products_sku ON source_products (source_id, sku) WHERE identity_type <> 3 AND sku IS NOT NULL;
CREATE INDEX source_products_item_id ON source_products (source_id, item_id)
    WHERE identity_type <> 1 AND item_id IS NOT NULL;

COMMENT ON TABLE source_products IS 'Products as a source describes them. Without an offer nobody sees them. Written by runs just before promotion (new ones) and by promotion.';
COMMENT ON COLUMN source_products.identity_type IS 'What the source recognizes it by: 1 item id of the network, 2 product id, 3 SKU, 4 hash of its address.';
COMMENT ON COLUMN source_products.content_hash IS 'Of all content, to see whether it changed.';
COMMENT ON COLUMN source_products.url_hash IS 'Hash of the address without parameters that only track.';

CREATE TABLE offers (
    source_id        uuid NOT NULL,
    product_id       bigint NOT NULL,
    currency         text COLLATE "C" NOT NULL,
    amount           numeric(14, 4) NOT NULL,
    original_amount  numeric(14, 4),
    in_stock         boolean NOT NULL,
    observed_at      timestamptz NOT NULL,
    run_no           bigint NOT NULL,
    -- What the next run compares with.
    last_run_type    text COLLATE "C" NOT NULL,
    last_signature   uuid,
    last_amount      numeric(14, 4),
    last_currency    text COLLATE "C",
    last_priced_at   timestamptz,
    seen_until       timestamptz,
    absence_accepted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (source_id, product_id)
) WITH (fillfactor = 80);
CREATE INDEX offers_price ON offers (currency, amount, product_id);
-- Newest products first. Product numbers never change, so an update pays nothing extra for this index.
CREATE INDEX offers_newest ON offers (product_id);
-- Offers that the last promoted run did not have: few rows, counted on many pages. The column changes only when a
-- product goes missing or comes back, so all other updates stay on their page.
CREATE INDEX offers_missing ON offers (source_id, seen_until) WHERE seen_until IS NOT NULL;
-- Room for a second version of every offer in the two indexes whose keys never change. A change of all prices needs it
-- while the first version is still visible; with full pages each would be searched for dead versions and then split,
-- which took an eighth of the promotion.
ALTER INDEX offers_pkey SET (fillfactor = 50);
ALTER INDEX offers_newest SET (fillfactor = 50);

COMMENT ON TABLE offers IS 'The current price of every promoted product that has a readable price. Derived: it must equal the view current_prices. Written by promotion, and computed again after corrections and ignored runs.';
COMMENT ON COLUMN offers.amount IS 'After corrections.';
COMMENT ON COLUMN offers.observed_at IS 'When this price was observed.';
COMMENT ON COLUMN offers.run_no IS 'The run that wrote this price.';
COMMENT ON COLUMN offers.last_run_type IS 'Kind of run of the newest recorded price, uncorrected, which the next run compares with.';
COMMENT ON COLUMN offers.last_signature IS 'Of that price; null: the next run records a price whatever it sees.';
COMMENT ON COLUMN offers.last_priced_at IS 'When that price was observed.';
COMMENT ON COLUMN offers.seen_until IS 'When a missing product was last seen; null: the last promoted run saw it.';
COMMENT ON COLUMN offers.absence_accepted IS 'A person approved a run without it; no gate counts it as missing again.';

CREATE TABLE hidden_offers (
    source_id            uuid NOT NULL,
    product_id           bigint NOT NULL,
    seen_until           timestamptz,
    absence_accepted     boolean NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    PRIMARY KEY (source_id, product_id)
);

COMMENT ON TABLE hidden_offers IS 'Presence of products whose last readable price is gone, so that a missing product does not look seen when a price can be read again. Written together with offers.';
COMMENT ON COLUMN hidden_offers.last_promoted_run_no IS 'The source''s last promoted run when the offer was removed.';

-- Next to the offers and not in them: prices change every day and words hardly ever, and a change of an indexed column
-- is paid for in every index of its table. A product keeps its words while it has no offer.
CREATE TABLE offer_words (
    source_id  uuid NOT NULL,
    product_id bigint NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (source_id, product_id)
);
CREATE INDEX offer_words_text ON offer_words USING gin (words);

COMMENT ON TABLE offer_words IS 'The words that a search finds an offer by, made by the function words_of. Written by promotion; of very many new products, by a job after it.';

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

COMMENT ON TABLE prices IS 'Prices that were promoted, as they were observed. Append-only; written by promotion.';
COMMENT ON COLUMN prices.signature IS 'Of amounts, currency, stock and promotion; the price is recorded again when it changes.';
COMMENT ON COLUMN prices.run_type IS 'The kind of the run.';
COMMENT ON COLUMN prices.created_at IS 'When it was promoted.';

-- A row may carry content and a price at once; the lines of missing products are made up, below zero.
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

COMMENT ON TABLE held_changes IS 'What promotion of a held run would do with each product. Written when the run is held, deleted with the decision.';
COMMENT ON COLUMN held_changes.line IS 'Line of the file; below zero for products that are missing.';

-- Arrays, because deleting half a million rows would cost more than all of the rest.
CREATE TABLE run_absences (
    source_id   uuid NOT NULL,
    run_no      bigint NOT NULL,
    part        integer NOT NULL,
    product_ids bigint[] NOT NULL,
    PRIMARY KEY (source_id, run_no, part)
);

COMMENT ON TABLE run_absences IS 'Which products of its source a promoted run did not see. Written by promotion.';

-- Before-images of the newest promoted run of each source, so that ignoring it restores content, presence and what the
-- gates compare with. While that run is ignored, these tables hold its own state, which undoing puts back.

CREATE TABLE replaced_contents (
    source_id    uuid NOT NULL,
    product_id   bigint NOT NULL,
    run_no       bigint NOT NULL,
    content_hash bigint NOT NULL,
    title        text NOT NULL,
    url          text NOT NULL,
    tracked_url  text,
    image_url    text,
    brand        text,
    category     text,
    description  text,
    item_id      text COLLATE "C",
    sku          text COLLATE "C",
    gtin         text COLLATE "C",
    mpn          text COLLATE "C",
    url_hash     text COLLATE "C",
    PRIMARY KEY (source_id, product_id)
);

COMMENT ON TABLE replaced_contents IS 'Product content that the newest promoted run of a source replaced. Written by promotion.';

CREATE TABLE replaced_presence (
    source_id            uuid NOT NULL,
    product_id           bigint NOT NULL,
    run_no               bigint NOT NULL,
    seen_until           timestamptz,
    absence_accepted     boolean NOT NULL,
    was_hidden           boolean NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    PRIMARY KEY (source_id, product_id)
);

COMMENT ON TABLE replaced_presence IS 'Presence that the newest promoted run of a source changed: what went missing and what came back. Written by promotion.';
COMMENT ON COLUMN replaced_presence.was_hidden IS 'The product had no offer; its presence was in hidden_offers, with the last promoted run named there.';

CREATE TABLE replaced_promotions (
    source_id            uuid PRIMARY KEY,
    run_no               bigint NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    last_promoted_count  bigint,
    last_promoted_hash   text COLLATE "C"
);

COMMENT ON TABLE replaced_promotions IS 'The last promoted run of a source before the newest one. Written by promotion.';

CREATE TABLE ignored_prices (
    source_id  uuid NOT NULL,
    run_no     bigint NOT NULL,
    product_id bigint NOT NULL,
    amount     numeric(14, 4) NOT NULL,
    currency   text COLLATE "C" NOT NULL,
    PRIMARY KEY (source_id, run_no, product_id)
);

COMMENT ON TABLE ignored_prices IS 'Prices that ignored runs had changed; a later run that brings most of them back is held. Written when a run is ignored.';

-- Canonical products, and what they were recognized by.

CREATE TABLE products (
    id          uuid PRIMARY KEY,
    gtin        text COLLATE "C" UNIQUE,
    fingerprint text COLLATE "C" UNIQUE,
    title       text NOT NULL,
    brand       text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE products IS 'Products across sources. Written by the resolver alone.';
COMMENT ON COLUMN products.fingerprint IS 'Brand, title and pack together, exactly.';

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

COMMENT ON TABLE product_links IS 'Which canonical product each product of a source is. Written by the resolver, and by people who review.';
COMMENT ON COLUMN product_links.match_type IS 'What it was recognized by; MANUAL: a person decided, and the resolver leaves it alone.';
COMMENT ON COLUMN product_links.evidence IS 'The values that were compared.';

-- Staging: what a run read, and what it would change. One set of tables for each slot, made once: tables that come and
-- go with every run bloat the system catalog. They are not logged; an interrupted run starts again.
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
    EXECUTE format('COMMENT ON TABLE staged_rows_%s IS ''Keys, hashes and prices of the rows that the run in this slot read. Written while it reads.''', slot);
    EXECUTE format('COMMENT ON TABLE staged_changes_%s IS ''What that run would change, product by product.''', slot);
    EXECUTE format('COMMENT ON TABLE staged_contents_%s IS ''New content of the products that it would change.''', slot);
END LOOP; END $$;
