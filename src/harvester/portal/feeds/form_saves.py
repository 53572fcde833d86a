"""From what was typed to verbs, all or nothing; and from what they refuse back to the field that it is about."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from harvester.catalog import fields, retailers, sources
from harvester.catalog.states import SourceKind
from harvester.feeds import verbs
from harvester.feeds.models import Feed
from harvester.feeds.settings import InvalidSettings, read_new_settings
from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.portal.feeds.facts import MEGABYTE
from harvester.portal.feeds.forms import PLAIN, SECRETS, THRESHOLD, FeedForm

_THRESHOLD: Final = re.compile(r"thresholds\.(\w+)")
#: Said at a box of the form, which has no name that people could type.
_WORDS: Final = {"accept_insecure": "Tick this box if plain FTP is really meant, or choose SFTP."}
_WHOLE: Final = re.compile(r"[0-9]{1,12}")


class Refused(Exception):
    """Something that was typed cannot be used.

    Attributes:
        problems: field, or none for the whole form -> what is wrong.
    """

    def __init__(self, problems: Mapping[str | None, str]) -> None:
        super().__init__(" ".join(problems.values()))
        self.problems = dict(problems)


def save_new(actor: Actor, form: FeedForm) -> Feed:
    """Make the feed, and the source and the retailer where they are new; nothing of it if anything is refused."""
    given = form.cleaned_data
    settings = _settings(given, _typed(form))
    problems = _wrong(settings) | _unnamed(given)
    with transaction.atomic():
        try:
            source_id = UUID(given["source"]) if given["source"] else _new_source(actor, given)
        except Refused as refused:
            raise Refused(problems | refused.problems) from None
        if problems:
            raise Refused(problems)
        with _pointing({"": "source"}):
            feed = verbs.create(actor, source_id, settings, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def save_changes(actor: Actor, feed: Feed, form: FeedForm) -> Feed:
    """Change what was typed anew; what others changed meanwhile stays."""
    given = form.cleaned_data
    with transaction.atomic():
        changes = _settings(given, form.changed_data)
        if changes:
            with _pointing({"expiry_hours": "expiry_hours"}):
                feed = verbs.update(actor, feed.pk, changes, accept_insecure=given["accept_insecure"])
        return _save_credentials(actor, feed, given)


def _wrong(settings: Mapping[str, Any]) -> dict[str | None, str]:
    """What is wrong with the settings, to be told together with what is wrong before them."""
    try:
        with _pointing({}):
            read_new_settings(settings)
    except Refused as refused:
        return refused.problems
    return {}


def _unnamed(given: Mapping[str, Any]) -> dict[str | None, str]:
    """What is wrong with the names of what is new, each by itself: the verbs stop at the first."""
    asked = {"source_name": (sources.CHECKS, "name")} if not given["source"] else {}
    if not given["source"] and not given["retailer"]:
        asked |= {"retailer_name": (retailers.CHECKS, "name"), "website": (retailers.CHECKS, "website")}
    problems: dict[str | None, str] = {}
    for field, (checks, name) in asked.items():
        try:
            with _pointing({name: field}):
                fields.checked(checks, {name: given[field]})
        except Refused as refused:
            problems |= refused.problems
    return problems


def _new_source(actor: Actor, given: Mapping[str, Any]) -> UUID:
    retailer_id = UUID(given["retailer"]) if given["retailer"] else _new_retailer(actor, given)
    with _pointing({"name": "source_name", "": "retailer"}):
        made = sources.create(
            actor,
            retailer_id,
            name=given["source_name"],
            kind=SourceKind.AFFILIATE_FEED,
            affiliate_network=given["network"],
        )
    return made.pk


def _new_retailer(actor: Actor, given: Mapping[str, Any]) -> UUID:
    with _pointing({"name": "retailer_name", "website": "website"}):
        return retailers.create(actor, name=given["retailer_name"], website=given["website"]).pk


def _save_credentials(actor: Actor, feed: Feed, given: Mapping[str, Any]) -> Feed:
    entered = {name: given[name] for name in SECRETS}
    replace = bool(given.get("replace"))
    if not replace and not any(entered.values()):
        return feed
    at = "private_key" if entered["private_key"] else "password" if entered["password"] else "passphrase"
    with _pointing({"The password": "password", "": at}):
        return verbs.change_credentials(actor, feed.pk, replace=replace, **entered)


def _typed(form: FeedForm) -> list[str]:
    """Fields of a new feed in which something stands; the others keep their defaults."""
    return [name for name, value in form.cleaned_data.items() if value != ""]


def _settings(given: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """These fields as the settings that they stand for."""
    read = {name: given[name] for name in names if name in PLAIN}
    if "max_file_mb" in names:
        read["max_file_bytes"] = _bytes(given["max_file_mb"])
    numbers = {name.removeprefix(THRESHOLD): given[name] for name in names if name.startswith(THRESHOLD)}
    return {**read, "thresholds": numbers} if numbers else read


def _bytes(megabytes: str) -> int | str:
    """What is no number goes on as it is: the verb says what is wrong with it."""
    return int(megabytes) * MEGABYTE if _WHOLE.fullmatch(megabytes) else megabytes


@contextmanager
def _pointing(fields: Mapping[str, str]) -> Iterator[None]:
    """Tell at which field of the form a refusal points.

    Args:
        fields: how a message begins -> the field; under the empty word, where all others point.
    """
    try:
        yield
    except InvalidSettings as problem:
        raise Refused({_field(name, told): _WORDS.get(name, told) for name, told in problem.problems.items()}) from None
    except (InvalidInput, Conflict, NotFound) as problem:
        told = str(problem)
        word = next((word for word in fields if word and told.startswith(word)), "")
        words = told.removeprefix(f"{word}: ")
        raise Refused({fields.get(word): words[:1].upper() + words[1:]}) from None


def _field(setting: str, told: str) -> str:
    if setting == "max_file_bytes":
        return "max_file_mb"
    named = _THRESHOLD.match(told) if setting == "thresholds" else None
    return f"{THRESHOLD}{named[1]}" if named else setting
