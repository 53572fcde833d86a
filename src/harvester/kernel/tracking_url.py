"""The tracked link of an offer.

A template is checked when it is saved. Building a link never fails: a working link matters more than a paid click, so
an offer that lacks a value of the template gets the feed's own link, or the shop's page.
"""

import re
from urllib.parse import quote

from harvester.kernel.errors import InvalidInput
from harvester.kernel.text import BLANKS, CONTROLS, trim
from harvester.kernel.urls import is_web_url

#: `{url_raw}` is the canonical URL; `{url}` is the same percent-encoded, like all other values.
PLACEHOLDERS = ("url", "url_raw", "sku", "item_id", "source")
LONGEST_TEMPLATE = 2000

_RAW = "{url_raw}"
_PLACEHOLDER = r"\{([^{}]*)\}"
_ALLOWED = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


def check_template(text: str) -> str:
    """Return the template in the form to save.

    Raises:
        InvalidInput: no links can be built from it; the message says why and what is allowed.
    """
    template = trim(text)
    if len(template) > LONGEST_TEMPLATE:
        raise InvalidInput(f"A tracking template has at most {LONGEST_TEMPLATE} characters.")
    if re.search(f"{CONTROLS}|[{BLANKS}]", template):
        raise InvalidInput("A tracking template has no blanks and no control characters.")
    names = re.findall(_PLACEHOLDER, template)
    unknown = [name for name in names if name not in PLACEHOLDERS]
    if unknown:
        raise InvalidInput(
            f"There is no placeholder {{{unknown[0][:40]}}} in tracking templates; allowed are {_ALLOWED}."
        )
    if not names:
        raise InvalidInput(f"A tracking template without a placeholder sends every click to one page; use {_ALLOWED}.")
    if re.search("[{}]", re.sub(_PLACEHOLDER, "", template)):
        raise InvalidInput(f"A brace of the tracking template is never closed or opened; write {_ALLOWED}.")
    # No placeholder may reach into the host.
    if template.startswith(_RAW):
        sound = template[len(_RAW) :][:1] in ("", "?", "&")
    else:
        fixed = template.partition("{")[0]
        sound = is_web_url(fixed) and bool(re.search("[/?#]", fixed.partition("://")[2]))
    if not sound:
        raise InvalidInput(
            "A tracking template begins with http:// or https://, a host and a slash before the first placeholder, "
            "or with {url_raw} followed by ? or &."
        )
    return template


def build_tracking_url(
    *,
    template: str | None,
    url: str,
    tracked_url: str | None = None,
    sku: str | None = None,
    item_id: str | None = None,
    source: str | None = None,
) -> str:
    """The link for one offer.

    Args:
        template: a checked template of the source, if it has one.
        url: the canonical address of the product.
        tracked_url: the tracked link that the feed gave, if it gave one.
        sku: the shop's number of the product.
        item_id: the network's number of the product.
        source: the source as the network knows it.
    """
    values = {"url": url, "sku": sku, "item_id": item_id, "source": source}
    filled = _fill(template, values) if template else None
    for candidate in (filled, tracked_url):  # mutant: tracked-link
        if candidate and is_web_url(candidate):  # mutant: page-link
            return candidate
    return url


def _fill(template: str, values: dict[str, str | None]) -> str | None:
    """Return the template with its values filled in; none if one is missing."""
    raw = values["url"] or ""
    # mutant: url-encoded
    encoded = {name: quote(value or "", safe="", errors="replace") for name, value in values.items()}
    encoded["url_raw"] = raw
    if not all(encoded.get(name) for name in re.findall(_PLACEHOLDER, template)):
        return None
    if not template.startswith((_RAW + "?", _RAW + "&")):
        return _substitute(template, encoded)
    # More parameters go before the fragment, joined as the URL's own query requires.
    base, mark, fragment = raw.partition("#")
    joint = "&" if "?" in base else "?"
    return f"{base}{joint}{_substitute(template[len(_RAW) + 1 :], encoded)}{mark}{fragment}"


def _substitute(template: str, encoded: dict[str, str]) -> str:
    return re.sub(_PLACEHOLDER, lambda found: encoded[found[1]], template)
