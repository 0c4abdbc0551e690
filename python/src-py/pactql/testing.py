"""Tests of contexts: assertions over selectors, and the pytest plugin that comes with the package.

    def test_the_policy_is_there(pactql_store):
        client = pactql.record(openai.OpenAI(), pactql_store, session="talk")
        run_agent(client)
        assert_context(pactql_store["talk"], "@t0 ^sys .cb[key=policy]", count=1)
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ._errors import SelectorWarning
from ._pactql import Node, Selection, Session
from ._snapshot import Snapshot

__all__ = ["assert_context", "assert_order", "assert_prefix_stable", "assert_tokens"]

_NODES = 40
"""How many nodes of a tree a failure shows."""

_TEXT = 60
"""How many characters of a text a failure shows."""


def assert_context(
    session: Session | Snapshot,
    selector: str,
    /,
    *,
    count: int | None = None,
    at_least: int | None = None,
    at_most: int | None = None,
    text: str | None = None,
    **params: Any,
) -> Selection:
    """Checks what a selector finds, and gives it: `count` nodes, or `at_least` and `at_most` so many; one at least if
    nothing is said. With `text`, each node that is found has this text in it. Keywords are values of parameters.

    A selector with a misspelled name (`rol` where nodes have `role`) fails also where `count=0` or `at_most` holds, as it
    would hold of any session; a value that no node has and that is like one they have is a `pactql.SelectorWarning`.

    >>> from pactql.testing import assert_context
    >>> assert_context(session, "@t0 ^sys .cb[key=policy]", count=1)
    <Selection of 1 node: cb:policy>
    """
    __tracebackhide__ = True
    for name, bound in (("count", count), ("at_least", at_least), ("at_most", at_most)):
        if bound is not None and not isinstance(bound, int):
            raise TypeError(f"`{name}` is a number, and not {type(bound).__name__}: {bound!r}")
    found = session.select(selector, **params)
    number = len(found)
    if count is None and at_least is None and at_most is None:
        at_least = 1
    expected = [
        words
        for words, fails in (
            (f"{count}", count is not None and number != count),
            (f"at least {at_least}", at_least is not None and number < at_least),
            (f"at most {at_most}", at_most is not None and number > at_most),
        )
        if fails
    ]
    if expected:
        _fail(session, selector, f"{_nodes(number)}, expected {' and '.join(expected)}", found)
    missing = [node for node in found if text is not None and text not in node.text]
    if missing:
        _fail(session, selector, f"{text!r} is not in {', '.join(node.id for node in missing)}", found)
    whole = session.session if isinstance(session, Snapshot) else session
    names, values = whole._misspelled(selector, params)
    if names:
        why = f"{_nodes(number)}, as it has to be, and the selector has a name that no node of the session has"
        _fail(session, selector, why, found, names)
    for each in values:
        warnings.warn(f"in {selector!r}: {each}", SelectorWarning, stacklevel=2)
    return found


def assert_order(session: Session | Snapshot, *selectors: str, **params: Any) -> None:
    """Checks that everything a selector finds comes before everything the next one finds, in document order. There are
    two selectors or more.

    >>> from pactql.testing import assert_order
    >>> assert_order(session[-1], "^sys .cb", "^seq .cb[role='user']")
    """
    __tracebackhide__ = True
    if len(selectors) < 2:
        raise TypeError(f"`assert_order` takes two selectors or more, and not {len(selectors)}")
    places = {(node.snapshot, node.id): at for at, node in enumerate(_whole(session))}
    last: tuple[int, str] | None = None
    for selector in selectors:
        found = session.select(selector, **params)
        if not found:
            _fail(session, selector, "it finds nothing, so it has no place in an order", found)
        at = sorted(places[node.snapshot, node.id] for node in found if (node.snapshot, node.id) in places)
        if len(at) < len(found):
            raise ValueError("`assert_order` takes selectors of one snapshot: `session[-1]`, or `@t0` in each")
        if last is not None and at[0] < last[0]:
            _fail(session, selector, f"it begins before what {last[1]!r} finds ends", found)
        last = (at[-1], selector)


def assert_prefix_stable(session: Session, at: str | None = None) -> None:
    """Checks that each request begins with the one before, so that a prompt cache can reuse all of it.

    >>> from pactql.testing import assert_prefix_stable
    >>> assert_prefix_stable(session, "@t-1..@t0")
    """
    __tracebackhide__ = True
    broken = [step for step in session.prefix(at)["steps"] if step.get("difference")]
    if not broken:
        return
    lines = []
    for step in broken:
        why = step["difference"]
        lines.append(f"@c{step['before']} → @c{step['cycle']}: {why.get('cause')} at {why.get('block')}: {why.get('mend')}")
        lines += [f"  - {_line(str(why['older']))}"] if why.get("older") else []
        lines += [f"  + {_line(str(why['newer']))}"] if why.get("newer") else []
    raise AssertionError("\n".join([f"{len(broken)} of the requests begin otherwise than the one before", *lines]))


def assert_tokens(session: Session | Snapshot, at_most: int, /, *, by: str | None = None) -> None:
    """Checks that the newest request, or that of a snapshot, has at most so many tokens. A failure shows where they are.

    >>> from pactql.testing import assert_tokens
    >>> assert_tokens(session, 100_000)
    """
    __tracebackhide__ = True
    whole, at = (session.session, session.address) if isinstance(session, Snapshot) else (session, None)
    group: Any = by or "region"
    newest = whole.tokens(at, by=group).snapshots[-1]
    if newest["tokens"] <= at_most:
        return
    groups = sorted(newest["groups"], key=lambda each: -each["tokens"])
    lines = [f"{each['tokens']:>9,}  {each['name']}" for each in groups]
    raise AssertionError("\n".join([f"{newest['label']} has {newest['tokens']:,} tokens, expected at most {at_most:,}", *lines]))


def _nodes(number: int) -> str:
    return {0: "no nodes", 1: "1 node"}.get(number, f"{number} nodes")


def _fail(session: Session | Snapshot, selector: str, why: str, found: Selection, notes: Sequence[str] = ()) -> None:
    __tracebackhide__ = True
    lines = [
        f"error: {why}",
        "  ┌─ selector:1:1",
        "  │",
        f"1 │ {selector}",
        f"  │ {'^' * len(selector)}",
        "  │",
        *[f"  = {each}" for each in dict.fromkeys([*notes, *found.warnings, *found.why_empty()])],
    ]
    marked = {(node.snapshot, node.id) for node in found}
    raise AssertionError("\n".join(["", *lines, "", *_tree(session, marked)]))


def _whole(session: Session | Snapshot) -> Sequence[Node]:
    """All nodes of what is looked at: a snapshot, or the newest."""
    if isinstance(session, Snapshot):
        return list(session.nodes)
    return list(session.select("@t0 *" if len(session) else "*"))


def _tree(session: Session | Snapshot, marked: set[tuple[int, str]]) -> list[str]:
    """The tree around what was found, which has an arrow."""
    nodes = _whole(session)
    found = [at for at, node in enumerate(nodes) if (node.snapshot, node.id) in marked]
    first = max(0, found[0] - _NODES // 2) if found else 0
    shown = nodes[first : first + _NODES]
    lines = [f"  … {first} before"] if first else []
    level: dict[str, int] = {}
    for at, node in enumerate(nodes[: first + _NODES]):
        parent = node.parent_id
        level[node.id] = 0 if parent is None else level.get(parent, 0) + 1
        if at >= first:
            sign = "→" if (node.snapshot, node.id) in marked else " "
            words = " ".join(word for word in (node.role, node.kind) if word)
            text = f": {_line(node.text)}" if node.text else ""
            lines.append(f"{sign} {'  ' * level[node.id]}{node.id} {words}{text}".rstrip())
    left = len(nodes) - first - len(shown)
    return [*lines, f"  … {left} more"] if left > 0 else lines


def _line(text: str) -> str:
    line = " ".join(text[: _TEXT * 4].split())
    return line if len(line) <= _TEXT else line[:_TEXT] + "…"
