"""Runs that consist of parts, wherever people see them: what each part found, and the number of each outcome."""

import re

import pytest
from django.db.models.functions import Now
from tests.support import catalog
from tests.support.api import Application
from tests.support.commands_inside import harvester
from tests.support.portal import person

from harvester.ops.models import Role
from harvester.runs import queries
from harvester.runs.models import Run, RunPart
from harvester.scraping.models import ScrapeRun

pytestmark = pytest.mark.usefixtures("database")
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def run():
    """A run in progress over three pages: an offer, one in quarantine, and one that has not been read yet."""
    source = catalog.source()
    made = Run.objects.create(
        kind="SCRAPE", subject_id=source.pk, source_id=source.pk, trigger="MANUAL", status="RUNNING"
    )
    made.refresh_from_db()
    ScrapeRun.objects.create(run=made, source=source)
    outcomes = {
        "hammer": ("OFFER", {"title": "Hammer", "price": "19.99", "brand": None}),
        "saw": ("NO_AGREEMENT", {"error": f"two prices {SCRIPT}"}),
        "nail": (None, {}),
    }
    for job_id, (name, (outcome, detail)) in enumerate(outcomes.items()):
        target = catalog.target(source, f"https://shop.example/{name}")
        ended = Now() if outcome else None
        RunPart.objects.create(
            run=made,
            begun_at=made.started_at,
            target_id=target.pk,
            job_id=job_id,
            outcome=outcome,
            detail=detail,
            ended_at=ended,
            found={"title": "Hammer", "price": "19.99 USD"} if outcome == "OFFER" else None,
        )
    made.refresh_from_db()
    return made


def names(parts) -> list[str]:
    return [each.name.rsplit("/", 1)[-1] for each in parts]


def test_parts_are_counted_and_narrowed_by_outcome(run):
    assert queries.part_counts(run) == {"OFFER": 1, "NO_AGREEMENT": 1, "PENDING": 1}
    assert names(queries.parts(run)) == ["hammer", "saw", "nail"]
    assert names(queries.parts(run, "PENDING")) == ["nail"]
    assert names(queries.parts(run, most=1)) == ["hammer"]
    assert queries.parts(run, "OFFER")[0].found == "price: 19.99, title: Hammer"


def test_the_page_of_a_run_shows_its_parts(run, client):
    client.force_login(person("vera", Role.VIEWER))
    page = client.get(f"/runs/{run.no}/").content.decode()
    shown = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    for words in (
        "Pages 3 All", "1 No agreement", "1 Offer", "1 Pending",
        "/hammer Offer 19.99 USD", "/saw No agreement", "/nail Pending",
    ):  # fmt: skip
        assert words in shown
    assert SCRIPT not in page
    narrowed = client.get(f"/runs/{run.no}/?part=NO_AGREEMENT").content.decode()
    assert "/saw" in narrowed
    assert "/hammer" not in narrowed
    assert "/hammer" in client.get(f"/runs/{run.no}/?part={SCRIPT}").content.decode()


def test_commands_and_the_api_show_the_parts_of_a_run(run):
    parts = harvester("runs", "show", run.no, "--json").json["parts"]
    assert [part["outcome"] for part in parts] == ["OFFER", "NO_AGREEMENT", "PENDING"]
    assert parts[0]["detail"]["title"] == "Hammer"
    shown = harvester("runs", "show", run.no).out
    assert "NO_AGREEMENT" in shown
    assert "Page run" in shown
    assert Application().read(f"/runs/{run.no}")["parts"] == {"OFFER": 1, "NO_AGREEMENT": 1, "PENDING": 1}
