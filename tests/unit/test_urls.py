"""Two addresses of one product are one identity; what is shown stays what the shop wrote."""

import hashlib
import random
import string
from dataclasses import replace
from ipaddress import ip_network
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from harvester.kernel.link_rules import IDENTITY_NAMES, NO_NETWORK, TRACKING_NAMES, LinkRules
from harvester.kernel.rejects import Fault, RejectCode, Rejected
from harvester.kernel.urls import (
    canonical_url,
    identity_url,
    is_public_url,
    is_web_url,
    link_identity,
    split_url,
    unwrap_tracked,
    url_hash,
)

#: As a network of Impact's kind would describe its links.
WRAPPING = LinkRules(
    tracked_path="/c/[0-9]+/[0-9]+/[0-9]+",
    landing_parameters=("u",),
    tracking_names=frozenset({"intsrc", "prodsku"}),
    tracking_prefixes=("ir_",),
)
TRACKED = "https://goto.brand.example/c/221109/265001/3929"


def tracked(landing, *, encodings=1, host="brand.sjv.io", publisher=221109):
    for _ in range(encodings):
        landing = quote(landing, safe="")
    return f"https://{host}/c/{publisher}/265001/3929?prodsku=A1&u={landing}&intsrc=CATF_77"


def fault_of(text, rules=NO_NETWORK):
    with pytest.raises(Rejected) as refused:
        identity_url(text, rules)
    assert not is_web_url(text) or refused.value.fault is Fault.URL_NESTED
    return refused.value.fault


def answer(read, text, rules):
    """What kind of answer a reader gives: an address, or the code of its refusal."""
    try:
        read(text, rules)
    except Rejected as refused:
        return refused.code
    return "address"


#: an address, and its identity
IDENTITIES = [
    ("https://shop.example/p/1", "shop.example/p/1"),
    ("http://shop.example/p/1", "shop.example/p/1"),
    ("HTTPS://Shop.EXAMPLE/P/1", "shop.example/P/1"),
    ("  https://shop.example/p/1\n", "shop.example/p/1"),
    ("https://shop.example", "shop.example"),
    ("https://shop.example/", "shop.example"),
    ("https://shop.example./p", "shop.example/p"),
    ("https://shop.example/p/1/", "shop.example/p/1"),
    ("https://shop.example/p/1///", "shop.example/p/1"),
    ("https://shop.example/p/?a=1", "shop.example/p?a=1"),
    ("https://shop.example?a=1", "shop.example?a=1"),
    ("https://shop.example/p#reviews", "shop.example/p"),
    ("https://shop.example/p?#", "shop.example/p"),
    # ports
    ("http://shop.example:80/p", "shop.example/p"),
    ("https://shop.example:443/p", "shop.example/p"),
    ("https://shop.example:0443/p", "shop.example/p"),
    ("https://shop.example:/p", "shop.example/p"),
    ("http://shop.example:443/p", "shop.example:443/p"),
    ("https://shop.example:8443/p", "shop.example:8443/p"),
    # hosts
    ("https://b\u00fccher.example/p", "xn--bcher-kva.example/p"),
    ("https://B\u00dcCHER.example/p", "xn--bcher-kva.example/p"),
    ("https://xn--BCHER-kva.example/p", "xn--bcher-kva.example/p"),
    ("https://fa\u00df.example/p", "xn--fa-hia.example/p"),
    ("https://\uff53hop\u3002example/p", "shop.example/p"),
    ("https://my_shop.example/p", "my_shop.example/p"),
    ("http://93.184.216.34:8000/p", "93.184.216.34:8000/p"),
    ("http://[2606:2800::1]/p", "[2606:2800:0000:0000:0000:0000:0000:0001]/p"),
    ("http://[2606:2800:0:0::1]:8080/p", "[2606:2800:0000:0000:0000:0000:0000:0001]:8080/p"),
    # spelling
    ("https://shop.example/%7Ebob/%c3%a9", "shop.example/~bob/%C3%A9"),
    ("https://shop.example/~bob/\u00e9", "shop.example/~bob/%C3%A9"),
    ("https://shop.example/a b", "shop.example/a%20b"),
    ("https://shop.example/a%2fb", "shop.example/a%2Fb"),
    ("https://shop.example/50%-off", "shop.example/50%25-off"),
    ("https://shop.example/50%25-off", "shop.example/50%25-off"),
    ("https://shop.example/a+b?q=a+b", "shop.example/a+b?q=a%20b"),
    ("https://shop.example/p?q=a%20b", "shop.example/p?q=a%20b"),
    ("https://shop.example/p?q=a%2Bb", "shop.example/p?q=a%2Bb"),
    ("https://shop.example/p?c[]=1", "shop.example/p?c%5B%5D=1"),
    ("https://shop.example/a\\b", "shop.example/a%5Cb"),
    # parameters
    ("https://shop.example/p?b=2&a=1", "shop.example/p?a=1&b=2"),
    ("https://shop.example/p?a=2&a=1", "shop.example/p?a=1&a=2"),
    ("https://shop.example/p?&a=1&&", "shop.example/p?a=1"),
    ("https://shop.example/p?a", "shop.example/p?a="),
    ("https://shop.example/p?a=", "shop.example/p?a="),
    ("https://shop.example/p?a=b=c", "shop.example/p?a=b=c"),
    ("https://shop.example/p?utm_source=x&sku=A", "shop.example/p?sku=A"),
    ("https://shop.example/p?UTM_Source=x&sku=A", "shop.example/p?sku=A"),
    ("https://shop.example/p?utm%5Fsource=x&sku=A", "shop.example/p?sku=A"),
    ("https://shop.example/p?affid=7&affiliate_id=8&aff=9", "shop.example/p"),
    ("https://shop.example/p?ranMID=1&ranEAID=2&ranSiteID=3", "shop.example/p"),
    ("https://shop.example/p?refine=red", "shop.example/p?refine=red"),
    ("https://shop.example/p?affinity=red", "shop.example/p?affinity=red"),
    ("https://shop.example/p?affect=1&affordable=2", "shop.example/p?affect=1&affordable=2"),
    ("https://shop.example/p?subid6=red", "shop.example/p?subid6=red"),
]


@pytest.mark.parametrize(("url", "identity"), IDENTITIES)
def test_an_address_has_one_identity(url, identity):
    assert is_web_url(url)
    assert identity_url(url) == identity


CLICKS = (
    "irclickid irgwc ir_campaignid ir_adid ir_partnerid irmpname clickid click_id awc cjevent cjdata sscid "
    "ranMID ranEAID ranSiteID avad tduid utm_source utm_medium "
    "utm_campaign utm_term utm_content utm_id gclid gbraid wbraid fbclid msclkid ttclid srsltid mc_cid mc_eid yclid "
    "dclid gad_source gad_campaignid gclsrc _gl _ga twclid mkt_tok hsa_cam hsa_grp mtm_source li_fat_id igshid epik "
    "rdt_cid ScCid _hsenc _hsmi s_kwcid ef_id clickref x-clickref zanpid ymclid tblci"
)
#: In some shop each of them chooses the product, or what is shown of it.
AMBIGUOUS = (
    "ref source campaign sharedid subid sub_id subid1 subid2 subid3 subid4 subid5 aff affid aff_id aff_sub aff_sub2 "
    "affiliate affiliate_id pk_campaign"
)


@pytest.mark.parametrize("name", CLICKS.split())
def test_a_click_parameter_is_dropped_from_identity_and_display(name):
    url = f"https://shop.example/p?b=1&{name}=x&a=2"
    assert identity_url(url) == link_identity(url) == "shop.example/p?a=2&b=1"
    assert canonical_url(url) == "https://shop.example/p?b=1&a=2"


@pytest.mark.parametrize("name", AMBIGUOUS.split())
def test_a_parameter_that_may_choose_the_product_is_dropped_from_the_identity_and_shown(name):
    url = f"https://shop.example/p?b=1&{name}=x&a=2"
    assert identity_url(url) == "shop.example/p?a=2&b=1"
    assert link_identity(url) == "shop.example/p?" + "&".join(sorted(["a=2", "b=1", f"{name}=x"]))
    assert canonical_url(url) == url


@pytest.mark.parametrize("name", ["ref", "gclid", "utm_source", "intsrc", "ir_x"])
def test_a_parameter_that_the_feed_keeps_is_never_dropped(name):
    rules = replace(WRAPPING, kept_names=frozenset({name}))
    url = f"https://shop.example/p?{name.upper()}=x"
    assert identity_url(url, rules) == link_identity(url, rules) == f"shop.example/p?{name.upper()}=x"
    assert canonical_url(url, rules) == url


@pytest.mark.parametrize("name", ["sku", "pid", "variant", "size", "color", "caliber", "id", "p"])
def test_a_parameter_that_chooses_the_product_is_never_dropped(name):
    greedy = LinkRules(tracking_names=frozenset({name}), tracking_prefixes=(name,))
    assert name in IDENTITY_NAMES
    assert identity_url(f"https://shop.example/p?{name}=x", greedy) == f"shop.example/p?{name}=x"
    assert canonical_url(f"https://shop.example/p?{name}=x", greedy) == f"https://shop.example/p?{name}=x"


def test_a_network_adds_its_own_parameters():
    url = "https://shop.example/p?intsrc=1&ir_x=2&a=3"
    assert identity_url(url) == "shop.example/p?a=3&intsrc=1&ir_x=2"
    assert identity_url(url, WRAPPING) == "shop.example/p?a=3"


@pytest.mark.parametrize(
    "wrong",
    [
        {"kept_names": frozenset({"Foo"})},
        {"tracking_names": frozenset({"Foo"})},
        {"tracking_prefixes": ("Foo",)},
        {"tracking_prefixes": ("",)},
    ],
)
def test_rules_that_would_never_or_always_apply_are_refused(wrong):
    with pytest.raises(ValueError, match=r"lower case|every parameter"):
        LinkRules(**wrong)


#: an address, and how it is shown
SHOWN = [
    ("https://Shop.Example:443/P/1/?b=2&a=1#top", "https://Shop.Example:443/P/1/?b=2&a=1#top"),
    (" https://shop.example/p ", "https://shop.example/p"),
    ("https://shop.example/p?utm_source=x", "https://shop.example/p"),
    ("https://shop.example/p?utm_source=x#top", "https://shop.example/p#top"),
    ("https://shop.example/p?b=%7e&utm_source=x&a=1", "https://shop.example/p?b=%7e&a=1"),
    ("https://shop.example/p?", "https://shop.example/p?"),
    ("https://shop.example/a b?c=d\u00a0e", "https://shop.example/a%20b?c=d%C2%A0e"),
    ("http://b\u00fccher.example/\u00e9", "http://b\u00fccher.example/\u00e9"),
]


@pytest.mark.parametrize(("url", "shown"), SHOWN)
def test_what_is_shown_is_what_the_shop_wrote_without_tracking(url, shown):
    assert canonical_url(url) == shown


#: an address that is none, and why
REFUSED = [
    (None, Fault.NO_URL),
    ("", Fault.NO_URL),
    (" \t", Fault.NO_URL),
    ("shop.example/p", Fault.URL_NOT_WEB),
    ("www.shop.example", Fault.URL_NOT_WEB),
    ("//shop.example/p", Fault.URL_NOT_WEB),
    ("/p/1", Fault.URL_NOT_WEB),
    ("https:shop.example", Fault.URL_NOT_WEB),
    ("https:/shop.example", Fault.URL_NOT_WEB),
    ("ftp://shop.example/p", Fault.URL_NOT_WEB),
    ("file:///etc/passwd", Fault.URL_NOT_WEB),
    ("javascript:alert(1)", Fault.URL_NOT_WEB),
    ("javascript://shop.example/%0aalert(1)", Fault.URL_NOT_WEB),
    ("data:text/html,hi", Fault.URL_NOT_WEB),
    ("httpss://shop.example", Fault.URL_NOT_WEB),
    ("https://", Fault.URL_HOST),
    ("https:///p", Fault.URL_HOST),
    ("https://?a=1", Fault.URL_HOST),
    ("https://.", Fault.URL_HOST),
    ("https://shop..example", Fault.URL_HOST),
    ("https://-shop.example", Fault.URL_HOST),
    ("https://shop-.example", Fault.URL_HOST),
    ("https://shop example/p", Fault.URL_HOST),
    ("https://shop%2Eexample/p", Fault.URL_HOST),
    ("https://shop<>.example/p", Fault.URL_HOST),
    ("https://a\u2100b.example/p", Fault.URL_HOST),
    ("https://\u2764.example/p", Fault.URL_HOST),
    ("https://sh\u200bop.example/p", Fault.URL_HOST),
    ("https://" + "a" * 64 + ".example", Fault.URL_HOST),
    ("https://" + "\u00fc" * 60 + ".example", Fault.URL_HOST),
    ("https://" + "a." * 130 + "example", Fault.URL_HOST),
    ("https://shop.example\\@evil.example/p", Fault.URL_HOST),
    ("https://[::1", Fault.URL_HOST),
    ("https://[::g]/p", Fault.URL_HOST),
    ("https://[fe80::1%25eth0]/p", Fault.URL_HOST),
    ("https://[127.0.0.1]/p", Fault.URL_HOST),
    ("https://::1/p", Fault.URL_HOST),
    ("http://256.256.256.256/p", Fault.URL_HOST),
    ("http://0x100.2.3.4/p", Fault.URL_HOST),
    ("http://127.1/p", Fault.URL_HOST),
    ("http://127.0.0.01/p", Fault.URL_HOST),
    ("http://0x7f.0x1/p", Fault.URL_HOST),
    ("http://2130706433/p", Fault.URL_HOST),
    ("http://shop.7/p", Fault.URL_HOST),
    ("http://1.2.3.4.5/p", Fault.URL_HOST),
    ("http://\uff11\uff12\uff17.1/p", Fault.URL_HOST),
    ("https://shop.example:0/p", Fault.URL_PORT),
    ("https://shop.example:65536/p", Fault.URL_PORT),
    ("https://shop.example:" + "9" * 4000, Fault.URL_PORT),
    ("https://shop.example:8o/p", Fault.URL_HOST),
    ("https://bob@shop.example/p", Fault.URL_USER),
    ("https://bob:secret@shop.example/p", Fault.URL_USER),
    ("https://shop.example:443@evil.example/p", Fault.URL_USER),
    ("https://@shop.example/p", Fault.URL_USER),
    ("https://shop.example/a\nb", Fault.URL_CONTROLS),
    ("https://shop.example/a\tb", Fault.URL_CONTROLS),
    ("https://shop.example/a\x00b", Fault.URL_CONTROLS),
    ("https://shop.example/a\x7fb", Fault.URL_CONTROLS),
    ("https://shop.example/a\u202eb", Fault.URL_CONTROLS),
    ("https://shop.example/a\u2028b", Fault.URL_CONTROLS),
    ("https://shop.example/a\ud800b", Fault.URL_CONTROLS),
    ("https://shop.example/" + "a" * 4076, Fault.URL_TOO_LONG),
]


@pytest.mark.parametrize(("text", "fault"), REFUSED)
def test_what_is_no_address_of_the_web_is_refused(text, fault):
    assert fault_of(text) is fault


LOOPBACK, OFFICE = ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8")
#: A host that is not of the public internet, and a network that, once it is allowed, allows the host.
PRIVATE = [
    *[("localhost", LOOPBACK), ("localhost:3000", LOOPBACK), ("shop.localhost", LOOPBACK), ("127.0.0.1", LOOPBACK)],
    *[("127.9.9.9:80", LOOPBACK), ("[::ffff:127.0.0.1]", None), ("[::1]", ip_network("::1/128"))],
    *[("10.1.2.3", OFFICE), ("intranet", OFFICE), ("com", OFFICE), ("shop.local", OFFICE), ("shop.internal", OFFICE)],
    *[("a.home.arpa", OFFICE), ("192.168.1.1", ip_network("192.168.0.0/16")), ("169.254.169.254", None)],
    *[("100.64.0.1", None), ("0.0.0.0", None), ("[fe80::1]", None), ("[fc00::1]", ip_network("fc00::/7"))],
]


@pytest.mark.parametrize(("host", "network"), PRIVATE)
def test_a_link_to_a_host_that_is_not_public_is_refused_unless_its_network_is_allowed(host, network):
    link = f"https://{host}/p?a=1"
    for read in (canonical_url, identity_url, link_identity):
        assert refusal(read, link, WRAPPING) is Fault.URL_PRIVATE
        assert refusal(read, tracked(link), WRAPPING) is Fault.URL_PRIVATE, "as a landing page"
        assert refusal(read, f"https://{host}/c/1/2/3?u=https://shop.example/p", WRAPPING) is Fault.URL_PRIVATE
    assert is_web_url(link)
    assert not is_public_url(link)
    other = OFFICE if network != OFFICE else LOOPBACK
    assert not is_public_url(link, LinkRules(allowed_networks=(other,)))
    if network:
        rules = replace(WRAPPING, allowed_networks=(network,))
        assert is_public_url(link, rules)
        assert canonical_url(tracked(link), rules) == link


def refusal(read, text, rules):
    with pytest.raises(Rejected) as refused:
        read(text, rules)
    return refused.value.fault


def test_every_refusal_of_an_address_has_its_code():
    codes = {fault.name: fault.code for fault in Fault if "URL" in fault.name}
    assert codes == {
        "NO_URL": RejectCode.MISSING_URL,
        "URL_TOO_LONG": RejectCode.FIELD_TOO_LONG,
        "URL_NOT_WEB": RejectCode.INVALID_URL,
        "URL_CONTROLS": RejectCode.INVALID_URL,
        "URL_USER": RejectCode.INVALID_URL,
        "URL_HOST": RejectCode.INVALID_URL,
        "URL_PRIVATE": RejectCode.INVALID_URL,
        "URL_PORT": RejectCode.INVALID_URL,
        "URL_NESTED": RejectCode.INVALID_URL,
    }


def test_the_longest_address_is_still_one():
    assert is_web_url("https://shop.example/" + "a" * 4075)
    assert is_web_url("https://" + "a." * 123 + "example/")


LANDING = "https://shop.example/p/1?sku=A&b=%26"


@pytest.mark.parametrize("encodings", [1, 2, 3])
@pytest.mark.parametrize("host", ["brand.sjv.io", "brand.pxf.io", "brand.7eer.net", "goto.brand.example"])
def test_a_tracked_link_is_unwrapped_whatever_its_host_and_however_often_encoded(host, encodings):
    link = tracked(LANDING, host=host, encodings=encodings)
    assert unwrap_tracked(link, WRAPPING) == LANDING
    assert canonical_url(link, WRAPPING) == LANDING


def test_a_landing_page_encoded_more_often_than_anyone_does_stays_wrapped():
    link = tracked(LANDING, encodings=4)
    assert unwrap_tracked(link, WRAPPING) == link


@pytest.mark.parametrize(
    "link",
    [
        TRACKED,
        f"{TRACKED}?prodsku=A1",
        f"{TRACKED}?u=",
        f"{TRACKED}?u=%2Fp%2F1",
        f"{TRACKED}?u=javascript%3Aalert(1)",
        f"{TRACKED}?u=https%3A%2F%2Fbob%40shop.example",
        f"{TRACKED}?u=https%3A%2F%2Fshop.example%2F%0Aa",
        f"{TRACKED}?U=https%3A%2F%2Fshop.example",
        "https://shop.example/c/mens/shoes/boots?u=https%3A%2F%2Fother.example",
        "https://shop.example/c/1/2?u=https%3A%2F%2Fother.example",
        "https://shop.example/c/1/2/3/4?u=https%3A%2F%2Fother.example",
        "https://shop.example/x/c/1/2/3?u=https%3A%2F%2Fother.example",
    ],
)
def test_a_link_without_a_usable_landing_page_stays_as_it_is(link):
    assert unwrap_tracked(link, WRAPPING) == link


@pytest.mark.parametrize(
    "link",
    [
        f"{TRACKED}/?u=https%3A%2F%2Fshop.example%2Fa+b",
        f"{TRACKED}?u=&u=https%3A%2F%2Fshop.example%2Fa%20b",
        f"{TRACKED}?%75=https%3A%2F%2Fshop.example%2Fa%2520b",
        "https://goto.brand.example/%63/1/2/3?u=https://shop.example/a%20b",
        f"{TRACKED}?u=+https%3A%2F%2Fshop.example%2Fa%20b#x",
    ],
)
def test_a_landing_page_is_found_however_the_link_is_spelled(link):
    assert identity_url(link, WRAPPING) == "shop.example/a%20b"


def test_bytes_that_are_no_utf8_survive_unwrapping():
    assert unwrap_tracked(f"{TRACKED}?u=https%3A%2F%2Fshop.example%2Fcaf%E9", WRAPPING) == "https://shop.example/caf%E9"


def test_without_rules_nothing_is_unwrapped():
    assert unwrap_tracked(tracked(LANDING)) == tracked(LANDING)


def test_the_publisher_does_not_change_the_identity():
    ours, theirs = tracked(LANDING, publisher=1), tracked(LANDING, publisher=2, host="brand.pxf.io")
    assert identity_url(ours, WRAPPING) == identity_url(theirs, WRAPPING) == identity_url(LANDING)


def nested(depth):
    """Each layer encodes the percent signs of all layers within, so the innermost one is kept free of them."""
    url = "https://shop.example"
    for _ in range(depth):
        url = f"{TRACKED}?u={url}"
    return url


@pytest.mark.parametrize("depth", [1, 2, 10])
def test_links_in_links_are_unwrapped(depth):
    assert unwrap_tracked(nested(depth), WRAPPING) == "https://shop.example"


def test_links_nested_too_deep_are_refused():
    assert fault_of(nested(11), WRAPPING) is Fault.URL_NESTED


def test_a_url_hash_is_sha256_of_the_identity():
    assert url_hash("shop.example/p") == hashlib.sha256(b"shop.example/p").hexdigest()
    assert url_hash("shop.example/p") == "eb1b4907d02b983a199122b2954a1a5db75ecb766ff4eb74ed46b219c651796d"


HOSTS = st.sampled_from(
    ["shop.example", "Shop.Example", "b\u00fccher.example", "93.184.216.34", "[2606:2800::1]", "a.b-c.example."]
)
PORTS = st.sampled_from(["", ":", ":80", ":443", ":8080"])
RULES = st.sampled_from([NO_NETWORK, WRAPPING])
CHARACTERS = string.ascii_letters + string.digits + "-._~!$'()*+,;:@% \"<>[]\\^`{|}\u00e9\u00a0\u4e2d\U0001f600"
PIECE = st.text(st.sampled_from(CHARACTERS), max_size=8) | st.sampled_from(
    ["%7e", "%2F", "%c3%a9", "%", "%2", "%zz", "c"]
)
PATHS = st.lists(PIECE | st.sampled_from(["c/1/2/3", ""]), max_size=4).map(
    lambda pieces: "".join("/" + p for p in pieces)
)
NAMES = PIECE | st.sampled_from([*sorted(TRACKING_NAMES)[:6], "utm_x", "AFFx", "sku", "id", "u", "intsrc"])
VALUES = PIECE | st.just(quote(LANDING, safe="")) | st.just(quote(tracked(LANDING), safe=""))
PAIRS = st.lists(st.tuples(NAMES, VALUES).map("=".join) | NAMES, max_size=4)


@st.composite
def web_urls(draw):
    scheme = draw(st.sampled_from(["http", "https", "HTTPS"]))
    query = draw(PAIRS)
    fragment = draw(st.sampled_from(["", "#", "#top", "#a?b#c"]))
    return f"{scheme}://{draw(HOSTS)}{draw(PORTS)}{draw(PATHS)}{'?' if query else ''}{'&'.join(query)}{fragment}"


@given(web_urls(), RULES)
def test_the_identity_of_an_identity_is_itself(url, rules):
    identity = identity_url(url, rules)
    assert identity.isascii()
    assert identity.isprintable()
    assume(split_url(unwrap_tracked(url, rules)).port in (None, 8080))
    assert identity_url("https://" + identity, rules) == identity


@given(web_urls(), RULES)
def test_showing_an_address_again_changes_nothing_and_keeps_its_identity(url, rules):
    shown = canonical_url(url, rules)
    assert canonical_url(shown, rules) == shown
    assert identity_url(shown, rules) == identity_url(url, rules)


@given(PATHS, PAIRS, st.randoms())
def test_the_order_of_parameters_does_not_matter(path, pairs, chance):
    mixed = list(pairs)
    chance.shuffle(mixed)
    # The fragment keeps a blank at the end of a parameter from being trimmed as the end of the address.
    ours, theirs = (identity_url(f"https://shop.example{path}?{'&'.join(query)}#x") for query in (pairs, mixed))
    assert ours == theirs


@given(web_urls(), st.sampled_from(sorted(TRACKING_NAMES)), st.integers(0, 5))
def test_a_tracking_parameter_anywhere_changes_nothing(url, name, place):
    base, _, _ = url.partition("#")
    head, _, query = base.partition("?")
    pairs = query.split("&") if query else []
    pairs.insert(place, f"{name}=x")
    assert identity_url(f"{head}?{'&'.join(pairs)}#x") == identity_url(base + "#x")


@given(st.text("abcXYZ019-._~/ \u00e9%&=?#", max_size=12))
def test_wrapping_and_unwrapping_gives_the_landing_page_back(rest):
    landing = f"https://shop.example/{rest.strip()}"
    for encodings in (1, 2):
        assert identity_url(tracked(landing, encodings=encodings), WRAPPING) == identity_url(landing)


@given(st.one_of(st.none(), st.text(), st.text().map("https://".__add__), web_urls()), RULES)
def test_whatever_is_read_is_an_address_or_a_refusal(text, rules):
    for read in (unwrap_tracked, canonical_url, identity_url):
        assert answer(read, text, rules) in {"address", "MISSING_URL", "INVALID_URL", "FIELD_TOO_LONG"}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "hostile", ["a", "%", "%25", "/", "&", "?", "#", "@", ".", ":", "[", "\u00fc", " ", "u=https://"]
)
def test_a_megabyte_is_refused_at_once(hostile):
    text = "https://shop.example/c/1/2/3?u=" + hostile * (1_000_000 // len(hostile)) + "x"
    assert fault_of(text, WRAPPING) is Fault.URL_TOO_LONG
    assert fault_of("https://" + text, WRAPPING) is Fault.URL_TOO_LONG


@pytest.mark.timeout(60)
def test_the_longest_addresses_of_hostile_pieces_are_answered():
    chance = random.Random(4096)
    pieces = [
        "%",
        "%25",
        "%2525",
        "/",
        "&",
        "u=",
        "https://",
        "https%3A%2F%2F",
        "?",
        "#",
        "@",
        "\u00fc",
        "c/1/2/3",
        "[",
        ":",
    ]
    for _ in range(300):
        text = "https://shop.example/c/1/2/3?" + "".join(chance.choices(pieces, k=600))
        assert answer(identity_url, text[:4096], WRAPPING) in {"address", "INVALID_URL"}
