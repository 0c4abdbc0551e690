"""`pactql.open`: whatever a path or a list of messages is, as a session or a store."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, overload

from ._errors import InputError, InputMissing, SessionNotFound, StoreError
from ._pactql import Session, Store, _logs_by_time, _open_path, import_log

_SQLITE = b"SQLite format 3\0"
_NAMED = 20
"""How many sessions a message names."""


@overload
def open(source: None = None, /, *, name: str | None = None) -> Session: ...
@overload
def open(source: str | os.PathLike[str], /, *, name: str) -> Session: ...
@overload
def open(source: str | os.PathLike[str], /, *, name: None = None) -> Session | Any: ...
@overload
def open(source: Iterable[Any] | Mapping[str, Any], /, *, name: str | None = None) -> Session: ...
def open(source: Any = None, /, *, name: str | None = None) -> Session | Any:
    """Opens a session, a log of an agent, a store, or a list of messages.

    A path to a session or a log, or a folder of them, is a `Session`, also where it is packed by gzip or Zstandard;
    `store.db` is a `Store`, read only, and `store.db#name` one session of it. A list of dictionaries is the messages of one
    conversation, and an iterator of texts the lines of a log. Bytes are a log themselves, or else a path, as it is for
    `open` of Python: one line without a bracket or a brace is no log. Where there are several sessions, `name` says which: they
    have the names that `pactql import` gives them. A log has one session beside its branches and subagents, which are
    opened by their names. What is left out is a warning, and a damaged session of a store in a folder raises where it is
    named. Without anything it is the log that an agent wrote last on this
    machine.

    >>> pactql.open("fixtures/support-agent.jsonl")
    <Session of 6 snapshots>
    >>> pactql.open("fixtures/chat.openai.json")
    <Session "chat.openai" of 5 snapshots>
    >>> len(pactql.open([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]))
    1
    """
    if source is None:
        return _newest(name)
    if isinstance(source, bytes) and source and not any(sign in source for sign in b"\n{["):
        source = os.fsdecode(source)
    if not isinstance(source, (str, os.PathLike)):
        return _one([(each, False) for each in import_log(_text(source)).sessions], name, "the log")
    path = os.fspath(source)
    if path.startswith(("postgres://", "postgresql://", "sqlite:")):
        url, mark, inside = path.partition("#")
        return _stored(url, inside if mark else name)
    file, mark, inside = path.partition("#")
    if mark and not os.path.exists(path):
        return open(file, name=inside)
    refused = None
    if _is_sqlite(path):
        try:
            return _stored(path, name)
        except SessionNotFound:
            raise
        except StoreError as error:
            # Agents keep logs in such a file, too.
            refused = error
    try:
        sessions, notes, damaged = _open_path(path)
    except InputError as error:
        raise refused or error from None
    for known, why in damaged:
        if known == name:
            raise why
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return _one(sessions, name, path)


def _newest(name: str | None) -> Session:
    """The log that was written last, of those that have one session."""
    for path in _logs_by_time():
        try:
            sessions, _, _ = _open_path(path)
        except (InputError, OSError):
            continue
        if name is None:
            sessions = [each for each in sessions if not each[1]][:1]
        if any(name in (None, session.name) for session, _ in sessions):
            return _one(sessions, name, path)
    raise InputMissing(f"no log of an agent on this machine has a session {name or ''}".rstrip(), code="E_MISSING")


def _stored(url: str, name: str | None) -> Session | Store:
    store = Store.open(url, create=False, read_only=True)
    return store if name is None else store.session(name)


def _is_sqlite(path: str) -> bool:
    import io

    if not os.path.isfile(path):
        return False
    with io.open(path, "rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _text(source: Any) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, dict):
        return json.dumps(source).encode()
    if not isinstance(source, Iterable):
        raise TypeError(f"expected a path, messages or lines of a log, not {type(source).__name__}")
    found = list(source)
    if not found:
        raise InputError("expected messages, or lines of a log, and there are none", code="E_INPUT")
    if all(isinstance(each, str) for each in found):
        # Half a surrogate pair, which is no UTF-8, reads as it does where it is escaped in a file.
        text = "\n".join(each.rstrip("\n") for each in found)
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
    if all(isinstance(each, (bytes, bytearray)) for each in found):
        return b"\n".join(bytes(each).rstrip(b"\n") for each in found)
    return json.dumps(found).encode()


def _one(sessions: list[tuple[Session, bool]], name: str | None, where: str) -> Session:
    """The session of a name; without one, the only one that is no branch or subagent of another."""
    chosen = [session for session, belongs in sessions if (not belongs if name is None else session.name == name)]
    names = ", ".join(repr(session.name) for session, _ in sessions[:_NAMED]) + (", …" if len(sessions) > _NAMED else "")
    if len(chosen) == 1:
        left_out = len(sessions) - 1
        if name is None and left_out:
            parts = "1 branch or subagent" if left_out == 1 else f"{left_out} branches and subagents"
            warnings.warn(f"left out {parts} of {where}; `name=` opens one: {names}", stacklevel=3)
        return chosen[0]
    if name is not None:
        raise KeyError(f"{where} has no session {name!r}; it has {names}")
    raise ValueError(f"{where} has {len(chosen)} sessions; `name=` says which: {names}")
