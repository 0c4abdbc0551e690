"""The exceptions of the library."""

from __future__ import annotations

import errno
from typing import Any


class Error(Exception):
    """Something that the library refused, or could not do. As a text it shows the places in the selector.

    >>> import pactql
    >>> try:
    ...     pactql.Engine().check("@t0 .cb[role='tool']:lats")
    ... except pactql.Error as error:
    ...     print(error.code, error.spans, error.correction)
    E_SELECTOR_INVALID [(20, 25, 'no such pseudo-class')] @t0 .cb[role='tool']:last
    """

    code: str
    """The kind of the error, `E_…`. Codes never change their meaning."""
    message: str
    """One line, lower case, no full stop."""
    text: str
    """The text that the spans point into; empty if there is none."""
    spans: list[tuple[int, int, str]]
    """Places in `text`, the main one first: start and end in characters, and a remark."""
    help: str | None
    """What to write instead, if that is known."""
    correction: str | None
    """The whole selector, corrected, if what was meant is evident."""
    faults: list[dict[str, Any]]
    """Of an input, what is wrong and where: `file`, `path`, `message`, `offset`, `line` and `column`."""
    more: list[Error]
    """Further mistakes in the same text."""
    picture: str
    """The error with the places underlined, as the command line shows it; empty if there are none."""

    def __init__(self, message: str = "", /, **attributes: Any) -> None:
        super().__init__(message)
        self.code = attributes.get("code", "")
        self.message = message
        self.text = attributes.get("text", "")
        self.spans = attributes.get("spans", [])
        self.help = attributes.get("help")
        self.correction = attributes.get("correction")
        self.faults = attributes.get("faults", [])
        self.more = attributes.get("more", [])
        self.picture = attributes.get("picture", "")

    def __str__(self) -> str:
        if self.picture and self.text:
            # The message comes on a line of its own, so that the places are below what they are in.
            return "\n" + self.picture.rstrip("\n")
        shown = f"{self.code}: {self.message}" if self.code else self.message
        return f"{shown}\nhelp: {self.help}" if self.help else shown

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.message, self.__dict__.copy())


def _unpickle(kind: type[Error], message: str, attributes: dict[str, Any]) -> Error:
    return kind(message, **attributes)


class SelectorError(Error, ValueError):
    """A selector is wrong, or cannot be answered as it is written."""


class SnapshotNotFound(SelectorError, LookupError):
    """No snapshot has the time of the selector."""


class InputError(Error, ValueError):
    """A document, a log or the text of a node is invalid; `faults` lists what and where."""


class InputMissing(Error, FileNotFoundError):
    """There is no such file or directory. `errno` is that of the system."""

    def __init__(self, message: str = "", /, **attributes: Any) -> None:
        super().__init__(message, **attributes)
        self.errno = errno.ENOENT

    def __str__(self) -> str:
        return Error.__str__(self)


class MutationError(Error, ValueError):
    """A change of the tree that is not allowed. Nothing was changed."""


class SqlError(Error, ValueError):
    """A construct of the selector that a dialect of SQL cannot say."""


class StoreError(Error):
    """A store cannot be read or written, or is damaged."""


class SessionNotFound(StoreError, KeyError):
    """The store has no session of this name."""


class SessionExists(StoreError):
    """The store has a session of this name already."""


class SessionBusy(StoreError):
    """Another writer holds the lease of the session."""


class LeaseLost(StoreError):
    """The lease of this writer ran out, and another one took it."""


class UnsavedWarning(RuntimeWarning):
    """A context of a store was left, closed or deleted without `commit` or `save`, and what it had written is lost."""


class SelectorWarning(UserWarning):
    """A selector finds nothing, and has a name or a value that no node has: what it says may not be what was meant."""


class CacheError(Error):
    """A cache of documents is invalid, or cannot be made."""


class Cancelled(Error):
    """The work was cancelled before it was done."""


_CLASSES: dict[str, type[Error]] = {
    "E_SELECTOR_INVALID": SelectorError,
    "E_EDITION": SelectorError,
    "E_SNAPSHOT_RANGE_KIND_MISMATCH": SelectorError,
    "E_SNAPSHOT_RANGE_WILDCARD": SelectorError,
    "E_SNAPSHOT_RANGE_LIMIT": SelectorError,
    "E_FACET_NEEDS_SNAPSHOT": SelectorError,
    "E_LIMIT": SelectorError,
    "E_SNAPSHOT_NOT_FOUND": SnapshotNotFound,
    "E_INPUT": InputError,
    "E_MISSING": InputMissing,
    "E_PLACEMENT": MutationError,
    "E_SEALED": MutationError,
    "E_REGION": MutationError,
    "E_HEADER": MutationError,
    "E_PINNED": MutationError,
    "E_DUPLICATE_ID": MutationError,
    "E_SQL": SqlError,
    "E_STORE": StoreError,
    "E_STORE_VERSION": StoreError,
    "E_SESSION_NOT_FOUND": SessionNotFound,
    "E_SESSION_EXISTS": SessionExists,
    "E_SESSION_BUSY": SessionBusy,
    "E_LEASE_LOST": LeaseLost,
    "E_CACHE": CacheError,
    "E_CANCELLED": Cancelled,
}


_PYTHON = (
    ("; --messages POINTER says where else they are", "; `pactql.open(messages)` takes the list itself, wherever it was"),
    ("`pactql sessions` lists the sessions of a store", "`store.keys()` lists its sessions"),
    ("`pactql verify` names what is damaged", "`store.verify()` names what is damaged"),
    ('`pactql select STORE#SESSION "@* *" --format ids` lists the ids', '`store[name].select("@* *").ids()` lists the ids'),
    ("`pactql export --jsonl` without that line", "what `session.dumps()` gives without that line"),
)
"""What the library says of the command line, and what it is called here."""


def _in_python(text: str) -> str:
    for theirs, ours in _PYTHON:
        text = text.replace(theirs, ours)
    return text


def make(code: str, attributes: dict[str, Any]) -> Error:
    """The exception of a code."""
    message = _in_python(attributes.pop("message"))
    for name in ("help", "picture"):
        if attributes.get(name):
            attributes[name] = _in_python(attributes[name])
    return _CLASSES.get(code, Error)(message, code=code, **attributes)
