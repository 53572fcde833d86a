"""Read one file over SFTP with many parallel requests, in order and without gaps.

asyncssh's own parallel reader fills missing parts with zeros, so a catalog with gaps would look complete. Here each
answer is appended to the one before it, and bytes after the end of the file are an error.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

import asyncssh

from harvester.guards.remote import FileChanged, ProtocolMismatch

#: A request is as large as the server allows, within these bounds; the smaller one if the server reports no limit.
SMALLEST_REQUEST = 16 * 1024
LARGEST_REQUEST = 256 * 1024
#: Bytes to request ahead.
AHEAD_BYTES = 4 * 1024 * 1024
MOST_REQUESTS = 128
#: Answers that have already arrived are returned together, up to about this size.
BLOCK_BYTES = 256 * 1024


@dataclass
class _Request:
    offset: int
    size: int
    answer: asyncio.Task[bytes]


class WindowedReader:
    """Reads a file once from beginning to end."""

    def __init__(self, client: asyncssh.SFTPClient, path: str) -> None:
        self._client = client
        self._path = path
        self._file: asyncssh.SFTPClientFile | None = None
        self._size = min(max(client.limits.max_read_len, SMALLEST_REQUEST), LARGEST_REQUEST)
        self._most = min(max(AHEAD_BYTES // self._size, 1), MOST_REQUESTS)
        self._under_way: deque[_Request] = deque()
        self._next_offset = 0
        self._ended = False

    async def open(self) -> None:
        # With a block size of 0 each read is one request, so each answer belongs to one known request.
        self._file = await self._client.open(self._path, "rb", block_size=0)

    async def next_block(self) -> bytes:
        """Return the following bytes; none at the end."""
        block = b""
        while not self._ended:
            while len(self._under_way) < self._most:
                self._under_way.append(self._ask(self._next_offset, self._size))
                self._next_offset += self._size
            request = self._under_way[0]
            if block and (len(block) >= BLOCK_BYTES or not request.answer.done()):
                break
            data = await asyncio.shield(request.answer)
            self._under_way.popleft()
            if not data:
                await self._check_end(request.offset)
            elif len(data) < request.size:
                rest = self._ask(request.offset + len(data), request.size - len(data))
                self._under_way.appendleft(rest)
            block += data
        return block

    async def close(self) -> None:
        """Cancel the open requests and close the file."""
        self._ended = True
        answers = [request.answer for request in self._under_way]
        self._under_way.clear()
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)
        if self._file is not None:
            await self._file.close()

    def _ask(self, offset: int, size: int) -> _Request:
        return _Request(offset, size, asyncio.ensure_future(self._read(offset, size)))

    async def _read(self, offset: int, size: int) -> bytes:
        """Check each answer as it arrives: a hundred oversized ones must not wait in memory for their turn."""
        assert self._file is not None  # noqa: S101 - open() comes first
        data: bytes = await self._file.read(size, offset)
        if len(data) > size:
            # The error is kept until its turn, and its traceback would keep the data.
            del data
            raise ProtocolMismatch(f"The server sent more of {self._path!r} than requested. Ask the partner.")
        return data

    async def _check_end(self, end: int) -> None:
        """Raise if any answer has bytes after the end."""
        self._ended = True
        for request in self._under_way:
            if await request.answer:
                raise FileChanged(
                    f"{self._path!r} ended at {end} bytes and yet has more: it was replaced while it was read. "
                    "None of it is used. It will be retried later."
                )
