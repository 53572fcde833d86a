"""The meaning of a file's columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made

from harvester.feeds.reader.errors import HeaderUnreadable
from harvester.guards.redaction import redact_text
from harvester.kernel.header_resemblance import resembled_field
from harvester.kernel.headers import normalize_header
from harvester.kernel.network import FROM_ONE_COLUMN, REQUIRED, UNIQUE, Field, Network


@dataclass(frozen=True, kw_only=True)
class Binding:
    """The meaning of a header.

    Attributes:
        header: the column names as written in the file.
        family: the network's known layout, if it is one.
        columns: field -> places of its columns, in order of preference.
        doubtful: names that the network does not know although they look like an important field, and that field.
        spares: for fields that are read from one column only, the places of the other columns. Their values do not
            identify products, but are stored where the preferred column is empty.
    """

    header: tuple[str, ...]
    family: str | None
    columns: Mapping[Field, tuple[int, ...]]
    doubtful: tuple[tuple[str, str], ...] = ()
    spares: Mapping[Field, tuple[int, ...]] = made(default_factory=dict)

    @property
    def names(self) -> dict[str, list[str]]:
        """Field -> the names of its columns, for people."""
        return {field.value: [self.header[place] for place in places] for field, places in self.columns.items()}

    @property
    def unbound(self) -> list[str]:
        """The names of columns that are not read."""
        bound = {place for places in (*self.columns.values(), *self.spares.values()) for place in places}
        return [name for place, name in enumerate(self.header) if place not in bound]


def bind(header: Sequence[str], network: Network) -> Binding:
    """Find the columns by their names.

    Raises:
        HeaderUnreadable: two columns of an important field have the same name.
    """
    found: dict[Field, list[tuple[int, int]]] = {}
    for place, name in enumerate(header):
        if meaning := network.meanings.get(normalize_header(name)):
            found.setdefault(meaning[0], []).append((meaning[1], place))
    for field, places in found.items():
        names = [normalize_header(header[place]) for _, place in places]
        if field in UNIQUE and len(set(names)) < len(names):
            twins = redact_text(", ".join(repr(header[place]) for _, place in sorted(places)))[:200]
            raise HeaderUnreadable(
                f"Several columns have the same name for the {field.value}: {twins}. It is unclear which one counts. "
                "Nothing was changed. Ask the partner to remove one of them."
            )
    ranked = {field: tuple(place for _, place in sorted(found[field])) for field in Field if field in found}
    columns = {field: places[:1] if field in FROM_ONE_COLUMN else places for field, places in ranked.items()}
    unknown = [name for name in header if normalize_header(name) not in network.meanings]
    resembled = [(name, resembled_field(name, columns)) for name in unknown]
    return Binding(
        header=tuple(header),
        family=network.family_of(header),
        columns=columns,
        doubtful=tuple((name, field) for name, field in resembled if field),
        spares={field: ranked[field][1:] for field in FROM_ONE_COLUMN if len(ranked.get(field, ())) > 1},
    )


def missing(binding: Binding) -> list[tuple[Field, ...]]:
    """Return the groups of required fields of which the header has none."""
    return [group for group in REQUIRED if not any(field in binding.columns for field in group)]
