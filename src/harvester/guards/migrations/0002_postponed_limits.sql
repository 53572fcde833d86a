-- A site may name a time before which nothing is granted.
ALTER TABLE rate_limits ADD COLUMN not_before timestamptz;

COMMENT ON TABLE rate_limits IS 'How far each rate limit is used up. The row without a name shows since when none was lost.';
COMMENT ON COLUMN rate_limits.not_before IS 'Nothing is granted before.';
