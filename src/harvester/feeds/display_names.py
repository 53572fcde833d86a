"""Names for ids, for lists that people read."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.db.models import OuterRef

from harvester.catalog.models import Retailer, Source
from harvester.catalog.named_rows import fetch
from harvester.feeds.models import Feed
from harvester.ops.models import ApiKey, User
from harvester.runs.models import Run

_UUID: Final = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
#: Kind and id, as written in the audit log.
Thing = tuple[str, str]
#: Kind -> query for names by id.
_FINDERS: Final = {
    "feed": lambda ids: Feed.objects.filter(pk__in=ids).values_list("pk", "source__name"),
    "source": lambda ids: Source.objects.filter(pk__in=ids).values_list("pk", "name"),
    "retailer": lambda ids: Retailer.objects.filter(pk__in=ids).values_list("pk", "name"),
    "run": lambda ids: [
        (pk, f"{no}" if name is None else f"{no} of {name}")
        for pk, no, name in Run.objects.filter(pk__in=ids)
        .annotate(source_name=Source.objects.filter(pk=OuterRef("source_id")).values("name")[:1])
        .values_list("pk", "no", "source_name")
    ],
    "user": lambda ids: User.objects.filter(pk__in=ids).values_list("pk", "username"),
    "api_key": lambda ids: ApiKey.objects.filter(pk__in=ids).values_list("pk", "name"),
}
#: Names of details in the audit log -> the kind whose id they have.
_DETAILS: Final = {
    "feed": "feed", "feed_id": "feed", "source": "source", "source_id": "source", "retailer": "retailer",
    "retailer_id": "retailer", "former": "source", "run_id": "run",
}  # fmt: skip


def names_of(things: Iterable[Thing]) -> dict[Thing, str]:
    """Return the names of those things that exist."""
    wanted: dict[str, dict[UUID, str]] = {}
    for kind, text in things:
        if kind in _FINDERS and re.fullmatch(_UUID, text):
            wanted.setdefault(kind, {})[UUID(text)] = text
    return {(kind, ids[pk]): str(name) for kind, ids in wanted.items() for pk, name in _FINDERS[kind](list(ids))}


def things_in(detail: Mapping[str, Any]) -> list[Thing]:
    """Return the things whose ids are in the details of an audit event."""
    return [
        (kind, str(value))
        for name, kind in _DETAILS.items()
        for value in (detail[name] if isinstance(detail.get(name), list) else [detail.get(name)])
        if value
    ]


def with_names(detail: Mapping[str, Any], names: Mapping[Thing, str]) -> dict[str, Any]:
    """Return the details of an audit event with names in place of known ids."""

    def display(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return ", ".join(str(display(name, item)) for item in value)
        return names.get((_DETAILS.get(name, ""), str(value)), value)

    return {name: display(name, value) for name, value in detail.items()}


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The feed or source of a job.

    Attributes:
        name: of the feed, or of the source if it has none.
        feed_id: the feed; None if the source has none.
        run_no: the run, if the job has one.
    """

    name: str
    feed_id: UUID | None
    run_no: int | None


# Arguments may be anything; those that are not ids are ignored.
_SUBJECTS = """
SELECT j.id AS job_id, s.name, f.id AS feed_id, coalesce(g.no, own.no) AS run_no
FROM jobs j
CROSS JOIN LATERAL (SELECT
    CASE WHEN j.args ->> 'feed_id' ~ %(uuid)s THEN (j.args ->> 'feed_id')::uuid END AS feed_id,
    CASE WHEN j.args ->> 'source_id' ~ %(uuid)s THEN (j.args ->> 'source_id')::uuid END AS source_id,
    CASE WHEN j.args ->> 'run_id' ~ %(uuid)s THEN (j.args ->> 'run_id')::uuid END AS run_id) a
LEFT JOIN runs g ON g.id = a.run_id
LEFT JOIN runs own ON own.job_id = j.id
LEFT JOIN feeds n ON n.id = a.feed_id
JOIN sources s ON s.id = coalesce(n.source_id, a.source_id, g.source_id)
LEFT JOIN feeds f ON f.source_id = s.id
WHERE j.id = ANY(%(jobs)s)
"""


def subjects_of(job_ids: Iterable[int]) -> dict[int, Subject]:
    """Return the feed or source of each of these jobs, without jobs that have none."""
    rows = fetch(_SUBJECTS, {"jobs": list(job_ids), "uuid": _UUID})
    return {row.pop("job_id"): Subject(**row) for row in rows}
