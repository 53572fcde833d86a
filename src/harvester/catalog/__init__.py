"""What is known: retailers, sources, runs, products, offers, prices, corrections, and what of it is visible."""
