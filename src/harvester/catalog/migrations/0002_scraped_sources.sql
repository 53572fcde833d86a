-- What a source needs to be scraped. Scraping is off until somebody who reviewed the shop's terms switches it on.

ALTER TABLE sources
    ADD COLUMN adapter_id text COLLATE "C" CHECK (adapter_id <> ''),
    ADD COLUMN scrape_enabled boolean NOT NULL DEFAULT false,
    ADD COLUMN scrape_config jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN robots_compliant boolean NOT NULL DEFAULT true,
    ADD COLUMN robots_set_by text,
    ADD COLUMN robots_refusals smallint NOT NULL DEFAULT 0,
    ADD COLUMN tos_reviewed_at timestamptz,
    ADD COLUMN tos_approved_by text,
    ADD COLUMN tos_note text,
    ADD CONSTRAINT sources_adapter UNIQUE (id, adapter_id),
    ADD CONSTRAINT scrape_enabled_after_review CHECK (
        NOT scrape_enabled OR (adapter_id IS NOT NULL AND tos_reviewed_at IS NOT NULL AND tos_approved_by IS NOT NULL)),
    ALTER COLUMN visibility SET DEFAULT 'INELIGIBLE';

COMMENT ON COLUMN sources.adapter_id IS 'The site file that reads its pages; null: no pages are read.';
COMMENT ON COLUMN sources.scrape_enabled IS 'Whether its pages may be read at all; people switch it.';
COMMENT ON COLUMN sources.scrape_config IS 'Settings of scraping that differ from the defaults; see scraping/settings.py.';
COMMENT ON COLUMN sources.robots_compliant IS 'Whether the robots.txt of the shop allows its pages; false: nothing is read.';
COMMENT ON COLUMN sources.robots_set_by IS 'Who set robots_compliant to false by hand; the system never sets it back then.';
COMMENT ON COLUMN sources.robots_refusals IS 'Refreshes of robots.txt in a row that disallowed every enabled target.';
COMMENT ON COLUMN sources.tos_reviewed_at IS 'When a person reviewed the terms of the shop and allowed scraping.';
