"""Form widgets in the portal's look."""

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_PLAIN = {"class": "hv-input", "autocapitalize": "none", "spellcheck": "false"}


class Text(forms.TextInput):
    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({**_PLAIN, **(attrs or {})})


class Email(forms.EmailInput):
    def __init__(self) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off"})


class Password(forms.PasswordInput):
    """What was typed is never sent back to the page."""

    def __init__(self, autocomplete: str) -> None:
        super().__init__({**_PLAIN, "autocomplete": autocomplete}, render_value=False)


class Choice(forms.Select):
    def __init__(self) -> None:
        super().__init__({"class": "hv-input"})


class LongChoice(Choice):
    """A choice among thousands: Django renders a template for each option, which takes most of a second then."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:  # noqa: ARG002
        chosen = str(value or "")
        options = format_html_join(
            "",
            '<option value="{}"{}>{}</option>',
            ((key, SafeString(" selected") if str(key) == chosen else "", words) for key, words in self.choices),
        )
        about = self.build_attrs(self.attrs, {**(attrs or {}), "name": name})
        return format_html("<select{}>{}</select>", flatatt(about), options)


class SecretText(forms.Textarea):
    """A secret of several lines; what was typed is never sent back to the page."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off", **attrs})

    def format_value(self, value: Any) -> str | None:  # noqa: ARG002
        return None


class Tick(forms.CheckboxInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-tick"})
