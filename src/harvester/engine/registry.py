"""The registered kinds of jobs and periodic jobs."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import import_module
from typing import Any

from harvester.engine.cron import next_moment
from harvester.engine.errors import BadArgs, UnknownKind
from harvester.kernel.retry import RetryPolicy

Handler = Callable[..., Any]
DEFAULT_QUEUE = "default"
#: The priority of jobs of urgent kinds. Their reserved slot takes only this priority and above.
URGENT_PRIORITY = 1_000


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of job.

    Attributes:
        name: `area.verb`.
        handler: called with the running job and the job's arguments by name; may be a coroutine function.
        queue: the default queue of its jobs.
        retry: number of attempts and waits between them.
        timeout: seconds an attempt may take; None for no limit.
        own_alerts: the code of this kind raises alerts when its jobs fail, so the engine does not.
        urgent: its jobs go before all others, and every worker reserves a slot for them.
        keep_days: days after which its succeeded jobs are deleted; None: as long as those of all kinds.
    """

    name: str
    handler: Handler
    queue: str = DEFAULT_QUEUE
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    timeout: float | None = None
    own_alerts: bool = False
    urgent: bool = False
    keep_days: int | None = None

    @property
    def priority(self) -> int:
        """The default priority of its jobs."""
        return URGENT_PRIORITY if self.urgent else 0

    @cached_property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.handler) or inspect.iscoroutinefunction(type(self.handler).__call__)

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.handler)

    def bind(self, job: Any, args: Any) -> inspect.BoundArguments:
        """Bind the arguments to the handler; raise if they do not fit."""
        if not isinstance(args, dict):
            raise BadArgs(f"The arguments of {self.name} must be an object; they are {type(args).__name__}.")
        try:
            return self._signature.bind(job, **args)
        except TypeError as problem:
            raise BadArgs(f"The arguments do not fit {self.name}: {problem}.") from None


@dataclass(frozen=True, kw_only=True)
class Periodic:
    """A job that is enqueued whenever its cron line (UTC) is due.

    Attributes:
        name: unique; also the dedupe key, so that no job is enqueued while the last one still waits.
        kind: the kind of job to enqueue, without arguments.
        cron: five fields, UTC.
    """

    name: str
    kind: str
    cron: str


class Later:
    """A handler that is imported with the first job of its kind.

    Every process registers all kinds; only workers need the imports of the handlers, which may take a second.
    """

    def __init__(self, path: str) -> None:
        self.__qualname__ = path

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self._handler(*args, **named)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._handler)

    @property
    def _handler(self) -> Handler:
        module, _, name = self.__qualname__.partition(":")
        handler: Handler = getattr(import_module(module), name)
        return handler


_kinds: dict[str, Kind] = {}
_periodic: dict[str, Periodic] = {}


def job_kind(
    name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    retry: RetryPolicy | None = None,
    timeout: float | None = None,
    own_alerts: bool = False,
    urgent: bool = False,
    keep_days: int | None = None,
) -> Callable[[Handler], Handler]:
    """Register the decorated function as the handler of a kind of job."""

    def register(handler: Handler) -> Handler:
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise ValueError(f"The handler of {name} is a generator, which would never run.")
        known = _kinds.get(name)
        if known is not None and known.handler.__qualname__ != handler.__qualname__:
            raise ValueError(f"Two handlers are registered for the kind {name}.")
        _kinds[name] = Kind(
            name=name,
            handler=handler,
            queue=queue,
            retry=retry or RetryPolicy(),
            timeout=timeout,
            own_alerts=own_alerts,
            urgent=urgent,
            keep_days=keep_days,
        )
        return handler

    return register


def periodic(name: str, *, kind: str, cron: str) -> None:
    """Register a periodic job; raise if its cron line is never due."""
    next_moment(cron, datetime.now(UTC))
    _periodic[name] = Periodic(name=name, kind=kind, cron=cron)


def kind_of(name: str) -> Kind:
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownKind(f"No handler is registered for {name}; is this worker older than the job?") from None


def all_kinds() -> dict[str, Kind]:
    return dict(_kinds)


def urgent_kinds() -> list[str]:
    return [kind.name for kind in _kinds.values() if kind.urgent]


def all_periodic() -> dict[str, Periodic]:
    return dict(_periodic)
