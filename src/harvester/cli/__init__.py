"""The `harvester` command."""

import sys


def main() -> None:
    from harvester.cli.app import run

    sys.exit(run())
