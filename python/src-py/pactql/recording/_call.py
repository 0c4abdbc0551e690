"""One provider call on its way to the store: what is noted while it is made, and what is made of it later."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Callable, List, Optional, Protocol, Tuple

if TYPE_CHECKING:
    from ._recorder import Recorder

#: The most characters of a failed response that an attempt keeps.
ERROR_TEXT = 4_000

#: What the writer gives the native part: API, session, request, response, error, canceled, times, latency, request id.
Row = Tuple[
    str, str, str, Optional[str], Optional[str], bool, int, int, Optional[int], Optional[str]
]


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
        "error",
        "headers",
        "latency_ns",
        "pid",
        "recorder",
        "request",
        "session",
        "started_ns",
        "status",
        "stopped",
        "_clock",
    )

    def __init__(self, recorder: "Recorder", api: str, session: str, request: Any) -> None:
        self.recorder = recorder
        self.api = api
        self.session = session
        #: The body, or what gives it when it is written.
        self.request: Any = request
        self.status: Optional[int] = None
        self.headers: Any = None
        #: Pieces of the response as they came over the wire, or what gives the response.
        self.chunks: List[Any] = []
        self.error: Optional[str] = None
        #: Whether the caller ended it before the response was whole.
        self.stopped = False
        self.done = False
        self.pid = os.getpid()
        self.started_ns = time.time_ns()
        self._clock = time.perf_counter_ns()
        self.ended_ns = 0
        self.latency_ns = 0

    def size(self) -> int:
        """Roughly the bytes that it holds."""
        request = len(self.request) if isinstance(self.request, bytes) else 0
        return request + sum(len(chunk) for chunk in self.chunks if isinstance(chunk, bytes))

    def fail(self, error: BaseException) -> None:
        """Ends a call that raised."""
        # Whoever stops a program or a task raises what is no `Exception`.
        if isinstance(error, Exception):
            text = str(error)
            name = type(error).__name__
            self.error = f"{name}: {text}" if text else name
        else:
            self.stopped = True
        self.finish()

    def finish(self) -> None:
        """Ends the call and hands it to the writer. Only the first time counts."""
        if self.done:
            return
        self.done = True
        self.latency_ns = time.perf_counter_ns() - self._clock
        self.ended_ns = self.started_ns + self.latency_ns
        # A copy of the process has a copy of the call.
        if self.pid == os.getpid():
            self.recorder._submit(self)

    def row(self, assemble: Assemble, redact: Optional[Callable[[Any], Any]]) -> Optional[Row]:
        """What is written of the call; `None` if nothing is. Runs in the writer's thread."""
        if self.status is not None and 300 <= self.status < 400:
            # A redirection: the call is made again.
            return None
        request = self.request() if callable(self.request) else self.request
        request = request.decode("utf-8", "replace") if isinstance(request, bytes) else request
        response, error, whole = self._response(assemble)
        stopped = self.stopped and not whole
        if redact is not None:
            request = _redacted(request, redact)
            response = None if response is None else _redacted(response, redact)
            if request is None:
                return None
        header = self.headers.get if self.headers is not None else lambda _: None
        return (
            self.api,
            self.session,
            request,
            response,
            error,
            stopped,
            self.started_ns,
            self.ended_ns,
            self.latency_ns // 1_000_000,
            header("x-request-id") or header("request-id"),
        )

    def _response(self, assemble: Assemble) -> Tuple[Optional[str], Optional[str], bool]:
        """The response as one JSON text, why there is none or only a part, and whether it is whole."""
        if self.chunks and callable(self.chunks[0]):
            return self.chunks[0](), self.error, self.error is None
        text = _decoded(self.chunks, self.headers)
        if self.status is not None and self.status >= 400:
            shown = text if len(text) <= ERROR_TEXT else text[:ERROR_TEXT] + "…"
            return None, f"HTTP {self.status}: {shown}" if shown else f"HTTP {self.status}", False
        if self.status is None or not text:
            return None, self.error, False
        kind = self.headers.get("content-type") or ""
        if kind.startswith("text/event-stream"):
            response, whole, wrong = assemble(self.api, text)
            error = self.error if wrong is None else wrong
            if not whole and error is None and not self.stopped:
                error = "the stream ended before the reply did"
            return response, None if whole and wrong is None else error, whole
        try:
            is_object = isinstance(json.loads(text), dict)
        except ValueError:
            is_object = False
        if is_object:
            return text, self.error, True
        return None, self.error or (None if self.stopped else "the response is no JSON object"), False


def _redacted(text: str, redact: Callable[[Any], Any]) -> Optional[str]:
    """A JSON text without what a function takes out of its value; `None` if nothing may be kept."""
    value = redact(json.loads(text))
    return None if value is None else json.dumps(value, ensure_ascii=False)


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
