"""Two spellings of one product page are one target, and two products never are."""

from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.generated import examples

from harvester.kernel.rejects import Fault, Rejected
from harvester.kernel.urls import canonical_page_url

#: an address, and the one under which its page is a target
PAGES = [
    ("https://shop.example/a", "https://shop.example/a"),
    ("http://shop.example/a", "https://shop.example/a"),
    ("HTTPS://Shop.Example/A", "https://shop.example/A"),
    ("https://shop.example./a", "https://shop.example/a"),
    ("https://www.shop.example/a", "https://shop.example/a"),
    ("https://www.www.shop.example/a", "https://shop.example/a"),
    ("https://www.example/a", "https://www.example/a"),
    ("https://us.shop.example/a", "https://us.shop.example/a"),
    ("https://b\u00fccher.example/a", "https://xn--bcher-kva.example/a"),
    ("http://shop.example:80/a", "https://shop.example/a"),
    ("https://shop.example:443/a", "https://shop.example/a"),
    ("http://shop.example:8080/a", "https://shop.example:8080/a"),
    ("http://127.0.0.1:8080/a", "https://127.0.0.1:8080/a"),
    # the path
    ("https://shop.example", "https://shop.example/"),
    ("https://shop.example/", "https://shop.example/"),
    ("https://shop.example/a/", "https://shop.example/a"),
    ("https://shop.example/a//", "https://shop.example/a"),
    ("https://shop.example/a/?x=1", "https://shop.example/a?x=1"),
    ("https://shop.example/%7eme/caf\u00e9", "https://shop.example/~me/caf%C3%A9"),
    ("https://shop.example/a%2fb", "https://shop.example/a%2Fb"),
    ("  https://shop.example/a\n", "https://shop.example/a"),
    # the fragment
    ("https://shop.example/a#reviews", "https://shop.example/a"),
    ("https://shop.example/a?x=1#?y=2", "https://shop.example/a?x=1"),
    # tracking
    ("https://shop.example/a?utm_source=x&utm_medium=y&utm_id=3", "https://shop.example/a"),
    ("https://shop.example/a?UTM_Source=x&GCLID=1", "https://shop.example/a"),
    ("https://shop.example/a?fbclid=1&gclid=2&ref=3&source=4&campaign=5&msclkid=6", "https://shop.example/a"),
    ("https://shop.example/a?u%74m_source=x", "https://shop.example/a"),
    ("https://shop.example/a?reference=1&resource=2", "https://shop.example/a?reference=1&resource=2"),
    # what chooses the product
    ("https://shop.example/a?variant=1&utm_source=x", "https://shop.example/a?variant=1"),
    ("https://shop.example/a?sku=A-1&pid=2", "https://shop.example/a?pid=2&sku=A-1"),
    ("https://shop.example/a?SKU=A-1", "https://shop.example/a?SKU=A-1"),
    ("https://shop.example/product.php?12345", "https://shop.example/product.php?12345"),
    # empty parameters, and order
    ("https://shop.example/a?", "https://shop.example/a"),
    ("https://shop.example/a?&&x=1&", "https://shop.example/a?x=1"),
    ("https://shop.example/a?x=&y&sku=", "https://shop.example/a"),
    ("https://shop.example/a?b=1&a=2", "https://shop.example/a?a=2&b=1"),
    ("https://shop.example/a?b=2&a=9&b=1", "https://shop.example/a?a=9&b=2&b=1"),
    ("https://shop.example/a?q=9mm+luger", "https://shop.example/a?q=9mm%20luger"),
    ("https://shop.example/a?q=9mm%20luger", "https://shop.example/a?q=9mm%20luger"),
    ("https://shop.example/a?x=a=b", "https://shop.example/a?x=a=b"),
    ("https://shop.example/a?x=%26y=1", "https://shop.example/a?x=%26y=1"),
]


@pytest.mark.parametrize(("written", "page"), PAGES)
def test_the_address_of_a_page(written, page):
    assert canonical_page_url(written) == page
    assert canonical_page_url(page) == page


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("", Fault.NO_URL),
        ("shop.example/a", Fault.URL_NOT_WEB),
        ("ftp://shop.example/a", Fault.URL_NOT_WEB),
        ("https://me:secret@shop.example/a", Fault.URL_USER),
        ("https:///a", Fault.URL_HOST),
        ("https://shop.example/" + "a" * 4096, Fault.URL_TOO_LONG),
        ("https://shop.example/" + "\u00e9" * 1000, Fault.URL_TOO_LONG),
        ("https://shop.example/a\nb", Fault.URL_CONTROLS),
    ],
)
def test_what_is_not_the_address_of_a_page_is_refused(written, fault):
    with pytest.raises(Rejected) as refused:
        canonical_page_url(written)
    assert refused.value.fault is fault


#: Characters that mean something in an address, and some that do not.
CHARACTERS = "aZ09-._~/%&=+;:@,!$'()*? \u00e9\u3042\"<|"
segment = st.text(CHARACTERS.replace("?", ""), max_size=8)
address = st.builds(
    "{}://{}{}/{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(["www.shop.example", "Shop.Example", "us.shop.example", "www.www.shop.example."]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    segment,
    st.text(CHARACTERS, max_size=20).map("?".__add__),
    st.sampled_from(["", "#x", "#?sku=1"]),
)


@settings(max_examples=examples(500))
@given(address)
def test_a_canonical_address_is_its_own(text):
    page = canonical_page_url(text)
    assert canonical_page_url(page) == page
    assert page.isascii()


NAMES = ("color", "sku", "q", "v1", "pid", "size")
values = st.text("abAB09-_ /&=\u00e9", min_size=1, max_size=5)
parameters = st.lists(st.tuples(st.sampled_from(NAMES), values), max_size=4, unique_by=lambda pair: pair[0])
paths = st.lists(st.text("abAB09-_ \u00e9", min_size=1, max_size=4).filter(str.strip), max_size=3)


def spelled(path, pairs, chance):
    """One page, written in one of many ways."""
    escape = chance.choice([lambda text: quote(text, safe=""), lambda text: quote(text, safe="").replace("%2F", "%2f")])
    lower = chance.choice([str, lambda text: text.replace("%C3%A9", "%c3%a9")])
    noise = chance.sample(["utm_source=mail", "gclid=1", "empty=", "fbclid=zz", "ref=home", ""], k=chance.randint(0, 4))
    query = [f"{name}={lower(escape(value))}" for name, value in pairs] + noise
    chance.shuffle(query)
    scheme, host = chance.choice(["http", "https"]), chance.choice(["shop.example", "www.shop.example", "SHOP.example"])
    end, fragment = chance.choice(["", "/"]), chance.choice(["", "#top"])
    place = "/".join(lower(escape(part)) for part in path) + end
    return f"{scheme}://{host}/{place}{'?' if query else ''}{'&'.join(query)}{fragment}"


@settings(max_examples=examples(300))
@given(paths, parameters, st.randoms(use_true_random=False))
def test_two_spellings_of_a_page_are_one(path, pairs, chance):
    assert canonical_page_url(spelled(path, pairs, chance)) == canonical_page_url(spelled(path, pairs, chance))


@settings(max_examples=examples(500))
@given(paths, parameters, paths, parameters, st.randoms(use_true_random=False))
def test_two_pages_are_never_one(path, pairs, other_path, other_pairs, chance):
    """They differ in the path or in the values of their parameters."""
    is_same = path == other_path and sorted(pairs) == sorted(other_pairs)
    ours, theirs = spelled(path, pairs, chance), spelled(other_path, other_pairs, chance)
    assert (canonical_page_url(ours) == canonical_page_url(theirs)) is is_same


@settings(max_examples=examples(200))
@given(paths, parameters.filter(bool), values, st.randoms(use_true_random=False))
def test_one_different_value_is_another_page(path, pairs, value, chance):
    (name, old), *others = pairs
    changed = spelled(path, [(name, value), *others], chance)
    assert (canonical_page_url(spelled(path, pairs, chance)) == canonical_page_url(changed)) is (value == old)
