"""Create a feed, change its settings, credentials and host keys, delete a draft."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from harvester.catalog.models import Source
from harvester.catalog.states import SourceKind
from harvester.feeds.change_detection import REREAD_SETTINGS, forget_ingested
from harvester.feeds.models import Feed, FeedRun
from harvester.feeds.partner_connection import OWNER_KIND, approved_keys
from harvester.feeds.readiness import missing_for_a_run
from harvester.feeds.settings import InvalidSettings, read_expiry_hours, read_new_settings, read_settings
from harvester.feeds.states import FeedStatus, Transport
from harvester.feeds.verbs.lifecycle import require_status
from harvester.feeds.verbs.locked_feed import RunHeld, locked, next_run, record, save
from harvester.guards import secrets
from harvester.guards.host_keys import HostKey
from harvester.guards.remote import Credentials, InvalidPrivateKey
from harvester.guards.sftp import load_private_key
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound

_FINGERPRINT = "SHA256:"
#: Stands for the account while a secret is checked by itself.
_ANY_USERNAME = "somebody"
DEFAULT_EXPIRY_HOURS = 48  # mutant: default-expiry
#: A change of these means another server, for which the old host keys are not valid.
_ANOTHER_SERVER = frozenset({"host", "port", "transport"})

_INSECURE = (
    "transport is FTP, which sends the password and the file unencrypted; it must be SFTP, or you must accept the risk "
    "(accept_insecure, on the command line --accept-insecure)."
)


@transaction.atomic
def create(actor: Actor, source_id: UUID, settings: Mapping[str, Any], *, accept_insecure: bool = False) -> Feed:
    """Create the feed of a source, as a draft that does not run.

    Args:
        actor: who creates it.
        source_id: a source of the kind AFFILIATE_FEED that has no feed.
        settings: by their names, see `settings.SETTINGS`; the network is required.
        accept_insecure: the actor accepts the risk of plain FTP, which is refused otherwise.
    """
    values = read_new_settings(settings)
    source = _locked_source(source_id)
    if source.kind != SourceKind.AFFILIATE_FEED:
        raise InvalidInput(f"The source {source} is {source.kind}; only AFFILIATE_FEED sources can have feeds.")
    if values.get("transport") == Transport.FTP:
        _require_acceptance(accept_insecure)
    hours = values.pop("expiry_hours", source.expiry_hours or DEFAULT_EXPIRY_HOURS)
    thresholds = {name: number for name, number in values.pop("thresholds", {}).items() if number is not None}
    try:
        with transaction.atomic():
            feed = Feed.objects.create(source=source, created_by=actor.id, thresholds=thresholds, **values)
    except IntegrityError:
        if Feed.objects.filter(source=source, retired_at__isnull=False).exists():
            raise Conflict(f"The feed of the source {source} was retired; add a new source for a new feed.") from None
        raise Conflict(f"The source {source} has a feed already; change that one.") from None
    record(actor, feed, "FEED_CREATED", changed=values)
    _record_if_insecure(actor, feed, values)
    _change_expiry_hours(actor, feed, source, hours)
    return feed


@transaction.atomic
def update(actor: Actor, feed_id: UUID, settings: Mapping[str, Any], *, accept_insecure: bool = False) -> Feed:
    """Change settings of a feed. An enabled feed must still be able to run afterwards.

    Thresholds are changed individually: those that are not given stay, and None restores the default.
    """
    values = read_settings(settings)
    feed = locked(feed_id)
    if "expiry_hours" in values:
        _change_expiry_hours(actor, feed, _locked_source(feed.source_id), values.pop("expiry_hours"))
    if "thresholds" in values:
        merged = {**feed.thresholds, **values["thresholds"]}
        values["thresholds"] = {name: number for name, number in merged.items() if number is not None}
    changed = {name: value for name, value in values.items() if getattr(feed, name) != value}
    if not changed:
        return feed
    if changed.get("transport") == Transport.FTP:
        _require_acceptance(accept_insecure)
    # The account at the partner's server belongs to the credentials, whose values are not stored in the audit log.
    shown = changed.keys() - {"username"}
    before = {name: getattr(feed, name) for name in shown}
    save(feed, *_apply(feed, changed))
    if feed.status == FeedStatus.ENABLED and (problems := missing_for_a_run(feed)):
        raise Conflict(
            f"The feed {feed} is ENABLED and could not run any more: {' '.join(problems.values())} Nothing was "
            "changed. Pause it first."
        )
    record(actor, feed, "FEED_UPDATED", changed=changed, before=before, after={name: changed[name] for name in shown})
    if "username" in changed:
        record(actor, feed, "CREDENTIAL_CHANGED", changed=["username"])
    _record_if_insecure(actor, feed, changed)
    return feed


@transaction.atomic
def set_expiry_hours(actor: Actor, feed_id: UUID, hours: Any) -> Feed:
    """Change how long products stay visible after they were last seen, with immediate effect [2.8.2]."""
    wanted = read_expiry_hours(hours)
    feed = locked(feed_id)
    _change_expiry_hours(actor, feed, _locked_source(feed.source_id), wanted)
    return feed


@transaction.atomic
def delete_draft(actor: Actor, feed_id: UUID) -> None:
    """Delete a feed that was never enabled, with its credentials; its source stays."""
    feed = locked(feed_id)
    require_status(feed, FeedStatus.DRAFT, "deleted")
    if FeedRun.objects.filter(feed=feed).exists():
        raise Conflict(f"The feed {feed} has runs, so it cannot be deleted. It can stay a draft.")
    secrets.forget(OWNER_KIND, feed.id)
    record(actor, feed, "FEED_DELETED")
    Feed.objects.filter(pk=feed.pk).delete()


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


def _locked_source(source_id: UUID) -> Source:
    source = Source.objects.select_for_update(no_key=True).filter(pk=source_id).first()
    if source is None:
        raise NotFound(f"There is no source {source_id}; `harvester source list` shows them all.")
    return source


def _apply(feed: Feed, changed: Mapping[str, Any]) -> list[str]:
    """Set the values and everything that depends on them; return the columns to save."""
    for name, value in changed.items():
        setattr(feed, name, value)
    columns = list(changed)
    if REREAD_SETTINGS & changed.keys():
        columns += forget_ingested(feed)  # mutant: forget-ingested
    if _ANOTHER_SERVER & changed.keys():
        feed.host_keys = feed.seen_host_key = ""
        columns += ["host_keys", "seen_host_key"]
    if "schedule_hours" in changed and feed.status == FeedStatus.ENABLED:
        feed.next_run_at = next_run(feed)
        columns.append("next_run_at")
    return columns


def _require_acceptance(accepted: bool) -> None:
    if accepted is not True:
        raise InvalidSettings({"accept_insecure": _INSECURE})


def _record_if_insecure(actor: Actor, feed: Feed, changed: Mapping[str, Any]) -> None:
    if changed.get("transport") == Transport.FTP:
        record(
            actor, feed, "INSECURE_TRANSPORT_SELECTED", level="warning", changed=["transport"], transport=feed.transport
        )


def _change_expiry_hours(actor: Actor, feed: Feed, source: Source, hours: int) -> None:
    """Change the expiry under the lock of the source that it belongs to."""
    before = source.expiry_hours
    if hours == before:
        return
    if source.held_run_no is not None:  # mutant: expiry-while-held
        raise RunHeld(
            f"expiry_hours of {source} cannot be changed while run {source.held_run_no} is held; approve or reject it "
            "first."
        )
    source.expiry_hours = feed.source.expiry_hours = hours
    source.save(update_fields=["expiry_hours"])
    record(
        actor,
        feed,
        "EXPIRY_HOURS_CHANGED",
        level="warning" if before is not None else "info",
        changed=["expiry_hours"],
        old_value=before,
        new_value=hours,
    )


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
