"""Showing the same thing again and again."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

from rich.console import RenderableType
from rich.live import Live

from harvester.cli.output import OUT


def watch(
    look: Callable[[], Any], as_data: Callable[[Any], Any], render: Callable[[Any], RenderableType], every: float
) -> None:
    """Until Ctrl-C. With JSON, one document per line and look."""
    with contextlib.suppress(KeyboardInterrupt):
        if OUT.as_json:
            while True:
                OUT.print_json(as_data(look()))
                time.sleep(every)
        with Live(render(look()), console=OUT.screen, auto_refresh=False) as live:
            while True:
                time.sleep(every)
                live.update(render(look()), refresh=True)
