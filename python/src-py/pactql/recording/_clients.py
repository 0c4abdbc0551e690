"""Clients of providers that record: `record`."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any, Callable, Optional, Tuple, TypeVar, Union

from ._recorder import Recorder, Redact
from ._transport import AsyncTransport, SyncTransport, Tap

Client = TypeVar("Client")

#: Endings of the paths of calls, and the API there.
_OPENAI = (("/chat/completions", "openai"), ("/responses", "openai-responses"))
_ANTHROPIC = (("/messages", "anthropic"),)


def record(
    client: Client,
    store: Union[str, "os.PathLike[str]", Recorder],
    session: Union[str, Callable[[], str]] = "recording",
    *,
    redact: Redact = None,
) -> Client:
    """A client of the same type that does the same, and records every call into a store.

    ``client`` is an ``openai.OpenAI``, ``AsyncOpenAI``, ``anthropic.Anthropic`` or ``AsyncAnthropic``, or of a class
    made from one. The one that is returned shares its connections; ``with_options`` and ``copy`` of it record, too.

    ``store`` is the path of a SQLite file, ``postgres://…``, or a `Recorder`. ``session`` names the session, or is a
    function that gives the name at each call, such as ``variable.get`` of a context variable. A call goes on with the
    session of that name that it shares its longest beginning with; other conversations are ``session/2``, ….

    ``redact`` says what is taken out before anything is written: patterns (regular expressions) beside the built-in
    ones for keys, or a function that is given each request and response as a parsed value and returns what to keep,
    or ``None`` to record nothing of the call. ``False`` turns the built-in patterns off.

    With the environment variable ``PACTQL_RECORD=0`` the client is returned as it is.

    Raises `TypeError` for other clients, and `ValueError` for a pattern that is not valid.
    """
    paths = _paths(client)
    if os.environ.get("PACTQL_RECORD") == "0":
        return client
    if isinstance(store, Recorder):
        if redact is not None:
            raise ValueError("`redact` is an argument of the recorder that is given")
        recorder = store
    else:
        recorder = Recorder(store, redact=redact)
    inner = client._client  # type: ignore[attr-defined]
    wrap = AsyncTransport if hasattr(inner, "aclose") else SyncTransport
    tap = Tap(recorder, session, paths)
    # Its settings, hooks, cookies and connections are those of the client's own.
    http = copy.copy(inner)
    http._transport = wrap(inner._transport, tap)
    http._mounts = {
        pattern: None if mounted is None else wrap(mounted, tap)
        for pattern, mounted in inner._mounts.items()
    }
    # That one closes the connections when it is collected.
    http._pactql_shared = inner
    return client.copy(http_client=http)  # type: ignore[attr-defined,no-any-return]


def recorder(client: Any) -> Optional[Recorder]:
    """The recorder of a client that `record` has made; ``None`` of any other."""
    tap = getattr(getattr(getattr(client, "_client", None), "_transport", None), "tap", None)
    found = getattr(tap, "recorder", None)
    return found if isinstance(found, Recorder) else None


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
