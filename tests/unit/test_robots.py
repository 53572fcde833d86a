"""What robots.txt allows: the letter of RFC 9309, and in doubt no visit."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from protego import Protego
from tests.support.generated import examples, seeds
from tests.support.robots_reading import rfc_allows

from harvester.kernel.robots import MOST_BYTES, NO_RULES, parse_robots

AGENT = "harvester"


def allows(text, target, agent=AGENT):
    body = text if isinstance(text, bytes) else text.encode()
    return parse_robots(body).allows(target, agent)


#: what it shows, robots.txt, target, whether it may be fetched
CASES = [
    ("nothing", "", "/a", True),
    ("only a comment", "# hello\n", "/a", True),
    ("an HTML page instead", "<html>\n<body>User-agent\n", "/a", True),
    ("a group of ours", "User-agent: harvester\nDisallow: /\n", "/a", False),
    ("a group of somebody else", "User-agent: other\nDisallow: /\n", "/a", True),
    ("everybody", "User-agent: *\nDisallow: /\n", "/a", False),
    ("rules before any group", "Disallow: /\nUser-agent: other\nDisallow: /b\n", "/a", True),
    ("names in any case", "uSeR-aGeNt: HARVESTER\ndIsAlLoW: /\n", "/a", False),
    ("paths in their case", "User-agent: *\nDisallow: /A\n", "/a", True),
    ("blanks around", "  User-agent :\t harvester \n\t disallow\t:  /a  \n", "/a", False),
    ("a blank at the end is not part of the path", "User-agent: *\nDisallow: /a \t\n", "/a", False),
    ("a comment behind a rule", "User-agent: * # all\nDisallow: /a # not this\n", "/a", False),
    ("a comment cuts the path", "User-agent: *\nDisallow: /a#b\n", "/ax", False),
    ("only CR", "User-agent: *\rDisallow: /a\r", "/a", False),
    ("CRLF", "User-agent: *\r\nDisallow: /a\r\n", "/a", False),
    ("mixed line ends", "User-agent: *\r\rDisallow: /x\n\r\nDisallow: /a", "/a", False),
    ("a form feed is not a line end", "User-agent: *\nAllow: /\x0cDisallow: /a\n", "/a", True),
    ("NEL is not a line end", "User-agent: *\nAllow: /a\x85Disallow: /a\n", "/a", True),
    ("a BOM", b"\xef\xbb\xbfUser-agent: *\nDisallow: /a\n", "/a", False),
    ("UTF-16 with its BOM", "\ufeffUser-agent: *\nDisallow: /a\n".encode("utf-16-le"), "/a", False),
    ("UTF-16 the other way around", "\ufeffUser-agent: *\nDisallow: /a\n".encode("utf-16-be"), "/a", False),
    ("NULs around", b"\0User-agent: *\0\nDisallow: /a\0\n", "/a", False),
    # groups
    ("our group and everybody's both count", "User-agent: *\nDisallow: /a\n\nUser-agent: harvester\nAllow: /\n", "/a",
     False),
    ("everybody is allowed, we are not", "User-agent: *\nAllow: /\nUser-agent: harvester\nDisallow: /a\n", "/a", False),
    ("both groups allow", "User-agent: *\nDisallow: /b\nUser-agent: harvester\nDisallow: /c\n", "/a", True),
    ("an empty group of ours", "User-agent: *\nDisallow: /a\nUser-agent: harvester\nDisallow:\n", "/a", False),
    ("two groups of ours are one", ("User-agent: harvester\nDisallow: /b\n\nUser-agent: other\nDisallow: /\n\n"
     "User-agent: harvester\nDisallow: /a\n"), "/a", False),
    ("an allow rule of the other group of ours", ("User-agent: harvester\nDisallow: /a\nUser-agent: x\nDisallow: /\n"
     "User-agent: Harvester\nAllow: /a/b\n"), "/a/b", True),
    ("several agents share a group", "User-agent: other\nUser-agent: harvester\nDisallow: /a\n", "/a", False),
    ("the first of several agents", "User-agent: harvester\nUser-agent: other\nDisallow: /a\n", "/a", False),
    ("a blank line does not end a group", "User-agent: harvester\n\n\nDisallow: /a\n", "/a", False),
    ("a sitemap between agents does not", ("User-agent: harvester\nSitemap: https://x.example/\nUser-agent: other\n"
     "Disallow: /a\n"), "/a", False),
    ("an unknown line between rules does not", "User-agent: harvester\nDisallow: /b\nNoindex: /c\nDisallow: /a\n", "/a",
     False),
    ("a crawl-delay between agents does not", ("User-agent: harvester\nCrawl-delay: 3\nUser-agent: other\n"
     "Disallow: /a\n"), "/a", False),
    ("an empty rule ends the list of agents", "User-agent: harvester\nDisallow:\nUser-agent: other\nDisallow: /\n",
     "/a", True),
    ("a version behind our name", "User-agent: Harvester/2.0 (+https://x.example)\nDisallow: /a\n", "/a", False),
    ("a name that only begins like ours", "User-agent: harvest\nDisallow: /a\n", "/a", True),
    ("a name that begins with ours", "User-agent: harvester-images\nDisallow: /a\n", "/a", True),
    ("an asterisk behind a name", "User-agent: harvester*\nDisallow: /a\n", "/a", False),
    ("an asterisk before a name", "User-agent: *harvester\nDisallow: /a\n", "/a", True),
    ("text behind the asterisk", "User-agent: * everybody\nDisallow: /a\n", "/a", False),
    ("a group of nobody", "User-agent: *\nDisallow: /b\nUser-agent: 123\nDisallow: /a\n", "/a", False),
    # the longest rule
    ("the longest wins", "User-agent: *\nDisallow: /a\nAllow: /a/b\n", "/a/b", True),
    ("in any order", "User-agent: *\nAllow: /a/b\nDisallow: /a\n", "/a/b", True),
    ("the longest disallows", "User-agent: *\nAllow: /a\nDisallow: /a/b\n", "/a/b", False),
    ("allow wins a tie", "User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", True),
    ("allow wins a tie of different patterns", "User-agent: *\nDisallow: /*b\nAllow: /ab\n", "/ab", True),
    ("asterisks count for the length", "User-agent: *\nAllow: /a\nDisallow: /a*\n", "/a", False),
    ("an empty rule is none", "User-agent: *\nDisallow: /\nAllow:\n", "/a", False),
    ("an empty disallow allows", "User-agent: *\nDisallow:\n", "/a", True),
    ("an escaped character counts three octets", "User-agent: *\nAllow: /\u00e9\nDisallow: /*****\n", "/%C3%A9", True),
    # patterns
    ("a prefix", "User-agent: *\nDisallow: /fish\n", "/fish.html", False),
    ("a prefix of a folder", "User-agent: *\nDisallow: /fish/\n", "/fish", True),
    ("not in the middle", "User-agent: *\nDisallow: /fish\n", "/a/fish", True),
    ("an asterisk in the middle", "User-agent: *\nDisallow: /*.php\n", "/a/b.php?x=1", False),
    ("an asterisk that is nothing", "User-agent: *\nDisallow: /a*b\n", "/ab", False),
    ("an asterisk at the end", "User-agent: *\nDisallow: /fish*\n", "/fishing", False),
    ("an asterisk at the beginning", "User-agent: *\nDisallow: *.php\n", "/a.php", False),
    ("several in a row", "User-agent: *\nDisallow: /a***b\n", "/axb", False),
    ("the end", "User-agent: *\nDisallow: /*.php$\n", "/a.php", False),
    ("behind the end", "User-agent: *\nDisallow: /*.php$\n", "/a.php?x", True),
    ("the end of the whole", "User-agent: *\nDisallow: /a$\n", "/ab", True),
    ("the last occurrence ends", "User-agent: *\nDisallow: /*a$\n", "/aba", False),
    ("parts may not overlap", "User-agent: *\nDisallow: /ab*ba$\n", "/aba", True),
    ("a dollar in the middle is a dollar", "User-agent: *\nDisallow: /a$b\n", "/a$b", False),
    ("which is not an end", "User-agent: *\nDisallow: /a$b\n", "/a", True),
    ("an escaped dollar at the end", "User-agent: *\nDisallow: /a%24\n", "/a$b", False),
    ("an escaped asterisk is an asterisk", "User-agent: *\nDisallow: /a%2Ab\n", "/a*b", False),
    ("and nothing else", "User-agent: *\nDisallow: /a%2Ab\n", "/axb", True),
    ("an asterisk of the address is not a pattern", "User-agent: *\nDisallow: /axb\n", "/a*b", True),
    ("the query counts", "User-agent: *\nDisallow: /*?sort=\n", "/a?sort=up", False),
    ("path parameters too", "User-agent: *\nDisallow: /a;id\n", "/a;id=1", False),
    ("no path is the root", "User-agent: *\nDisallow: /$\n", "", False),
    ("no path with a query", "User-agent: *\nDisallow: /?\n", "?a=1", False),
    ("half a path disallows", "User-agent: *\nDisallow: cart/\n", "/cart/1", False),
    ("but never allows", "User-agent: *\nDisallow: /\nAllow: cart/\n", "/cart/1", False),
    ("robots.txt itself", "User-agent: *\nDisallow: /\n", "/robots.txt", True),
    # escapes: the table of the RFC
    ("plain", "User-agent: *\nDisallow: /foo/bar?baz=quz\n", "/foo/bar?baz=quz", False),
    ("delimiters that were escaped", "User-agent: *\nDisallow: /foo/bar?baz=https://foo.bar\n",
     "/foo/bar?baz=https%3A%2F%2Ffoo.bar", False),
    ("and the other way around", "User-agent: *\nDisallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar\n",
     "/foo/bar?baz=https://foo.bar", False),
    ("what is not ASCII", "User-agent: *\nDisallow: /foo/bar/\u30c4\n", "/foo/bar/%E3%83%84", False),
    ("also as given", "User-agent: *\nDisallow: /foo/bar/%E3%83%84\n", "/foo/bar/\u30c4", False),
    ("letters that need no escape", "User-agent: *\nDisallow: /foo/bar/%62%61%7A\n", "/foo/bar/baz", False),
    ("in the address", "User-agent: *\nDisallow: /foo/bar/baz\n", "/foo/bar/%62%61%7a", False),
    ("the case of escapes", "User-agent: *\nDisallow: /%c3%A9\n", "/%C3%a9", False),
    ("another byte", "User-agent: *\nDisallow: /%c3%A9\n", "/%C3%aa", True),
    ("bytes that are not UTF-8", b"User-agent: *\nDisallow: /\xff\n", "/%FF", False),
    ("a blank", "User-agent: *\nDisallow: /a b\n", "/a%20b", False),
    ("a percent sign alone", "User-agent: *\nDisallow: /100%\n", "/100%25", False),
    ("escaped twice", "User-agent: *\nDisallow: /a\n", "/%2561", True),
    ("an escaped delimiter does not allow its plain form", "User-agent: *\nDisallow: /a\nAllow: /a%2Fb\n", "/a/b",
     False),
    ("nor the other way around", "User-agent: *\nDisallow: /a\nAllow: /a/b\n", "/a%2Fb", False),
    ("an allowed escape", "User-agent: *\nDisallow: /a\nAllow: /a%2fb\n", "/a%2Fb", True),
    ("half an escape is not a letter", "User-agent: *\nDisallow: /*A9\n", "/%C3%A9", True),
    ("nor in an allow line", "User-agent: *\nDisallow: /\nAllow: /*A9\n", "/%C3%A9", False),
    # misspelled: allowed only if both readings allow
    ("no colon", "User-agent harvester\nDisallow /a\n", "/a", False),
    ("more words without a colon", "User-agent: *\nDisallow /a or so\n", "/a", True),
    ("a typo", "User-agent: *\nDissallow: /a\n", "/a", False),
    ("another", "useragent: *\nDisalow: /a\n", "/a", False),
    ("a longer name", "User-agents: *\nDisallowed: /a\n", "/a", False),
    ("a typo allows nothing", "User-agent: *\nDisallow: /a\nAllows: /a\n", "/a", False),
    ("an agent that cannot be read", "User-agent: harvester\nDisallow: /b\nUser-agent: 1\nDisallow: /a\n",
     "/a", False),
    ("an unknown line", "foo: harvester\nbar: /a\n", "/a", True),
]  # fmt: skip


@pytest.mark.parametrize(("text", "target", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_allowed(text, target, expected):
    assert allows(text, target) is expected


def test_groups_of_several_agents_as_in_the_example_of_the_rfc():
    robots = parse_robots(b"""User-Agent: *
Disallow: *.gif$
Disallow: /sample/
Allow: /news/

User-Agent: one
Disallow:/
Allow:/sample/page.html

User-Agent: two
User-Agent: three
Disallow: /sample/page.html

User-Agent: four
""")
    assert not robots.allows("/a.gif", "any")
    assert robots.allows("/news/a.gif", "any")  # the longer pattern
    # The RFC itself would let `one` read what everybody may not; here both groups have to allow.
    assert not robots.allows("/sample/page.html", "one")
    assert not robots.allows("/other", "one")
    assert robots.allows("/other", "two")
    assert not robots.allows("/sample/page.html", "three")
    assert robots.allows("/a", "four")


def test_the_longest_pattern_wins_as_in_the_example_of_the_rfc():
    text = "User-Agent: one\nAllow: /sample/page/\nDisallow: /sample/page/closed.gif\n"
    assert not allows(text, "/sample/page/closed.gif", "one")
    assert allows(text, "/sample/page/", "one")


@pytest.mark.parametrize("agent", ["harvester", "HARVESTER", "Harvester/0.1 (+https://harvester.example; a@b.example)"])
def test_an_agent_is_its_product_token_in_any_case(agent):
    assert not allows("User-agent: Harvester\nDisallow: /a\n", "/a", agent)
    assert allows("User-agent: Harvester\nDisallow: /a\n", "/a", "x" + agent)


def test_a_file_that_does_not_exist_allows_everything():
    assert NO_RULES.allows("/a", AGENT)
    assert NO_RULES.crawl_delay(AGENT) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("User-agent: *\nCrawl-delay: 10\n", 10),
        ("User-agent: *\ncrawl-delay:2.5 # seconds\n", 2.5),
        ("User-agent: *\nCrawl-delay: 0\n", 1),
        ("User-agent: *\nCrawl-delay: .5\n", 1),
        ("User-agent: *\nCrawl-delay: 3600\n", 60),
        ("User-agent: *\nCrawl-delay: " + "9" * 5000 + "\n", 60),
        ("User-agent: *\nCrawl-delay: 5\nUser-agent: harvester\nCrawl-delay: 2\nDisallow:\n", 5),
        ("User-agent: *\nDisallow:\nCrawl-delay: 5\nUser-agent: harvester\nDisallow: /b\nCrawl-delay: 20\n", 20),
        ("User-agent: *\nCrawl-delay: 3\nCrawl-delay: 8\nCrawl-delay: 4\n", 8),
        ("User-agent: other\nUser-agent: harvester\nCrawl-delay: 7\n", 7),
        ("User-agent: *\nCrawl-delay 9\n", 9),
        ("User-agent: other\nCrawl-delay: 10\n", None),
        ("Crawl-delay: 10\n", None),
        *((f"User-agent: *\nCrawl-delay: {garbage}\n", None)
          for garbage in ("", "soon", "-5", "1,5", "1e3", "nan", "inf", "\u0663", "5 5", "0x10")),
    ],
)  # fmt: skip
def test_the_longest_delay_of_both_groups_counts_between_one_second_and_a_minute(text, seconds):
    assert parse_robots(text.encode()).crawl_delay(AGENT) == seconds


def test_the_line_that_forbids_a_page_can_be_shown():
    robots = parse_robots("# shop\r\nUser-agent: *\r\n\r\nAllow: /\r\nDisallow: /caf\u00e9 # closed\r\n".encode())
    rule = robots.blocking_rule("/caf%C3%A9/menu", AGENT)
    assert (rule.line, rule.agent, rule.is_allow) == (5, "*", False)
    assert str(rule) == "line 5 for *: Disallow: /caf\u00e9"
    assert robots.blocking_rule("/bar", AGENT) is None


def test_only_the_first_500_kib_count():
    head = b"User-agent: *\nDisallow: /a\n"
    filler = b"#" * (MOST_BYTES - len(head) - 1) + b"\n"
    assert not allows(head + filler + b"Disallow: /b\n", "/a")
    assert allows(head + filler + b"Disallow: /b\n", "/b")
    assert not allows(head + filler[1:-13] + b"\n" + b"Disallow: /b\n", "/b")


@pytest.mark.parametrize(("rule", "expected"), [(b"Allow: /a/b/c", False), (b"Disallow: /ab", False)])
def test_a_line_cut_by_the_limit_never_allows_more_than_the_whole(rule, expected):
    head = b"User-agent: *\nDisallow: /a\n#"
    body = head + b"." * (MOST_BYTES - len(head) - len(rule) + 1) + b"\n" + rule
    assert len(body) == MOST_BYTES + 2
    assert allows(body, "/a/b") is expected


@pytest.mark.parametrize(
    ("pattern", "target"),
    [
        ("/" + "a*" * 2000 + "b$", "/" + "a" * 4000),
        ("/" + "*a" * 2000 + "*b", "/" + "a" * 4000),
        ("/" + "*" * 4000 + "b", "/" + "a" * 4000),
        ("/" + "a*" * 200_000, "/" + "a" * 4000),
    ],
)
def test_no_pattern_takes_exponential_time(pattern, target):
    """With backtracking none of these would end before the test's time is up."""
    assert allows(f"User-agent: *\nDisallow: {pattern}\n", target)


@given(st.binary(max_size=400), st.text(max_size=40), st.text(max_size=20))
def test_no_file_address_or_agent_is_an_error(body, target, agent):
    robots = parse_robots(body)
    assert robots.allows(target, agent) in {True, False}
    assert robots.crawl_delay(agent) is None


@given(st.binary(max_size=300).map(lambda tail: b"User-agent: *\nDisallow: /\n" + tail), st.text(max_size=10))
def test_nothing_but_an_allow_line_lifts_a_full_disallow(body, target):
    if b"allow" not in body[26:].lower():
        assert not allows(body, "/x" + target)


PIECES = [
    "a",
    "b",
    "/",
    "*",
    "$",
    "?",
    "&",
    "%41",
    "%2F",
    "%2f",
    "%2A",
    "%24",
    "%",
    "%C3%A9",
    "%c3",
    "\u00e9",
    " ",
    "%3f",
]
NAMES = [
    "User-agent: harvester",
    "User-agent: *",
    "User-agent: other",
    "user-agent: Harvester/1",
    "Sitemap: /",
    "",
    "# x",
]
path = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
rule = st.builds("{}: {}{}".format, st.sampled_from(["Allow", "Disallow"]), st.sampled_from(["/", "*", "/a"]), path)
regular_file = st.lists(st.one_of(st.sampled_from(NAMES), rule, rule), max_size=14).map(
    lambda lines: "\n".join(["User-agent: harvester", *lines])
)
MISSPELLED = ["User-agent harvester", "Disallow /", "Dissallow: /a", "Allows: /a", "user-agent: 1", "useragent: *"]
any_file = st.lists(st.one_of(st.sampled_from(NAMES + MISSPELLED), rule, rule, path), max_size=14).map("\n".join)
target = path.map(lambda text: "/" + text)
#: The rules for which an escaped delimiter of an address may be taken for a plain one.
READINGS = (frozenset[str](), frozenset({"disallow"}), frozenset({"allow", "disallow"}))


@settings(max_examples=examples(500))
@given(st.one_of(regular_file, any_file), target)
def test_nothing_is_allowed_that_the_rfc_disallows(text, address):
    body = text.encode()
    if allows(body, address):
        for reading in READINGS:
            assert rfc_allows(body, address, AGENT, same_delimiters_in=reading)
            assert rfc_allows(body, address, "*", same_delimiters_in=reading)


@settings(max_examples=examples(500))
@given(regular_file, target)
@example("User-agent: harvester\nAllow: //\nDisallow: //", "/%2F")
def test_nothing_else_is_disallowed_in_a_file_without_doubts(text, address):
    body = text.encode()
    if all(
        rfc_allows(body, address, agent, same_delimiters_in=reading) for agent in (AGENT, "*") for reading in READINGS
    ):
        assert allows(body, address)


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_protego_agrees_where_it_follows_the_rfc(seed):
    """One group, and patterns without escapes: in the rest protego is known to differ."""
    chance = random.Random(seed)
    for _ in range(100):
        lines = ["User-agent: *"]
        for _ in range(chance.randint(1, 6)):
            pattern = "/" + "".join(chance.choices("ab/*", k=chance.randint(0, 5))) + chance.choice(["", "", "$"])
            lines.append(f"{chance.choice(['Allow', 'Disallow', 'disallow'])}: {pattern}")
        text = "\n".join(lines)
        peer, ours = Protego.parse(text), parse_robots(text.encode())
        for _ in range(10):
            address = "/" + "".join(chance.choices("ab/", k=chance.randint(0, 6)))
            assert ours.allows(address, AGENT) == peer.can_fetch(f"https://shop.example{address}", AGENT), (
                text,
                address,
            )
