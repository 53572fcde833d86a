"""What a feed lacks before it can run."""

from django.conf import settings

from harvester.feeds.models import Feed
from harvester.feeds.networks import networks
from harvester.feeds.partner_connection import approved_keys
from harvester.feeds.settings import LONGEST_EXPIRY_HOURS, SHORTEST_EXPIRY_HOURS
from harvester.feeds.states import Transport
from harvester.guards.ftp import VARIABLE as PLAIN_FTP_VARIABLE
from harvester.kernel.errors import InvalidInput


def missing_for_a_test(feed: Feed) -> dict[str, str]:
    """Setting -> what is wrong with it, as far as a test run needs it. The host key is what a test run finds out."""
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
    return problems | _transport_problems(feed) | _credential_problems(feed)


def missing_for_a_run(feed: Feed) -> dict[str, str]:
    """Setting -> what is wrong with it."""
    problems = missing_for_a_test(feed)
    if feed.transport == Transport.SFTP and not _has_readable_keys(feed):
        problems["host_keys"] = (
            "host_keys is empty; the server's host key must be approved: a test run shows it, compare it with what the "
            "partner says."
        )
    hours = feed.source.expiry_hours
    if hours is None or not SHORTEST_EXPIRY_HOURS <= hours <= LONGEST_EXPIRY_HOURS:
        problems["expiry_hours"] = (
            f"expiry_hours is {hours}; it must be a whole number from {SHORTEST_EXPIRY_HOURS} to "
            f"{LONGEST_EXPIRY_HOURS}."
        )
    return problems


def _transport_problems(feed: Feed) -> dict[str, str]:
    if feed.transport == Transport.FTP and not settings.CONFIG.allow_plain_ftp:
        return {
            "transport": f"transport is FTP, which is switched off; it must be SFTP, unless an operator sets "
            f"{PLAIN_FTP_VARIABLE}=true."
        }
    return {}


def _credential_problems(feed: Feed) -> dict[str, str]:
    needed = {"password"} if feed.transport == Transport.FTP else {"password", "private_key"}
    if needed & set(feed.secret_fields):
        return {}
    words = " or ".join(sorted(needed))
    return {"credentials": f"credentials are missing; a {words} must be entered."}


def _has_readable_keys(feed: Feed) -> bool:
    try:
        return bool(approved_keys(feed))
    except InvalidInput:
        return False
