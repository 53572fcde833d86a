CREATE TABLE sealed_secrets (
    owner_kind text COLLATE "C" NOT NULL,
    owner_id   uuid NOT NULL,
    name       text COLLATE "C" NOT NULL DEFAULT '',
    kept       jsonb,
    version    integer NOT NULL,
    key_id     text COLLATE "C" NOT NULL,
    payload    bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT statement_timestamp(),
    PRIMARY KEY (owner_kind, owner_id, name)
);

COMMENT ON TABLE sealed_secrets IS 'Encrypted credentials, one row per secret. Only workers decrypt them.';
COMMENT ON COLUMN sealed_secrets.owner_kind IS 'What the owner is, such as feed.';
COMMENT ON COLUMN sealed_secrets.name IS 'Which secret of the owner it is, such as password. Empty: a document of several.';
COMMENT ON COLUMN sealed_secrets.kept IS 'Which secrets of such a document still count; null: all.';
COMMENT ON COLUMN sealed_secrets.version IS 'The version of the owner''s credentials when this one changed last. Encryption binds it.';
COMMENT ON COLUMN sealed_secrets.key_id IS 'The key that it is encrypted with.';
COMMENT ON COLUMN sealed_secrets.payload IS 'The encrypted secret (AES-256-GCM).';
COMMENT ON COLUMN sealed_secrets.updated_at IS 'When the credentials changed last.';

-- Not logged, so that granting waits for no disk; after a crash of the server every rate starts again.
CREATE UNLOGGED TABLE rate_limits (
    name text COLLATE "C" PRIMARY KEY,
    due  timestamptz NOT NULL
) WITH (fillfactor = 50);

COMMENT ON TABLE rate_limits IS 'How far each rate limit is used up.';
COMMENT ON COLUMN rate_limits.due IS 'When everything granted so far would have been granted at an even rate.';
