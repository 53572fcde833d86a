"""Kinds of runs that no capability has: one with nothing special, and one whose runs are held."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from django.utils import timezone

from harvester.catalog.models import Retailer, Source
from harvester.kernel.actor import system
from harvester.runs import kinds
from harvester.runs.gates import Gate
from harvester.runs.kinds import Applied, HoldingKind, RunKind
from harvester.runs.models import Run

LABEL_OF_FIGURE = "candidates found"
REASON = "12 candidates are new."


class PlainRuns(RunKind):
    """A kind that says no more about its runs than it has to."""

    name, label, subject, actor = "SCRAPE", "Scrape", "source", system("scrapes")

    def find_or_none(self, subject_id):
        return Source.objects.filter(pk=subject_id).first()

    def lock(self, cursor, subject):
        return Source.objects.select_for_update().get(pk=subject.pk), None

    def lock_key(self, subject):
        return 7, 1

    def log_fields(self, subject):
        return {"source_id": str(subject.pk)}

    def source_id(self, subject):
        return subject.pk

    def begin(self, run, subject):
        """Keep no figures."""

    def write_figures(self, run, figures):
        """Keep no figures."""

    def failed(self, subject, run, *, is_counted, run_follows):
        """Nothing follows."""


class HeldRuns(PlainRuns, HoldingKind):
    """A kind that holds, of retailers, which change no source. Each of its runs found 12 candidates."""

    name, label, subject = "ACTOR", "Actor run", "retailer"
    gates = (
        Gate(name="NEW_CANDIDATES", title="New candidates", rule="Always holds.", check=lambda *_: (True, "", {})),
    )
    decision_figures = ("candidates",)
    figure_labels = {"candidates": LABEL_OF_FIGURE}
    list_columns = {"products": "candidates", "remark": "remark"}
    stages = {"ask": "Ask the actor"}

    def find_or_none(self, subject_id):
        return Retailer.objects.filter(pk=subject_id).first()

    def lock(self, cursor, subject):
        return Retailer.objects.select_for_update().get(pk=subject.pk), None

    def source_id(self, subject):
        return None

    def subject_names(self, subject_ids):
        return dict(Retailer.objects.filter(pk__in=subject_ids).values_list("pk", "name"))

    def shown_figures(self, run_ids):
        return {run_id: {"candidates": 12, "remark": None} for run_id in run_ids}

    def advice(self, code):
        return f"Ask the actor about {code} with `ask`."

    def figures(self, run):
        return {"candidates": 12}

    def apply(self, context, cursor, subject, state):
        return Applied(moment=timezone.now())

    def discard(self, context, cursor, state):
        return Applied(moment=timezone.now())


PLAIN, HELD = PlainRuns(), HeldRuns()


@contextmanager
def made_up_kinds() -> Iterator[None]:
    """Have both kinds registered, in place of those that capabilities have by these names."""
    paths = {kind.name: f"{__name__}:{variable}" for kind, variable in ((PLAIN, "PLAIN"), (HELD, "HELD"))}
    try:
        with mock.patch.dict(kinds._PATHS, paths):
            kinds.kind_named.cache_clear()
            yield
    finally:
        # Only now: a thread that goes on behind a page may still look kinds up.
        kinds.kind_named.cache_clear()


@contextmanager
def without(kind: RunKind) -> Iterator[None]:
    """Have a kind not registered, as in a version that does not have it."""
    with mock.patch.dict(kinds._PATHS):
        del kinds._PATHS[kind.name]
        kinds.kind_named.cache_clear()
        yield


def scraped(source: Source, **fields) -> Run:
    """A run of the plain kind that failed."""
    return _made(
        PLAIN, source, source_id=source.pk, **{"status": "FAILED", "error_code": "X", "error": "It broke.", **fields}
    )


def held(retailer: Retailer, **fields) -> Run:
    """A run that waits for a decision."""
    verdict = [{"gate": "NEW_CANDIDATES", "holds": True, "reason": REASON, "figures": {"candidates": 12}}]
    return _made(HELD, retailer, **{"status": "SUCCEEDED", "outcome": "HELD", "verdict": verdict, **fields})


def _made(kind, subject, **fields) -> Run:
    ended = {"finished_at": timezone.now(), "duration_ms": 1500, "timings": {"ask": 900, "sort_out": 600}}
    run = Run.objects.create(kind=kind.name, subject_id=subject.pk, trigger="SCHEDULED", **{**ended, **fields})
    run.refresh_from_db()
    return run
