"""Clients of providers that record: `record`."""

from __future__ import annotations

import copy
import functools
import os
import sys
import weakref
from typing import Any, Callable, Optional, Tuple, TypeVar, Union

from ._recorder import Recorder, Redact, is_off
from ._transport import AsyncTransport, SyncTransport, Tap, without

Client = TypeVar("Client")

#: Endings of the paths of calls, and the API there.
_OPENAI = (("/chat/completions", "openai"), ("/responses", "openai-responses"))
_ANTHROPIC = (("/messages", "anthropic"),)


def record(
    client: Client,
    store: Union[str, "os.PathLike[str]", Recorder],
    session: Union[str, Callable[[], Optional[str]]] = "recording",
    *,
    redact: Redact = None,
) -> Client:
    """A client of the same type that does the same, and records every call into a store.

    ``client`` is an ``openai.OpenAI``, ``AsyncOpenAI``, ``anthropic.Anthropic`` or ``AsyncAnthropic``, or of a class
    made from one. The one that is returned shares its connections; ``with_options`` and ``copy`` of it record, too.

    ``store`` is the path of a SQLite file, ``postgres://…``, or a `Recorder`. ``session`` names the session, or is a
    function that gives the name at each call, such as ``variable.get`` of a context variable (``recording`` where it gives
    ``None``). A call goes on with the
    session of that name that it shares its longest beginning with; other conversations are ``session/2``, ….

    ``redact`` says what is taken out before anything is written: patterns (regular expressions) beside the built-in
    ones for keys, or a function that is given each request, each response and what an API says of an error, as a
    parsed value (or a string, if it is no JSON), and returns what to keep, or ``None`` to record nothing of the call.
    ``False`` turns the built-in patterns off.

    A client that records into this store already goes on doing so once, with the new session.

    With the environment variable ``PACTQL_RECORD=0`` (or ``off``, ``no``, ``false``) the client is returned as it is.

    Raises `TypeError` for other clients, and `ValueError` for a pattern that is not valid and for a closed recorder.
    """
    paths = _paths(client)
    if is_off():
        return client
    if isinstance(store, Recorder):
        if redact is not None:
            raise ValueError("`redact` is an argument of the recorder that is given")
        if store.closed:
            raise ValueError("the recorder is closed")
        recorder = store
    else:
        recorder = Recorder(store, redact=redact)
    inner = client._client  # type: ignore[attr-defined]
    wrap = AsyncTransport if hasattr(inner, "aclose") else SyncTransport
    tap = Tap(recorder, session, paths)

    def tapped(transport: Any) -> Any:
        return None if transport is None else wrap(without(transport, recorder), tap)

    # Its settings, hooks, cookies and connections are those of the client's own.
    http = copy.copy(inner)
    kind: Any = type(inner)
    http.__class__ = _shared(kind)
    http._transport = tapped(inner._transport)
    http._mounts = {pattern: tapped(mounted) for pattern, mounted in inner._mounts.items()}
    # Whoever is collected last closes the connections: the client's own, which lives as long as this one.
    weakref.finalize(http, _let_go, inner).atexit = False
    return client.copy(http_client=http)  # type: ignore[attr-defined,no-any-return]


def recorder(client: Any) -> Optional[Recorder]:
    """The recorder of a client that `record` has made; ``None`` of any other. Where recording is turned off, one that
    records nothing."""
    tap = getattr(getattr(getattr(client, "_client", None), "_transport", None), "tap", None)
    found = getattr(tap, "recorder", None)
    if isinstance(found, Recorder):
        return found
    return Recorder("") if is_off() else None


@functools.lru_cache(maxsize=None)
def _shared(kind: Any) -> Any:
    """A class of HTTP clients that leaves its connections open when it is collected."""
    return type(kind.__name__, (kind,), {"__del__": _let_go, "__module__": kind.__module__})


def _let_go(_: Any) -> None:
    pass


def _paths(client: Any) -> Tuple[Tuple[str, str], ...]:
    """Where a client makes its calls."""
    for package, names, paths in (
        ("openai", ("OpenAI", "AsyncOpenAI"), _OPENAI),
        ("anthropic", ("Anthropic", "AsyncAnthropic"), _ANTHROPIC),
    ):
        # Whoever has a client of a package has imported it.
        module = sys.modules.get(package)
        classes = tuple(
            known for name in names if isinstance(known := getattr(module, name, None), type)
        )
        if isinstance(client, classes):
            return paths
    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    raise TypeError(
        f"expected a client of `openai` or `anthropic`, found `{kind}`; "
        "`pactql.langchain.RecordingHandler` records LangChain"
    )
