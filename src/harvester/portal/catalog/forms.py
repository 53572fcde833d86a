"""Forms of the catalog. The verbs check the values; the form shows an error at its field."""

from collections.abc import Callable
from datetime import UTC
from typing import Any, TypeVar

from django import forms

from harvester.catalog.states import CorrectionAction, CorrectionExtent, CorrectionScope, SourceKind, Visibility
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.text import LONGEST_REASON
from harvester.portal.display import verb
from harvester.portal.forms import Choice, DrawnInput, Text, Tick

Result = TypeVar("Result")
LARGEST = 2**63 - 1


def attempt_in_form(form: forms.Form, act: Callable[[], Result]) -> Result | None:
    """Call a verb. If it refuses, show the reason at the field that it is about."""
    try:
        return act()
    except (Conflict, InvalidInput, NotFound) as problem:
        field = getattr(form, "names", {}).get(problem.field, problem.field)
        if field in form.fields:
            form.add_error(field, problem.reason[:1].upper() + problem.reason[1:])
        else:
            form.add_error(None, str(problem))
        return None


def _choices(states: Any) -> list[tuple[str, str]]:
    return [(state.value, verb(state.value)) for state in states]


class Number(DrawnInput, forms.NumberInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-input"})


class Moment(DrawnInput, forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__({"class": "hv-input", "step": "1"}, format="%Y-%m-%dT%H:%M:%S")


class RetailerForm(forms.Form):
    name = forms.CharField(widget=Text({"autofocus": True}))
    website = forms.CharField(required=False, widget=Text(), help_text="Its domain identifies the retailer.")


class SourceForm(forms.Form):
    name = forms.CharField(widget=Text(), help_text="Unique among all sources.")
    kind = forms.ChoiceField(choices=_choices(SourceKind), widget=Choice(), help_text="How the offers arrive.")
    url = forms.CharField(label="URL", required=False, widget=Text())
    affiliate_network = forms.CharField(required=False, widget=Text(), help_text="For example IMPACT.")
    affiliate_account_id = forms.CharField(required=False, widget=Text())
    affiliate_account_name = forms.CharField(required=False, widget=Text())
    tracking_template = forms.CharField(
        required=False,
        widget=Text(),
        help_text="URL with {url}, {url_raw}, {sku}, {item_id} or {source}. Leave empty to use the feed's links.",
    )
    upc_trusted = forms.BooleanField(
        label="Trust GTINs", required=False, widget=Tick(), help_text="Products with the same GTIN are linked."
    )
    visibility = forms.ChoiceField(
        label="Scraped prices", choices=_choices(Visibility), widget=Choice(), help_text="Whether consumers see them."
    )
    price_heartbeat_hours = forms.IntegerField(
        label="Re-record unchanged prices every", widget=Number(), help_text="Hours."
    )
    max_hold_hours = forms.IntegerField(
        label="Maximum hold", widget=Number(), help_text="Hours that an undecided hold keeps offers from expiring."
    )


class CorrectionForm(forms.Form):
    #: Name of a field in messages -> its name here.
    names = {"retailer_id": "retailer", "source_id": "source", "product_id": "product", "run_no": "run"}

    scope = forms.ChoiceField(label="Scope", choices=_choices(CorrectionScope), widget=Choice())
    retailer = forms.CharField(required=False, widget=Text(), help_text="Domain, name or ID.")
    source = forms.CharField(required=False, widget=Text(), help_text="Name or ID.")
    product = forms.IntegerField(
        label="Product number", required=False, min_value=1, max_value=LARGEST, widget=Number()
    )
    run = forms.IntegerField(label="Run number", required=False, min_value=1, max_value=LARGEST, widget=Number())
    action = forms.ChoiceField(
        label="Action",
        choices=[
            (CorrectionAction.IGNORE.value, "Ignore prices"),
            (CorrectionAction.MULTIPLIER.value, "Multiply prices"),
            (CorrectionAction.SET.value, "Set price"),
        ],
        widget=Choice(),
    )
    set_amount = forms.CharField(
        label="Price",
        required=False,
        widget=Text({"inputmode": "decimal"}),
        help_text="For example 12.99.",
    )
    set_currency = forms.CharField(
        label="Currency",
        required=False,
        widget=Text(),
        help_text="The currency of the current price.",
    )
    multiplier = forms.CharField(
        required=False, widget=Text({"inputmode": "decimal"}), help_text="For example 0.01 for prices in cents."
    )
    extent = forms.ChoiceField(
        label="Duration",
        choices=[
            (CorrectionExtent.OBSERVED.value, "Current prices, until each product's price changes"),
            (CorrectionExtent.WINDOW.value, "A period of time, open-ended unless you set an end"),
        ],
        required=False,
        widget=Choice(),
    )
    observed_from = forms.DateTimeField(
        label="Observed from (UTC)", required=False, widget=Moment(), help_text="Leave empty for no start."
    )
    observed_to = forms.DateTimeField(
        label="Observed before (UTC)", required=False, widget=Moment(), help_text="Leave empty for no end."
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=Text(),
        help_text=f"Shown with the correction. At most {LONGEST_REASON:,} characters.",
    )

    def clean_observed_from(self) -> Any:
        return self._utc("observed_from")

    def clean_observed_to(self) -> Any:
        return self._utc("observed_to")

    def _utc(self, field: str) -> Any:
        moment = self.cleaned_data[field]
        return moment and moment.astimezone(UTC)
