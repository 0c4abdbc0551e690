"""`pactql.open`: whatever a path or a list of messages is, as a session or a store."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from ._errors import InputError, InputMissing
from ._pactql import Session, Store, _agent_logs, import_log

_SQLITE = b"SQLite format 3\0"
_GZIP = b"\x1f\x8b"
_NAMES = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
"""How files end that are read of a folder of logs."""


def open(source: Any = None, /, *, name: str | None = None) -> Session | Store:
    """Opens a session, a log of an agent, a store, or a list of messages.

    A path to a session or a log, or a folder of them, is a `Session`, also where it is compressed by gzip; `store.db` is a
    `Store`, read only, and `store.db#name` one session of it. A list of dictionaries is the messages of one conversation,
    and an iterator of texts the lines of a log. Where there are several sessions, `name` says which. Without anything it is
    the log that an agent wrote last on this machine.

    >>> pactql.open("fixtures/support-agent.jsonl")
    <Session of 6 snapshots>
    >>> pactql.open("fixtures/chat.openai.json")
    <Session "chat.openai" of 5 snapshots>
    >>> len(pactql.open([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]))
    1
    """
    if source is None:
        return _newest(name)
    if not isinstance(source, (str, os.PathLike)):
        return _one(import_log(_text(source)).sessions, name, "the log")
    path = os.fspath(source)
    if path.startswith(("postgres://", "postgresql://", "sqlite:")):
        url, mark, inside = path.partition("#")
        return _stored(url, inside if mark else name)
    file, mark, inside = path.partition("#")
    if mark and not os.path.exists(path):
        if _begins(file, _SQLITE):
            return _stored(file, inside)
        return open(file, name=inside)
    if _begins(path, _SQLITE):
        return _stored(path, name)
    if os.path.isdir(path):
        return _folder(path, name)
    return _one(_file(path), name, path)


def _file(path: str) -> list[Session]:
    """The sessions of a file that is no store."""
    if not os.path.exists(path):
        raise InputMissing(f"{path} does not exist", code="E_MISSING")
    with gzip.open(path, "rb") if _begins(path, _GZIP) else _raw(path) as file:
        data: bytes = file.read()
    stem = os.path.basename(path)
    for ending in (".gz", ".json", ".jsonl"):
        stem = stem.removesuffix(ending)
    if _is_session(data):
        return [Session.open(path) if not _begins(path, _GZIP) else Session.parse(data)]
    return import_log(data, name=stem).sessions if _begins(path, _GZIP) else import_log(path).sessions


def _raw(path: str) -> Any:
    import io

    return io.open(path, "rb")


def _is_session(data: bytes) -> bool:
    """Whether a file has snapshots: its first value is an object with a root, or what changes one."""
    for text in (data.split(b"\n", 1)[0], data):
        try:
            first = json.loads(text)
        except ValueError:
            continue
        return isinstance(first, dict) and ("root" in first or "base" in first)
    return False


def _folder(path: str, name: str | None) -> Session:
    """A folder of snapshots, or of logs."""
    files = sorted(_below(path))
    first = next((file for file in files if not file.endswith(".gz")), None)
    if first is not None:
        with _raw(first) as file:
            if _is_session(file.read()) and os.path.dirname(first) == os.path.normpath(path):
                return Session.open(path)
    found: list[Session] = []
    for file in files:
        try:
            found += _file(file)
        except InputError:
            continue
    if not found:
        raise InputError(f"{path} has no files of snapshots, and no logs", code="E_INPUT")
    return _one(found, name, path)


def _below(path: str) -> Iterator[str]:
    for folder, _, files in os.walk(os.path.normpath(path)):
        for file in files:
            if file.endswith(_NAMES):
                yield os.path.join(folder, file)


def _newest(name: str | None) -> Session:
    """The log that was written last, of those that have one session."""
    places = [os.fspath(place) for place in _agent_logs()]
    files = [file for place in places for file in (_below(place) if os.path.isdir(place) else [place])]
    files = [file for file in files if os.path.isfile(file)]
    for file in sorted(files, key=os.path.getmtime, reverse=True):
        try:
            sessions = import_log(file).sessions
        except (InputError, OSError):
            continue
        if sessions and (name is None or any(each.name == name for each in sessions)):
            return _one(sessions if name is not None else sessions[:1], name, file)
    raise InputMissing("there are no logs of agents in " + ", ".join(places), code="E_MISSING")


def _stored(url: str, name: str | None) -> Session | Store:
    store = Store.open(url, create=False, read_only=True)
    return store if name is None else store.session(name)


def _begins(path: str, bytes: bytes) -> bool:
    if not os.path.isfile(path):
        return False
    with _raw(path) as file:
        begin: Any = file.read(len(bytes))
    return bool(begin == bytes)


def _text(source: Any) -> bytes:
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
        return gzip.decompress(data) if data.startswith(_GZIP) else data
    if isinstance(source, dict):
        return json.dumps(source, ensure_ascii=False).encode()
    if not isinstance(source, Iterable):
        raise TypeError(f"expected a path, messages or lines of a log, not {type(source).__name__}")
    found = list(source)
    if all(isinstance(each, str) for each in found):
        return "\n".join(each.rstrip("\n") for each in found).encode()
    if all(isinstance(each, (bytes, bytearray)) for each in found):
        return b"\n".join(bytes(each).rstrip(b"\n") for each in found)
    return json.dumps(found, ensure_ascii=False).encode()


def _one(sessions: list[Session], name: str | None, where: str) -> Session:
    chosen = [session for session in sessions if name is None or session.name == name]
    if len(chosen) == 1 or (len(sessions) == 1 and sessions[0].name is None and name is None):
        return chosen[0]
    names = ", ".join(repr(session.name) for session in sessions)
    if name is not None:
        raise KeyError(f"{where} has no session {name!r}; it has {names}")
    raise ValueError(f"{where} has {len(sessions)} sessions; `name=` says which: {names}")
