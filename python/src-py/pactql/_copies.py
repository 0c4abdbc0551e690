"""Copies: what is immutable is its own copy, and what is pickled comes back with the same nodes.

A session is pickled with its snapshots, a selection and a node with the snapshots they are from, so that a worker of
`multiprocessing` needs no store. A diff and its parts are compared and pickled as their JSON.
"""

from __future__ import annotations

import copyreg
from typing import Any

from . import _pactql
from ._html import store
from ._pactql import Change, Context, Node, NodeIterator, PairDiff, RangeDiff, Selection, Session, SnapshotRef, Store, StoreAnswers
from ._watch import watch

_CHANGING = (Context, NodeIterator, Store, StoreAnswers)
"""The public classes of the native module whose values change; those of the others do not."""


def immutable() -> list[type]:
    """The classes whose values are their own copies."""
    kinds = [getattr(_pactql, name) for name in _pactql.__all__ if not name.startswith("_")]
    return [kind for kind in kinds if isinstance(kind, type) and kind not in _CHANGING]


def itself(self: Any) -> Any:
    """What is immutable needs no copy."""
    return self


def deep(self: Any, memo: object) -> Any:
    """What is immutable needs no copy."""
    return self


def equal(self: Any, other: Any) -> Any:
    """Whether another value of the class has the same JSON."""
    return self.to_json() == other.to_json() if type(other) is type(self) else NotImplemented


def hashed(self: Any) -> int:
    """The hash of the JSON."""
    return hash(self.to_json())


def of_json(kind: Any, *parts: str | None) -> Any:
    """What a JSON text is of."""
    return kind._parse(*parts)


def of_session(text: str, name: str | None) -> Session:
    """A session from its text."""
    return Session.parse(text, name=name)


def of_selection(text: str, working: bool, keys: list[tuple[int, str]], name: str | None) -> Selection:
    """A selection from the snapshots that it is from, and its nodes."""
    every = Session.parse(text, name=name).select("*" if working else "@* *")
    places = {(0 if working else node.snapshot, node.id): at for at, node in enumerate(every)}
    if not working and any(key not in places for key in keys):
        # A node of an older snapshot that a newer one has, too.
        return _of_snapshots(text, keys, name)
    return every._pick([places[key] for key in keys], name)


def _of_snapshots(text: str, keys: list[tuple[int, str]], name: str | None) -> Selection:
    cycle = keys[0][0]
    if any(key[0] != cycle for key in keys):
        raise TypeError("a selection whose nodes are of several snapshots, and in newer ones, too, cannot be pickled")
    every = Session.parse(text, name=name).select(f"@c{cycle} *")
    places = {node.id: at for at, node in enumerate(every)}
    return every._pick([places[id] for _, id in keys], name)


def of_node(text: str, working: bool, key: tuple[int, str]) -> Node:
    """A node from its snapshot."""
    return of_selection(text, working, [key], None)[0]


def _session(session: Session) -> Any:
    return of_session, (session.dumps(), session.name)


def _selection(selection: Selection) -> Any:
    text, working = selection._parts()
    keys = [(0 if working else node.snapshot, node.id) for node in selection]
    return of_selection, (text, working, keys, selection.session)


def _node(node: Node) -> Any:
    text, working = node._parts()
    return of_node, (text, working, (0 if working else node.snapshot, node.id))


def _range(diff: RangeDiff) -> Any:
    return of_json, (RangeDiff, diff.to_json(), diff.session)


def _part(part: PairDiff | Change | SnapshotRef) -> Any:
    return of_json, (type(part), part.to_json())


def install() -> None:
    """Has the classes of the native module copy and pickle as others do."""
    for kind in immutable():
        setattr(kind, "__copy__", itself)
        setattr(kind, "__deepcopy__", deep)
    setattr(Store, "watch", watch)
    setattr(Store, "_repr_html_", store)
    parts: list[Any] = [RangeDiff, PairDiff, Change, SnapshotRef]
    for part in parts:
        setattr(part, "__eq__", equal)
        setattr(part, "__hash__", hashed)
        copyreg.pickle(part, _part)
    copyreg.pickle(RangeDiff, _range)
    copyreg.pickle(Session, _session)
    copyreg.pickle(Selection, _selection)
    copyreg.pickle(Node, _node)
