-- A table of a session is found before all others of its name unless the schema is named. The application could make one
-- of its own, and a trigger on it ran with the owner's rights.
CREATE OR REPLACE FUNCTION clear_staging(slot integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
BEGIN
    EXECUTE format('TRUNCATE public.staged_rows_%s, public.staged_changes_%s, public.staged_contents_%s',
                   slot, slot, slot);
EXCEPTION WHEN lock_not_available THEN
    -- A dump or a report reads them; the next run that is alone gives the space back.
    EXECUTE format('DELETE FROM public.staged_rows_%s', slot);
    EXECUTE format('DELETE FROM public.staged_changes_%s', slot);
    EXECUTE format('DELETE FROM public.staged_contents_%s', slot);
END $$;
CREATE OR REPLACE FUNCTION analyse_staging(slot integer, of text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF of NOT IN ('changes', 'contents') THEN
        RAISE EXCEPTION 'there is no such staging table';
    END IF;
    EXECUTE format('ANALYZE public.staged_%s_%s', of, slot);
END $$;
