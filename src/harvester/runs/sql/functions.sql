-- The functions that the table of runs needs, as they are now. Read and change them here only.
--
-- 0001_initial applies this file before there is any table; the head of engine/sql/functions.sql says how to change it.

-- What a run is, its job and, once known, the hash of what it read never change: a retry must not mix two files.
-- mutant: artifact-hash-once
CREATE OR REPLACE FUNCTION keep_run_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.trigger IS DISTINCT FROM OLD.trigger OR NEW.source_id IS DISTINCT FROM OLD.source_id
       OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.subject_id IS DISTINCT FROM OLD.subject_id
       OR NEW.job_id IS DISTINCT FROM OLD.job_id
       OR (OLD.artifact_hash IS NOT NULL AND NEW.artifact_hash IS DISTINCT FROM OLD.artifact_hash) THEN
        RAISE EXCEPTION 'what a run is, and what it read, never change' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

-- Makes the daily partitions of run_parts, from today up to `ahead` days from now, at most 60. As make_partitions of the
-- engine does for months: attached, and a day that already has rows in the default partition stays there.
CREATE OR REPLACE FUNCTION make_part_days(ahead integer) RETURNS integer
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    first date;
    child text;
    made integer := 0;
BEGIN
    FOR step IN 0..least(ahead, 60) LOOP
        first := (now() AT TIME ZONE 'UTC')::date + step;
        child := to_char(first, '"run_parts_"YYYYMMDD');
        CONTINUE WHEN to_regclass(format('public.%I', child)) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE TABLE public.%I (LIKE public.run_parts INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
                           child);
            EXECUTE format('ALTER TABLE public.run_parts ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)',
                           child, first::text || ' 00:00:00+00', (first + 1)::text || ' 00:00:00+00');
        EXCEPTION WHEN check_violation THEN
            CONTINUE;
        END;
        made := made + 1;
    END LOOP;
    RETURN made;
END $$;

-- Drops the days of run_parts that ended before a moment and at least 30 days ago, and of no other table.
CREATE OR REPLACE FUNCTION drop_old_part_days(before timestamptz) RETURNS integer
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '2s' AS $$
DECLARE
    child text;
    dropped integer := 0;
BEGIN
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'public.run_parts'::regclass AND c.relname ~ '^run_parts_\d{8}$'
          AND (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC'
              <= least(before, now() - interval '30 days')
    LOOP
        EXECUTE format('DROP TABLE public.%I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END $$;
