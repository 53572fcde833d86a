"""Who does something."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Actor:
    """A person or a part of the system, as the audit trail names it.

    Attributes:
        kind: a person, or the system by its own decision.
        id: stable identity.
        name: as people know it, at the time.
    """

    kind: Literal["person", "system"]
    id: str
    name: str

    def __post_init__(self) -> None:
        if not self.id or not self.name:
            raise ValueError("an actor needs an id and a name")


def system(part: str) -> Actor:
    """The system's own decision, named after the part that took it."""
    return Actor(kind="system", id=part, name=part)
