"""`pactql.open`: whatever a path or a list of messages is, as a session or a store."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from ._errors import InputError
from ._pactql import Session, Store, import_log

_SQLITE = b"SQLite format 3\0"


def open(source: Any, /, *, name: str | None = None) -> Session | Store:
    """Opens a session, a log of an agent, a store, or a list of messages.

    A path to a session or a log is a `Session`; `store.db` is a `Store`, read only, and `store.db#name` one session of it. A
    list of dictionaries is the messages of one conversation, and an iterator of texts the lines of a log. Where a log has
    several sessions, `name` says which.

    >>> pactql.open("fixtures/support-agent.jsonl")
    <Session of 6 snapshots>
    >>> pactql.open("fixtures/chat.openai.json")
    <Session "chat.openai" of 5 snapshots>
    >>> len(pactql.open([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]))
    1
    """
    if not isinstance(source, (str, os.PathLike)):
        return _one(import_log(_text(source)).sessions, name, "the log")
    path = os.fspath(source)
    if path.startswith(("postgres://", "postgresql://", "sqlite:")):
        return _stored(path, name)
    file, mark, inside = path.partition("#")
    if mark and not os.path.exists(path):
        return _stored(file, inside)
    if _begins(path, _SQLITE):
        return _stored(path, name)
    try:
        return Session.open(path)
    except InputError as error:
        if os.path.isdir(path):
            raise
        try:
            sessions = import_log(path).sessions
        except InputError:
            raise error from None
    return _one(sessions, name, path)


def _stored(url: str, name: str | None) -> Session | Store:
    store = Store.open(url, create=False, read_only=True)
    return store if name is None else store.session(name)


def _begins(path: str, bytes: bytes) -> bool:
    if not os.path.isfile(path):
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, len(bytes)) == bytes
    finally:
        os.close(descriptor)


def _text(source: Any) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if not isinstance(source, Iterable):
        raise TypeError(f"expected a path, messages or lines of a log, not {type(source).__name__}")
    found = list(source)
    if all(isinstance(each, str) for each in found):
        return "\n".join(each.rstrip("\n") for each in found).encode()
    return json.dumps(found, ensure_ascii=False).encode()


def _one(sessions: list[Session], name: str | None, where: str) -> Session:
    chosen = [session for session in sessions if name is None or session.name == name]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(repr(session.name) for session in sessions)
    if name is not None:
        raise KeyError(f"{where} has no session {name!r}; it has {names}")
    raise ValueError(f"{where} has {len(sessions)} sessions; `name=` says which: {names}")
