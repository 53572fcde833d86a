"""Which of the numbers of a page is the article number."""

import pytest
from tests.unit.scraping_reader.reading_support import body, page, product, read


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("<p>Item #: TH-16</p>", "TH-16"), ("<p>Artikelnummer: 4-711</p>", "4-711"), ("<dl><dt>Product code</dt><dd>TH-16</dd></dl>", "TH-16"),
        ("<p>Item #: TH-16</p><p>Art.-Nr.: 4-711</p>", None), ("<p>Item #: TH-16</p><p>SKU: H-2</p>", "H-2"), ("<p>Model: X-9</p>", None),
    ],
)  # fmt: skip
def test_an_article_number_may_have_other_labels(shown, expected):
    without = {key: value for key, value in product().items() if key != "sku"}
    assert read(page(without, body(near=shown))).offer.sku == expected
    assert read(page(product(), body(near="<p>Item #: 9-9</p>"))).offer.sku == "H-1", (
        "structured data leads other labels"
    )


def test_the_number_of_the_form_is_no_article_number():
    button = '<button name="add-to-cart" value="4711">Add to cart</button>'
    given = product(sku="4711")
    assert (
        read(page(given, body(button=button))).offer.sku,
        read(page(given, body(button=button))).offer.product_id,
    ) == (None, "4711")
    assert read(page(given, body(button=button, near="<p>SKU: 4711</p>"))).offer.sku == "4711"
