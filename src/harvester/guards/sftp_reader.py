"""Reading one file over SFTP with many requests under way, in order and without holes.

asyncssh's own parallel reader fills what a server left out with zeros; a catalog with zeros in it would look
whole. Here each answer is put behind the one before it, and bytes behind the end of the file are an error.
"""

import asyncio
from collections import deque
from dataclasses import dataclass

import asyncssh

from harvester.guards.remote import FileChanged, ProtocolMismatch

#: A request asks for as much as the server allows, within these bounds. Servers that tell no limit get the lower.
SMALLEST_REQUEST = 16 * 1024
LARGEST_REQUEST = 256 * 1024
#: What is asked for ahead of what was read.
AHEAD_BYTES = 4 * 1024 * 1024
MOST_REQUESTS = 128
#: Answers that are already there are handed on together, up to about this.
BLOCK_BYTES = 256 * 1024


@dataclass
class _Request:
    offset: int
    size: int
    answer: asyncio.Task[bytes]


class WindowedReader:
    """Reads a file from its beginning to its end, once."""

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
        # With a block size of 0 each read is one request, so that it is known what was asked and what came.
        self._file = await self._client.open(self._path, "rb", block_size=0)

    async def next_block(self) -> bytes:
        """The bytes that follow; none at the end."""
        block = b""
        while not self._ended:
            self._ask_ahead()
            if block and (len(block) >= BLOCK_BYTES or not self._under_way[0].answer.done()):
                break
            block += await self._take_first()
        return block

    async def close(self) -> None:
        """Drop what is under way, and the server's handle."""
        self._ended = True
        answers = [request.answer for request in self._under_way]
        self._under_way.clear()
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)
        if self._file is not None:
            await self._file.close()

    def _ask_ahead(self) -> None:
        while len(self._under_way) < self._most:
            self._under_way.append(self._ask(self._next_offset, self._size))
            self._next_offset += self._size

    def _ask(self, offset: int, size: int) -> _Request:
        return _Request(offset, size, asyncio.ensure_future(self._read(offset, size)))

    async def _read(self, offset: int, size: int) -> bytes:
        """Judged as it comes: a hundred answers that were never asked for must not wait in memory for their turn."""
        assert self._file is not None  # noqa: S101 - open() comes first
        data: bytes = await self._file.read(size, offset)
        if len(data) > size:
            # The error is kept until its turn, and its trace would keep the data.
            del data
            raise ProtocolMismatch(f"The server sent more of {self._path!r} than it was asked for. Ask the partner.")
        return data

    async def _take_first(self) -> bytes:
        request = self._under_way[0]
        data = await asyncio.shield(request.answer)
        self._under_way.popleft()
        if not data:
            await self._prove_end(request.offset)
        elif len(data) < request.size:
            rest = self._ask(request.offset + len(data), request.size - len(data))
            self._under_way.appendleft(rest)
        return data

    async def _prove_end(self, end: int) -> None:
        """No answer may have bytes from behind the end."""
        self._ended = True
        for request in self._under_way:
            if await request.answer:
                raise FileChanged(
                    f"{self._path!r} ended at {end} bytes and yet has more: it was replaced while it was read. "
                    "Nothing of it is used. It is tried again later."
                )
