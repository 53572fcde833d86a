-- The scheduler asks each source that may be read for its oldest due page. So pages of sources that are switched off,
-- which stay due, cost nothing.
DROP INDEX scrape_targets_due, scrape_targets_recheck;
CREATE INDEX scrape_targets_due ON scrape_targets (source_id, due_at)
    WHERE due_at IS NOT NULL AND enabled AND status = 'ACTIVE' AND NOT robots_path_blocked;
CREATE INDEX scrape_targets_recheck ON scrape_targets (source_id, recheck_at)
    WHERE recheck_at IS NOT NULL AND enabled AND status IN ('ACTIVE', 'BROKEN') AND NOT robots_path_blocked;
-- Lists of pages, newest first, and those of one product.
CREATE INDEX scrape_targets_product ON scrape_targets (source_id, product_id) WHERE product_id IS NOT NULL;
ALTER TABLE scrape_imports ADD COLUMN job_id bigint;

COMMENT ON COLUMN adapter_states.backoff_seconds IS 'The length of that pause, doubled each time in a row; 0: there is none.';
COMMENT ON COLUMN scrape_imports.rows IS 'The lines as they were read: line, address, SKU, GTIN, and what was found out about each.';
COMMENT ON COLUMN scrape_imports.refused IS 'Lines that cannot be imported: line, text and reason.';
COMMENT ON COLUMN scrape_imports.choices IS 'What a person decided for each shop: source, adapter, schedule, or to skip it.';
COMMENT ON COLUMN scrape_imports.results IS 'How far the import is, and what it did with the lines.';
COMMENT ON COLUMN scrape_imports.job_id IS 'The job that imports.';
