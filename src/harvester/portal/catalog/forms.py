"""What people type about the catalog. The verbs judge it; a refusal is shown at its field."""

from collections.abc import Callable
from datetime import UTC
from typing import Any, TypeVar

from django import forms

from harvester.catalog.states import CorrectionAction, CorrectionExtent, CorrectionScope, SourceKind, Visibility
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.kernel.text import LONGEST_REASON
from harvester.portal.forms import Choice, DrawnInput, Text, Tick

Result = TypeVar("Result")
LARGEST = 2**63 - 1


def attempted(form: forms.Form, verb: Callable[[], Result]) -> Result | None:
    """Carry out a verb; where it refuses, the form says why, at the field that the refusal names."""
    try:
        return verb()
    except (Conflict, InvalidInput, NotFound) as problem:
        field, _, words = str(problem).partition(": ")
        field = form.names.get(field, field) if hasattr(form, "names") else field
        known = field in form.fields and bool(words)
        form.add_error(field if known else None, words[:1].upper() + words[1:] if known else str(problem))
        return None


def _choices(words: Any) -> list[tuple[str, str]]:
    return [(word.value, word.value.replace("_", " ").capitalize()) for word in words]


class Number(DrawnInput, forms.NumberInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-input"})


class Moment(DrawnInput, forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__({"class": "hv-input", "step": "1"}, format="%Y-%m-%dT%H:%M:%S")


class RetailerForm(forms.Form):
    name = forms.CharField(widget=Text({"autofocus": True}))
    website = forms.CharField(
        required=False, widget=Text(), help_text="The shop's address. Its host is what the retailer is known by."
    )


class SourceForm(forms.Form):
    """Everything that the verb lets people change."""

    name = forms.CharField(widget=Text(), help_text="A name that no other source has.")
    kind = forms.ChoiceField(choices=_choices(SourceKind), widget=Choice(), help_text="Where the offers come from.")
    url = forms.CharField(label="Address", required=False, widget=Text())
    affiliate_network = forms.CharField(required=False, widget=Text(), help_text="Such as IMPACT.")
    affiliate_account_id = forms.CharField(required=False, widget=Text())
    affiliate_account_name = forms.CharField(required=False, widget=Text())
    tracking_template = forms.CharField(
        required=False,
        widget=Text(),
        help_text="An address with {url}, {url_raw}, {sku}, {item_id} or {source}; empty for the feed's own links.",
    )
    upc_trusted = forms.BooleanField(
        label="Trust its trade item numbers", required=False, widget=Tick(), help_text="They then link products."
    )
    visibility = forms.ChoiceField(
        label="Scraped prices", choices=_choices(Visibility), widget=Choice(), help_text="Whether they count."
    )
    price_heartbeat_hours = forms.IntegerField(
        label="Re-record unchanged prices every", widget=Number(), help_text="Hours."
    )
    max_hold_hours = forms.IntegerField(
        label="Longest hold", widget=Number(), help_text="Hours for which an undecided hold keeps offers from expiring."
    )


class CorrectionForm(forms.Form):
    #: What a refusal calls a field -> its name here.
    names = {"retailer_id": "retailer", "source_id": "source", "product_id": "product", "run_no": "run"}

    scope = forms.ChoiceField(label="Which prices", choices=_choices(CorrectionScope), widget=Choice())
    retailer = forms.CharField(required=False, widget=Text(), help_text="Its domain, name or id.")
    source = forms.CharField(required=False, widget=Text(), help_text="Its name or id.")
    product = forms.IntegerField(
        label="Product number", required=False, min_value=1, max_value=LARGEST, widget=Number()
    )
    run = forms.IntegerField(label="Run number", required=False, min_value=1, max_value=LARGEST, widget=Number())
    action = forms.ChoiceField(
        label="What is done with them",
        choices=[
            (CorrectionAction.IGNORE.value, "Ignore them"),
            (CorrectionAction.MULTIPLIER.value, "Multiply them"),
            (CorrectionAction.SET.value, "Set the price"),
        ],
        widget=Choice(),
    )
    set_amount = forms.CharField(
        label="Price", required=False, widget=Text({"inputmode": "decimal"}), help_text="Such as 12.99; of one product."
    )
    set_currency = forms.CharField(
        label="Currency", required=False, widget=Text(), help_text="That of the present price, such as USD."
    )
    multiplier = forms.CharField(
        required=False, widget=Text({"inputmode": "decimal"}), help_text="0.01 where prices came in cents."
    )
    extent = forms.ChoiceField(
        label="For how long",
        choices=[
            (CorrectionExtent.OBSERVED.value, "Prices shown now, until each product's next different price"),
            (CorrectionExtent.WINDOW.value, "A window of time, without an end unless you set one"),
        ],
        required=False,
        widget=Choice(),
    )
    observed_from = forms.DateTimeField(
        label="Observed from (UTC)", required=False, widget=Moment(), help_text="Empty: from the beginning."
    )
    observed_to = forms.DateTimeField(
        label="Observed before (UTC)", required=False, widget=Moment(), help_text="Empty: later prices too."
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=Text(),
        help_text=f"Shown to everyone who looks later. At most {LONGEST_REASON:,} characters.",
    )

    def clean_observed_from(self) -> Any:
        return self._utc("observed_from")

    def clean_observed_to(self) -> Any:
        return self._utc("observed_to")

    def _utc(self, field: str) -> Any:
        moment = self.cleaned_data[field]
        return moment and moment.astimezone(UTC)
