"""Scraping over the API: sources, their pages, imports and quarantine."""
