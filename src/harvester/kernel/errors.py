"""The error tree. Whether an error is retried is a property of its type, never of its text.

HarvesterError
├── TransientError      the same call may succeed later: retried with growing waits
├── TerminalError       the same call would fail again: never retried
│   ├── ConfigError     a setting, a key or a credential is wrong: a person has to change it
│   ├── InvalidInput    the request is not possible
│   │   └── Rejected    a value of a row cannot be used: counted, see `kernel.rejects`
│   ├── NotFound        the object does not exist
│   └── Conflict        the state of the object does not allow this
└── (anything else)     unknown: retried like a transient error, and reported

A message says what happened, what is unchanged, and what to do next. It never contains a secret.
"""


class HarvesterError(Exception):
    """An error with a stable code.

    Attributes:
        code: stable name for logs, jobs, the API and scripts.
        field: the field that the error is about; none if it is not about one.
        reason: the message without the field's name.
    """

    code = "ERROR"

    def __init__(self, reason: str = "", *, field: str | None = None) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field, self.reason = field, reason


class TransientError(HarvesterError):
    """Something outside failed; a retry may succeed.

    Attributes:
        retry_after: the least seconds before a retry, if the other side named them; at most a day counts.
    """

    code = "TRANSIENT"
    retry_after: float | None = None

    def __init__(self, reason: str = "", *, field: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(reason, field=field)
        self.retry_after = retry_after


class TerminalError(HarvesterError):
    """A retry cannot succeed."""

    code = "TERMINAL"


class ConfigError(TerminalError):
    """A setting is missing or wrong."""

    code = "CONFIG"


class InvalidInput(TerminalError):
    """The request is not possible."""

    code = "INVALID_INPUT"


class NotFound(TerminalError):
    """The object does not exist."""

    code = "NOT_FOUND"


class Conflict(TerminalError):
    """The state of the object does not allow this."""

    code = "CONFLICT"
