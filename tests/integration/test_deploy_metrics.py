"""The alert rules and the dashboard for scraping: valid, and about metrics that there are."""

import json
import re
import shutil
import subprocess

import pytest
from tests.support.command import ROOT

from harvester.ops import metrics
from harvester.scraping import alerts, schedule, stale_pages

PROMETHEUS = ROOT / "deploy" / "prometheus"
DASHBOARD = ROOT / "deploy" / "grafana" / "scraping.json"
_METRIC = re.compile(r"harvester_scrape_[a-z_]+")


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool is not installed")
    return subprocess.run(
        [program, *arguments], cwd=PROMETHEUS, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize(
    "arguments", [("check", "rules", "scraping.rules.yml"), ("test", "rules", "scraping.rules.test.yml")]
)
def test_the_alert_rules_are_valid_and_fire_when_they_should(arguments):
    done = promtool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", [PROMETHEUS / "scraping.rules.yml", DASHBOARD], ids=lambda file: file.name)
def test_every_metric_that_is_asked_for_is_exported(database, file):
    families = re.findall(r"^# TYPE (\S+) (\S+)$", metrics.exposition().decode(), re.MULTILINE)
    exported = {name for name, _ in families}
    exported |= {f"{name}_bucket" for name, kind in families if kind == "histogram"}
    asked = set(_METRIC.findall(file.read_text()))
    assert len(asked) >= 5
    assert asked <= exported


def sections_of_the_runbooks() -> set[str]:
    lines = (ROOT / "docs" / "runbooks.md").read_text().splitlines()
    titles = [line[3:].lower() for line in lines if line.startswith("## ")]
    return {re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in titles}


def test_every_alert_about_pages_is_explained_and_has_a_section_of_the_runbooks():
    kinds = {value for name, value in vars(alerts).items() if name.isupper() and str(value).startswith("SCRAPE_")}
    kinds |= {schedule.BACKOFF_ALERT, stale_pages.STALE_ALERT}
    assert len(kinds) >= 9
    explained = re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    rows = re.findall(r"^\| (`.*`) \| .*\(#(\S+)\) \|$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE)
    leads = {kind: anchor for names, anchor in rows for kind in re.findall("`([A-Z_]+)`", names)}
    assert kinds <= set(explained)
    assert kinds <= leads.keys()
    assert set(leads.values()) <= sections_of_the_runbooks()


def test_every_rule_leads_to_a_section_of_the_runbooks():
    anchors = re.findall(r"runbook: docs/runbooks.md#(\S+)", (PROMETHEUS / "scraping.rules.yml").read_text())
    assert len(anchors) >= 5
    assert set(anchors) <= sections_of_the_runbooks()


def test_panels_of_the_dashboard_do_not_overlap():
    taken = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
