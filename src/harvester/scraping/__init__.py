"""Scraping: single product pages of shops that become offers. So far one thin path from a page to an offer."""
