"""Reads product pages: bytes in, an offer or the reason why there is none out. Pure: no database, no network."""

from harvester.scraping.reader.places import check_site
from harvester.scraping.reader.reading import read_page, with_overrides

__all__ = ["check_site", "read_page", "with_overrides"]
