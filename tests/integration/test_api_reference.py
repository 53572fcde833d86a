"""The pages about the API say what the API does."""

import re
from pathlib import Path

from harvester.api.app import api
from harvester.api.reference import markdown
from harvester.feeds import errors
from harvester.kernel.errors import Conflict

DOCS = Path(__file__).parents[2] / "docs"


def test_the_reference_is_what_the_api_says_of_itself():
    told = "make api-reference"
    assert (DOCS / "api-reference.md").read_text() == markdown(api.get_openapi_schema()), f"stale; run: {told}"


def test_the_guide_has_every_code_of_a_refused_decision():
    guide = (DOCS / "how-to" / "use-the-api.md").read_text()
    codes = {kind.code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Conflict)}
    assert codes - {Conflict.code} <= set(re.findall(r"`([A-Z_]+)`", guide))


def test_every_field_and_parameter_of_the_reference_has_a_type():
    assert "anything" not in markdown(api.get_openapi_schema()).replace("| `result` | anything |", "")
