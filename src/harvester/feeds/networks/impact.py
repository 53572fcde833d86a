"""Impact: one directory per brand, several column layouts, links that contain the landing page.

File names do not show the delimiter. The manifest has the number of records of each file.
"""

import re
from datetime import UTC, datetime

from harvester.kernel.link_rules import LinkRules
from harvester.kernel.network import CURRENCY_NAMES, CURRENCY_SYMBOL_NAMES, Family, Field, ManifestEntry, Network
from harvester.kernel.xml_records import read_records

#: Far more digits than any count has.
_NUMBER = re.compile("[0-9]{1,15}")


def read_manifest(document: bytes) -> tuple[ManifestEntry, ...]:
    """Return the entries of `catalogs_info_file.xml` that have a location.

    Raises:
        UnreadableXml: it is not valid XML.
    """
    entries = []
    for record in read_records(document, "catalog"):
        if location := record.get("location"):
            numbers = {name: (record.get(name) or "").strip() for name in ("numRecords", "size")}
            read = {name: int(text) for name, text in numbers.items() if _NUMBER.fullmatch(text)}
            unusable = tuple(f"{name} {text[:40]!r}" for name, text in numbers.items() if text and name not in read)
            entries.append(
                ManifestEntry(
                    location=location,
                    records=read.get("numRecords"),
                    name=record.get("name") or None,
                    format=record.get("format") or None,
                    size=read.get("size"),
                    updated_at=_moment(record.get("lastUpdated")),
                    unusable=unusable,
                )
            )
    return tuple(entries)


def _moment(text: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


NETWORK = Network(
    name="impact",
    label="Impact",
    aliases={
        Field.ITEM_ID: ("Catalog Item Id", "Item Id"),
        Field.SKU: ("SKU", "Merchant SKU", "Product SKU", "Unique Merchant SKU", "Id"),  # mutant: impact-sku
        Field.TITLE: ("Name", "Product Name", "Title"),
        Field.URL: ("Url", "Product URL", "Link"),
        Field.LANDING_URL: ("Original Url",),
        Field.IMAGE_URL: ("Image URL", "Image", "Primary Image", "Image Link"),
        Field.SALE_PRICE: ("Sale Price", "Current Price"),
        Field.LIST_PRICE: ("Price", "List Price"),
        Field.ORIGINAL_PRICE: ("Original Price", "MSRP", "Retail Price", "Regular Price"),
        Field.SALE_PERIOD: ("Sale Price Effective Date",),
        Field.CURRENCY: CURRENCY_NAMES,
        Field.CURRENCY_SYMBOL: CURRENCY_SYMBOL_NAMES,
        Field.STOCK: ("Stock Availability", "Availability", "In Stock"),
        Field.GTIN: ("Gtin", "UPC", "EAN"),
        Field.ISBN: ("ISBN",),
        Field.MPN: ("MPN", "Manufacturer Part Number"),
        Field.BRAND: ("Manufacturer", "Manufacturer Name", "Brand"),
        Field.CATEGORY: (
            *("Category", "Category Path", "Category Name", "Product Category", "Product Type"),
            "Google Product Category",
        ),
        Field.DESCRIPTION: ("Description", "Product Description"),
        Field.PROMOTION: ("Promotions", "Coupon Code"),
    },
    families=(
        Family(name="B (catalog with program)", marks=(("Sku",), ("Program Id",), ("Catalog Id",))),
        Family(name="C (API)", marks=(("CatalogItemId",),)),
        Family(name="D (Google TXT)", marks=(("id",), ("title",), ("link",))),
        Family(name="A (IR)", marks=(("Unique Merchant SKU", "SKU"), ("Product Name",))),
    ),
    links=LinkRules(
        # Any host; the three numbers are publisher, advertisement and campaign.
        tracked_path="/c/[0-9]+/[0-9]+/[0-9]+",
        landing_parameters=("u",),
        tracking_names=frozenset({"intsrc", "prodsku"}),
        tracking_prefixes=("ir_",),
        # In a link without a landing page, only this parameter identifies the product.
        shown_names=frozenset({"prodsku"}),
    ),
    manifest_name="catalogs_info_file.xml",
    read_manifest=read_manifest,
    tracking_template="https://brand.pxf.io/c/1000000/2000000/30000?u={url}",
)
