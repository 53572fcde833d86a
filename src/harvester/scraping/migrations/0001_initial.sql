-- Scraping, as far as it exists: pages, and the figures of runs over them.

CREATE TABLE scrape_targets (
    id         uuid PRIMARY KEY,
    source_id  uuid NOT NULL REFERENCES sources,
    url        text NOT NULL CHECK (url <> ''),
    product_id bigint,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (source_id, url)
);

COMMENT ON TABLE scrape_targets IS 'Pages of shops to be read. Written by people.';
COMMENT ON COLUMN scrape_targets.product_id IS 'A product of the source that the page is about; the page then changes its price and stock only.';

CREATE TABLE scrape_runs (
    run_id         uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    source_id      uuid NOT NULL REFERENCES sources,
    pages          bigint NOT NULL DEFAULT 0,
    offers         bigint NOT NULL DEFAULT 0,
    quarantined    bigint NOT NULL DEFAULT 0,
    prices_written bigint NOT NULL DEFAULT 0,
    products_new   bigint NOT NULL DEFAULT 0
);
CREATE INDEX scrape_runs_source ON scrape_runs (source_id);

COMMENT ON TABLE scrape_runs IS 'What a run over pages found, next to its row in runs. Written when the run ends.';
COMMENT ON COLUMN scrape_runs.offers IS 'Pages that had an offer.';
COMMENT ON COLUMN scrape_runs.quarantined IS 'Pages that wait for a person; run_parts has what was found.';
COMMENT ON COLUMN scrape_runs.products_new IS 'Products that no page or catalog of the source had before.';
