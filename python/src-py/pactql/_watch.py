"""Following a session that others write: `store.watch`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Session, Snapshot, Store


class Watch(Iterator["Snapshot"], AsyncIterator["Snapshot"]):
    """The snapshots of a session as they are committed: for `for` and for `async for`."""

    def __init__(self, store: Store, session: Session, interval: float, timeout: float | None) -> None:
        self._store = store
        self._session = session
        self._interval = interval
        self._timeout = timeout
        self._given = len(session)

    def _next(self) -> Snapshot | None:
        if self._given >= len(self._session):
            self._store.refresh(self._session)
        if self._given >= len(self._session):
            return None
        self._given += 1
        return self._session[self._given - 1]

    def _end(self) -> float | None:
        return None if self._timeout is None else time.monotonic() + self._timeout

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Snapshot:
        end = self._end()
        while (found := self._next()) is None:
            if end is not None and time.monotonic() >= end:
                raise StopIteration
            time.sleep(self._interval)
        return found

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Snapshot:
        end = self._end()
        while (found := await asyncio.to_thread(self._next)) is None:
            if end is not None and time.monotonic() >= end:
                raise StopAsyncIteration
            await asyncio.sleep(self._interval)
        return found


def watch(
    self: Store, name: str, /, *, interval: float = 0.2, timeout: float | None = None, past: bool = False
) -> Watch:
    """The snapshots that are committed to a session from now on, for `for` and for `async for`; with `past`, those that are
    there before them. It looks every `interval` seconds, and ends if none comes for `timeout` seconds.

    >>> store = pactql.Store.open("agents.db")
    >>> with store.write("a") as context:
    ...     ids = context.append("user", "Hello")
    ...     commit = context.commit()
    >>> for snapshot in store.watch("a", past=True, timeout=0):
    ...     print(snapshot.cycle, snapshot.nodes.where("^seq .cb").texts())
    1 ['Hello']
    >>> store.close()
    """
    found = Watch(self, self.session(name), interval, timeout)
    if past:
        found._given = 0
    return found
