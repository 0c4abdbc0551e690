"""Recording clients of `boto3` for Bedrock: `converse` and `converse_stream`, by the events that `botocore` documents."""

from __future__ import annotations

import base64
import copy
import json
from functools import partial
from typing import Any, Iterator
from urllib.parse import unquote

from ._transport import Tap, with_model

_OPERATIONS = ("Converse", "ConverseStream")


def is_client(client: Any) -> bool:
    """Whether it is one of Bedrock's runtime."""
    model = getattr(getattr(client, "meta", None), "service_model", None)
    return getattr(model, "service_name", None) == "bedrock-runtime"


def recorded(client: Any, tap: Tap) -> Any:
    """A client of the same class, whose calls are noted. It shares the connections."""
    # Its class answers for attributes that it does not have yet.
    other = object.__new__(type(client))
    other.__dict__.update(client.__dict__)
    other.meta = copy.copy(client.meta)
    events = other.meta.events = copy.copy(client.meta.events)
    for operation in _OPERATIONS:
        of = f"bedrock-runtime.{operation}"
        name = f"pactql-{tap.recorder.store}"
        for event, handler in (("before-call", _begin), ("after-call", _end), ("after-call-error", _fail)):
            # A client that records into the store already goes on doing so once.
            events.unregister(f"{event}.{of}", unique_id=f"{name}-{event}-{of}")
            events.register_last(f"{event}.{of}", partial(handler, tap), unique_id=f"{name}-{event}-{of}")
    return other


def _begin(tap: Tap, params: Any = None, context: Any = None, **_: Any) -> None:
    try:
        model = unquote(params["url_path"].split("/model/", 1)[-1].rsplit("/", 1)[0])
        body = params["body"]
        call = tap.call("bedrock", partial(with_model, body, "modelId", model), len(body))
        context.setdefault("pactql", []).append((tap, call))
    except Exception as error:  # noqa: BLE001 - nothing may reach the caller
        tap.failed(error)


def _calls(tap: Tap, context: Any) -> Any:
    return [call for other, call in (context or {}).get("pactql", ()) if other is tap]


def _end(tap: Tap, http_response: Any = None, parsed: Any = None, context: Any = None, **_: Any) -> None:
    try:
        for call in _calls(tap, context):
            call.status = http_response.status_code
            call.headers = http_response.headers
            stream = (parsed or {}).get("stream")
            if stream is None:
                call.chunks.append(http_response.content)
                call.finish()
            else:
                call.headers = {"content-type": "text/event-stream"}
                parsed["stream"] = _Stream(stream, call)
    except Exception as error:  # noqa: BLE001
        tap.failed(error)


def _fail(tap: Tap, exception: Any = None, context: Any = None, **_: Any) -> None:
    for call in _calls(tap, context):
        call.fail(exception)


class _Stream:
    """An event stream whose events are noted."""

    def __init__(self, inner: Any, call: Any) -> None:
        self._inner = inner
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[Any]:
        try:
            for event in self._inner:
                self._call.chunks.append(b"data: " + json.dumps(event, default=_text).encode() + b"\n\n")
                yield event
        except GeneratorExit:
            raise
        except BaseException as error:
            self._call.fail(error)
            raise
        self._call.finish()

    def close(self) -> None:
        """Closes the connection."""
        try:
            self._inner.close()
        finally:
            self._call.stop()

    def __del__(self) -> None:
        self._call.stop()


def _text(value: Any) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
