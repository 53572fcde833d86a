"""A template is refused when it is saved, never when a customer clicks."""

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.errors import InvalidInput
from harvester.kernel.tracking_url import PLACEHOLDERS, build_tracking_url, check_template
from harvester.kernel.urls import is_web_url

URL = "https://shop.example/p?sku=A&b=c d#top"
TRACKED = "https://brand.sjv.io/c/1/2/3?u=https%3A%2F%2Fshop.example%2Fp"

SOUND = [
    "https://go.example/?u={url}",
    "https://go.example/{sku}",
    "  https://go.example/c/1?u={url}&subId1={source}&item={item_id}&s={sku} ",
    "http://go.example?u={url}",
    "https://go.example/r/{url_raw}",
    "{url_raw}?aff=7",
    "{url_raw}&aff=7",
    "{url_raw}",
]


@pytest.mark.parametrize("template", SOUND)
def test_a_sound_template_is_saved_trimmed(template):
    assert check_template(template) == template.strip()


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("https://go.example/?u={link}", "no placeholder {link}"),
        ("https://go.example/?u={URL}", "no placeholder {URL}"),
        ("https://go.example/?u={}", "no placeholder {}"),
        ("https://go.example/?u={url!r}", "no placeholder {url!r}"),
        ("https://go.example/?u={url.x}", "no placeholder {url.x}"),
        ("https://go.example/?u={ url }", "no blanks"),
        ("https://go.example/?u={url}\nx", "control characters"),
        ("https://go.example/", "without a placeholder"),
        ("", "without a placeholder"),
        ("https://go.example/?u={{url}}", "brace"),
        ("https://go.example/?u={url", "without a placeholder"),
        ("https://go.example/?a={sku}&u={url", "brace"),
        ("https://go.example/?u=url}{sku}", "brace"),
        ("{url}", "begins with"),
        ("go.example/?u={url}", "begins with"),
        ("ftp://go.example/?u={url}", "begins with"),
        ("javascript:location='{url}'", "begins with"),
        ("https://{source}.example/?u={url}", "begins with"),
        ("https://go.example{sku}/?u={url}", "begins with"),
        ("https://bob@go.example/?u={url}", "begins with"),
        ("{url_raw}.evil.example/", "begins with"),
        ("https://go.example/?u={url}" + "x" * 2000, "at most 2000"),
    ],
)
def test_a_template_that_cannot_make_links_is_refused_with_what_is_allowed(template, reason):
    with pytest.raises(InvalidInput) as refused:
        check_template(template)
    assert reason in str(refused.value)


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_a_refusal_names_every_placeholder(name):
    with pytest.raises(InvalidInput, match=f"{{{name}}}"):
        check_template("https://go.example/{nothing}")


#: template, link
LINKS = [
    (
        "https://go.example/?u={url}&s={sku}&i={item_id}&c={source}",
        "https://go.example/?u=https%3A%2F%2Fshop.example%2Fp%3Fsku%3DA%26b%3Dc%20d%23top&s=A%2F1%26x%3D2&i=77&c=b%20c",
    ),
    ("https://go.example/{url}/{url}", None),
    ("https://go.example/r/{url_raw}", "https://go.example/r/https://shop.example/p?sku=A&b=c d#top"),
    ("{url_raw}?aff={sku}", "https://shop.example/p?sku=A&b=c d&aff=A%2F1%26x%3D2#top"),
    ("{url_raw}&aff=7", "https://shop.example/p?sku=A&b=c d&aff=7#top"),
    ("{url_raw}", URL),
]


@pytest.mark.parametrize(("template", "link"), LINKS)
def test_values_are_put_in_encoded(template, link):
    built = build_tracking_url(
        template=template, url=URL, tracked_url=TRACKED, sku="A/1&x=2", item_id="77", source="b c"
    )
    encoded = "https%3A%2F%2Fshop.example%2Fp%3Fsku%3DA%26b%3Dc%20d%23top"
    assert built == (link or f"https://go.example/{encoded}/{encoded}")


@pytest.mark.parametrize(("url", "joint"), [("https://shop.example/p", "?"), ("https://shop.example/p?a=1", "&")])
@pytest.mark.parametrize("mark", ["?", "&"])
def test_a_raw_address_is_joined_as_its_own_query_needs_it(url, joint, mark):
    assert build_tracking_url(template=f"{{url_raw}}{mark}aff=7", url=url) == f"{url}{joint}aff=7"


@pytest.mark.parametrize("template", [None, ""])
def test_without_a_template_the_feeds_own_link_counts_then_the_page(template):
    assert build_tracking_url(template=template, url=URL, tracked_url=TRACKED) == TRACKED
    assert build_tracking_url(template=template, url=URL, tracked_url="") == URL
    assert build_tracking_url(template=template, url=URL, tracked_url="javascript:alert(1)") == URL


@pytest.mark.parametrize("missing", [None, ""])
def test_a_template_that_cannot_be_filled_gives_way_to_a_link_that_works(missing):
    template = "https://go.example/?u={url}&s={sku}"
    assert build_tracking_url(template=template, url=URL, tracked_url=TRACKED, sku=missing) == TRACKED
    assert build_tracking_url(template=template, url=URL, sku=missing) == URL


def test_a_template_that_was_never_checked_gives_way_to_a_link_that_works():
    for template in ("https://go.example/{sku_raw}", "https://go.example/{nothing}", "{sku}", "javascript:{url}"):
        assert build_tracking_url(template=template, url=URL, sku="A") == URL


def test_a_link_that_grows_too_long_gives_way_to_one_that_works():
    long = "https://shop.example/" + "\u00e9" * 1000
    assert build_tracking_url(template="https://go.example/?u={url}", url=long) == long


VALUES = st.text(min_size=1, max_size=20)


@given(VALUES, VALUES, st.text(max_size=20))
def test_every_value_comes_out_of_the_link_as_it_went_in(sku, item_id, rest):
    url = "https://shop.example/" + rest
    template = check_template("https://go.example/?u={url}&s={sku}&i={item_id}")
    link = build_tracking_url(template=template, url=url, sku=sku, item_id=item_id)
    assert is_web_url(link)
    assert parse_qs(urlsplit(link).query) == {"u": [url], "s": [sku], "i": [item_id]}


@given(st.text() | st.text(st.sampled_from("{}url_rawskhtp:/?&.ex")))
def test_any_template_is_sound_or_refused(text):
    try:
        template = check_template(text)
    except InvalidInput:
        return
    assert is_web_url(build_tracking_url(template=template, url="https://shop.example/p"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("hostile", ["{", "}", "{url}", "{url", " ", "x"])
def test_a_megabyte_is_no_template(hostile):
    with pytest.raises(InvalidInput):
        check_template(hostile * (1_000_000 // len(hostile)))
