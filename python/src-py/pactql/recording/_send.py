"""Recording where HTTP clients send: the public method `send` of `httpx.Client` and `AsyncClient`.

Every request of a client comes through it, whichever transport it has. `record_all` puts itself around the method of the
classes, `record` of a Gemini client around that of its own HTTP clients.
"""

from __future__ import annotations

import functools
import importlib
import threading
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from ._call import Call
from ._recorder import Recorder, Redact
from ._transport import Tap, without

#: Packages of the interface of `httpx`.
_PACKAGES = ("httpx", "httpx2")

_lock = threading.Lock()
#: What records everywhere now.
_taps: Tuple[Tap, ...] = ()
#: The methods that were there before.
_originals: Dict[Any, Any] = {}


def everywhere(
    store: Any,
    session: Union[str, Callable[[], Optional[str]]],
    redact: Redact,
    paths: Tuple[Tuple[str, str], ...],
) -> Recorder:
    """Records the calls of all HTTP clients until the recorder is closed."""
    global _taps
    recorder = _Everywhere(store, redact=redact)
    if recorder.closed:
        return recorder
    tap = Tap(recorder, session, paths, strict=True)
    with _lock:
        again = [known for known in _taps if not known.recorder.shares(recorder)]
        _taps = (*again, tap)
        for name in _PACKAGES:
            try:
                package = importlib.import_module(name)
            except ImportError:
                continue
            for kind, wrap in ((package.Client, sync_send), (package.AsyncClient, async_send)):
                if kind not in _originals:
                    _originals[kind] = kind.send
                    kind.send = wrap(kind.send, _everybody)
    return recorder


class _Everywhere(Recorder):
    """A recorder of all clients: closing it ends that."""

    def close(self, *arguments: Any, **more: Any) -> bool:
        """Writes what waits, and records no more: clients send as before."""
        global _taps
        with _lock:
            _taps = tuple(tap for tap in _taps if tap.recorder is not self)
            if not _taps:
                for kind, original in _originals.items():
                    kind.send = original
                _originals.clear()
        return super().close(*arguments, **more)


def current() -> Optional[Recorder]:
    """The recorder of all clients, if there is one."""
    return _taps[-1].recorder if _taps else None


def _everybody(client: Any) -> List[Tap]:
    """What records the calls of a client that does not record itself."""
    transport = getattr(client, "_transport", None)
    return [tap for tap in _taps if without(transport, tap.recorder) is transport]


def _begun(taps: Any, request: Any) -> List[Tuple[Tap, Call]]:
    pairs = ((tap, tap.begin(request)) for tap in taps)
    return [(tap, call) for tap, call in pairs if call is not None]


def sync_send(original: Any, taps: Callable[[Any], List[Tap]]) -> Any:
    """The method `send` of a client, which notes calls."""

    @functools.wraps(original)
    def send(self: Any, request: Any, **options: Any) -> Any:
        calls = _begun(taps(self), request)
        try:
            response = original(self, request, **options)
        except BaseException as error:
            for _, call in calls:
                call.fail(error)
            raise
        for tap, call in calls:
            tap.attach(call, response, 0)
        return response

    return send


def async_send(original: Any, taps: Callable[[Any], List[Tap]]) -> Any:
    """The method `send` of an asynchronous client, which notes calls."""

    @functools.wraps(original)
    async def send(self: Any, request: Any, **options: Any) -> Any:
        calls = _begun(taps(self), request)
        try:
            response = await original(self, request, **options)
        except BaseException as error:
            for _, call in calls:
                call.fail(error)
            raise
        for tap, call in calls:
            tap.attach(call, response, 1)
        return response

    return send
