"""Clients of providers that record: `record`, and all of a process: `record_all`."""

from __future__ import annotations

import copy
import functools
import os
import sys
import weakref
from typing import Any, Callable, Optional, Tuple, TypeVar, Union

from .._pactql import Store
from . import _bedrock, _send
from ._recorder import Recorder, Redact, is_off
from ._transport import AsyncTransport, SyncTransport, Tap, without

Client = TypeVar("Client")

#: Endings of the paths of calls, and the API there.
_OPENAI = (("/chat/completions", "openai"), ("/responses", "openai-responses"))
_ANTHROPIC = (("/messages", "anthropic"),)
_GEMINI = ((":generateContent", "gemini"), (":streamGenerateContent", "gemini"))
_BEDROCK = (("", "bedrock"),)


def record(
    client: Client,
    store: Union[str, "os.PathLike[str]", Store, Recorder],
    session: Union[str, Callable[[], Optional[str]]] = "recording",
    *,
    redact: Redact = None,
) -> Client:
    """A client of the same type that does the same, and records every call into a store.

    ``client`` is an ``openai.OpenAI``, ``AsyncOpenAI``, ``anthropic.Anthropic`` or ``AsyncAnthropic``, or of a class
    made from one, a ``google.genai.Client``, or a ``boto3`` client of ``bedrock-runtime``. The one that is returned
    shares its connections; ``with_options`` and ``copy`` of it record, too.

    ``store`` is the path of a SQLite file, ``postgres://…``, a `Store`, or a `Recorder`. ``session`` names the session, or is a
    function that gives the name at each call, such as ``variable.get`` of a context variable (``recording`` where it gives
    ``None``). A call goes on with the
    session of that name that it shares its longest beginning with; other conversations are ``session/2``, ….

    ``redact`` says what is taken out before anything is written: patterns (regular expressions, also compiled ones) beside the built-in
    ones for keys, or a function that is given each request, each response and what an API says of an error, as a
    parsed value (or a string, if it is no JSON), and returns what to keep, or ``None`` to record nothing of the call.
    ``False`` turns the built-in patterns off.

    A client that records into this store already goes on doing so once, with the new session.

    With the environment variable ``PACTQL_RECORD=0`` (or ``off``, ``no``, ``false``) the client is returned as it is.

    Raises `TypeError` for other clients, and `ValueError` for a pattern that is not valid and for a closed recorder.
    """
    paths = paths_of(client)
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
    tap = Tap(recorder, session, paths)
    if paths is _BEDROCK:
        recorded = _bedrock.recorded(client, tap)
        _taps[recorded] = tap
        return recorded  # type: ignore[no-any-return]
    if paths is _GEMINI:
        return _gemini(client, tap)  # type: ignore[no-any-return]
    inner = client._client  # type: ignore[attr-defined]
    wrap = AsyncTransport if hasattr(inner, "aclose") else SyncTransport

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


def recorder(client: Any) -> Recorder:
    """The recorder of a client that `record` has made, or of all clients (`record_all`). Where recording is turned off,
    one that records nothing.

    Raises `ValueError` of a client that is not recorded.
    """
    tap = getattr(getattr(getattr(client, "_client", None), "_transport", None), "tap", None)
    tap = tap or _taps.get(client) if _hashable(client) else tap
    found = getattr(tap, "recorder", None) or _send.current()
    if isinstance(found, Recorder):
        return found
    if is_off():
        return Recorder("")
    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    raise ValueError(f"this `{kind}` is not recorded; `pactql.record` returns the client that is")


def record_all(
    store: Union[str, "os.PathLike[str]", Store],
    session: Union[str, Callable[[], Optional[str]]] = "recording",
    *,
    redact: Redact = None,
) -> Recorder:
    """Records the calls of every client of this process that goes over ``httpx``, also of those that frameworks make and
    of those that were made before: LiteLLM, LangChain, pydantic-ai, openai-agents and others.

    The arguments are those of `record`. Which requests are calls is seen by their address and body: Chat Completions,
    Responses, Messages and Gemini. ``close()`` of the recorder that is returned turns it off again.

    >>> recorder = pactql.record_all("agent.db")
    >>> recorder.close()        # writes what waits
    True
    """
    return _send.everywhere(store, session, redact, (*_OPENAI, *_ANTHROPIC, *_GEMINI))


#: What records clients that have no place for it.
_taps: "weakref.WeakKeyDictionary[Any, Tap]" = weakref.WeakKeyDictionary()


def _hashable(client: Any) -> bool:
    try:
        return hash(client) is not None and weakref.ref(client) is not None
    except TypeError:
        return False


def _gemini(client: Any, tap: Tap) -> Any:
    """A client of `google.genai` whose HTTP clients note calls."""
    api = client._api_client
    other = copy.copy(api)
    for name, wrap in (("_httpx_client", _send.sync_send), ("_async_httpx_client", _send.async_send)):
        inner = getattr(api, name)
        if inner is None:
            continue
        http = copy.copy(inner)
        kind: Any = type(inner)
        http.__class__ = _shared(kind)
        # One that records already goes on doing so once.
        taps = [each for each in getattr(inner, "_pactql", ()) if not each.recorder.shares(tap.recorder)]
        http._pactql = [*taps, tap]
        http.send = functools.partial(wrap(kind.send, lambda http: http._pactql), http)
        weakref.finalize(http, _let_go, inner).atexit = False
        setattr(other, name, http)
    # It would go around `httpx` where `aiohttp` is installed.
    other._use_aiohttp = lambda: False
    # Everything of the client that has the old one gets this one.
    recorded = copy.deepcopy(client, {id(api): other})
    _taps[recorded] = tap
    return recorded


@functools.lru_cache(maxsize=None)
def _shared(kind: Any) -> Any:
    """A class of HTTP clients that leaves its connections open when it is collected."""
    return type(kind.__name__, (kind,), {"__del__": _let_go, "__module__": kind.__module__})


def _let_go(_: Any) -> None:
    pass


def paths_of(client: Any) -> Tuple[Tuple[str, str], ...]:
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
    if isinstance(client, getattr(sys.modules.get("google.genai"), "Client", ())):
        return _GEMINI
    if _bedrock.is_client(client):
        return _BEDROCK
    kind = f"{type(client).__module__}.{type(client).__qualname__}"
    raise TypeError(
        f"expected a client of `openai`, `anthropic`, `google.genai` or `boto3` (bedrock-runtime), found `{kind}`; "
        "`pactql.record_all` records the clients that frameworks make"
    )
