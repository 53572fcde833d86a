"""Declaring commands: each has examples, and each that prints data has `--json`."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperCommand

from harvester.cli.output import OUT

Function = Callable[..., Any]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


class Command(TyperCommand):
    """A command whose help has less padding, so that the longest option fits in 80 columns."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from typer import rich_utils

        rich_utils.STYLE_OPTIONS_TABLE_PADDING = (0, 1, 0, 0)  # type: ignore[assignment]
        super().format_help(ctx, formatter)


def section(title: str, lines: Sequence[str]) -> str:
    """Return a section of the text below a command's help."""
    return "\n".join([f"[bold]{title}[/bold]", *(f"  {escape(line)}" for line in lines)])


def examples(lines: Sequence[str]) -> str:
    return section("Examples", lines)


def group(name: str, phrase: str, lines: Sequence[str]) -> typer.Typer:
    """Return a group of commands; without a command it prints its help."""
    made = typer.Typer(
        name=name, help=phrase, epilog=examples(lines), rich_markup_mode="rich", pretty_exceptions_enable=False
    )

    @made.callback(invoke_without_command=True)
    def list_commands(context: typer.Context, *, as_json: Json = False) -> None:
        want_json(as_json)
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return made


def command(
    app: typer.Typer, name: str, lines: Sequence[str], *, data: bool = False, **options: Any
) -> Callable[[Function], Function]:
    """Declare a command of `app` with its examples; with `data`, it also takes `--json`."""

    def declare(function: Function) -> Function:
        declared = _with_json(function) if data else function
        # Without the line ends of the docstring, which would break lines on a narrow screen.
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        app.command(name, cls=Command, help=text, epilog=examples(lines), **options)(declared)
        return function

    return declare


def want_json(wanted: bool) -> None:
    OUT.as_json = OUT.as_json or wanted


def _with_json(function: Function) -> Function:
    @functools.wraps(function)
    def run(*args: Any, as_json: bool, **kwargs: Any) -> Any:
        want_json(as_json)
        return function(*args, **kwargs)

    option = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
    signature = inspect.signature(function)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, "as_json": Json}
    return run
