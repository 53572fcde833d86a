"""Making the next piece of something while the one before is used."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_END = object()


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made by a thread of its own while the one before is worked on; never more than one."""
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as pool:
        making = pool.submit(next, items, _END)
        while (item := making.result()) is not _END:
            making = pool.submit(next, items, _END)
            yield item  # type: ignore[misc]  # anything but the end is an item
