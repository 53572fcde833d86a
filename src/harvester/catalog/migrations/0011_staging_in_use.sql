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
