"""Each setting of a feed: what is read as what, and what a refusal says."""

import pytest

from harvester.feeds.models import Feed
from harvester.feeds.settings import SETTINGS, THRESHOLDS, InvalidSettings, read_settings

READ = [
    ("network", " Impact ", "impact"),
    ("schedule_hours", "6", 6),
    ("schedule_hours", 24, 24),
    ("schedule_hours", "manual", None),
    ("schedule_hours", None, None),
    *(("schedule_hours", hours, hours) for hours in (1, 2, 4, 6, 12)),
    ("expiry_hours", " 72 ", 72),
    ("expiry_hours", 1, 1),
    ("expiry_hours", 168, 168),
    ("transport", "sftp", "SFTP"),
    ("host", " SFTP.Example.COM.", "sftp.example.com"),
    ("host", "\u00a0sftp.example.com\t", "sftp.example.com"),
    ("host", "b\u00fccher.example", "xn--bcher-kva.example"),
    ("host", "[2001:DB8::1]", "2001:db8::1"),
    ("host", "", ""),
    ("port", "2222", 2222),
    ("port", "", None),
    ("port", 1, 1),
    ("port", 65_535, 65_535),
    ("path", "/" + "x" * 999, "/" + "x" * 999),
    ("username", "x" * 200, "x" * 200),
    ("max_file_bytes", 1, 1),
    ("max_file_bytes", 4 * 1024**3, 4 * 1024**3),
    ("max_rows", 100_000_000, 100_000_000),
    ("max_products", 1, 1),
    ("path", " /feeds/my catalog.csv.gz\n", "/feeds/my catalog.csv.gz"),
    ("username", " acme ", "acme"),
    ("compression", "gzip", "GZIP"),
    ("compression", " ", "NONE"),
    ("encoding", "ISO-8859-1", "cp1252"),
    ("encoding", "UTF_8", "utf-8"),
    ("encoding", "", ""),
    ("default_currency", " usd ", "USD"),
    ("default_currency", "", ""),
    ("decimal_style", ",", ","),
    ("unknown_stock", "out_of_stock", "OUT_OF_STOCK"),
    ("unknown_stock", "Reject", "REJECT"),
    ("unknown_stock", "", "IN_STOCK"),
    ("kept_parameters", " Ref ,source,, ref", ["ref", "source"]),
    ("kept_parameters", ["b", "a"], ["a", "b"]),
    ("kept_parameters", "", []),
    ("kept_parameters", None, []),
    ("use_manifest", "no", False),
    ("accepts_url_identity", True, True),
    ("unchanged_means_seen", "TRUE", True),
    ("max_file_bytes", "1000000", 1_000_000),
    ("max_rows", None, None),
    ("max_products", 7, 7),
    ("thresholds", {"expiry_share": "0.5", "expiry_least": 0, "shock_move": 2, "reject_share": None},
     {"expiry_share": 0.5, "expiry_least": 0, "shock_move": 2, "reject_share": None}),
]  # fmt: skip

REFUSED = [
    ("network", "cj", "network is 'cj'; it must be one of google_merchant, impact."),
    ("network", "", "network is ''; it must be one of"),
    ("schedule_hours", 3, "schedule_hours is 3; it must be one of 1, 2, 4, 6, 12, 24 hours, or empty"),
    *(("schedule_hours", hours, f"schedule_hours is {hours}; it must be one of 1, 2") for hours in (0, 5, 23, 25, -1)),
    ("schedule_hours", "daily", "schedule_hours is 'daily'; it must be one of 1, 2"),
    ("schedule_hours", True, "schedule_hours is True"),
    ("expiry_hours", 0, "expiry_hours is 0; it must be a whole number from 1 to 168."),
    ("expiry_hours", 169, "expiry_hours is 169; it must be a whole number from 1 to 168."),
    ("transport", "ftps", "transport is 'ftps'; it must be one of sftp, ftp."),
    ("transport", "FTP", "it must be SFTP, unless an operator sets AFFILIATE_FEED_ALLOW_PLAIN_FTP=true."),
    ("host", "sftp.example.com:22", "host: The host 'sftp.example.com:22' cannot be used: the port"),
    ("host", "sftp://example.com", "host: The host"),
    ("host", "0x7f.1", "addresses are written in full"),
    ("host", 7, "host is 7; it must be a text."),
    ("port", 0, "port is 0; it must be a whole number from 1 to 65535."),
    ("port", 65_536, "port is 65536; it must be a whole number from 1 to 65535."),
    ("port", "22.5", "port is '22.5'; it must be a whole number"),
    ("path", "/feeds/", "path is '/feeds/'; it must be the path of one file"),
    ("path", "/a\nDELE b", "without control characters"),
    ("path", "/" + "x" * 1000, "it must be a text of at most 1000 characters; this one has 1001."),
    ("username", "half \ud800", "username is"),
    ("username", "x" * 201, "it must be a text of at most 200 characters; this one has 201."),
    ("compression", "zip", "compression is 'zip'; it must be one of none, gzip."),
    ("encoding", "ebcdic", "encoding is 'ebcdic'; it must be one of utf-8"),
    ("default_currency", "US", "default_currency is 'US'; it must be a currency code of ISO 4217 such as USD"),
    ("decimal_style", "'", "it must be a point, a comma, or empty"),
    ("unknown_stock", "perhaps", "it must be one of in_stock, out_of_stock, reject."),
    ("kept_parameters", "a=b", "it must be at most 50 names of parameters with commas between them"),
    ("kept_parameters", ",".join(f"p{number}" for number in range(51)), "it must be at most 50 names"),
    ("kept_parameters", [7], "it must be names of parameters with commas between them, such as ref, source."),
    ("use_manifest", "perhaps", "use_manifest is 'perhaps'; it must be true or false."),
    ("max_file_bytes", 0, "max_file_bytes is 0; it must be a whole number from 1 to"),
    ("max_file_bytes", 4 * 1024**3 + 1, "it must be a whole number from 1 to 4294967296."),
    ("max_rows", 0, "max_rows is 0; it must be a whole number from 1 to 100000000."),
    ("max_rows", 100_000_001, "max_rows is 100000001; it must be a whole number from 1 to 100000000."),
    ("max_products", 0, "max_products is 0; it must be a whole number from 1 to 100000000."),
    ("max_products", 100_000_001, "max_products is 100000001; it must be"),
    ("max_rows", "many", "max_rows is 'many'; it must be a whole number from 1 to 100000000."),
    ("thresholds", {"spike": 1}, "There is no threshold 'spike'; there are expiry_share"),
    ("thresholds", {"expiry_share": 1.01}, "thresholds.expiry_share is 1.01: expiry_share must be a number"),
    ("thresholds", {"reject_share": float("nan")}, "reject_share must be a number from 0 to 1,"),
    ("thresholds", {"expiry_most": 2.5}, "thresholds.expiry_most is 2.5: expiry_most must be a whole"),
    ("thresholds", {"expiry_most": "2.5"}, "thresholds.expiry_most is '2.5'; it must be a number."),
    ("thresholds", "0.5", "it must be numbers by name"),
    ("hots", "x", "A feed has no setting 'hots'; did you mean host?"),
    ("colour", "red", "A feed has no setting 'colour'; there are accepts_url_identity, "),
    ("status", "ENABLED", "A feed has no setting 'status'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given", "stored"), READ)
def test_settings_are_trimmed_and_read(name, given, stored):
    [(_, value)] = read_settings({name: given}).items()
    assert value == stored
    assert type(value) is type(stored)


@pytest.mark.parametrize(("name", "given", "message"), REFUSED)
def test_a_refusal_says_which_setting_why_and_what_is_allowed(name, given, message):
    with pytest.raises(InvalidSettings) as refused:
        read_settings({name: given})
    assert message in refused.value.problems[name]
    assert str(refused.value) == refused.value.problems[name]


def test_everything_that_is_wrong_is_reported_at_once():
    with pytest.raises(InvalidSettings) as refused:
        read_settings({"port": 0, "path": "/good.csv", "expiry_hours": 0})
    assert set(refused.value.problems) == {"port", "expiry_hours"}


def test_every_setting_is_a_column():
    columns = {field.name for field in Feed._meta.get_fields()}
    assert set(SETTINGS) - {"expiry_hours"} <= columns
    assert len(THRESHOLDS) == 10
