-- Who did what to which thing, for ever. Names of changed fields, never their secret values.
CREATE SEQUENCE audit_events_id;
CREATE TABLE audit_events (
    id          bigint NOT NULL DEFAULT nextval('audit_events_id'),
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor_kind  text COLLATE "C" NOT NULL CHECK (actor_kind IN ('person', 'system')),
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
