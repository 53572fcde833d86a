-- Evidence, as far as it exists: connections to hosted actors, their runs, and the items that runs brought.

CREATE TABLE connections (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE CHECK (name <> ''),
    actor      text COLLATE "C" NOT NULL CHECK (actor <> ''),
    server     text NOT NULL CHECK (server <> ''),
    input      jsonb NOT NULL DEFAULT '{}',
    enabled    boolean NOT NULL DEFAULT true,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON TABLE connections IS 'Hosted actors and what they are asked for. Written by people.';
COMMENT ON COLUMN connections.actor IS 'The name that the server of actors knows it by.';
COMMENT ON COLUMN connections.server IS 'The address of the server of actors.';

CREATE TABLE actor_runs (
    run_id        uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    connection_id uuid NOT NULL REFERENCES connections,
    start_sent_at timestamptz,
    remote_run_id text COLLATE "C",
    dataset_id    text COLLATE "C",
    rows          bigint,
    real_rows     bigint,
    items_written bigint
);
CREATE INDEX actor_runs_connection ON actor_runs (connection_id);

COMMENT ON TABLE actor_runs IS 'What a run of an actor brought, next to its row in runs. Written by the run, and by decisions.';
COMMENT ON COLUMN actor_runs.start_sent_at IS 'When the actor was asked to start. Without a remote run it may have started all the same, so it is not asked again.';
COMMENT ON COLUMN actor_runs.real_rows IS 'Rows that are not notes about an error.';
COMMENT ON COLUMN actor_runs.items_written IS 'Items that it created or changed.';

CREATE TABLE raw_items (
    run_id uuid NOT NULL REFERENCES actor_runs ON DELETE CASCADE,
    place  integer NOT NULL,
    item   jsonb NOT NULL,
    PRIMARY KEY (run_id, place)
);

COMMENT ON TABLE raw_items IS 'Rows as an actor wrote them, in their order. Written by the run.';

CREATE TABLE evidence_items (
    connection_id uuid NOT NULL REFERENCES connections,
    item_key      text COLLATE "C" NOT NULL,
    run_no        bigint NOT NULL,
    item          jsonb NOT NULL,
    PRIMARY KEY (connection_id, item_key)
);

COMMENT ON TABLE evidence_items IS 'Items of accepted runs. Written when a run is promoted or approved.';
COMMENT ON COLUMN evidence_items.item_key IS 'The id that the platform gave it.';
COMMENT ON COLUMN evidence_items.run_no IS 'The run that wrote it last.';
