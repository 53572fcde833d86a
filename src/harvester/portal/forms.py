"""Form widgets in the portal's look."""

from typing import Any

from django import forms

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


class SecretText(forms.Textarea):
    """A secret of several lines; what was typed is never sent back to the page."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off", **attrs})

    def format_value(self, value: Any) -> str | None:  # noqa: ARG002
        return None


class Tick(forms.CheckboxInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-tick"})
