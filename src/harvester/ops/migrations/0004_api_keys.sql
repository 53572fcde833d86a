-- Applications act by their keys, and the trail says so.
ALTER TABLE audit_events DROP CONSTRAINT audit_events_actor_kind_check;
ALTER TABLE audit_events ADD CONSTRAINT audit_events_actor_kind_check
    CHECK (actor_kind IN ('person', 'key', 'system'));

-- Who may use the API. The key itself is never stored, only what it hashes to; a row is never deleted, the trail names it.
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

-- What a write answered, for whoever asks again with the same Idempotency-Key.
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
