"""`harvester worker`, with the code of feeds loaded before the first claim, as in a worker that has run for a while."""

import sys

from harvester.cli import main
from harvester.cli.session import set_up_django

if __name__ == "__main__":
    set_up_django()

    sys.exit(main())
