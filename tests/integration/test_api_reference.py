"""The pages about the API match the API."""

import re
from pathlib import Path

from harvester.api.app import api, markdown
from harvester.api.app import page as page_of
from harvester.feeds import errors
from harvester.kernel.errors import ConfigError, Conflict
from harvester.scraping.capacity import Rejection
from harvester.scraping.kept_pages import PageMissing
from harvester.scraping.verbs.sources import NotReady
from harvester.scraping.verbs.targets import NotLinked, TooMany

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_up_to_date():
    assert (DOCS / "api-reference.md").read_text() == markdown(api.get_openapi_schema()), "run make api-reference"


def test_the_guide_lists_every_code_of_a_refused_decision():
    guide = (DOCS / "how-to" / "use-the-api.md").read_text()
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Conflict)}
    assert codes - {Conflict.code} <= set(re.findall(r"`([A-Z_]+)`", guide))


def test_the_guide_lists_every_code_of_scraping():
    guide = set(re.findall(r"`([A-Z_]+)`", (DOCS / "how-to" / "use-the-api.md").read_text()))
    wanted = {kind.code for kind in (NotReady, NotLinked, TooMany, PageMissing, ConfigError)}
    assert wanted | {f"SCRAPE_{reason.upper()}" for reason in Rejection} <= guide


def test_every_field_and_parameter_of_the_reference_has_a_type():
    assert "anything" not in markdown(api.get_openapi_schema()).replace("| `result` | anything |", "")


def test_the_page_of_the_reference_is_complete_and_loads_nothing_from_other_servers(client):
    answer = client.get("/api/v1/docs")
    page = answer.content.decode()
    assert answer.headers["Content-Type"].startswith("text/html")
    schema = api.get_openapi_schema()
    for address in schema["paths"]:
        assert f" {address}</code>" in page
    for name in schema["components"]["schemas"]:
        assert name in page
    named = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert {target for target in named if not target.startswith("#")} == {"/api/v1/docs.css", "/api/v1/openapi.json"}
    anchors = set(re.findall(r' id="([^"]*)"', page))
    assert {target[1:] for target in named if target.startswith("#")} <= anchors
    assert not re.findall(r"<script|<style|\sstyle=|\son\w+=", page)
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    style = client.get("/api/v1/docs.css")
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert b"url(" not in style.content
    assert b"@import" not in style.content


def test_the_page_escapes_descriptions():
    schema = {"paths": {"/x": {"get": {**_OPERATION, "description": "<b> & `a|b`"}}}, "components": {"schemas": {}}}
    assert "&lt;b&gt; &amp; <code>a|b</code>" in page_of(schema)


_OPERATION = {
    "summary": "X",
    "security": [{"key": ["offers:read"]}],
    "parameters": [
        {"name": "a", "in": "query", "required": False, "schema": {"type": "string"}, "description": "one | two"}
    ],
    "responses": {str(status): {"description": "x"} for status in (200, 400, 401, 403, 411, 413, 422, 429, 500, 503)},
}


def test_a_bar_in_a_cell_stays_in_its_cell():
    schema = {"paths": {"/x": {"get": {**_OPERATION, "description": "x"}}}, "components": {"schemas": {}}}
    assert "<td>one | two</td>" in page_of(schema)
