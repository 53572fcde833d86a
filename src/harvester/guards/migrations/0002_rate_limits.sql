-- How far each pace is used up: the moment at which everything that was granted would have been due at the even pace.
-- Not logged, so that granting waits for no disk; after a crash of the server every pace begins anew.
CREATE UNLOGGED TABLE rate_limits (
    name text COLLATE "C" PRIMARY KEY,
    due  timestamptz NOT NULL
) WITH (fillfactor = 50);
