"""Which shop an address belongs to."""

import pytest

from harvester.kernel.domains import domain_of, enclosing
from harvester.kernel.errors import InvalidInput


@pytest.mark.parametrize(
    ("website", "domain"),
    [
        ("https://shop.example", "shop.example"),
        ("http://WWW.Shop.Example/path?x=1", "shop.example"),
        ("https://us.shop.example:8443/", "us.shop.example"),
        ("https://shop.example./", "shop.example"),
        ("https://b\u00fccher.example/", "xn--bcher-kva.example"),
        ("http://127.0.0.1:8000/", "127.0.0.1"),
        ("https://www.www.example", "www.example"),
    ],
)
def test_the_domain_is_the_host_in_lower_case_without_www(website, domain):
    assert domain_of(website) == domain


@pytest.mark.parametrize(
    "website",
    [
        "",
        "shop.example",
        "ftp://shop.example",
        "https://",
        "https://com/",
        "https://www.com",
        "https://a:b@shop.example",
    ],
)
def test_what_is_no_address_of_a_shop_is_refused_with_the_field_and_an_example(website):
    with pytest.raises(InvalidInput, match=r"^website: .*https://shop\.example/"):
        domain_of(website)


@pytest.mark.parametrize(
    ("host", "domain", "within"),
    [
        ("shop.example", "shop.example", True),
        ("us.shop.example", "shop.example", True),
        ("myshop.example", "shop.example", False),
        ("shop.example.evil.test", "shop.example", False),
        ("shop.example", "us.shop.example", False),
        ("127.0.0.1", "0.0.1", False),
    ],
)
def test_a_domain_holds_itself_and_what_is_below_it(host, domain, within):
    assert (domain in enclosing(host)) is within
