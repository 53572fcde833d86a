"""Form widgets in the portal's look."""

from html import escape
from typing import Any

from django import forms
from django.forms.utils import flatatt
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


class QuickChoice(Choice):
    """A choice without groups among any number of options: Django renders a template for each of them."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:  # noqa: ARG002
        chosen = str(value or "")
        told = ((str(key), escape(str(words))) for key, words in self.choices)
        options = "".join(
            f'<option value="{escape(key)}"{" selected" if key == chosen else ""}>{words}</option>'
            for key, words in told
        )
        about = self.build_attrs(self.attrs, {**(attrs or {}), "name": name})
        return SafeString(f"<select{flatatt(about)}>{options}</select>")


class SecretText(forms.Textarea):
    """A secret of several lines; what was typed is never sent back to the page."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off", **attrs})

    def format_value(self, value: Any) -> str | None:  # noqa: ARG002
        return None


class Tick(forms.CheckboxInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-tick"})
