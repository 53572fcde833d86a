"""Who logs in at the partner's server, and by which key the server proves itself."""

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction

from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND, approved_keys
from harvester.feeds.settings import read_settings
from harvester.feeds.states import Transport
from harvester.feeds.verbs.locked_feed import locked, save, tell
from harvester.guards import secrets
from harvester.guards.host_keys import HostKey
from harvester.guards.remote import Credentials, InvalidPrivateKey
from harvester.guards.sftp import load_private_key
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput

_FINGERPRINT = "SHA256:"
#: Stands for the account while a secret is checked on its own.
_SOMEBODY = "somebody"


@transaction.atomic
def change_credentials(
    actor: Actor,
    feed_id: UUID,
    *,
    username: str = "",
    password: str = "",
    private_key: str = "",
    passphrase: str = "",
    replace: bool = False,
) -> Feed:
    """Take over the credentials that are given; what is blank stays as it is.

    A new private key comes with its own passphrase: the one of the old key goes. With `replace`, secrets that are
    blank go too; that also helps when those that are there cannot be opened any more.
    """
    given = {"password": password.strip("\r\n"), "private_key": private_key.strip(), "passphrase": passphrase}
    given = {name: text for name, text in given.items() if text}
    feed = locked(feed_id)
    names = _change_username(feed, username)
    if given or replace:
        _check_secrets(given)
        names |= _seal(feed, given, replace=replace)
    if names:
        save(
            feed, "username", "secret_version", "secret_fields", *(forget_ingested(feed) if "username" in names else ())
        )
        tell(actor, feed, "CREDENTIAL_CHANGED", changed=names)
    return feed


@transaction.atomic
def approve_host_key(actor: Actor, feed_id: UUID, key: str, *, keep_others: bool = False) -> Feed:
    """Trust a server that proves itself by this key.

    Args:
        actor: who compared it with what the partner says.
        feed_id: the feed.
        key: the key itself, as a line `ssh-ed25519 AAAA...`; or its fingerprint, if it is the key that the server
            showed last.
        keep_others: for partners with several servers; otherwise the keys that were approved before go.
    """
    feed = locked(feed_id)
    if feed.transport == Transport.FTP:
        raise Conflict(f"The feed {feed} reads by FTP, whose servers have no host keys. Nothing was approved.")
    approved = _read_key(feed, key.strip())
    others = [known for known in approved_keys(feed) if known != approved] if keep_others else []
    feed.host_keys = "\n".join(map(str, [*others, approved]))
    save(feed, "host_keys")
    tell(
        actor,
        feed,
        "HOST_KEY_APPROVED",
        changed=["host_keys"],
        fingerprint=approved.fingerprint,
        algorithm=approved.type,
    )
    return feed


def _change_username(feed: Feed, username: str) -> set[str]:
    wanted = read_settings({"username": username})["username"]
    if not wanted or wanted == feed.username:
        return set()
    feed.username = wanted
    return {"username"}


def _check_secrets(given: Mapping[str, str]) -> None:
    if not set(given) & {"password", "private_key", "passphrase"}:
        raise InvalidInput("credentials are missing; a password or a private_key must be entered.")
    if "password" in given:
        Credentials(username=_SOMEBODY, password=given["password"])
    if "private_key" in given:
        _check_private_key(given)


def _check_private_key(given: Mapping[str, str]) -> None:
    key = Credentials(username=_SOMEBODY, private_key=given["private_key"], passphrase=given.get("passphrase") or None)
    try:
        load_private_key(key)
    except InvalidPrivateKey as problem:
        raise InvalidInput(str(problem)) from None


def _seal(feed: Feed, given: dict[str, str], *, replace: bool) -> set[str]:
    kept = set(feed.secret_fields) - set(given) if not replace else set()
    dropped = set(feed.secret_fields) - set(given) - kept
    if "private_key" in given and "passphrase" not in given:
        dropped |= kept & {"passphrase"}
        kept -= {"passphrase"}
    if not (kept | set(given)) & {"password", "private_key"}:
        raise InvalidInput("credentials are missing; a passphrase alone opens nothing: enter the private_key too.")
    feed.secret_version = secrets.merge(OWNER_KIND, feed.id, given, keep=kept)
    feed.secret_fields = sorted(kept | set(given))
    return set(given) | dropped


def _read_key(feed: Feed, text: str) -> HostKey:
    if not text.startswith(_FINGERPRINT):
        return HostKey.parse(text)
    seen = HostKey.parse(feed.seen_host_key) if feed.seen_host_key else None
    if seen is None or seen.fingerprint != text:
        shown = seen.fingerprint if seen else "none yet"
        raise Conflict(
            f"The server of {feed} does not show the host key {text}; it showed {shown}. Nothing was approved. Compare "
            "again, or give the whole key."
        )
    return seen
