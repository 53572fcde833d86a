"""Portal, command line, API and `--json` name the same settings of feeds and the same figures of runs."""

import re
from dataclasses import fields

import pytest
from tests.support import page_runs, scraping
from tests.support.api import Application
from tests.support.commands_inside import harvester
from tests.support.feed_rows import make_feed, make_source
from tests.support.portal import person
from tests.support.portal_feeds import run as feed_run

from harvester.api import schemas
from harvester.api.scraping import page_schemas, source_schemas
from harvester.api.scraping.targets import TargetFilters
from harvester.feeds.settings import SETTINGS, THRESHOLDS
from harvester.ops.models import Role
from harvester.portal.feeds.forms import COMMON
from harvester.portal.feeds.labels import THRESHOLD_LABELS
from harvester.runs.kinds import all_kinds
from harvester.runs.models import Run
from harvester.scraping.queries import SourceRow
from harvester.scraping.settings import SETTINGS as SCRAPE_SETTINGS
from harvester.scraping.target_filters import TargetFilter
from harvester.scraping.verbs.targets import CHECKS

#: Names that differ on purpose: people type megabytes.
IN_PORTAL = {"max_file_bytes": "max_file_mb"}


def test_every_setting_of_a_feed_is_in_the_form():
    offered = {name for section in COMMON for name in section.names}
    wanted = {IN_PORTAL.get(name, name) for name in SETTINGS if name != "thresholds"}
    assert wanted <= offered
    assert THRESHOLD_LABELS.keys() == THRESHOLDS.keys()


def test_every_setting_of_a_feed_is_in_the_api():
    assert SETTINGS.keys() <= schemas.Feed.model_fields.keys()


def test_every_setting_of_scraping_is_in_the_api():
    assert source_schemas.ScrapeSettings.model_fields.keys() == SCRAPE_SETTINGS.keys()
    assert source_schemas.ScrapeSettingsChanges.model_fields.keys() == SCRAPE_SETTINGS.keys()


def test_every_setting_and_condition_of_pages_is_in_the_api():
    assert page_schemas.SettingChanges.model_fields.keys() == CHECKS.keys()
    assert CHECKS.keys() <= page_schemas.TargetSummary.model_fields.keys()
    conditions = {field.name for field in fields(TargetFilter)}
    assert page_schemas.TargetSelection.model_fields.keys() == conditions
    assert TargetFilters.model_fields.keys() == conditions - {"ids"} | {"cursor", "page_size"}


def test_values_that_are_not_public_are_not_in_the_api(database):
    hidden = {name for name, setting in SCRAPE_SETTINGS.items() if not setting.public}
    source = scraping.shop(scrape_config={name: {"X-Secret": "hush"} for name in hidden})
    shown = Application().read(f"/scrape/sources/{source.pk}")["settings"]
    assert {name: shown[name] for name in hidden} == {name: ["X-Secret"] for name in hidden}


def test_every_figure_of_a_source_that_is_scraped_is_in_the_api():
    shown = {
        *source_schemas.ScrapedSourceSummary.model_fields, *source_schemas.AdapterOnSource.model_fields,
    }  # fmt: skip
    renamed = {
        "source_id": "id", "adapter_id": "id", "adapter_enabled": "enabled", "oldest_due": "oldest_due_at",
        "newest_success": "newest_success_at", "oldest_success": "oldest_success_at",
    }  # fmt: skip
    assert {renamed.get(field.name, field.name) for field in fields(SourceRow)} <= shown


def test_every_figure_of_a_run_over_pages_is_in_the_api(database):
    source = page_runs.shop(2)
    run = page_runs.read_all(source, [page_runs.offer("9.99", sku="A"), "PRICE_NOT_FOUND"])
    kind = next(each for each in all_kinds() if each.name == run.kind)
    by_api = Application().read(f"/runs/{run.no}")
    assert by_api["figures"].keys() == kind.figure_labels.keys()
    known = kind.shown_figures([run.pk])[run.pk]
    assert {name: by_api["figures"][name] for name in kind.figure_labels} == {
        name: known.get(name) for name in kind.figure_labels
    }  # fmt: skip
    assert by_api["parts"] == {"OFFER": 1, "PRICE_NOT_FOUND": 1}
    by_command = harvester("runs", "show", str(run.no), "--json").json
    assert {name: by_command[name] for name in kind.figure_labels if known.get(name)} == {
        name: value for name, value in known.items() if name in kind.figure_labels and value
    }  # fmt: skip


def test_every_setting_of_a_feed_is_shown_and_explained_by_the_command_line(database):
    feed = make_feed(make_source("Shop by Impact"), host="sftp.example.com", path="/f.csv")
    shown = harvester("feed", "show", str(feed), "--json").json
    assert SETTINGS.keys() <= shown.keys()
    explained = set(re.findall(r"[a-z_]+", harvester("feed", "set", "--help").out))
    assert SETTINGS.keys() <= explained | {"thresholds"}
    assert THRESHOLDS.keys() <= explained


@pytest.mark.parametrize("kind", [kind.name for kind in all_kinds()])
def test_every_figure_has_a_label_and_every_column_of_lists_shows_a_figure(kind):
    found = next(each for each in all_kinds() if each.name == kind)
    assert found.figure_labels, "people want to know what a run did"
    assert all(re.fullmatch(r"[a-z_]+", name) and label for name, label in found.figure_labels.items())
    remark = found.list_columns.get("remark")
    assert {name for name in found.list_columns.values() if name != remark} <= found.figure_labels.keys()


def test_the_figures_of_a_run_are_the_same_everywhere(database, client):
    client.force_login(person("vera", Role.VIEWER))
    feed = make_feed(make_source("Shop by Impact"))
    kind = next(each for each in all_kinds() if each.name == "AFFILIATE_FEED")
    figures = {name: place for place, name in enumerate(kind.figure_labels, start=1)}
    run = Run.objects.get(pk=feed_run(feed, figures=figures).pk)
    by_command = harvester("runs", "show", str(run.no), "--json").json
    assert {name: by_command[name] for name in figures} == figures
    assert kind.shown_figures([run.pk])[run.pk].items() >= figures.items()
    by_api = Application().read(f"/runs/{run.no}")["figures"]
    assert {name: by_api[name] for name in figures} == figures
    page = client.get(f"/runs/{run.no}/").content.decode().lower()
    labels = [label.removeprefix("bytes ").lower() for label in kind.figure_labels.values()]
    assert [label for label in labels if label not in page] == []
