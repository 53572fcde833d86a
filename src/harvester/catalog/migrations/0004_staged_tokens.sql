-- Search tokens of new products, made in columns while the products are copied.
DO $$ BEGIN FOR slot IN 0..15 LOOP
    EXECUTE format('CREATE UNLOGGED TABLE staged_tokens_%s (
        product_id bigint NOT NULL,
        tsv        tsvector NOT NULL
    ) WITH (autovacuum_enabled = false)', slot);
END LOOP; END $$;

CREATE OR REPLACE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('TRUNCATE staged_rows_%s, staged_changes_%s, staged_contents_%s, staged_tokens_%s',
                   slot, slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    -- A dump or a report reads them; the next run that is alone gives the space back.
    EXECUTE format('DELETE FROM staged_rows_%s', slot);
    EXECUTE format('DELETE FROM staged_changes_%s', slot);
    EXECUTE format('DELETE FROM staged_contents_%s', slot);
    EXECUTE format('DELETE FROM staged_tokens_%s', slot);
END $$;
