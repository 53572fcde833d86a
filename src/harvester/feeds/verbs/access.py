"""The credentials for a partner's server, and the host key that the server must have."""

from uuid import UUID

from django.db import transaction

from harvester.feeds.change_detection import forget_ingested
from harvester.feeds.models import Feed
from harvester.feeds.partner_connection import OWNER_KIND, approved_keys
from harvester.feeds.settings import read_settings
from harvester.feeds.states import Transport
from harvester.feeds.verbs.locked_feed import locked, record, save
from harvester.guards import secrets
from harvester.guards.host_keys import HostKey
from harvester.guards.remote import Credentials, InvalidPrivateKey
from harvester.guards.sftp import load_private_key
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput

_FINGERPRINT = "SHA256:"
#: Stands for the account while a secret is checked by itself.
_ANY_USERNAME = "somebody"


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
    """Change the credentials that are given; blank ones stay unchanged.

    A new private key comes with its own passphrase, so the old passphrase is deleted. With `replace`, blank secrets are
    deleted too, which also works if the stored ones cannot be opened any more.
    """
    given = {"password": password.strip("\r\n"), "private_key": private_key.strip(), "passphrase": passphrase}
    given = {name: text for name, text in given.items() if text}
    feed = locked(feed_id)
    names = set()
    wanted = read_settings({"username": username})["username"]
    if wanted and wanted != feed.username:
        feed.username = wanted
        names = {"username"}
    if given or replace:
        _check_secrets(given)
        names |= _seal(feed, given, replace=replace)
    if names:
        save(
            feed, "username", "secret_version", "secret_fields", *(forget_ingested(feed) if "username" in names else ())
        )
        record(actor, feed, "CREDENTIAL_CHANGED", changed=names)
    return feed


@transaction.atomic
def approve_host_key(actor: Actor, feed_id: UUID, key: str, *, keep_others: bool = False) -> Feed:
    """Trust a server that has this key.

    Args:
        actor: the person who compared it with the partner's key.
        feed_id: the feed.
        key: the key itself, as a line `ssh-ed25519 AAAA...`; or its fingerprint, if it is the key that the server
            showed last.
        keep_others: for partners with several servers; otherwise keys that were approved before are dropped.
    """
    feed = locked(feed_id)
    if feed.transport == Transport.FTP:
        raise Conflict(f"The feed {feed} uses FTP, whose servers have no host keys. Nothing was approved.")
    key = key.strip()
    if key.startswith(_FINGERPRINT):
        seen = HostKey.parse(feed.seen_host_key) if feed.seen_host_key else None
        if seen is None or seen.fingerprint != key:
            shown = seen.fingerprint if seen else "none yet"
            raise Conflict(
                f"The server of {feed} does not show the host key {key}; it showed {shown}. Nothing was approved. "
                "Compare again, or enter the whole key."
            )
        approved = seen
    else:
        approved = HostKey.parse(key)
    others = [known for known in approved_keys(feed) if known != approved] if keep_others else []
    feed.host_keys = "\n".join(map(str, [*others, approved]))
    save(feed, "host_keys")
    record(
        actor,
        feed,
        "HOST_KEY_APPROVED",
        changed=["host_keys"],
        fingerprint=approved.fingerprint,
        algorithm=approved.type,
    )
    return feed


def _check_secrets(given: dict[str, str]) -> None:
    if not set(given) & {"password", "private_key", "passphrase"}:
        raise InvalidInput("credentials are missing; a password or a private_key must be entered.")
    if "password" in given:
        Credentials(username=_ANY_USERNAME, password=given["password"])
    if "private_key" in given:
        passphrase = given.get("passphrase") or None
        key = Credentials(username=_ANY_USERNAME, private_key=given["private_key"], passphrase=passphrase)
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
        raise InvalidInput("credentials are missing; a passphrase is not enough: enter the private_key too.")
    feed.secret_version = secrets.merge(OWNER_KIND, feed.id, given, keep=kept)
    feed.secret_fields = sorted(kept | set(given))
    return set(given) | dropped
