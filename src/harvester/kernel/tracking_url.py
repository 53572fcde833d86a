"""The link that a customer's click takes.

A template is checked when it is saved. Building a link never fails: a link that works matters more than one that pays,
so an offer that lacks a value of the template gets the feed's own link, or the shop's page.
"""

import re
from urllib.parse import quote

from harvester.kernel.errors import InvalidInput
from harvester.kernel.text import BLANKS, CONTROLS, trim
from harvester.kernel.urls import is_web_url

#: `{url}` is the canonical address percent-encoded, `{url_raw}` the same as it is; the others are percent-encoded.
PLACEHOLDERS = ("url", "url_raw", "sku", "item_id", "source")
LONGEST_TEMPLATE = 2000

_RAW = "{url_raw}"
_PLACEHOLDER = r"\{([^{}]*)\}"
_ALLOWED = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)


def check_template(text: str) -> str:
    """The template as it is to be saved.

    Raises:
        InvalidInput: it cannot make links; the message says why and what is allowed.
    """
    template = trim(text)
    if len(template) > LONGEST_TEMPLATE:
        raise InvalidInput(f"A tracking template has at most {LONGEST_TEMPLATE} characters.")
    if re.search(f"{CONTROLS}|[{BLANKS}]", template):
        raise InvalidInput("A tracking template has no blanks and no control characters.")
    _refuse_unknown(re.findall(_PLACEHOLDER, template))
    if re.search("[{}]", re.sub(_PLACEHOLDER, "", template)):
        raise InvalidInput(f"A brace of the tracking template is never closed or opened; write {_ALLOWED}.")
    _refuse_no_address(template)
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


def _refuse_unknown(names: list[str]) -> None:
    unknown = [name for name in names if name not in PLACEHOLDERS]
    if unknown:
        raise InvalidInput(
            f"There is no placeholder {{{unknown[0][:40]}}} in tracking templates; allowed are {_ALLOWED}."
        )
    if not names:
        raise InvalidInput(f"A tracking template without a placeholder sends every click to one page; use {_ALLOWED}.")


def _refuse_no_address(template: str) -> None:
    """No placeholder may reach into the host."""
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


def _fill(template: str, values: dict[str, str | None]) -> str | None:
    """The template with its values, or nothing if one is missing."""
    raw = values["url"] or ""
    # mutant: url-encoded
    encoded = {name: quote(value or "", safe="", errors="replace") for name, value in values.items()}
    encoded["url_raw"] = raw
    if not all(encoded.get(name) for name in re.findall(_PLACEHOLDER, template)):
        return None
    if template.startswith((_RAW + "?", _RAW + "&")):
        return _with_query(raw, _substitute(template[len(_RAW) + 1 :], encoded))
    return _substitute(template, encoded)


def _substitute(template: str, encoded: dict[str, str]) -> str:
    return re.sub(_PLACEHOLDER, lambda found: encoded[found[1]], template)


def _with_query(url: str, addition: str) -> str:
    """The address with more parameters, joined as its own query needs it and before its fragment."""
    base, mark, fragment = url.partition("#")
    joint = "&" if "?" in base else "?"
    return f"{base}{joint}{addition}{mark}{fragment}"
