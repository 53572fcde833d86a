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
