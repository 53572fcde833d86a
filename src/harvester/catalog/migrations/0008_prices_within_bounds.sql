-- A corrected amount has the decimals of the amount, two at the least. One that no offer can hold is none.
CREATE OR REPLACE FUNCTION corrected(amount numeric, factor numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT nullif(least(round(amount * factor, greatest(scale(trim_scale(amount)), 2)), 10000000000), 10000000000)
$$;

-- A factor that makes a price nothing, or more than an offer can hold, hides the price as one that is ignored.
CREATE FUNCTION usable_factor(amount numeric, factor numeric)
RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN corrected(amount, factor) > 0 THEN factor END
$$;

CREATE OR REPLACE VIEW readable_prices AS
SELECT p.source_id, p.source_product_id AS product_id, p.currency,
       corrected(p.amount, f.factor) AS amount, corrected(p.original_amount, f.factor) AS original_amount,
       p.promotion, p.in_stock, p.observed_at, p.run_no, p.run_type, p.amount AS raw_amount
FROM prices p
JOIN sources s ON s.id = p.source_id
-- Most sources have no correction, and to look for one price by price costs thirty times as much as all the rest.
CROSS JOIN LATERAL (SELECT CASE WHEN EXISTS (
    SELECT FROM price_corrections c
    WHERE c.revoked_at IS NULL AND (c.source_id = s.id OR c.retailer_id = s.retailer_id))
    THEN usable_factor(p.amount, correction_factor(p.source_id, p.source_product_id, p.run_no, p.observed_at))
    ELSE 1 END AS factor) f
WHERE f.factor IS NOT NULL
  AND NOT EXISTS (SELECT FROM runs r WHERE r.no = p.run_no AND r.ignored_at IS NOT NULL)
  AND (p.run_type <> 'SCRAPE' OR s.visibility = 'ELIGIBLE');
