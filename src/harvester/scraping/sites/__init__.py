"""The sites that are registered: one file each, one line here."""

from functools import lru_cache
from typing import Final

from harvester.scraping.reader.places import check_site
from harvester.scraping.site import Site
from harvester.scraping.sites.bigcommerce import BIGCOMMERCE
from harvester.scraping.sites.magento import MAGENTO
from harvester.scraping.sites.sgammo import SGAMMO
from harvester.scraping.sites.shopify import SHOPIFY
from harvester.scraping.sites.woocommerce import WOOCOMMERCE

#: Reads any shop: a price that markup and page agree on.
STRUCTURED: Final = Site(id="structured", version="1.1.0", title="Any shop (structured data)")
_REGISTERED: Final = (STRUCTURED, SGAMMO, WOOCOMMERCE, BIGCOMMERCE, SHOPIFY, MAGENTO)


def sites() -> tuple[Site, ...]:
    """Return all sites, the one for any shop first."""
    return _REGISTERED


def site_named(site_id: str) -> Site:
    """Return the site with this id.

    Raises:
        KeyError: there is none.
    """
    return _by_id()[site_id]


def site_for_domain(domain: str) -> Site | None:
    """Return the site of a domain, with or without its subdomains; none if no file is about it."""
    labels = domain.lower().rstrip(".").split(".")
    return next((found for place in range(len(labels)) if (found := _by_domain().get(".".join(labels[place:])))), None)


def checked(registered: tuple[Site, ...]) -> tuple[dict[str, Site], dict[str, Site]]:
    """Return sites by id and by domain.

    Raises:
        ValueError: two have one id, two claim one domain, or a place of one cannot be asked.
    """
    by_id: dict[str, Site] = {}
    by_domain: dict[str, Site] = {}
    for site in registered:
        if by_id.setdefault(site.id, site) is not site:
            raise ValueError(f"two sites have the id {site.id}")
        for domain in site.domains:
            if by_domain.setdefault(domain, site) is not site:
                raise ValueError(f"{by_domain[domain].id} and {site.id} both claim {domain}")
        check_site(site)
    return by_id, by_domain


@lru_cache(maxsize=1)
def _by_id() -> dict[str, Site]:
    return checked(_REGISTERED)[0]


@lru_cache(maxsize=1)
def _by_domain() -> dict[str, Site]:
    return checked(_REGISTERED)[1]
