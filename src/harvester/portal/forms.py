"""Form widgets in the portal's look.

They write their HTML without templates, which took half the time of a long form.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from django import forms
from django.utils.safestring import SafeString

_PLAIN = {"class": "hv-input", "autocapitalize": "none", "spellcheck": "false"}


def attributes(given: Mapping[str, Any]) -> str:
    """Return attributes of an element as HTML; true ones have no value, false ones and None are left out."""
    kept = ((name, value) for name, value in given.items() if value is not None and value is not False)
    return "".join(f" {name}" if value is True else f' {name}="{escape(str(value))}"' for name, value in kept)


class Drawn(forms.Widget):
    """A widget without a template."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:  # noqa: ARG002
        return SafeString(self.draw(value, {"name": name, **self.build_attrs(self.attrs, attrs)}))

    def draw(self, value: Any, attrs: dict[str, Any]) -> str:
        raise NotImplementedError


class DrawnInput(Drawn, forms.widgets.Input):
    def draw(self, value: Any, attrs: dict[str, Any]) -> str:
        return f"<input{attributes({'type': self.input_type, **attrs, 'value': self.format_value(value)})}>"


class Text(DrawnInput, forms.TextInput):
    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({**_PLAIN, **(attrs or {})})


class Email(DrawnInput, forms.EmailInput):
    def __init__(self) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off"})


class Password(Drawn, forms.PasswordInput):
    """A password, which is never sent back to the page."""

    def __init__(self, autocomplete: str) -> None:
        super().__init__({**_PLAIN, "autocomplete": autocomplete}, render_value=False)

    def draw(self, value: Any, attrs: dict[str, Any]) -> str:  # noqa: ARG002
        return f"<input{attributes({'type': 'password', **attrs})}>"


class Choice(Drawn, forms.Select):
    """One of any number of options, without groups; Django's template takes long for many."""

    def __init__(self) -> None:
        super().__init__({"class": "hv-input"})

    def draw(self, value: Any, attrs: dict[str, Any]) -> str:
        chosen = "" if value is None else str(value)
        pairs = ((str(key), escape(str(label))) for key, label in self.choices)
        options = "".join(
            f'<option value="{escape(key)}"{" selected" if key == chosen else ""}>{label}</option>'
            for key, label in pairs
        )
        return f"<select{attributes(attrs)}>{options}</select>"


class SecretText(Drawn, forms.Textarea):
    """A secret of several lines, which is never sent back to the page."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off", **attrs})

    def draw(self, value: Any, attrs: dict[str, Any]) -> str:  # noqa: ARG002
        return f"<textarea{attributes(attrs)}></textarea>"


class Tick(Drawn, forms.CheckboxInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-tick"})

    def draw(self, value: Any, attrs: dict[str, Any]) -> str:
        return f"<input{attributes({'type': 'checkbox', **attrs, 'checked': bool(self.check_test(value))})}>"
