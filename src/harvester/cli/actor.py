"""The actor of commands."""

import os
import pwd

from harvester.kernel.actor import Actor


def operator() -> Actor:
    """Return the user of the operating system, as the audit log names people who use the command line."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = f"user-{os.getuid()}"
    return Actor(kind="person", id=f"cli:{name}", name=name)
