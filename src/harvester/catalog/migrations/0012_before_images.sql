-- Before-images of the newest promoted run of each source, so that ignoring it restores content, presence and what the
-- gates compare with. While that run is ignored, these tables hold its own state, which undoing puts back.
-- Rows from before this migration get a content hash that no content has: the next run writes the content again.
ALTER TABLE replaced_contents ADD COLUMN content_hash bigint NOT NULL DEFAULT 0;
ALTER TABLE replaced_contents ALTER COLUMN content_hash DROP DEFAULT;

-- `was_hidden`: the product had no offer; its presence was that of hidden_offers, with the run that it referred to.
CREATE TABLE replaced_presence (
    source_id            uuid NOT NULL,
    product_id           bigint NOT NULL,
    run_no               bigint NOT NULL,
    seen_until           timestamptz,
    absence_accepted     boolean NOT NULL,
    was_hidden           boolean NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    PRIMARY KEY (source_id, product_id)
);

CREATE TABLE replaced_promotions (
    source_id            uuid PRIMARY KEY,
    run_no               bigint NOT NULL,
    last_promoted_run_no bigint,
    last_promoted_at     timestamptz,
    last_promoted_count  bigint,
    last_promoted_hash   text COLLATE "C"
);

-- The prices that ignored runs had changed; a later run that brings most of them back is held.
CREATE TABLE ignored_prices (
    source_id  uuid NOT NULL,
    run_no     bigint NOT NULL,
    product_id bigint NOT NULL,
    amount     numeric(14, 4) NOT NULL,
    currency   text COLLATE "C" NOT NULL,
    PRIMARY KEY (source_id, run_no, product_id)
);

-- Whether the file of an ignored run is refused when it is seen again. Not part of change detection, which is cleared
-- by settings, upgrades and corrections.
ALTER TABLE runs ADD COLUMN refuses_file boolean NOT NULL DEFAULT false;
