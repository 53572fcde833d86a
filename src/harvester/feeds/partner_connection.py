"""Connections to partners' servers by a feed's settings. Only this module opens credentials, in a worker."""

from collections.abc import Collection

from django.conf import settings

from harvester.feeds.models import Feed
from harvester.feeds.states import Transport
from harvester.guards import ftp, secrets, sftp
from harvester.guards.egress import EgressPolicy
from harvester.guards.host_keys import HostKey
from harvester.guards.remote import Credentials, RemoteFiles, TransferLimits
from harvester.kernel.errors import ConfigError, NotFound

#: The kind of owner under which the credentials of feeds are stored.
OWNER_KIND = "feed"


class CredentialsMissing(ConfigError):
    """The feed has no credentials."""

    code = "CREDENTIALS_MISSING"


def open_remote(
    feed: Feed, *, host_keys: Collection[HostKey] | None = None, limits: TransferLimits | None = None
) -> RemoteFiles:
    """Connect and log in. The caller closes the session, best with `with`.

    Args:
        feed: has the server and the transport.
        host_keys: the keys that the server may have; by default those approved for the feed.
        limits: the timeouts of the session.

    Raises:
        CredentialsMissing: the feed has none.
        HostKeyUnknown, HostKeyChanged: no credentials were sent; the error has the key that the server showed.
        HarvesterError: one of the errors in `guards.remote`, `guards.egress` and `guards.vault`.
    """
    try:
        document = secrets.open_document(OWNER_KIND, feed.id)
    except NotFound:
        raise CredentialsMissing(
            f"The feed {feed} has no password and no private key. Nothing was connected. Enter its credentials."
        ) from None
    credentials = Credentials(
        username=feed.username,
        password=document.get("password"),
        private_key=document.get("private_key"),
        passphrase=document.get("passphrase"),
    )
    policy = EgressPolicy.from_config(settings.CONFIG)
    if feed.transport == Transport.FTP:
        allowed = settings.CONFIG.allow_plain_ftp
        return ftp.connect_ftp(
            feed.host, port_of(feed), credentials, allow_plain_ftp=allowed, policy=policy, limits=limits
        )
    keys = approved_keys(feed) if host_keys is None else host_keys
    return sftp.connect_sftp(feed.host, port_of(feed), credentials, host_keys=keys, policy=policy, limits=limits)


def port_of(feed: Feed) -> int:
    """Return the port of the feed, or the default of its transport."""
    return feed.port or (ftp.DEFAULT_PORT if feed.transport == Transport.FTP else sftp.DEFAULT_PORT)


def approved_keys(feed: Feed) -> list[HostKey]:
    return [HostKey.parse(line) for line in feed.host_keys.splitlines() if line.strip()]


def note_host_key(feed: Feed, seen: HostKey) -> None:
    """Store the key that the server showed, for a person to compare and approve."""
    Feed.objects.filter(pk=feed.pk).exclude(seen_host_key=str(seen)).update(seen_host_key=str(seen))
