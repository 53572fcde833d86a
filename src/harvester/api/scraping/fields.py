"""Types of fields that the shapes of scraping share. Bodies are strict, and JSON has neither ids nor choices."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import ConfigDict, Field

from harvester.api.offers import PRINTABLE
from harvester.api.schemas import HIGHEST, Body
from harvester.kernel.stock import Availability
from harvester.kernel.text import LONGEST_REASON
from harvester.scraping.states import TargetStatus
from harvester.scraping.target_filters import Trouble

LONGEST_URL = 2_000
MOST_IDS = 1_000

Text = Annotated[str, Field(max_length=LONGEST_REASON, pattern=PRINTABLE)]
Word = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]
Url = Annotated[str, Field(min_length=1, max_length=LONGEST_URL, pattern=PRINTABLE)]
ProductId = Annotated[int, Field(ge=1, le=HIGHEST)]
Id = Annotated[UUID, Field(strict=False)]
Status = Annotated[TargetStatus, Field(strict=False)]
TroubleState = Annotated[Trouble, Field(strict=False)]
Stock = Annotated[Availability, Field(strict=False)]
Money = Annotated[str, Field(pattern=r"^[0-9]{1,9}(\.[0-9]{1,4})?$", description="a decimal number as text")]


def _without_defaults(schema: dict[str, Any]) -> None:
    for field in schema["properties"].values():
        field.pop("default", None)


class Changes(Body):
    """What to change. What is left out stays, so the description names no defaults: some clients would send them."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)
