-- The views and functions of the catalog, as they are now. Read and change them here only. Triggers are made in
-- migrations, with their tables; the functions that they call are in functions.sql.
--
-- To change something, edit this file, add a migration that applies it, and remove that operation from the migration
-- that applied the file before. An edit alone never reaches a database that exists; the earlier migration, on a new
-- database, would apply the new text before the columns that it may need are there. A migration that needs a function
-- for its own work creates it itself. tests/integration/test_views_and_functions.py names the one that applies the file.
--
-- CREATE OR REPLACE cannot remove, rename or reorder the columns of a view, or change the arguments or the result of a
-- function. (A new column of `offers` moves the columns after `o.*`.) A column cannot change while a view reads it,
-- either. In these cases the migration first drops what changes and everything that uses it, by name and never with
-- CASCADE (DROP VIEW visible_offers, active_offers); the file then makes all of it again, and `harvester migrate` ends
-- with the grants. What is removed from the file is dropped by the migration.
--
-- A statement comes after everything that it uses.

-- The clock of a source: it stops while a run is held, for at most max_hold_hours, and never jumps. Computed
-- without a time zone, because a day of an interval has 23 or 25 hours in some zones on some days.
-- mutant: effective-now
CREATE OR REPLACE FUNCTION effective_now(moment timestamptz, frozen interval, held_since timestamptz,
                                         max_hold_hours smallint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT (moment AT TIME ZONE 'UTC' - least(frozen + greatest(moment - held_since, interval '0'),
                                              max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC'
$$;

-- When something that was last seen at a moment disappears, if nothing is promoted or decided: the inverse of
-- effective_now; tests compare both with tests/support/effective_time.py. What expires before a hold begins is gone; the
-- hold stops the clock of everything else until its time is used up. Null: it never expires, or was never seen.
CREATE OR REPLACE FUNCTION expires_at(last_seen timestamptz, expiry_hours smallint, frozen interval,
                                      held_since timestamptz, max_hold_hours smallint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN held_since IS NULL OR (last_seen AT TIME ZONE 'UTC' + expiry_hours * interval '1 hour'
             + least(frozen, max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC' < held_since
        THEN (last_seen AT TIME ZONE 'UTC' + expiry_hours * interval '1 hour'
              + least(frozen, max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC'
        ELSE (last_seen AT TIME ZONE 'UTC' + (expiry_hours + max_hold_hours) * interval '1 hour') AT TIME ZONE 'UTC'
    END
$$;

-- The clock of each source, and whether its offers are shown: affiliate and other sources only when they are the
-- retailer's display primary, a direct one also when the retailer has none. `offers_expire_at` is when the last of its
-- offers disappears: those that its last promoted run saw.
-- mutant: source-windows
CREATE OR REPLACE VIEW source_windows AS
SELECT s.id AS source_id, s.retailer_id, s.kind, s.last_promoted_at, s.expiry_hours, s.visibility,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours) AS effective_now,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours)
           - s.expiry_hours * interval '1 hour' AS active_since,
       s.is_display_primary OR (s.kind = 'DIRECT' AND NOT EXISTS (
           SELECT FROM sources o WHERE o.retailer_id = s.retailer_id AND o.is_display_primary)) AS is_shown,
       expires_at(s.last_promoted_at, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours) AS offers_expire_at
FROM sources s;

COMMENT ON VIEW source_windows IS 'The clock of each source, and whether consumers see its offers.';

-- An offer is active while its product was last seen no longer ago, by the clock of its source, than the source's
-- expiry. `seen_until` is null while the last promoted run saw the product; of a product that only pages show, it is when
-- its page last did, and `ended_at` ends the offer at once.
-- mutant: active-offers
CREATE OR REPLACE VIEW active_offers AS
SELECT o.*, w.retailer_id, w.is_shown
FROM offers o JOIN source_windows w ON w.source_id = o.source_id
WHERE (w.expiry_hours IS NULL OR coalesce(o.seen_until, w.last_promoted_at) >= w.active_since)
  AND o.ended_at IS NULL;

COMMENT ON VIEW active_offers IS 'Offers that have neither expired nor ended, of every source.';

CREATE OR REPLACE VIEW visible_offers AS SELECT * FROM active_offers WHERE is_shown;

COMMENT ON VIEW visible_offers IS 'The offers that consumers see.';

-- The names that the specification of feeds uses. Nothing is written here: what is not in offers was never promoted.
CREATE OR REPLACE VIEW source_product_presence AS
SELECT o.source_id, o.product_id AS source_product_id,
       coalesce(o.seen_until, s.last_promoted_at) AS last_seen_at,
       coalesce(o.seen_until, s.last_promoted_at) AS last_seen_success_at
FROM offers o JOIN sources s ON s.id = o.source_id;

COMMENT ON VIEW source_product_presence IS 'When each product was last seen, by the names of the specification of feeds.';

CREATE OR REPLACE VIEW source_product_seen AS
SELECT s.last_promoted_run_no AS run_no, o.source_id, o.product_id AS source_product_id
FROM offers o JOIN sources s ON s.id = o.source_id WHERE o.seen_until IS NULL;

COMMENT ON VIEW source_product_seen IS 'What the last promoted run of each source saw, by the names of the specification of feeds.';

CREATE OR REPLACE AGGREGATE numeric_product(numeric) (SFUNC = numeric_mul, STYPE = numeric, INITCOND = '1');

-- A corrected amount has the decimals of the amount, at least two. Null if no offer can hold it.
CREATE OR REPLACE FUNCTION corrected(amount numeric, factor numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT nullif(least(round(amount * factor, greatest(scale(trim_scale(amount)), 2)), 10000000000), 10000000000)
$$;

-- Whether a correction is about a price, revoked or not.
CREATE OR REPLACE FUNCTION correction_applies(c price_corrections, retailer uuid, source uuid, product bigint,
                                              run bigint, observed timestamptz, price_kind text, raw_amount numeric,
                                              raw_currency text)
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

-- How one price is read under the corrections in force: its amount and its original amount, or null if it is not read.
-- IGNORE wins; then the newest set price; multipliers multiply.
CREATE OR REPLACE FUNCTION read_price(source uuid, product bigint, run bigint, observed timestamptz, price_kind text,
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

-- Prices of ignored runs and ignored prices do not count, scraped ones only where the source allows them. Where a page
-- leads, its prices are preferred to those of a feed; everywhere else those of the feed are. The lead is a fact of
-- page_products, so that what an offer shows does not change without a write.
-- mutant: readable-prices
CREATE OR REPLACE VIEW readable_prices AS
SELECT p.source_id, p.source_product_id AS product_id, p.currency,
       f.reading[1] AS amount, f.reading[2] AS original_amount,
       p.promotion, p.in_stock, p.observed_at, p.run_no, p.run_type, p.amount AS raw_amount,
       p.on_backorder IS TRUE AS on_backorder,
       (p.run_type = 'SCRAPE') = EXISTS (
           SELECT FROM page_products g
           WHERE g.source_id = p.source_id AND g.product_id = p.source_product_id AND g.leads_until IS NOT NULL
       ) AS is_preferred
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

COMMENT ON VIEW readable_prices IS 'Every price that counts, after corrections.';

-- What offers must equal, computed from scratch: of each product the newest price that may be read, of the preferred kind
-- if there is one. Slow.
CREATE OR REPLACE VIEW current_prices AS
SELECT DISTINCT ON (source_id, product_id) *
FROM readable_prices ORDER BY source_id, product_id, is_preferred DESC, observed_at DESC, run_no DESC;

COMMENT ON VIEW current_prices IS 'What offers must equal, computed from scratch: the newest readable price of each product, of the kind of run that leads. Slow.';

-- What pages say about products, and whether only they say it: a product with a price of a feed has the presence that the
-- feed gives it.
CREATE OR REPLACE VIEW page_presence AS
SELECT g.*, NOT EXISTS (
    SELECT FROM prices p
    WHERE p.source_id = g.source_id AND p.source_product_id = g.product_id AND p.run_type <> 'SCRAPE'
      AND NOT EXISTS (SELECT FROM runs r WHERE r.no = p.run_no AND r.ignored_at IS NOT NULL)) AS is_page_only
FROM page_products g;

COMMENT ON VIEW page_presence IS 'What pages say about products, and whether no feed has a price of theirs.';

-- What an offer is found by: words of its title and brand, and its category and brand as words that no text has.
CREATE OR REPLACE FUNCTION words_of(title text, brand text, category text)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('simple', title || ' ' || coalesce(brand, '')) || array_to_tsvector(array_remove(ARRAY[
        'category:' || left(lower(category), 200), 'brand:' || left(lower(brand), 200)], NULL))
$$;

-- Looks for one such word, whatever characters it has.
CREATE OR REPLACE FUNCTION word_query(word text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT ('''' || replace(replace(word, '\', '\\'), '''', '''''') || '''')::tsquery
$$;

-- Only the owner may truncate and analyze tables; these functions run with the owner's rights, and the application may
-- call them for staging tables only. Every name has its schema: a table of a session is found before all others of its
-- name, and a trigger on one that the application made would run with the owner's rights.

-- The lock is STAGING_LOCK of pipeline/staging.py: the session that has it has the slot. A session that finds the slot
-- free keeps it for its transaction.
CREATE OR REPLACE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql STRICT SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(1937006951, slot) THEN
        RAISE EXCEPTION 'staging slot % is in use by another session; nothing was cleared', slot
            USING ERRCODE = 'object_in_use';
    END IF;
    EXECUTE format('TRUNCATE public.staged_rows_%s, public.staged_changes_%s, public.staged_contents_%s',
                   slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    -- A dump or a report reads them; the next run that is alone gives the space back.
    EXECUTE format('DELETE FROM public.staged_rows_%s', slot);
    EXECUTE format('DELETE FROM public.staged_changes_%s', slot);
    EXECUTE format('DELETE FROM public.staged_contents_%s', slot);
END $$;

-- One table at a time, because analyzing half a million rows takes a while.
CREATE OR REPLACE FUNCTION analyse_staging(slot integer, of text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF of NOT IN ('changes', 'contents') THEN
        RAISE EXCEPTION 'there is no such staging table';
    END IF;
    EXECUTE format('ANALYZE public.staged_%s_%s', of, slot);
END $$;
