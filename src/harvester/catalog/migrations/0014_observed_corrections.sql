-- OBSERVED: for the prices that were shown when it was made, until the next different price of each product.
-- WINDOW: for every price of its scope between two moments, either of which may be open. All older corrections are that.
ALTER TABLE price_corrections
    ADD COLUMN extent text COLLATE "C" NOT NULL DEFAULT 'WINDOW' CHECK (extent IN ('OBSERVED', 'WINDOW')),
    ADD COLUMN set_amount numeric(14, 4) CHECK (set_amount > 0),
    ADD COLUMN set_currency text COLLATE "C",
    DROP CONSTRAINT price_corrections_action_check,
    ADD CONSTRAINT price_corrections_action_check CHECK (action IN ('IGNORE', 'MULTIPLIER', 'SET')),
    ADD CONSTRAINT correction_sets_something CHECK (
        num_nonnulls(set_amount, set_currency) = CASE action WHEN 'SET' THEN 2 ELSE 0 END),
    ADD CONSTRAINT correction_sets_one_product CHECK (action <> 'SET' OR scope = 'PRODUCT'),
    ADD CONSTRAINT observed_has_no_window CHECK (
        extent = 'WINDOW' OR num_nonnulls(observed_from, observed_to) = 0);

-- The prices that a correction was made for, as they were observed: those of one kind of run, after the last different
-- price before (`after_at`), and behind `anchored_at` until a different one comes.
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

-- Whether a correction is about a price, revoked or not.
CREATE FUNCTION correction_applies(c price_corrections, retailer uuid, source uuid, product bigint, run bigint,
                                   observed timestamptz, price_kind text, raw_amount numeric, raw_currency text)
RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE c.extent
    WHEN 'WINDOW' THEN (c.observed_from IS NULL OR observed >= c.observed_from)
        AND (c.observed_to IS NULL OR observed < c.observed_to)
        AND (c.action <> 'SET' OR c.set_currency = raw_currency)
        AND CASE c.scope WHEN 'RETAILER' THEN c.retailer_id = retailer
                         WHEN 'SOURCE' THEN c.source_id = source
                         WHEN 'PRODUCT' THEN c.source_id = source AND c.product_id = product
                         ELSE c.source_id = source AND c.run_no = run END
    ELSE EXISTS (
        SELECT FROM corrected_prices k
        WHERE k.source_id = source AND k.product_id = product AND k.correction_id = c.id AND k.run_type = price_kind
          AND k.amount = raw_amount AND k.currency = raw_currency AND observed > k.after_at
          AND NOT EXISTS (
              SELECT FROM prices d
              WHERE d.source_id = source AND d.source_product_id = product AND d.run_type = price_kind
                AND d.observed_at > k.anchored_at AND d.observed_at < observed
                AND (d.amount, d.currency) IS DISTINCT FROM (raw_amount, raw_currency)
                AND NOT EXISTS (SELECT FROM runs r WHERE r.no = d.run_no AND r.ignored_at IS NOT NULL)))
    END
$$;

-- How one price is read by the corrections in force: its amount and its original amount, or null if it is not read. To
-- ignore wins; then the newest set price; multipliers multiply.
CREATE FUNCTION read_price(source uuid, product bigint, run bigint, observed timestamptz, price_kind text,
                           raw_amount numeric, raw_currency text, raw_original numeric)
RETURNS numeric[] LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN f.is_ignored THEN NULL
                WHEN f.set_amount IS NOT NULL
                THEN ARRAY[corrected(f.set_amount, 1),
                           CASE WHEN raw_original > f.set_amount THEN corrected(raw_original, 1) END]
                WHEN corrected(raw_amount, f.factor) > 0
                THEN ARRAY[corrected(raw_amount, f.factor), corrected(raw_original, f.factor)] END
    FROM (SELECT coalesce(bool_or(c.action = 'IGNORE'), false) AS is_ignored,
                 numeric_product(coalesce(c.multiplier, 1)) AS factor,
                 (array_agg(c.set_amount ORDER BY c.created_at DESC, c.id DESC)
                     FILTER (WHERE c.action = 'SET'))[1] AS set_amount
          FROM sources s JOIN price_corrections c ON c.source_id = s.id OR c.retailer_id = s.retailer_id
          WHERE s.id = source AND c.revoked_at IS NULL
            AND correction_applies(c, s.retailer_id, source, product, run, observed, price_kind, raw_amount, raw_currency)) f
$$;

CREATE OR REPLACE VIEW readable_prices AS
SELECT p.source_id, p.source_product_id AS product_id, p.currency,
       f.reading[1] AS amount, f.reading[2] AS original_amount,
       p.promotion, p.in_stock, p.observed_at, p.run_no, p.run_type, p.amount AS raw_amount
FROM prices p
JOIN sources s ON s.id = p.source_id
-- Most sources have no correction, and to look for one price by price costs thirty times as much as all the rest.
CROSS JOIN LATERAL (SELECT CASE WHEN EXISTS (
    SELECT FROM price_corrections c
    WHERE c.revoked_at IS NULL AND (c.source_id = s.id OR c.retailer_id = s.retailer_id))
    THEN read_price(p.source_id, p.source_product_id, p.run_no, p.observed_at, p.run_type, p.amount, p.currency,
                    p.original_amount)
    ELSE ARRAY[corrected(p.amount, 1), corrected(p.original_amount, 1)] END AS reading) f
WHERE f.reading IS NOT NULL
  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = p.run_no AND r.ignored_at IS NOT NULL)
  AND (p.run_type <> 'SCRAPE' OR s.visibility = 'ELIGIBLE');

DROP FUNCTION correction_factor(uuid, bigint, bigint, timestamptz);
