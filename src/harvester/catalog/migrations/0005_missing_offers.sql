-- What the last promoted run did not have and consumers see all the same: few rows, and counted on many pages. Only what
-- goes missing or comes back changes this column, so that all other updates stay in place.
CREATE INDEX offers_missing ON offers (source_id, seen_until) WHERE seen_until IS NOT NULL;
