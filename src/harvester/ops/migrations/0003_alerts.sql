-- What people should know. A condition has one open row however often it is seen, and an end.
CREATE TABLE alerts (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind             text COLLATE "C" NOT NULL,
    key              text COLLATE "C" NOT NULL,
    severity         text COLLATE "C" NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    title            text NOT NULL CHECK (title <> ''),
    body             text NOT NULL,
    detail           jsonb NOT NULL DEFAULT '{}',
    opened_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    times            bigint NOT NULL DEFAULT 1,
    resolved_at      timestamptz,
    resolved_note    text NOT NULL DEFAULT '',
    -- When the channel took each of the two messages, and why it did not take the last one.
    opened_told_at   timestamptz,
    resolved_told_at timestamptz,
    delivery_error   text
);
CREATE UNIQUE INDEX alerts_one_open_per_condition ON alerts (key) WHERE resolved_at IS NULL;
CREATE INDEX alerts_opened ON alerts (opened_at);
