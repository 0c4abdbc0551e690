"""The writer behind recorded clients: a queue, and one thread for each store."""

from __future__ import annotations

import asyncio
import collections
import os
import queue
import re
import sys
import threading
import time
import warnings
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Set, Union

from .._errors import StoreError
from .._pactql import Store
from . import _ends
from ._call import Call

#: Calls that wait to be written, at most; then the oldest is dropped.
QUEUE_CALLS = 10_000
#: Bytes of requests and responses that wait, at most, roughly, besides the newest call.
QUEUE_BYTES = 256 << 20
#: Calls of one transaction, at most.
BATCH_CALLS = 64
#: How long the writer waits for more calls after the first of a batch, in seconds: what a process that is killed loses.
LINGER = 0.005
#: How long the writer waits before it tries a transaction again, in seconds.
RETRY_SECONDS = 0.2
#: How an error begins that is the database's; after another one, trying again would be of no use.
_DATABASE = "E_STORE: the database of the store"
#: How long the end of the program waits for what is not written yet, in seconds.
EXIT_SECONDS = 5.0

#: What is taken out before anything is written: patterns, a function of a parsed body, or `False` for nothing but
#: what authorizes requests.
Redact = Union[
    None, bool, str, "re.Pattern[str]", Sequence[Union[str, "re.Pattern[str]"]], Callable[[Any], Any]
]


#: The name of the threads that write.
_THREAD = "pactql-recording"

#: Values of the environment variable `PACTQL_RECORD` that turn recording off.
_OFF = frozenset(("0", "false", "no", "off"))


def is_off() -> bool:
    """Whether recording is turned off for the process."""
    return os.environ.get("PACTQL_RECORD", "").strip().lower() in _OFF


class RecordingWarning(RuntimeWarning):
    """Something could not be recorded. The program goes on as without recording."""


class _Mark:
    """A place in the queue that someone waits for."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = threading.Event()


class Recorder:
    """Writes provider calls into a store, behind the threads that make them.

    Clients and callbacks share one: ``record(client, recorder)`` instead of a path. Recorders of one store share a
    thread, which ends when the last of them is closed or collected. All counts are of this recorder.

    Where recording is turned off (``PACTQL_RECORD=0``) it opens nothing and records nothing.
    """

    #: Calls that are in the store.
    recorded: int
    #: Calls that could not be written; the first one is a `RecordingWarning`.
    failures: int
    #: Calls that were dropped because more came than could be written.
    dropped: int

    def __init__(
        self,
        store: Union[str, "os.PathLike[str]", Store],
        *,
        redact: Redact = None,
        queue_calls: int = QUEUE_CALLS,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self.recorded = 0
        self.failures = 0
        self.dropped = 0
        #: Why the last failure was one.
        self.last_error: Optional[str] = None
        self._warned = False
        #: Calls that have begun and not ended.
        self._open: Set[Call] = set()
        self._limits = (max(1, queue_calls), max(1, queue_bytes))
        self._function, self._patterns = _redaction(redact)
        _check_patterns(self._patterns)
        self._url = url_of(store)
        self._closed = is_off()
        self._writer: Optional[_Writer] = None
        if not self._closed:
            self._writer = _Writer.joined(self._url, self)
            # One that nobody closed leaves when it is collected.
            self._leave = weakref.finalize(self, self._writer.leave)
            self._leave.atexit = False

    def __repr__(self) -> str:
        counts = f"recorded={self.recorded}, failures={self.failures}, dropped={self.dropped}"
        return f"<pactql.Recorder {self.store!r} {counts}>"

    @property
    def store(self) -> str:
        """The path or address of the store."""
        return self._url

    @property
    def closed(self) -> bool:
        """Whether it records no more."""
        return self._closed

    def shares(self, other: "Recorder") -> bool:
        """Whether both record into one store."""
        return self._writer is not None and self._writer is other._writer

    def flush(self, timeout: Optional[float] = None) -> bool:
        """Waits until every call that has ended is in the store, or has failed. Returns false if the time, in
        seconds, was too short."""
        return self._writer is None or self._writer.flush(timeout)

    async def aflush(self, timeout: Optional[float] = None) -> bool:
        """As `flush`, in an asynchronous program: ``await recorder.aflush()``."""
        return await asyncio.to_thread(self.flush, timeout)

    def close(self, timeout: Optional[float] = EXIT_SECONDS) -> bool:
        """Writes what waits, as `flush` does, and records no more. Clients go on working."""
        done = self.flush(timeout)
        self._closed = True
        if self._writer is not None:
            self._leave()
        return done

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _submit(self, call: Call) -> None:
        """Takes a call that has ended. Runs in the caller's thread, or wherever garbage is collected."""
        try:
            if not self._closed and self._writer is not None:
                self._writer.put(call)
        except Exception as error:  # noqa: BLE001 - nothing may reach the caller
            self._failed(f"{type(error).__name__}: {error}")

    def _failed(self, why: str) -> None:
        with _Writer._guard:
            self.failures += 1
        self.last_error = why
        self._warn(f"a call was not recorded: {why}")

    def _warn(self, text: str) -> None:
        if self._warned:
            return
        self._warned = True
        try:
            text += "; later ones are counted in `failures` and `dropped`"
            warnings.warn(text, RecordingWarning, stacklevel=2)
        except Exception:  # noqa: BLE001 - warnings may be errors
            pass


@contextmanager
def at_once(url: str) -> Iterator[None]:
    """Has every call into a store written when it ends, and not behind the caller: for tests, which read it next."""
    key = _key(url)
    _Writer._at_once.add(key)
    try:
        yield
    finally:
        _Writer._at_once.discard(key)


def url_of(store: Union[str, "os.PathLike[str]", Store]) -> str:
    """The address of a store that is written. Raises `StoreError` of one that was opened to be read only."""
    return store._to_write() if isinstance(store, Store) else os.fspath(store)


def _key(url: str) -> str:
    """The same text for the same store."""
    is_path = "://" not in url and not url.startswith("sqlite:")
    return os.path.abspath(url) if is_path else url


class _Writer:
    """The thread that writes into one store, and its queue.

    Calls also end where garbage is collected, and that may be anywhere, also while a lock is held. So there is one lock
    for all writers, whoever holds it may take it again, and while it is held nothing waits and no code of others runs.
    """

    _all: Dict[str, "_Writer"] = {}
    _guard = threading.RLock()
    #: The process whose end has come, in which a call that still ends is written at once.
    _ended: Optional[int] = None
    #: The stores into which every call is written at once.
    _at_once: Set[str] = set()

    def __init__(self, url: str) -> None:
        self.url = url
        #: How many recorders are open, and those of them that are alive.
        self._users = 0
        self._recorders: "weakref.WeakSet[Recorder]" = weakref.WeakSet()
        self._reset()

    @classmethod
    def joined(cls, url: str, recorder: Recorder) -> "_Writer":
        """The writer of a store, for one recorder more."""
        key = _key(url)
        _ends.here()
        with cls._guard:
            writer = cls._all.get(key)
            if writer is None:
                writer = cls._all[key] = cls(key)
            writer._users += 1
            writer._recorders.add(recorder)
            return writer

    def _reset(self) -> None:
        """Begins with nothing waiting and nothing open."""
        self._queue: "queue.SimpleQueue[Union[Call, _Mark, None]]" = queue.SimpleQueue()
        self._bytes = 0
        #: Marks before which nothing is left in the queue: they hold once the batch in progress is written.
        self._passed: Deque[_Mark] = collections.deque()
        self._running = False
        self._native: Any = None

    def leave(self) -> None:
        """One recorder less. The thread ends after the last one."""
        with self._guard:
            self._users -= 1
            if self._users > 0:
                return
            if self._running:
                self._queue.put(None)
            elif self._queue.empty() and self._all.get(self.url) is self:
                del self._all[self.url]

    def put(self, call: Call) -> None:
        """Adds a call. While there are too many, or too large ones, the oldest are dropped."""
        if sys.is_finalizing():
            # No thread runs any more, and whoever starts one waits for it for ever.
            raise RuntimeError("the program has ended")
        calls, size_limit = call.recorder._limits
        dropped: List[Call] = []
        with self._guard:
            self._bytes += call.size
            while self._queue.qsize() >= calls or self._bytes > size_limit:
                oldest = self._oldest()
                if oldest is None:
                    break
                self._bytes -= oldest.size
                oldest.recorder.dropped += 1
                dropped.append(oldest)
            self._queue.put(call)
        for oldest in dropped:
            oldest.recorder._warn("more calls are made than can be written: the oldest are dropped")
        self._awake()
        is_at_once = self._ended == os.getpid() or self.url in self._at_once
        if is_at_once and threading.current_thread().name != _THREAD:
            self.flush(EXIT_SECONDS)

    def _oldest(self) -> Optional[Call]:
        """Takes the call that waits longest: a later one of its session has its messages, so it is missed least."""
        try:
            while True:
                oldest = self._queue.get_nowait()
                if isinstance(oldest, Call):
                    return oldest
                if isinstance(oldest, _Mark):
                    self._passed.append(oldest)
        except queue.Empty:
            return None

    def _awake(self) -> None:
        """Starts the thread, if there is none."""
        with self._guard:
            if self._running:
                return
            self._running = True
        try:
            threading.Thread(target=self._run, name=_THREAD, daemon=True).start()
        except BaseException:
            self._running = False
            raise

    def flush(self, timeout: Optional[float]) -> bool:
        mark = _Mark()
        if sys.is_finalizing():
            return self._queue.empty()
        with self._guard:
            if not self._running and self._queue.empty():
                return True
            self._queue.put(mark)
        self._awake()
        return mark.ready.wait(timeout)

    def _run(self) -> None:
        mine, passed = self._queue, self._passed
        opened: List[Any] = []
        while True:
            batch: List[Call] = []
            marks: List[_Mark] = []
            try:
                self._gather(mine, mine.get(), batch, marks)
                self._write(batch, opened)
            except BaseException as error:  # noqa: BLE001 - the thread goes on, whatever a function of the user's raises
                self._fail_all(batch, f"{type(error).__name__}: {error}")
            while passed:
                marks.append(passed.popleft())
            for mark in marks:
                mark.ready.set()
            # A recorder may be alive only as long as its calls.
            del batch, marks
            with self._guard:
                if self._users == 0 and mine.empty():
                    self._running = False
                    self._native = None
                    if self._all.get(self.url) is self:
                        del self._all[self.url]
                    return

    def _gather(
        self,
        mine: "queue.SimpleQueue[Union[Call, _Mark, None]]",
        item: Union[Call, _Mark, None],
        batch: List[Call],
        marks: List[_Mark],
    ) -> None:
        """Takes what waits, up to a batch."""
        until = time.monotonic() + LINGER
        while True:
            if isinstance(item, Call):
                batch.append(item)
                with self._guard:
                    self._bytes -= item.size
            elif item is not None:
                marks.append(item)
            if len(batch) >= BATCH_CALLS:
                return
            # Someone may wait, or nobody is left.
            rest = 0.0 if marks or item is None else until - time.monotonic()
            try:
                item = mine.get(timeout=rest) if rest > 0 else mine.get_nowait()
            except queue.Empty:
                return

    def _write(self, batch: List[Call], opened: List[Any]) -> None:
        """Writes calls in one transaction. `opened` has the store, once there is something to write."""
        if not batch:
            return
        from pactql import _pactql as native

        if not opened:
            opened.append(native._Recorder(self.url))
            # A copy of the process must not close it.
            self._native = opened[0]
        rows: List[Any] = []
        calls: List[Call] = []
        for call in batch:
            try:
                row = call.row(native._assemble, call.recorder._function)
            except BaseException as error:  # noqa: BLE001 - a fault of one call, or of a function of the user's
                call.recorder._failed(f"{type(error).__name__}: {error}")
                continue
            if row is not None:
                rows.append((*row, call.recorder._patterns, call.together, True))
                calls.append(call)
        if not rows:
            return
        for call, why in zip(calls, self._record(rows, opened)):
            if why is None:
                call.recorder.recorded += 1
            else:
                call.recorder._failed(why)

    def _record(self, rows: List[Any], opened: List[Any]) -> List[Optional[str]]:
        """Writes calls; once more if the database was in the way: other writers may have been, or its file is gone."""
        try:
            written: List[Optional[str]] = opened[0].record(rows)
            return written
        except StoreError as error:
            if not str(error).startswith(_DATABASE):
                raise
        time.sleep(RETRY_SECONDS)
        from pactql import _pactql as native

        # What is open may be a file that was removed, or a connection that was cut.
        opened[:] = [native._Recorder(self.url)]
        self._native = opened[0]
        written = opened[0].record(rows)
        return written

    @staticmethod
    def _fail_all(batch: List[Call], why: str) -> None:
        for call in batch:
            call.recorder._failed(why)

    @classmethod
    def _end(cls, stop: bool, last: bool) -> None:
        """Writes what waits, in bounded time for all stores together. Calls in progress end here if `stop` is true."""
        end = time.monotonic() + EXIT_SECONDS
        for writer in list(cls._all.values()):
            for recorder in list(writer._recorders) if stop else ():
                for call in list(recorder._open):
                    call.stop()
        if last:
            cls._ended = os.getpid()
        for writer in list(cls._all.values()):
            if not writer.flush(max(0.0, end - time.monotonic())):
                waiting = writer._queue.qsize()
                for recorder in list(writer._recorders):
                    recorder._warn(f"the program ends, and {waiting} calls are not written")
                    break

    @classmethod
    def _in_child(cls) -> None:
        """A copy of the process has no writing thread, and must not touch what that one has open. What waits is the
        parent's to write."""
        cls._guard = threading.RLock()
        for writer in list(cls._all.values()):
            if writer._native is not None:
                from pactql import _pactql as native

                native._leak(writer._native)
            writer._reset()


def _redaction(redact: Redact) -> Any:
    """The function and the patterns of the argument `redact`."""
    if redact is False:
        return None, ()
    if redact is None or redact is True:
        return None, None
    if callable(redact):
        return redact, None
    patterns: Any = (redact,) if isinstance(redact, (str, re.Pattern)) else redact
    return None, tuple(_pattern(each) for each in patterns)


def _pattern(pattern: Any) -> str:
    """The text of a pattern, with the flags that a compiled one has."""
    if isinstance(pattern, str):
        return pattern
    if not isinstance(pattern, re.Pattern) or not isinstance(pattern.pattern, str):
        raise TypeError(f"a pattern of `redact` is a str or a compiled one, and not {type(pattern).__name__}")
    flags = "".join(
        letter
        for letter, flag in (("i", re.I), ("m", re.M), ("s", re.S), ("x", re.X))
        if pattern.flags & flag
    )
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern


def _check_patterns(patterns: Optional[Sequence[str]]) -> None:
    """Refuses patterns that are not valid now, and not when the first call is written."""
    if patterns:
        from pactql import _pactql as native

        native._check_patterns(list(patterns))


_ends.watch(_Writer._end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Writer._in_child)
