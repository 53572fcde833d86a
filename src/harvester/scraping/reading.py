"""Reads a kept page with the adapter of its source, in a child process that hostile pages cannot harm."""

import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from harvester.kernel.rejects import Rejected
from harvester.kernel.urls import split_url
from harvester.runs.kinds import PartEnd
from harvester.scraping.errands import Errand, Situation
from harvester.scraping.offers import PageReading, offer_to_json
from harvester.scraping.sandbox import TIMEOUT, AdapterFailed, sandbox
from harvester.scraping.site import ReadContext
from harvester.scraping.states import PageOutcome

#: What runs in the child. It imports no Django.
READ: Final = "harvester.scraping.extraction:read"
#: Parameters of an address that choose one of several variants.
VARIANT_PARAMETERS: Final = frozenset({"sku", "pid", "variant"})


def context_of(
    url: str,
    situation: Situation,
    *,
    source_id: object = "",
    target_id: object = "",
    run_no: int | None = None,
) -> ReadContext:
    """Return what an adapter may know about a page."""
    return ReadContext(
        url=url,
        source_id=str(source_id or ""),
        run_no=run_no,
        target_id=str(target_id or ""),
        retailer_name=situation.retailer_name,
        retailer_domain=situation.retailer_domain,
        default_currency=situation.settings["default_currency"],
        variant=variant_of(url),
        chosen=situation.chosen,
    )


def read_body(body: bytes, content_type: str, situation: Situation, context: ReadContext) -> PageReading:
    """Return what the adapter reads from the bytes of a page; ADAPTER_FAILED if it did not end properly."""
    try:
        reading: PageReading = sandbox().read(
            READ, body, content_type, situation.adapter_id, situation.override, context, timeout=TIMEOUT
        )
    except AdapterFailed as problem:
        return PageReading(
            outcome=PageOutcome.ADAPTER_FAILED,
            detail=str(problem),
            adapter_id=situation.adapter_id,
            adapter_version=f"?+{situation.override[0]}" if situation.override else "?",
        )
    return reading


def end_of(errand: Errand, situation: Situation, body: bytes, about: Mapping[str, Any]) -> PartEnd:
    """Return the end of a part whose page is kept; `about` is what is known about the response."""
    context = context_of(
        errand.url, situation, source_id=errand.source_id, target_id=errand.target_id, run_no=errand.run_no
    )
    began = time.monotonic()
    reading = read_body(body, about.get("type", ""), situation, context)
    took = {"extract_ms": round((time.monotonic() - began) * 1000)}
    facts = ("url", "status", "moved_to", "fetch_ms", "wait_ms")
    return PartEnd(
        outcome=reading.outcome,
        detail={**_shown(reading), **took, **{name: about[name] for name in facts if name in about}},
        found=offer_to_json(reading.offer) if reading.offer else None,
        page=errand.page,
        version=reading.adapter_version,
        observed_at=errand.observed_at,
    )


def _shown(reading: PageReading) -> dict[str, Any]:
    """Return what people see of a reading."""
    shown: dict[str, Any] = {"evidence": [dict(vars(each)) for each in reading.evidence]}
    if reading.detail:
        shown["error" if reading.outcome is not PageOutcome.OFFER else "note"] = reading.detail
    if reading.warnings:
        shown["warnings"] = list(reading.warnings)
    return shown


def variant_of(url: str) -> dict[str, str]:
    """Return the parameters of an address that choose a variant."""
    try:
        query = split_url(url).query or ""
    except Rejected:
        return {}
    return {name.lower(): value for name, value in parse_qsl(query) if name.lower() in VARIANT_PARAMETERS and value}
