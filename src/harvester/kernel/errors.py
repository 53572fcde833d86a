"""The error tree. Whether to try again is a property of the type, never of the text.

HarvesterError
├── TransientError      the same call may succeed later: retried with growing waits
├── TerminalError       the same call can only fail again: never retried
│   ├── ConfigError     a setting, a key or a credential is wrong: a person has to change it
│   ├── InvalidInput    what was asked for is not possible as it was put
│   │   └── Rejected    a value of a row cannot be used: counted, see `kernel.rejects`
│   ├── NotFound        there is no such thing
│   └── Conflict        the thing is in a state that forbids this
└── (anything else)     unknown: retried like a transient error, and reported

A message says what happened, what is left as it was, and what to do next. It never carries a secret.
"""


class HarvesterError(Exception):
    """Something went wrong that Harvester has a name for."""

    #: Stable name for logs, jobs, the API and scripts.
    code = "ERROR"


class TransientError(HarvesterError):
    """The outside world did not answer as it should; trying again may help."""

    code = "TRANSIENT"


class TerminalError(HarvesterError):
    """Trying again cannot help."""

    code = "TERMINAL"


class ConfigError(TerminalError):
    """A setting is missing or wrong."""

    code = "CONFIG"


class InvalidInput(TerminalError):
    """The request cannot be carried out as it was put."""

    code = "INVALID_INPUT"


class NotFound(TerminalError):
    """There is no such thing."""

    code = "NOT_FOUND"


class Conflict(TerminalError):
    """The thing is in a state that forbids this."""

    code = "CONFLICT"
