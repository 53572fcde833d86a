"""The catalog in the portal: offers and why they are visible, retailers, sources, corrections, the review queue."""
