"""Form widgets in the portal's look.

They draw themselves: a template for each field, and one more for its attributes, took half the time of a long form.
"""

from collections.abc import Mapping
from html import escape
from typing import Any

from django import forms
from django.utils.safestring import SafeString

_PLAIN = {"class": "hv-input", "autocapitalize": "none", "spellcheck": "false"}


def attributes(given: Mapping[str, Any]) -> str:
    """Attributes of an element; true ones stand alone, false ones and none are left out."""
    told = ((name, value) for name, value in given.items() if value is not None and value is not False)
    return "".join(f" {name}" if value is True else f' {name}="{escape(str(value))}"' for name, value in told)


class Drawn(forms.Widget):
    """A widget that needs no template."""

    def render(self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None) -> SafeString:  # noqa: ARG002
        return SafeString(self.draw(value, {"name": name, **self.build_attrs(self.attrs, attrs)}))

    def draw(self, value: Any, about: dict[str, Any]) -> str:
        raise NotImplementedError


class DrawnInput(Drawn, forms.widgets.Input):
    def draw(self, value: Any, about: dict[str, Any]) -> str:
        return f"<input{attributes({'type': self.input_type, **about, 'value': self.format_value(value)})}>"


class Text(DrawnInput, forms.TextInput):
    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        super().__init__({**_PLAIN, **(attrs or {})})


class Email(DrawnInput, forms.EmailInput):
    def __init__(self) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off"})


class Password(Drawn, forms.PasswordInput):
    """What was typed is never sent back to the page."""

    def __init__(self, autocomplete: str) -> None:
        super().__init__({**_PLAIN, "autocomplete": autocomplete}, render_value=False)

    def draw(self, value: Any, about: dict[str, Any]) -> str:  # noqa: ARG002
        return f"<input{attributes({'type': 'password', **about})}>"


class Choice(Drawn, forms.Select):
    """One of any number of options, without groups."""

    def __init__(self) -> None:
        super().__init__({"class": "hv-input"})

    def draw(self, value: Any, about: dict[str, Any]) -> str:
        chosen = "" if value is None else str(value)
        told = ((str(key), escape(str(words))) for key, words in self.choices)
        options = "".join(
            f'<option value="{escape(key)}"{" selected" if key == chosen else ""}>{words}</option>'
            for key, words in told
        )
        return f"<select{attributes(about)}>{options}</select>"


class SecretText(Drawn, forms.Textarea):
    """A secret of several lines; what was typed is never sent back to the page."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        super().__init__({**_PLAIN, "autocomplete": "off", **attrs})

    def draw(self, value: Any, about: dict[str, Any]) -> str:  # noqa: ARG002
        return f"<textarea{attributes(about)}></textarea>"


class Tick(Drawn, forms.CheckboxInput):
    def __init__(self) -> None:
        super().__init__({"class": "hv-tick"})

    def draw(self, value: Any, about: dict[str, Any]) -> str:
        return f"<input{attributes({'type': 'checkbox', **about, 'checked': bool(self.check_test(value))})}>"
