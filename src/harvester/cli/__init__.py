"""The `harvester` command."""


def main() -> None:
    raise SystemExit("not yet")
