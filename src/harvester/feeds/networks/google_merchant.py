"""Google Merchant product feeds: tab-separated text in the layout that most shops can export.

An item that is not in the file is gone from the catalog. The shop's `id` identifies an item at Google.
"""

from harvester.kernel.network import CURRENCY_NAMES, CURRENCY_SYMBOL_NAMES, Family, Field, Network

NETWORK = Network(
    name="google_merchant",
    label="Google Merchant",
    aliases={
        Field.ITEM_ID: ("id",),  # mutant: google-item-id
        Field.SKU: ("sku",),
        Field.TITLE: ("title",),
        # Variants of a product may share one canonical link, so only the link is the page of the item.
        Field.URL: ("link",),
        Field.IMAGE_URL: ("image link",),
        Field.SALE_PRICE: ("sale price",),
        Field.LIST_PRICE: ("price",),
        Field.SALE_PERIOD: ("sale price effective date",),
        # Google requires the code in the price; files made for several channels have it in a column.
        Field.CURRENCY: CURRENCY_NAMES,
        Field.CURRENCY_SYMBOL: CURRENCY_SYMBOL_NAMES,
        Field.STOCK: ("availability",),
        Field.GTIN: ("gtin", "ean", "upc"),
        Field.ISBN: ("isbn",),
        Field.MPN: ("mpn",),
        Field.BRAND: ("brand",),
        Field.CATEGORY: ("product type", "google product category"),
        Field.DESCRIPTION: ("description",),
        Field.PROMOTION: ("promotion id",),
    },
    families=(Family(name="Product data", marks=(("id",), ("title",), ("link",), ("price",))),),
)
