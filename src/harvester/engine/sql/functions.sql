-- The functions of the engine that tables and triggers need, as they are now. Read and change them here only.
--
-- 0001_initial applies this file before there is any table, so everything here is plpgsql with arguments of built-in
-- types. To change something, edit this file and add a migration that applies it again; a database that exists does not
-- run 0001_initial again. tests/integration/test_views_and_functions.py names that migration.

-- What makes a table append-only: its trigger calls this, which refuses changes to everybody, and `harvester migrate`
-- gives the application's role no more than SELECT and INSERT on every table that has the trigger.
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only; % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

-- The functions below run with the owner's rights and the application's role may call them, so each limits what a call
-- can do, whatever the arguments are. Every name has its schema, so that no table or function of a session can take the
-- place of the one that is meant.

-- Makes the monthly partitions of a table in `public`, from this month up to `ahead` months from now, at most 24.
-- A month is attached, because CREATE TABLE ... PARTITION OF would wait for everybody who writes and block them.
-- A month that already has rows in the default partition (nobody made it in time) stays there.
CREATE OR REPLACE FUNCTION make_partitions(parent regclass, ahead integer) RETURNS integer
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    table_name text;
    first date;
    child text;
    made integer := 0;
    guarded boolean := EXISTS (
        SELECT FROM pg_trigger WHERE tgrelid = parent AND tgfoid = 'public.refuse_change'::regproc);
BEGIN
    SELECT c.relname INTO table_name FROM pg_class c JOIN pg_partitioned_table p ON p.partrelid = c.oid
    WHERE c.oid = parent AND c.relnamespace = 'public'::regnamespace;
    IF table_name IS NULL THEN
        RAISE EXCEPTION '% is not partitioned', parent;
    END IF;
    FOR step IN 0..least(ahead, 24) LOOP
        first := date_trunc('month', now() AT TIME ZONE 'UTC')::date + make_interval(months => step);
        child := table_name || to_char(first, '_YYYYMM');
        CONTINUE WHEN to_regclass(format('public.%I', child)) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
                           child, table_name);
            EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                           table_name, child,
                           first::text || ' 00:00:00+00', (first + interval '1 month')::date::text || ' 00:00:00+00');
        EXCEPTION WHEN check_violation THEN
            CONTINUE;
        END;
        IF guarded THEN
            EXECUTE format('CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON public.%I '
                           'EXECUTE FUNCTION public.refuse_change()', child);
        END IF;
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Drops the months of job_events that ended before a moment and at least 30 days ago, and of no other table. That
-- needs a moment in which nobody writes; others wait behind it meanwhile, so it gives up soon.
CREATE OR REPLACE FUNCTION drop_old_job_events(before timestamptz) RETURNS integer
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    child text;
    dropped integer := 0;
BEGIN
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.job_events'::regclass AND c.relname ~ '^job_events_\d{6}$'
          AND (to_date(right(c.relname, 6), 'YYYYMM') + interval '1 month') AT TIME ZONE 'UTC'
              <= least(before, now() - interval '30 days')
    LOOP
        EXECUTE format('DROP TABLE public.%I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
