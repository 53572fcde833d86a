"""What a child process does with a page: finds its adapter and reads with it. Knows no database and no Django."""

from collections.abc import Mapping
from typing import Any

from harvester.scraping.offers import PageReading
from harvester.scraping.reader import read_page
from harvester.scraping.site import ReadContext
from harvester.scraping.sites import site_named
from harvester.scraping.states import PageOutcome

#: The number of an override, and what it changes.
Override = tuple[int, Mapping[str, Any]]


def read(
    body: bytes, content_type: str, adapter_id: str, override: Override | None, context: ReadContext
) -> PageReading:
    """Return what an adapter reads from a page."""
    try:
        site = site_named(adapter_id)
    except KeyError:
        return PageReading(
            outcome=PageOutcome.ADAPTER_FAILED,
            detail=f"This worker has no adapter {adapter_id}. Restart the workers if it is new, or choose another one.",
            adapter_id=adapter_id,
            adapter_version="?",
        )
    overrides = {**override[1], "version": override[0]} if override else None
    return read_page(body, content_type=content_type, site=site, context=context, overrides=overrides)
