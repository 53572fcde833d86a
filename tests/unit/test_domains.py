"""Which shop an address belongs to."""

import pytest

from harvester.kernel.domains import domain_of, enclosing, registrable_domain
from harvester.kernel.errors import InvalidInput
from harvester.kernel.rejects import Rejected


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


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("sgammo.com", "sgammo.com"),
        ("www.sgammo.com", "sgammo.com"),
        ("a.b.c.sgammo.com", "sgammo.com"),
        ("WWW.SGAmmo.Com.", "sgammo.com"),
        ("shop.midway.co.uk", "midway.co.uk"),
        # Users of a shared domain registered different ones.
        ("one.github.io", "one.github.io"),
        ("www.one.github.io", "one.github.io"),
        ("cool-ammo.myshopify.com", "cool-ammo.myshopify.com"),
        # A suffix itself.
        ("github.io", "github.io"),
        ("co.uk", "co.uk"),
        ("com", "com"),
        # Rules with an asterisk, and exceptions from them.
        ("a.b.anything.ck", "b.anything.ck"),
        ("www.ck", "www.ck"),
        ("a.www.ck", "www.ck"),
        # Not in the list.
        ("shop.example", "shop.example"),
        ("us.shop.example", "us.shop.example"),
        ("a.b.internal", "a.b.internal"),
        ("localhost", "localhost"),
        # Names in other scripts.
        ("www.b\u00fccher.de", "xn--bcher-kva.de"),
        ("www.xn--bcher-kva.de", "xn--bcher-kva.de"),
        ("shop.\u516c\u53f8.cn", "shop.xn--55qx5d.cn"),
        ("a.shop.\u516c\u53f8.cn", "shop.xn--55qx5d.cn"),
        # Addresses.
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[0000:0000:0000:0000:0000:0000:0000:0001]"),
        ("::1", "[0000:0000:0000:0000:0000:0000:0000:0001]"),
    ],
)
def test_all_hosts_of_one_registrant_have_one_domain(host, domain):
    assert registrable_domain(host) == domain
    assert registrable_domain(domain) == domain


@pytest.mark.parametrize(
    "host", ["", ".", "a b", "shop.example:80", "a@shop.example", "shop.example/x", "a.example?x", "127.1"]
)
def test_what_is_not_a_host_has_no_domain(host):
    with pytest.raises(Rejected):
        registrable_domain(host)
