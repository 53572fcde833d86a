"""How tracebacks are printed where a process has not set up its logs, as the tests and their workers have not."""

import structlog


def print_plain_tracebacks() -> None:
    """Leave out the local variables: to render them takes a second or more for each logged exception."""
    structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback
