-- Lanes can rest: after a request to a site, its other jobs wait without being claimed.
ALTER TABLE job_lanes ADD COLUMN not_before timestamptz;
ALTER TABLE job_lane_wakeups
    ADD COLUMN not_before timestamptz,
    ADD COLUMN ends_rest boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN job_lanes.not_before IS 'No job of the lane is claimed before; wake_at is never earlier.';
COMMENT ON COLUMN job_lane_wakeups.wake_at IS 'When to look at the lane; infinity if only its rest changes.';
COMMENT ON COLUMN job_lane_wakeups.not_before IS 'Until when the lane rests, if that was changed.';
COMMENT ON COLUMN job_lane_wakeups.ends_rest IS 'The new rest replaces a longer one.';
