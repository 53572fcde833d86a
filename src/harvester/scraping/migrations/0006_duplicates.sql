-- Each batch asks which page leads a product.
CREATE INDEX scrape_targets_pinned_product ON scrape_targets (source_id, pinned_product_id)
    WHERE pinned_product_id IS NOT NULL;
