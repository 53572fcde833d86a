"""Problems to fix before a feed can run."""

from django.conf import settings

from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.partner_connection import approved_keys
from harvester.feeds.settings import LONGEST_EXPIRY_HOURS, SHORTEST_EXPIRY_HOURS
from harvester.feeds.states import Transport
from harvester.guards.ftp import VARIABLE as PLAIN_FTP_VARIABLE
from harvester.kernel.errors import InvalidInput


def missing_for_a_test(feed: Feed) -> dict[str, str]:
    """Return setting -> problem, for a feed test. It does not need the host key, but shows it."""
    problems = {}
    if feed.network not in networks():
        problems["network"] = f"network is {feed.network!r}; it must be one of {', '.join(networks())}."
    for name, example in (
        ("host", "the server's name, such as sftp.example.com"),
        ("path", "the path of the file, such as /feeds/catalog.csv.gz"),
        ("username", "the account on the partner's server"),
    ):
        if not getattr(feed, name):
            problems[name] = f"{name} is missing; it must be {example}."
    is_ftp = feed.transport == Transport.FTP
    if is_ftp and not settings.CONFIG.allow_plain_ftp:
        problems["transport"] = (
            f"transport is FTP, which is switched off; it must be SFTP, unless an operator sets "
            f"{PLAIN_FTP_VARIABLE}=true."
        )
    if not {"password", *(() if is_ftp else ("private_key",))} & set(feed.secret_fields):
        needed = "password" if is_ftp else "password or private_key"
        problems["credentials"] = f"credentials are missing; a {needed} must be entered."
    return problems


def missing_for_a_run(feed: Feed) -> dict[str, str]:
    """Return setting -> problem."""
    problems = missing_for_a_test(feed)
    try:
        has_keys = bool(approved_keys(feed))
    except InvalidInput:
        has_keys = False
    if feed.transport == Transport.SFTP and not has_keys:
        problems["host_keys"] = (
            "host_keys is empty; the server's host key must be approved: test the feed, which shows the key, and "
            "compare it with the partner's."
        )
    hours = feed.source.expiry_hours
    if hours is None or not SHORTEST_EXPIRY_HOURS <= hours <= LONGEST_EXPIRY_HOURS:
        problems["expiry_hours"] = (
            f"expiry_hours is {hours}; it must be a whole number from {SHORTEST_EXPIRY_HOURS} to "
            f"{LONGEST_EXPIRY_HOURS}."
        )
    return problems
