"""One provider call on its way to the store: what is noted while it is made, and what is made of it later."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Callable, Iterator, List, NamedTuple, Optional, Protocol, Tuple

if TYPE_CHECKING:
    from ._recorder import Recorder

#: What the writer gives the native part: API, session, request, response, error, canceled, times, latency, request id.
Row = Tuple[
    str, str, str, Optional[str], Optional[str], bool, Tuple[int, int], Optional[int], Optional[str]
]


#: The call that a framework says it makes, while it makes it: what is sent inside is that call.
around: "ContextVar[Optional[Call]]" = ContextVar("pactql.around", default=None)

#: The session that a `with` statement names.
_named: "ContextVar[Optional[str]]" = ContextVar("pactql.session", default=None)


@contextmanager
def session(name: str) -> Iterator[str]:
    """Names the session of the calls that are recorded inside, whatever their clients say: all of them are one session,
    also those that do not go on with one another.

    Threads that are started inside have no name, tasks of ``asyncio`` have this one.

    >>> with pactql.session("nightly/summaries") as name:
    ...     pass  # calls of recorded clients
    >>> name
    'nightly/summaries'
    """
    if not isinstance(name, str):
        raise TypeError(f"`session` takes a name, and not {type(name).__name__}: {name!r}")
    token = _named.set(name)
    try:
        yield name
    finally:
        _named.reset(token)


def checked(session: Any) -> Any:
    """The session of a client: a name, or a function that gives one. Raises `TypeError` for anything else."""
    if session is None or isinstance(session, str) or callable(session):
        return session
    raise TypeError(f"`session` is a name, or a function that gives one, and not {type(session).__name__}: {session!r}")


def named(session: str) -> Tuple[str, bool]:
    """The session of a call whose client says this one, and whether all calls of the name are one session."""
    name = _named.get()
    return (session, False) if name is None else (name, True)


class Assemble(Protocol):
    """Puts server-sent events together: the response, whether it is whole, and what went wrong."""

    def __call__(
        self, api: str, events: str
    ) -> Tuple[Optional[str], bool, Optional[str]]: ...


class Call:
    """A call as the caller's thread notes it: references to bytes, and times. Nothing is read or copied there."""

    __slots__ = (
        "api",
        "chunks",
        "done",
        "ended_ns",
        "headers",
        "is_sent",
        "together",
        "latency_ns",
        "pid",
        "recorder",
        "reason",
        "request",
        "said",
        "session",
        "size",
        "started_ns",
        "status",
        "stopped",
        "_clock",
    )

    def __init__(self, recorder: "Recorder", api: str, session: str, request: Any) -> None:
        self.recorder = recorder
        self.api = api
        #: The session, and whether all calls of its name are one.
        self.session, self.together = named(session)
        #: The body, or what gives it when it is written.
        self.request: Any = request
        self.status: Optional[int] = None
        self.headers: Any = None
        #: Pieces of the response as they came over the wire, or what gives the response.
        self.chunks: List[Any] = []
        #: What went wrong, and words of the API in it.
        self.reason: Optional[str] = None
        self.said: Optional[str] = None
        #: Whether the caller ended it before the response was whole.
        self.stopped = False
        self.done = False
        #: Whether a transport has noted what was sent.
        self.is_sent = False
        #: Roughly the bytes that it holds; whoever gives a function as the request or the response says them.
        self.size = len(request) if isinstance(request, bytes) else 0
        self.pid = os.getpid()
        self.started_ns = time.time_ns()
        self._clock = time.perf_counter_ns()
        self.ended_ns = 0
        self.latency_ns = 0
        recorder._open.add(self)

    def fail(self, error: BaseException, quotes: bool = False) -> None:
        """Ends a call that raised. `quotes` is whether the text of the error may have a response in it."""
        # Whoever stops a program or a task raises what is no `Exception`.
        if isinstance(error, Exception):
            name, text = type(error).__name__, str(error)
            self.reason = name if quotes or not text else f"{name}: {text}"
            self.said = text if quotes and text else None
        else:
            self.stopped = True
        self.finish()

    def stop(self) -> None:
        """Ends a call before its response is whole."""
        if not self.done:
            self.stopped = True
            self.finish()

    def finish(self) -> None:
        """Ends the call and hands it to the writer. Only the first time counts."""
        if self.done:
            return
        self.done = True
        self.recorder._open.discard(self)
        self.latency_ns = time.perf_counter_ns() - self._clock
        self.ended_ns = self.started_ns + self.latency_ns
        self.size += sum(len(chunk) for chunk in self.chunks if isinstance(chunk, bytes))
        # A copy of the process has a copy of the call, and what a transport has noted is better.
        if not self.is_sent and self.pid == os.getpid():
            self.recorder._submit(self)

    def row(self, assemble: Assemble, redact: Optional[Callable[[Any], Any]]) -> Optional[Row]:
        """What is written of the call; `None` if nothing is. Runs in the writer's thread."""
        if self.status is not None and 300 <= self.status < 400:
            # A redirection: the call is made again.
            return None
        request = self.request() if callable(self.request) else self.request
        if request is None:
            # It was none of an API.
            return None
        request = request.decode("utf-8", "replace") if isinstance(request, bytes) else request
        reply = self._reply(assemble)
        response, said = reply.response, reply.said
        if redact is not None:
            kept = [None if text is None else _redacted(text, redact) for text in (request, response, said)]
            if kept.count(None) > (request, response, said).count(None):
                # There is nothing to keep of one of them.
                return None
            request, response, said = kept
        error = ": ".join(part for part in (reply.reason, said) if part) or None
        header = self.headers.get if self.headers is not None else lambda _: None
        return (
            self.api,
            _scalars(self.session),
            _scalars(request),
            None if response is None else _scalars(response),
            None if error is None else _scalars(error),
            self.stopped and not reply.whole,
            (self.started_ns, self.ended_ns),
            self.latency_ns // 1_000_000,
            header("x-request-id") or header("request-id") or header("x-amzn-requestid"),
        )

    def _reply(self, assemble: Assemble) -> "_Reply":
        """What came back."""
        if self.chunks and callable(self.chunks[0]):
            return _Reply(self.chunks[0](), self.reason, self.said, self.reason is None)
        text = _decoded(self.chunks, self.headers)
        if self.status is not None and self.status >= 400:
            return _Reply(None, f"HTTP {self.status}", text or None, False)
        if self.status is None or not text:
            return _Reply(None, self.reason, self.said, False)
        kind = self.headers.get("content-type") or ""
        if kind.startswith("text/event-stream"):
            response, whole, wrong = assemble(self.api, text)
            if wrong is not None:
                return _Reply(response, None, wrong, whole)
            if whole:
                return _Reply(response, None, None, True)
            if self.reason is None and not self.stopped:
                return _Reply(response, "the stream ended before the reply did", None, False)
            return _Reply(response, self.reason, self.said, False)
        if isinstance(_parsed(text), dict):
            return _Reply(text, self.reason, self.said, True)
        if self.reason is None and not self.stopped:
            return _Reply(None, "the response is not a JSON object", None, False)
        return _Reply(None, self.reason, self.said, False)


class _Reply(NamedTuple):
    """What came back of a call."""

    #: The response as one JSON text, or what came of it.
    response: Optional[str]
    #: What went wrong, and words of the API in it.
    reason: Optional[str]
    said: Optional[str]
    whole: bool


def _parsed(text: str) -> Any:
    """The value of a JSON text; of any other, the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _redacted(text: str, redact: Callable[[Any], Any]) -> Optional[str]:
    """A text without what a function takes out of its value; `None` if nothing may be kept."""
    value = _parsed(text)
    kept = redact(value)
    if kept is None:
        return None
    is_text = isinstance(value, str) and isinstance(kept, str)
    return str(kept) if is_text else json.dumps(kept, ensure_ascii=False)


def _scalars(text: str) -> str:
    """A text that can be stored: U+FFFD is in the place of halves of surrogate pairs."""
    try:
        text.encode("utf-8")
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decoded(chunks: List[bytes], headers: Any) -> str:
    """The text of a body that may be compressed, as far as it came."""
    body = b"".join(chunks)
    encoding = (headers.get("content-encoding") or "") if headers is not None else ""
    if encoding and body:
        # The client's own decoders, whichever are installed.
        http: Any = sys.modules[type(headers).__module__.partition(".")[0]]
        try:
            body = http.Response(200, headers={"content-encoding": encoding}, content=body).content
        except http.DecodingError:
            body = _partly(body, encoding)
    return body.decode("utf-8", "replace")


def _partly(body: bytes, encoding: str) -> bytes:
    """What can be unpacked of a compressed body that was cut off."""
    import zlib

    if encoding.strip().lower() not in ("gzip", "deflate"):
        return b""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        return unpack.decompress(body)
    except zlib.error:
        return b""
