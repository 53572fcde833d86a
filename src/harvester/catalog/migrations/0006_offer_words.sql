-- By what an offer is found: words of its title and brand, and its category and brand as words that no text has.
CREATE FUNCTION words_of(title text, brand text, category text)
RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_tsvector('simple', title || ' ' || coalesce(brand, '')) || array_to_tsvector(array_remove(ARRAY[
        'category:' || left(lower(category), 200), 'brand:' || left(lower(brand), 200)], NULL))
$$;

-- Beside the offers and not in them: prices change every day and words hardly ever, and whoever changes an indexed
-- column of a row pays for every index of its table. A product keeps its words while it has no offer.
CREATE TABLE offer_words (
    source_id  uuid NOT NULL,
    product_id bigint NOT NULL,
    words      tsvector NOT NULL,
    PRIMARY KEY (source_id, product_id)
);
INSERT INTO offer_words
SELECT o.source_id, o.product_id, words_of(p.title, p.brand, p.category)
FROM offers o JOIN source_products p ON p.source_id = o.source_id AND p.id = o.product_id;
CREATE INDEX offer_words_text ON offer_words USING gin (words);

DROP VIEW visible_offers;
DROP VIEW active_offers;
ALTER TABLE offers DROP COLUMN tsv;
-- A column that was dropped stays in the rows until they are written anew.
CLUSTER offers USING offers_pkey;
CREATE VIEW active_offers AS
SELECT o.*, w.retailer_id, w.is_shown
FROM offers o JOIN source_windows w ON w.source_id = o.source_id
WHERE w.expiry_hours IS NULL OR coalesce(o.seen_until, w.last_promoted_at) >= w.active_since;
CREATE VIEW visible_offers AS SELECT * FROM active_offers WHERE is_shown;
DROP FUNCTION offer_tokens(uuid, text, text, text);

-- To read two moments for every new product took a sixth of their COPY.
ALTER TABLE source_products ALTER COLUMN created_at SET DEFAULT transaction_timestamp(),
    ALTER COLUMN updated_at SET DEFAULT transaction_timestamp();

-- One table at a time: what a run read is only joined whole, and to look at half a million rows takes a while.
DROP FUNCTION analyse_staging(integer);
CREATE FUNCTION analyse_staging(slot integer, of text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public AS $$
BEGIN
    IF of NOT IN ('changes', 'contents') THEN
        RAISE EXCEPTION 'there is no such staging table';
    END IF;
    EXECUTE format('ANALYZE staged_%s_%s', of, slot);
END $$;

-- The server makes words as fast as it reads those that were made before.
DO $$ BEGIN FOR slot IN 0..15 LOOP EXECUTE format('DROP TABLE staged_tokens_%s', slot); END LOOP; END $$;
CREATE OR REPLACE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('TRUNCATE staged_rows_%s, staged_changes_%s, staged_contents_%s', slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    -- A dump or a report reads them; the next run that is alone gives the space back.
    EXECUTE format('DELETE FROM staged_rows_%s', slot);
    EXECUTE format('DELETE FROM staged_changes_%s', slot);
    EXECUTE format('DELETE FROM staged_contents_%s', slot);
END $$;
