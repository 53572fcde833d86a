"""Who does something."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["person", "key", "system"]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A person, an application or a part of the system, as the audit trail names it.

    Attributes:
        kind: a person, an application by its API key, or the system by its own decision.
        id: stable identity.
        name: as people know it, at the time.
    """

    kind: Kind
    id: str
    name: str

    def __post_init__(self) -> None:
        if not self.id or not self.name:
            raise ValueError("an actor needs an id and a name")


def system(part: str) -> Actor:
    """The system's own decision, named after the part that took it."""
    return Actor(kind="system", id=part, name=part)


def from_words(words: Mapping[str, str]) -> Actor:
    """An actor that travelled as the words of a job."""
    kinds: dict[str, Kind] = {"key": "key", "system": "system"}
    return Actor(kind=kinds.get(words["kind"], "person"), id=words["id"], name=words["name"])
