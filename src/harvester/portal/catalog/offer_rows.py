"""The rows of the list of offers."""

from collections.abc import Iterable
from html import escape

from django.utils.safestring import SafeString

from harvester.catalog.offer_browser import Line
from harvester.catalog.visibility_reasons import Standing
from harvester.portal.catalog.labels import money, offer_link
from harvester.portal.display import badge, when
from harvester.portal.links import link

_NONE = '<span class="hv-none">–</span>'  # noqa: RUF001 - an en dash is meant
_STOCK = {
    None: _NONE,
    True: '<span class="hv-why">In stock</span>',
    False: '<span class="hv-note">Out</span>',
}


def rows(lines: Iterable[Line]) -> SafeString:
    """A template that goes through the cells takes three times as long."""
    return SafeString("".join(_row(line) for line in lines))


def _row(line: Line) -> str:
    return (
        f'<tr><td data-label="Offer"><span class="hv-title">{offer_link(line)}</span></td>'
        f'<td data-label="Brand">{_brand(line.brand)}</td>'
        f'<td data-label="Source">{link("source", line.source_id, text=line.source)}</td>'
        f'<td data-label="Price" class="hv-right">{money(line.amount, line.currency)}</td>'
        f'<td data-label="Stock">{_STOCK[line.in_stock]}</td>'
        f'<td data-label="Priced">{when(line.observed_at)}</td>'
        f'<td data-label="State">{_state(line.standing)}</td></tr>\n'
    )


def _brand(name: str | None) -> str:
    return f'<span class="hv-short" title="{escape(name)}">{escape(name)}</span>' if name else _NONE


def _state(standing: Standing) -> str:
    words = " ".join(badge(why.state) for why in standing.whys)
    return f'<span class="hv-why" title="{escape(standing.words)}">{words} {_moment(standing)}</span>'


def _moment(standing: Standing) -> str:
    since = standing.whys[0].since
    if since:
        return f"<small>since {when(since)}</small>"
    if standing.is_visible and standing.is_missing and standing.expires_at:
        return f"<small>expires {when(standing.expires_at)}</small>"
    return ""
