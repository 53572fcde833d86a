"""The `harvester` command, for which the shops of the page server are on this machine."""

from tests.support.page_server import resolve_locally

if __name__ == "__main__":
    resolve_locally()

    from harvester.cli import main

    main()
