"""Who made a change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["person", "key", "system"]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A person, an application or a part of the system, as named in the audit log.

    Attributes:
        kind: a person, an application with an API key, or the system itself.
        id: stable identity.
        name: the display name at the time.
    """

    kind: Kind
    id: str
    name: str

    def __post_init__(self) -> None:
        if not self.id or not self.name:
            raise ValueError("an actor needs an id and a name")


def system(part: str) -> Actor:
    """Return the actor for decisions of the system, named after the part that made them."""
    return Actor(kind="system", id=part, name=part)


def actor_from_json(values: Mapping[str, str]) -> Actor:
    """Return the actor that a job's arguments hold."""
    kinds: dict[str, Kind] = {"key": "key", "system": "system"}
    return Actor(kind=kinds.get(values["kind"], "person"), id=values["id"], name=values["name"])
