"""How far a feed is on its way to visible offers, and what comes next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.http import HttpRequest

from harvester.catalog.exposure import exposure_of
from harvester.engine.models import Job
from harvester.engine.states import OPEN
from harvester.feeds.models import Feed
from harvester.feeds.states import FeedStatus, Transport
from harvester.ops.models import Role
from harvester.portal.feeds.facts import host_keys
from harvester.portal.requests import may

_SETTINGS: Final = ("network", "host", "path", "username", "transport", "expiry_hours")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do.

    Attributes:
        title: what it is about.
        text: what is lacking, or what will happen.
        is_done: nothing is left to do.
        is_next: it is the first that is not done.
        way: how it is done: edit, test, approve, enable or primary.
        role: who may.
        may: whether whoever asks may.
    """

    title: str
    text: str
    is_done: bool
    way: str
    role: Role
    is_next: bool = False
    may: bool = False


def steps(request: HttpRequest, feed: Feed, problems: Mapping[str, str], test: Job | None) -> list[Step]:
    """Return what is left to do until consumers see the feed's offers; of a feed that runs, only the last step."""
    way = [] if is_seen(feed) else [_primary(feed)]
    if feed.status == FeedStatus.DRAFT:
        before = [_settings(problems), _credentials(problems), *_host_key(feed, problems), _test(feed, test), _enable()]
        way = [*before, *way]
    first = next((step for step in way if not step.is_done), None)
    return [replace(step, is_next=step is first, may=may(request, step.role)) for step in way]


def _settings(problems: Mapping[str, str]) -> Step:
    lacks = [problems[name] for name in _SETTINGS if name in problems]
    return Step(title="Settings", text=" ".join(lacks), is_done=not lacks, way="edit", role=Role.ADMIN)


def _credentials(problems: Mapping[str, str]) -> Step:
    lack = problems.get("credentials", "")
    return Step(title="Credentials", text=lack, is_done=not lack, way="edit", role=Role.ADMIN)


def _host_key(feed: Feed, problems: Mapping[str, str]) -> list[Step]:
    if feed.transport != Transport.SFTP:
        return []
    keys = host_keys(feed)
    is_done = "host_keys" not in problems
    if keys and keys["waiting"]:
        text = "The server has shown its key. Compare it with what the partner says, and approve it."
        return [Step(title="Host key", text=text, is_done=is_done, way="approve", role=Role.ADMIN)]
    text = "A test asks the server for its key; nothing secret is sent before somebody approved it."
    return [Step(title="Host key", text=text, is_done=is_done, way="test", role=Role.OPERATOR)]


def _test(feed: Feed, test: Job | None) -> Step:
    """A test of other settings proves nothing about these."""
    found = test.result if test and isinstance(test.result, dict) else {}
    is_done = bool(test and found.get("success") and test.created_at >= feed.updated_at)
    text = "It logs in and reads the first rows of the file, and changes nothing."
    if test and test.state in OPEN:
        text = "A test is at work."
    elif found.get("error"):
        text = f"The last test failed: {found['error'].get('message', '')}"
    return Step(title="Test", text=text, is_done=is_done, way="test", role=Role.OPERATOR)


def _enable() -> Step:
    text = "From then on it runs by its schedule and when somebody asks."
    return Step(title="Enable", text=text, is_done=False, way="enable", role=Role.ADMIN)


def is_seen(feed: Feed) -> bool:
    """Whether consumers see its source, or another one of its retailer instead."""
    seen = exposure_of(feed.source_id)
    return seen.is_shown or seen.primary_source is not None


def _primary(feed: Feed) -> Step:
    text = f"{feed.source.retailer} has no display primary: consumers see no offers of this feed until it is one."
    return Step(title="Make primary", text=text, is_done=False, way="primary", role=Role.ADMIN)
