-- When something that was last seen then disappears, if nothing is promoted or decided: the inverse of effective_now.
-- kernel/effective_time.expires_at is the same function. What expires before a hold begins is gone; the hold stops the
-- clock of everything else until it has used up its time. Null: it never expires, or was never seen.
CREATE FUNCTION expires_at(last_seen timestamptz, expiry_hours smallint, frozen interval, held_since timestamptz,
                           max_hold_hours smallint)
RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN held_since IS NULL OR (last_seen AT TIME ZONE 'UTC' + expiry_hours * interval '1 hour'
             + least(frozen, max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC' < held_since
        THEN (last_seen AT TIME ZONE 'UTC' + expiry_hours * interval '1 hour'
              + least(frozen, max_hold_hours * interval '1 hour')) AT TIME ZONE 'UTC'
        ELSE (last_seen AT TIME ZONE 'UTC' + (expiry_hours + max_hold_hours) * interval '1 hour') AT TIME ZONE 'UTC'
    END
$$;

-- As before, and when the last of a source's offers disappears: those that its last promoted run saw.
CREATE OR REPLACE VIEW source_windows AS
SELECT s.id AS source_id, s.retailer_id, s.kind, s.last_promoted_at, s.expiry_hours, s.visibility,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours) AS effective_now,
       effective_now(statement_timestamp(), s.frozen, s.held_since, s.max_hold_hours)
           - s.expiry_hours * interval '1 hour' AS active_since,
       s.is_display_primary OR (s.kind = 'DIRECT' AND NOT EXISTS (
           SELECT FROM sources o WHERE o.retailer_id = s.retailer_id AND o.is_display_primary)) AS is_shown,
       expires_at(s.last_promoted_at, s.expiry_hours, s.frozen, s.held_since, s.max_hold_hours) AS offers_expire_at
FROM sources s;
