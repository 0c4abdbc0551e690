"""What a notebook shows of a selection, a session and a diff.

Every text is escaped, nothing is loaded and nothing runs: tables with a few styles of their own. The same object
always gives the same text.
"""

from __future__ import annotations

from difflib import unified_diff
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Change, Node, RangeDiff, Selection, Session, Store

ROWS = 20
"""How many rows of a table are shown."""

NODES = 200
"""How many nodes of a tree are shown."""

TEXT = 120
"""How many characters of a text are shown."""

LINES = 40
"""How many lines of a diff of two texts are shown."""

BAR = 160
"""The length of the longest bar, in pixels."""

_CELL = "text-align:left;vertical-align:top;padding:2px 8px"
_MONO = "font-family:monospace;white-space:pre-wrap"
_SIGNS = {"added": ("+", "#1a7f37"), "removed": ("-", "#cf222e"), "changed": ("~", "#9a6700")}


def _short(text: str) -> str:
    """A text in one line, cut and escaped."""
    line = " ".join(text[: TEXT * 4].split())
    cut = line[:TEXT]
    return escape(cut + "…" if len(cut) < len(line) or len(text) > TEXT * 4 else cut)


def _cell(content: str, style: str = "") -> str:
    return f'<td style="{_CELL}{";" + style if style else ""}">{content}</td>'


def _table(heads: list[str], rows: list[str], note: str) -> str:
    head = "".join(f'<th style="{_CELL}">{escape(each)}</th>' for each in heads)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    below = f"<div>{escape(note)}</div>" if note else ""
    return f"<div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"


def _list(words: list[str]) -> str:
    """What is said of an answer, below it."""
    items = "".join(f"<li>{escape(each)}</li>" for each in words)
    return f"<ul>{items}</ul>" if items else ""


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def selection(found: Selection) -> str:
    """A table of the first nodes."""
    length = len(found)
    if length == 0:
        return f"<div><div>no nodes</div>{_list([*found.warnings, *found.why_empty()])}</div>"
    rows = [
        _cell(escape(node.id), _MONO)
        + _cell(str(node.snapshot))
        + _cell("" if node.depth is None else str(node.depth))
        + "".join(_cell(escape(each or "")) for each in (node.type, node.role, node.kind))
        + _cell(_short(node.text))
        for node in islice(found, ROWS)
    ]
    note = _counted(length, "node")
    if length > ROWS:
        note += f", the first {ROWS} are shown"
    return _table(["id", "snapshot", "depth", "type", "role", "kind", "text"], rows, note)


def session(found: Session) -> str:
    """The newest tree, and how many tokens its regions have."""
    name = f" {escape(found.name)}" if found.name else ""
    title = f"<div><b>Session{name}</b>: {_counted(len(found), 'snapshot')}</div>"
    if len(found) == 0 and not found.has_working:
        return f"<div>{title}</div>"
    return f"<div>{title}{_bars(found)}{_tree(found)}</div>"


def _bars(found: Session) -> str:
    report: dict[str, Any] = found.tokens()
    groups = report["snapshots"][-1]["groups"]
    most = max([group["tokens"] for group in groups], default=0)
    rows = []
    for group in groups:
        tokens = group["tokens"]
        width = tokens * BAR // most if most else 0
        bar = f'<div style="background:#4c78a8;height:10px;width:{width}px"></div>'
        name = group["name"]
        rows.append(
            _cell(escape("(none)" if name is None else str(name)), _MONO)
            + _cell(f"{tokens:,}", "text-align:right")
            + _cell(bar)
        )
    return _table([report["by"], "tokens", ""], rows, f"counted with {report['tokenizer']}")


def _tree(found: Session) -> str:
    nodes = found.select("*")
    lines = []
    level: dict[str, int] = {}
    for node in islice(nodes, NODES):
        parent = node.parent_id
        depth = 0 if parent is None else level.get(parent, 0) + 1
        level[node.id] = depth
        lines.append(f'<div style="padding-left:{16 * depth}px">{_line(node)}</div>')
    left = len(nodes) - len(lines)
    if left > 0:
        lines.append(f"<div>and {_counted(left, 'node')} more</div>")
    return f'<div style="font-family:monospace">{"".join(lines)}</div>'


def _line(node: Node) -> str:
    words = " ".join(escape(each) for each in (node.role, node.kind) if each)
    text = _short(node.text)
    shown = f"<b>{escape(node.id)}</b>"
    if words:
        shown += f" {words}"
    return f"{shown}: {text}" if text else shown


def range_diff(found: RangeDiff) -> str:
    """A table of the first changes: what came and went with its text, changed texts as a unified diff."""
    if found.rows == 0:
        return f"<div><div>no changes</div>{_list([*found.warnings, *found.why_empty()])}</div>"
    rows: list[str] = []
    count = 0
    session = found._session()
    for pair in found:
        place = escape(f"{pair.older.label}..{pair.newer.label}")
        count += len(pair.added) + len(pair.removed) + len(pair.changed)
        left = ROWS - len(rows)
        changed = pair.changed[:left]
        ids = [change.id for change in changed]
        newer = _nodes(session, pair.newer.cycle, [*pair.added[:left], *ids])
        older = _nodes(session, pair.older.cycle, [*pair.removed[:left], *ids])
        each = [("added", id, _said(newer.get(id))) for id in pair.added[:left]]
        each += [("removed", id, _said(older.get(id))) for id in pair.removed[:left]]
        each += [("changed", change.id, _changed(change, older, newer)) for change in changed]
        for what, id, shown in each[:left]:
            sign, colour = _SIGNS[what]
            style = f"color:{colour};font-family:monospace"
            rows.append(
                _cell(place, _MONO)
                + _cell(f"{sign} {what}", style)
                + _cell(escape(id), _MONO)
                + _cell(shown)
            )
    note = _counted(count, "change")
    if count > ROWS:
        note += f", the first {ROWS} are shown"
    return _table(["snapshots", "change", "id", "what"], rows, note)


def _nodes(session: Session | None, cycle: int, ids: list[str]) -> dict[str, Node]:
    """The nodes of a snapshot by their ids."""
    if session is None or not ids:
        return {}
    return {node.id: node for node in session.select(f"@c{cycle} *[id=$ids]", ids=ids)}


def _said(node: Node | None) -> str:
    """The role, the kind and the tool of a node, and its text."""
    if node is None:
        return ""
    tool = node.get("data_call_name")
    words = [escape(each) for each in (node.role, node.kind) if each]
    words += [f"<b>{escape(tool)}</b>"] if isinstance(tool, str) else []
    text = _short(node.text)
    return ": ".join(each for each in (" ".join(words), text) if each)


def _changed(change: Change, older: dict[str, Node], newer: dict[str, Node]) -> str:
    """The fields that differ; of a text, a unified diff."""
    before, now = older.get(change.id), newer.get(change.id)
    if before is None or now is None or before.text == now.text:
        return _fields(change.fields, change.delta)
    shown = _fields([name for name in change.fields if name not in ("content", "content_hash")], change.delta)
    lines = list(unified_diff(before.text.splitlines(), now.text.splitlines(), lineterm="", n=3))[2:]
    parts = []
    for line in lines[:LINES]:
        cut = line if len(line) <= TEXT * 4 else line[: TEXT * 4] + "…"
        colour = {"+": _SIGNS["added"][1], "-": _SIGNS["removed"][1], "@": "#6e7781"}.get(line[:1])
        style = f"{_MONO};color:{colour}" if colour else _MONO
        parts.append(f'<div style="{style}">{escape(cut)}</div>')
    if len(lines) > LINES:
        parts.append(f"<div>and {_counted(len(lines) - LINES, 'line')} more</div>")
    return shown + "".join(parts)


def _fields(fields: list[str], delta: dict[str, tuple[Any, Any]]) -> str:
    shown = []
    for name in fields:
        if name in delta:
            newer, older = delta[name]
            shown.append(f"{escape(name)}: {_short(repr(older))} → {_short(repr(newer))}")
        else:
            shown.append(escape(name))
    return "<br>".join(shown)


def rows(title: str, found: list[dict[str, Any]], notes: list[str]) -> str:
    """A table of a report, and what is said of it."""
    heads = list(found[0]) if found else []
    cells = [
        "".join(_cell(_short("" if value is None else f"{value:,}" if type(value) is int else str(value))) for value in row.values())
        for row in found[:NODES]
    ]
    note = f"{title}: {_counted(len(found), 'row')}"
    if len(found) > NODES:
        note += f", the first {NODES} are shown"
    table = _table(heads, cells, note)
    return f"<div>{table}{_list(notes)}</div>" if notes else table


def store(self: Store) -> str:
    """The sessions of a store."""
    infos = self.sessions()
    cells = [
        _cell(escape(info.name), _MONO) + _cell(str(info.snapshots)) + _cell(_short(info.source or info.parent or ""))
        for info in infos[:NODES]
    ]
    note = _counted(len(infos), "session")
    if len(infos) > NODES:
        note += f", the first {NODES} are shown"
    return _table(["session", "snapshots", "from"], cells, note)
