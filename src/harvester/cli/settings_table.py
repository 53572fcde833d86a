"""Every setting as a table: for a terminal, for scripts, and for `docs/settings.md`."""

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from rich.console import RenderableType

from harvester.cli.output import table
from harvester.guards.redaction import redact_text
from harvester.kernel.config import UNSET_HOME, Config

INTRODUCTION = """\
# Settings

Every setting comes from the environment, is trimmed, and is checked when a process starts; an empty one counts as
unset, and an unknown name that begins with `HARVESTER_` is refused. `harvester doctor --settings` shows what counts on
this machine. This page is printed by `harvester doctor --settings --markdown`.

| variable | default | meaning |
| --- | --- | --- |
"""


def settings_of(config: Config, env: Mapping[str, str]) -> list[dict[str, Any]]:
    """What counts in this process, and where it came from. Secrets are only said to be there."""
    return [
        {
            "variable": declared.metadata["variable"],
            "value": _shown(declared, getattr(config, declared.name)),
            "source": "environment" if env.get(declared.metadata["variable"], "").strip() else "default",
            "meaning": declared.metadata["help"],
        }
        for declared in fields(Config)
    ]


def settings_view(settings: list[dict[str, Any]]) -> RenderableType:
    columns = ("variable", "value", "source", "meaning")
    return table(columns, [[setting[name] for name in columns] for setting in settings])


def markdown() -> str:
    """The page `docs/settings.md`."""
    lines = [
        f"| `{_variable(declared)}` | {_default(declared)} | {_meaning(declared)} |" for declared in fields(Config)
    ]
    return INTRODUCTION + "\n".join(lines) + "\n"


def _variable(declared: "Field[Any]") -> str:
    return str(declared.metadata["variable"])


def _shown(declared: "Field[Any]", value: Any) -> str:
    if declared.metadata.get("secret"):
        return "(hidden)" if value else ""
    return redact_text(_text(value))


def _default(declared: "Field[Any]") -> str:
    return "" if declared.default in ("", (), UNSET_HOME) else f"`{_text(declared.default)}`"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meaning(declared: "Field[Any]") -> str:
    limits = declared.metadata
    said = str(limits["help"])
    if "choices" in limits:
        said += f"; one of {', '.join(limits['choices'])}"
    if "low" in limits:
        said += f"; from {_text(limits['low'])} to {_text(limits['high'])}"
    return said.replace("|", "\\|")
