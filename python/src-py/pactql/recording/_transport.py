"""HTTP transports that note the calls which pass through them.

A transport sees what is sent, byte by byte, whichever method of a client sent it, and the response as it comes. The
pieces of a response are passed on as they are; what is noted of them are references.

The packages of providers use `httpx` or, newer ones, `httpx2`: whichever a client has. Neither is imported here.
"""

from __future__ import annotations

import functools
import json
import sys
from types import ModuleType
from typing import Any, AsyncIterator, Iterator, Optional, Tuple

from ._call import Call, around, checked
from ._recorder import Recorder

#: The name of the session of a call, or what gives it when the call is made.
Session = Any


class Tap:
    """Decides which requests are calls, and begins them."""

    __slots__ = ("paths", "recorder", "session", "strict")

    def __init__(
        self,
        recorder: Recorder,
        session: Session,
        paths: Tuple[Tuple[str, str], ...],
        strict: bool = False,
    ) -> None:
        self.recorder = recorder
        self.session = checked(session)
        #: Endings of paths, and the API that is there.
        self.paths = paths
        #: Whether requests may be of anybody, so that their bodies say whether they are calls.
        self.strict = strict

    def begin(self, request: Any) -> Optional[Call]:
        """Notes a request, if it is a call. Raises nothing."""
        try:
            if request.method != "POST":
                return None
            path = request.url.path
            for ending, api in self.paths:
                if path.endswith(ending):
                    if self.strict and not hasattr(request, "_content"):
                        # A body that comes in pieces is none of an API.
                        return None
                    body: Any = request.content
                    size = len(body)
                    if api == "gemini":
                        model = path.rpartition("/")[2].partition(":")[0]
                        body = functools.partial(with_model, body, "model", model)
                    elif self.strict:
                        body = functools.partial(_checked, body, "input" if "responses" in api else "messages")
                    return self.call(api, body, size)
        except Exception as error:  # noqa: BLE001 - nothing may reach the caller
            self.failed(error)
        return None

    def call(self, api: str, body: Any, size: int) -> Call:
        """Begins a call."""
        session = self.session() if callable(self.session) else self.session
        outer = around.get()
        if outer is not None and not outer.done and outer.recorder.shares(self.recorder):
            outer.is_sent, session = True, outer.session
        # A context variable may have no name yet.
        call = Call(self.recorder, api, "recording" if session is None else str(session), body)
        call.size = size
        return call

    def attach(self, call: Call, response: Any, kind: int) -> None:
        """Notes a response, whose pieces go on to be noted: 0 for a stream that is read, 1 for one that is awaited. Raises
        nothing."""
        try:
            call.status = response.status_code
            call.headers = response.headers
            if hasattr(response, "_content"):
                # One that was never on the wire, as of a transport for tests. It is not compressed any more.
                call.headers = response.headers.copy()
                call.headers.pop("content-encoding", None)
                call.chunks.append(response.content)
                call.finish()
            else:
                tee = _tees(_package(response))[kind]
                response.stream = tee(response.stream, call)
        except Exception as error:  # noqa: BLE001
            self.failed(error)

    def failed(self, error: Exception) -> None:
        try:
            self.recorder._failed(f"{type(error).__name__}: {error}")
        except Exception:  # noqa: BLE001
            pass


def with_model(body: bytes, name: str, model: str) -> Optional[str]:
    """The body of a request whose address has the model, with the model in it."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return json.dumps({name: model, **value}, ensure_ascii=False) if isinstance(value, dict) else None


def _checked(body: bytes, name: str) -> Optional[bytes]:
    """A body that is one of an API: it has a model and this member."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return body if isinstance(value, dict) and "model" in value and name in value else None


class _Tee:
    """What both kinds of streams share."""

    def __init__(self, inner: Any, call: Call) -> None:
        self._inner = inner
        self._call = call

    def _end(self, whole: bool) -> None:
        if whole:
            self._call.finish()
        else:
            self._call.stop()

    def __del__(self) -> None:
        # A stream that nobody read to its end, nor closed.
        try:
            self._end(False)
        except Exception:  # noqa: BLE001
            pass


class _SyncTee(_Tee):
    """Notes the pieces of a response."""

    def __iter__(self) -> Iterator[bytes]:
        chunks = self._call.chunks
        try:
            for chunk in self._inner:
                chunks.append(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            self._call.fail(error)
            raise
        self._end(True)

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._end(False)


class _AsyncTee(_Tee):
    """Notes the pieces of a response."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = self._call.chunks
        try:
            async for chunk in self._inner:
                chunks.append(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:
            self._call.fail(error)
            raise
        self._end(True)

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._end(False)


class _Transport:
    """What both kinds of transports share."""

    def __init__(self, inner: Any, tap: Tap) -> None:
        self.inner = inner
        self.tap = tap

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def without(transport: Any, recorder: Recorder) -> Any:
    """The transport without those around it that record into the store of a recorder."""
    if not isinstance(transport, _Transport):
        return transport
    inner = without(transport.inner, recorder)
    if transport.tap.recorder.shares(recorder):
        return inner
    return transport if inner is transport.inner else type(transport)(inner, transport.tap)


class SyncTransport(_Transport):
    """A transport that notes calls and leaves them as they are."""

    def handle_request(self, request: Any) -> Any:
        call = self.tap.begin(request)
        if call is None:
            return self.inner.handle_request(request)
        try:
            response = self.inner.handle_request(request)
        except BaseException as error:
            call.fail(error)
            raise
        self.tap.attach(call, response, 0)
        return response

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> "SyncTransport":
        self.inner.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.inner.__exit__(*error)


class AsyncTransport(_Transport):
    """A transport that notes calls and leaves them as they are."""

    async def handle_async_request(self, request: Any) -> Any:
        call = self.tap.begin(request)
        if call is None:
            return await self.inner.handle_async_request(request)
        try:
            response = await self.inner.handle_async_request(request)
        except BaseException as error:
            call.fail(error)
            raise
        self.tap.attach(call, response, 1)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()

    async def __aenter__(self) -> "AsyncTransport":
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.inner.__aexit__(*error)


def _package(value: Any) -> ModuleType:
    """The package, `httpx` or another of its interface, that a value is of; subclasses may be of others."""
    for kind in type(value).__mro__:
        package = sys.modules.get(kind.__module__.partition(".")[0])
        if package is not None and hasattr(package, "SyncByteStream"):
            return package
    raise TypeError(f"expected a response of `httpx`, found `{type(value).__qualname__}`")


@functools.lru_cache(maxsize=None)
def _tees(package: ModuleType) -> Tuple[type, type]:
    """The streams of a package, which asks its own for their class."""
    return (
        type("SyncTee", (_SyncTee, package.SyncByteStream), {}),
        type("AsyncTee", (_AsyncTee, package.AsyncByteStream), {}),
    )
