COMMENT ON TABLE users IS 'People with a login. Written by admins.';
COMMENT ON COLUMN users.role IS 'viewer, operator or admin; each may do what the one before it may.';
COMMENT ON COLUMN users.is_staff IS 'Used by Django''s admin site only; true for everybody.';
COMMENT ON COLUMN users.is_superuser IS 'Used by Django only; the role says what a user may do.';

CREATE SEQUENCE audit_events_id;
CREATE TABLE audit_events (
    id          bigint NOT NULL DEFAULT nextval('audit_events_id'),
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind  text COLLATE "C" NOT NULL CHECK (actor_kind IN ('person', 'key', 'system')),
    actor_id    text COLLATE "C" NOT NULL,
    actor_name  text NOT NULL,
    verb        text COLLATE "C" NOT NULL,
    object_type text COLLATE "C" NOT NULL,
    object_id   text COLLATE "C" NOT NULL,
    changed     text[] NOT NULL DEFAULT '{}',
    detail      jsonb NOT NULL DEFAULT '{}'
) PARTITION BY RANGE (at);
CREATE INDEX audit_events_at ON audit_events (at, id);
CREATE INDEX audit_events_object ON audit_events (object_type, object_id, at);
CREATE INDEX audit_events_actor ON audit_events (actor_id, at);
CREATE TRIGGER refuse_change BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_events EXECUTE FUNCTION refuse_change();
CREATE TABLE audit_events_default PARTITION OF audit_events DEFAULT;
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON audit_events_default EXECUTE FUNCTION refuse_change();
SELECT make_partitions('audit_events', 3);

COMMENT ON TABLE audit_events IS 'Who did what to which thing. Append-only, kept forever. Written in the transaction of the change.';
COMMENT ON COLUMN audit_events.actor_kind IS 'person, key (an application with an API key) or system.';
COMMENT ON COLUMN audit_events.actor_name IS 'The name at that time.';
COMMENT ON COLUMN audit_events.verb IS 'What was done, such as FEED_ENABLED.';
COMMENT ON COLUMN audit_events.changed IS 'Names of changed fields, never the values of secrets.';

CREATE TABLE alerts (
    id                    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind                  text COLLATE "C" NOT NULL,
    key                   text COLLATE "C" NOT NULL,
    severity              text COLLATE "C" NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    title                 text NOT NULL CHECK (title <> ''),
    body                  text NOT NULL,
    detail                jsonb NOT NULL DEFAULT '{}',
    opened_at             timestamptz NOT NULL DEFAULT clock_timestamp(),
    last_seen_at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    times                 bigint NOT NULL DEFAULT 1,
    resolved_at           timestamptz,
    resolved_note         text NOT NULL DEFAULT '',
    opened_delivered_at   timestamptz,
    resolved_delivered_at timestamptz,
    delivery_error        text
);
CREATE UNIQUE INDEX alerts_one_open_per_condition ON alerts (key) WHERE resolved_at IS NULL;
CREATE INDEX alerts_opened ON alerts (opened_at);

COMMENT ON TABLE alerts IS 'Conditions that people should know about, from the first time they were seen to their end.';
COMMENT ON COLUMN alerts.key IS 'The condition; it has at most one open row.';
COMMENT ON COLUMN alerts.times IS 'How often it was seen.';
COMMENT ON COLUMN alerts.resolved_note IS 'Why it ended.';
COMMENT ON COLUMN alerts.opened_delivered_at IS 'When the message about its start was delivered.';
COMMENT ON COLUMN alerts.resolved_delivered_at IS 'When the message about its end was delivered.';
COMMENT ON COLUMN alerts.delivery_error IS 'Why the last message was not delivered.';

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    name         text NOT NULL CHECK (name <> ''),
    prefix       text COLLATE "C" NOT NULL,
    token_hash   text COLLATE "C" NOT NULL UNIQUE,
    scopes       text[] NOT NULL CHECK (cardinality(scopes) > 0),
    created_by   text NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    revoked_by   text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX api_keys_one_valid_per_name ON api_keys (name) WHERE revoked_at IS NULL;

COMMENT ON TABLE api_keys IS 'Which applications may use the API. Never deleted, because the audit log names them. Written by admins.';
COMMENT ON COLUMN api_keys.prefix IS 'The first characters of the key, to recognize it.';
COMMENT ON COLUMN api_keys.token_hash IS 'Hash of the key; the key itself is not stored.';
COMMENT ON COLUMN api_keys.scopes IS 'What it may do.';

CREATE TABLE api_answers (
    api_key_id  uuid NOT NULL REFERENCES api_keys,
    request_key text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    status      smallint,
    headers     jsonb,
    body        text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (api_key_id, request_key)
);
CREATE INDEX api_answers_created ON api_answers (created_at);

COMMENT ON TABLE api_answers IS 'Responses to writes, returned when a request comes again with its Idempotency-Key. Deleted after a day.';
COMMENT ON COLUMN api_answers.request_key IS 'The Idempotency-Key of the request.';
COMMENT ON COLUMN api_answers.fingerprint IS 'Hash of the request, because another request may not use the same key.';
COMMENT ON COLUMN api_answers.status IS 'HTTP status; null until the write ends.';
