-- What pages of shops say next to feeds: stock on backorder, presence, which of the two leads, fields without a column,
-- and a breaker for each kind of run.

-- The views read the columns that move; the file makes them again.
DROP VIEW IF EXISTS visible_offers, active_offers;

-- Null and not false: so the rows of feeds, which never have it, are as long as before.
ALTER TABLE prices ADD COLUMN on_backorder boolean CHECK (on_backorder);
COMMENT ON COLUMN prices.on_backorder IS 'True: it is not in stock, but can be ordered and comes later. Null: no.';

ALTER TABLE offers
    ADD COLUMN on_backorder boolean NOT NULL DEFAULT false,
    ADD COLUMN by_pages boolean NOT NULL DEFAULT false,
    ADD COLUMN ended_at timestamptz,
    ADD CONSTRAINT presence_of_pages CHECK (CASE WHEN by_pages THEN seen_until IS NOT NULL ELSE ended_at IS NULL END);
COMMENT ON COLUMN offers.on_backorder IS 'It is not in stock, but can be ordered and comes later.';
COMMENT ON COLUMN offers.by_pages IS 'Only pages show it: `seen_until` is when its page last did, and no gate of a feed counts it.';
COMMENT ON COLUMN offers.ended_at IS 'Its page is gone, or shows it as sold out without a price, since then; null: it does not. Of products by pages only.';

CREATE TABLE page_products (
    source_id    uuid NOT NULL,
    product_id   bigint NOT NULL,
    seen_at      timestamptz NOT NULL,
    run_no       bigint,
    leads_until  timestamptz,
    ended_at     timestamptz,
    PRIMARY KEY (source_id, product_id)
) WITH (fillfactor = 80);

COMMENT ON TABLE page_products IS 'What pages say about the presence of each product that one of them showed. Written by the promotion of pages, also while the source is INELIGIBLE; the end of a lead by the promotion of a feed.';
COMMENT ON COLUMN page_products.seen_at IS 'When its page was last read well, without a change included. Older observations are not promoted.';
COMMENT ON COLUMN page_products.run_no IS 'The run that last promoted it.';
COMMENT ON COLUMN page_products.leads_until IS 'Until then its page leads over a feed in price and stock. The first promotion of a feed after that sets it to null, and only null ends the lead.';
COMMENT ON COLUMN page_products.ended_at IS 'Since when its page is gone, or shows it as sold out without a price; null: it does not.';

-- Products that pages of an earlier version showed. One whose newest price is of a feed keeps showing it.
INSERT INTO page_products (source_id, product_id, seen_at, run_no, leads_until)
SELECT p.source_id, p.source_product_id, max(p.observed_at), max(p.run_no),
    CASE WHEN bool_or(o.last_run_type = 'SCRAPE') THEN max(p.observed_at) + interval '48 hours' END
FROM prices p
LEFT JOIN offers o ON o.source_id = p.source_id AND o.product_id = p.source_product_id
WHERE p.run_type = 'SCRAPE' AND p.source_id IN (SELECT source_id FROM runs WHERE kind = 'SCRAPE')
GROUP BY 1, 2;
UPDATE offers o SET by_pages = true, seen_until = greatest(o.seen_until, g.seen_at)
FROM page_products g
WHERE g.source_id = o.source_id AND g.product_id = o.product_id AND NOT EXISTS (
    SELECT FROM prices p WHERE p.source_id = g.source_id AND p.source_product_id = g.product_id
      AND p.run_type <> 'SCRAPE' AND NOT EXISTS (SELECT FROM runs r WHERE r.no = p.run_no AND r.ignored_at IS NOT NULL));

CREATE TABLE product_attributes (
    source_id  uuid NOT NULL,
    product_id bigint NOT NULL,
    attributes jsonb NOT NULL,
    run_no     bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (source_id, product_id)
);

COMMENT ON TABLE product_attributes IS 'What a page says about a product and no column has, such as caliber, shipping and cost per round. Written by the promotion of pages.';
COMMENT ON COLUMN product_attributes.attributes IS 'Name -> value, as the newest promoted page has them.';

CREATE TABLE source_breakers (
    source_id        uuid NOT NULL REFERENCES sources,
    kind             text COLLATE "C" NOT NULL,
    failures         integer NOT NULL DEFAULT 0,
    blocked          integer NOT NULL DEFAULT 0,
    openings         integer NOT NULL DEFAULT 0,
    blocked_openings integer NOT NULL DEFAULT 0,
    paused_until     timestamptz,
    probe_holder     text,
    probe_until      timestamptz,
    stopped_at       timestamptz,
    stopped_by       text,
    stopped_reason   text,
    last_success_at  timestamptz,
    last_failure_at  timestamptz,
    PRIMARY KEY (source_id, kind),
    CONSTRAINT breaker_open_and_paused CHECK ((openings > 0) = (paused_until IS NOT NULL)),
    CONSTRAINT breaker_probe CHECK ((probe_holder IS NULL) = (probe_until IS NULL)),
    CONSTRAINT breaker_stopped CHECK ((stopped_at IS NULL) = (stopped_reason IS NULL))
);

COMMENT ON TABLE source_breakers IS 'Whether requests of a kind of run to a source pause: after failures in a row for a while, or until a person resumes them. Written with the end of each request, and by people.';
COMMENT ON COLUMN source_breakers.failures IS 'Failures since the last success or opening.';
COMMENT ON COLUMN source_breakers.blocked IS 'Of them, those in which the server refused us.';
COMMENT ON COLUMN source_breakers.openings IS 'How often in a row it opened; each doubles the pause.';
COMMENT ON COLUMN source_breakers.blocked_openings IS 'Of them, those in a row that a refusal caused; with three a person decides.';
COMMENT ON COLUMN source_breakers.paused_until IS 'Until then nothing is asked; afterwards one probe at a time.';
COMMENT ON COLUMN source_breakers.probe_holder IS 'The job that probes; others wait until `probe_until`.';
COMMENT ON COLUMN source_breakers.stopped_at IS 'Since when it waits for a person.';
COMMENT ON COLUMN source_breakers.stopped_by IS 'Who stopped it; null: the system, after refusals.';

COMMENT ON COLUMN sources.rate_per_minute IS 'The most requests a minute of all kinds of runs together; null: no limit of its own.';
