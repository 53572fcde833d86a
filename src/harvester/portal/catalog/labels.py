"""Prices, states and links of the catalog as text and HTML for people."""

from decimal import Decimal
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from harvester.catalog.models import PriceCorrection
from harvester.catalog.offer_browser import Line
from harvester.catalog.states import CorrectionAction, CorrectionScope
from harvester.kernel.urls import is_web_url
from harvester.portal.display import NOTHING
from harvester.portal.links import link

#: Characters of a title in a table; the offer's page has the rest.
LONGEST_TITLE = 90


def money(amount: Decimal | None, currency: str | None) -> str | SafeString:
    if amount is None:
        return NOTHING
    shown = f"{amount:,.2f}" if amount == round(amount, 2) else f"{amount:,}"
    return format_html('<span class="hv-num hv-money">{} <small>{}</small></span>', shown, currency or "")


def offer_link(line: Line) -> SafeString:
    title = line.title if len(line.title) <= LONGEST_TITLE else f"{line.title[:LONGEST_TITLE]}…"
    return link("offer", line.source_id, line.product_id, text=title)


def outside(address: str | None) -> SafeString:
    """Return a link to another site, without a referrer."""
    if not address:
        return NOTHING
    if not is_web_url(address):
        return format_html("<span>{}</span>", address)
    return format_html('<a href="{0}" rel="noopener noreferrer nofollow" target="_blank">{0}</a>', address)


def about(correction: PriceCorrection) -> SafeString:
    """Return a link to the prices that a correction applies to. Its source and retailer must be loaded."""
    if correction.scope == CorrectionScope.RETAILER:
        return link("retailer", correction.retailer_id, text=f"All of {correction.retailer}")
    if correction.scope == CorrectionScope.PRODUCT:
        text = f"Product {correction.product_id} of {correction.source}"
        return link("offer", correction.source_id, correction.product_id, text=text)
    if correction.scope == CorrectionScope.RUN:
        return link("run", correction.run_no, text=f"Run {correction.run_no} of {correction.source}")
    return link("source", correction.source_id, text=f"All of {correction.source}")


def effect(correction: PriceCorrection) -> str:
    if correction.action == CorrectionAction.IGNORE:
        return "Prices ignored"
    if correction.action == CorrectionAction.SET and correction.set_amount is not None:
        return f"Price set to {correction.set_amount.normalize():f} {correction.set_currency}"
    return f"Prices × {(correction.multiplier or Decimal(1)).normalize():f}"  # noqa: RUF001 - the sign of multiplication


def exposure(source: Any) -> SafeString:
    """Return whether consumers see a source that was read with `with_shown`."""
    if source.is_display_primary:
        tone, label = "succeeded", "Primary"
    else:
        tone, label = ("succeeded", "Shown") if source.is_shown else ("cancelled", "Not shown")
    return format_html('<span class="hv-badge hv-{}">{}</span>', tone, label)
