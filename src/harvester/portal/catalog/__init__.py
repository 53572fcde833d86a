"""Pages of the catalog: offers, retailers, sources, corrections and the review queue."""
