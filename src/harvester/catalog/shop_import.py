"""Import of existing retailers and sources from two CSV files.

A source is assigned to the retailer whose domain contains its address; the longest domain wins. Sources without such a
retailer are reported and not imported. Existing rows are not changed, so a file may be imported again.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from harvester.catalog import fields, retailers, sources
from harvester.catalog.csv_rows import Row, check_time, truth
from harvester.catalog.display_primary import set_display_primary
from harvester.catalog.models import Retailer, Source
from harvester.catalog.states import SourceKind
from harvester.kernel.actor import Actor
from harvester.kernel.domains import domain_of, enclosing
from harvester.kernel.errors import HarvesterError, InvalidInput

RETAILER_COLUMNS = ("name", "website")
SOURCE_COLUMNS = (
    "name", "url", "kind", "created_at", "affiliate_network", "affiliate_account_id", "affiliate_account_name",
    "tracking_template", "upc_trusted",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a line was not imported.

    Attributes:
        file: `retailers` or `sources`.
        line: the first line of its record; the header is line 1.
        column: the column of the invalid value.
        reason: why, and what is allowed.
    """

    file: str
    line: int
    column: str
    reason: str


@dataclass(kw_only=True)
class Imported:
    """The results of an import, or of a dry run."""

    retailers_created: list[str] = field(default_factory=list)
    retailers_known: int = 0
    sources_created: list[str] = field(default_factory=list)
    sources_known: int = 0
    primaries_set: list[str] = field(default_factory=list)
    unmatched: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        return not self.unmatched and not self.problems


Step = Callable[[Actor, Row, Imported], Source | None]


def import_rows(
    actor: Actor, retailer_rows: Iterable[Row], source_rows: Iterable[Row], *, dry_run: bool = False
) -> Imported:
    """Import all valid rows in one transaction. A dry run does the same and rolls it back."""
    done = Imported()
    with transaction.atomic():
        for row in retailer_rows:
            _try(_import_retailer, actor, row, done)
        imported = [source for row in source_rows if (source := _try(_import_source, actor, row, done))]
        for retailer_id in dict.fromkeys(source.retailer_id for source in imported):
            siblings = Source.objects.filter(retailer_id=retailer_id)
            if siblings.filter(is_display_primary=True).exists():
                continue
            # The oldest direct source is most likely the shop's own; test sources and spares come later.
            oldest = siblings.filter(kind=SourceKind.DIRECT).order_by("created_at", "id").first()
            if oldest is not None:
                set_display_primary(actor, oldest.pk)
                done.primaries_set.append(oldest.name)
        transaction.set_rollback(dry_run)
    return done


def _try(step: Step, actor: Actor, row: Row, done: Imported) -> Source | None:
    try:
        with transaction.atomic():
            return step(actor, row, done)
    except HarvesterError as problem:
        is_named = problem.field in (*RETAILER_COLUMNS, *SOURCE_COLUMNS)
        column, reason = (problem.field or "", problem.reason) if is_named else ("", str(problem))
        file = "retailers" if step is _import_retailer else "sources"
        done.problems.append(Problem(file=file, line=row.line, column=column, reason=reason))
    return None


def _import_retailer(actor: Actor, row: Row, done: Imported) -> Source | None:
    website = row.values.get("website", "")
    domain = domain_of(website)
    if Retailer.objects.filter(domain=domain).exists():
        done.retailers_known += 1
        return None
    made = retailers.create(actor, name=row.values.get("name", ""), website=website)
    done.retailers_created.append(made.name)
    return None


def _import_source(actor: Actor, row: Row, done: Imported) -> Source | None:
    values: dict[str, Any] = dict(row.values)
    created_at = check_time("created_at", values.pop("created_at", ""))
    values["kind"] = values.get("kind") or SourceKind.DIRECT
    values["upc_trusted"] = truth("upc_trusted", values.get("upc_trusted", ""))
    checked = fields.checked(sources.CHECKS, {"name": values.pop("name", ""), **values})
    host = domain_of(row.values.get("url", ""), "url")
    existing = Source.objects.filter(name=checked["name"]).first()
    if existing is not None:
        if not existing.url or domain_of(existing.url, "url") != host:
            raise InvalidInput(
                f"a source named {existing.name} exists at another address; use another name.", field="name"
            )
        done.sources_known += 1
        return existing
    domains = enclosing(host)
    found = {retailer.domain: retailer for retailer in Retailer.objects.filter(domain__in=domains)}
    retailer = next((found[domain] for domain in domains if domain in found), None)
    if retailer is None:
        reason = f"no retailer has the domain {host} or a parent domain of it; add the retailer, then import again."
        done.unmatched.append(Problem(file="sources", line=row.line, column="url", reason=reason))
        return None
    made = sources.create(actor, retailer.pk, **checked)
    if created_at is not None:
        Source.objects.filter(pk=made.pk).update(created_at=created_at)
    done.sources_created.append(made.name)
    return made


def problems_in_order(done: Imported) -> Iterator[Problem]:
    yield from sorted((*done.problems, *done.unmatched), key=lambda problem: (problem.file, problem.line))


def as_dict(done: Imported) -> dict[str, Any]:
    lists = {name: [vars(problem) for problem in getattr(done, name)] for name in ("unmatched", "problems")}
    return {**vars(done), **lists}
