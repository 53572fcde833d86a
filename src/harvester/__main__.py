"""`python -m harvester` is the `harvester` command."""

from harvester.cli import main

main()
