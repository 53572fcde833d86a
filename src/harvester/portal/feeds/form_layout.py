"""The fields of a feed's form as they stand on the page."""

from collections.abc import Iterable
from html import escape
from typing import Final

from django.forms import BoundField
from django.utils.safestring import SafeString

from harvester.portal.forms import Tick

#: Fields that take the whole width.
BROAD: Final = frozenset({"private_key", "path", "accept_insecure", "replace"})
#: Fields that are shown only while others have these values; conditions.js reads it.
WHEN: Final = {
    "source_name": "source=",
    "retailer": "source=",
    "retailer_name": "source= retailer=",
    "website": "source= retailer=",
    "accept_insecure": "transport=FTP",
    "private_key": "transport=SFTP",
    "passphrase": "transport=SFTP",
}
WARNINGS: Final = {
    "accept_insecure": "Insecure: plain FTP sends the password and the file readable to anybody on the way. "
    "Use SFTP if the partner has it.",
}


def drawn(fields: Iterable[BoundField]) -> SafeString:
    """A form has some forty fields; a template for each of them takes three times as long."""
    return SafeString("".join(_field(field) for field in fields))


def _field(field: BoundField) -> str:
    name = field.name
    classes = f"hv-field{' hv-wrong' if field.errors else ''}{' hv-broad' if name in BROAD else ''}"
    when = f' data-when="{WHEN[name]}"' if name in WHEN else ""
    warning = f'<p class="hv-message hv-warning">{WARNINGS[name]}</p>' if name in WARNINGS else ""
    return f'<div class="{classes}"{when}>{warning}{_labelled(field)}{_help(field)}{_errors(field)}</div>'


def _labelled(field: BoundField) -> str:
    label = escape(str(field.label))
    if isinstance(field.field.widget, Tick):
        return f'<label class="hv-check" for="{field.id_for_label}">{field} {label}</label>'
    return f'<label for="{field.id_for_label}">{label}</label>{field}'


def _help(field: BoundField) -> str:
    words = escape(str(field.help_text))
    return f'<p class="hv-help" id="{field.auto_id}_helptext">{words}</p>' if words else ""


def _errors(field: BoundField) -> str:
    """The widget names the first of them as what describes it."""
    ids = [f' id="{field.auto_id}_error"', *[""] * len(field.errors)]
    told = zip(ids, field.errors, strict=False)
    return "".join(f'<p class="hv-field-error" role="alert"{about}>{escape(str(error))}</p>' for about, error in told)
