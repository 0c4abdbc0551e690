"""What a notebook shows of a selection, a session and a diff.

Every text is escaped, nothing is loaded and nothing runs: tables with a few styles of their own. The same object
always gives the same text.
"""

from __future__ import annotations

from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import Node, RangeDiff, Selection, Session, Store

ROWS = 20
"""How many rows of a table are shown."""

NODES = 200
"""How many nodes of a tree are shown."""

TEXT = 120
"""How many characters of a text are shown."""

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


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def selection(found: Selection) -> str:
    """A table of the first nodes."""
    length = len(found)
    if length == 0:
        why = "".join(f"<li>{escape(each)}</li>" for each in [*found.warnings, *found.why_empty()])
        return f"<div><div>no nodes</div><ul>{why}</ul></div>" if why else "<div>no nodes</div>"
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
    """A table of the first changes."""
    rows: list[str] = []
    for pair in found:
        place = escape(f"{pair.older.label}..{pair.newer.label}")
        each = [("added", id, "") for id in pair.added]
        each += [("removed", id, "") for id in pair.removed]
        each += [("changed", change.id, _fields(change.fields, change.delta)) for change in pair.changed]
        for what, id, fields in each:
            sign, colour = _SIGNS[what]
            style = f"color:{colour};font-family:monospace"
            rows.append(
                _cell(place, _MONO)
                + _cell(f"{sign} {what}", style)
                + _cell(escape(id), _MONO)
                + _cell(fields)
            )
    note = _counted(len(rows), "change")
    if len(rows) > ROWS:
        note += f", the first {ROWS} are shown"
    return _table(["snapshots", "change", "id", "fields"], rows[:ROWS], note)


def _fields(fields: list[str], delta: dict[str, tuple[Any, Any]]) -> str:
    shown = []
    for name in fields:
        if name in delta:
            newer, older = delta[name]
            shown.append(f"{escape(name)}: {_short(repr(older))} → {_short(repr(newer))}")
        else:
            shown.append(escape(name))
    return "<br>".join(shown)


def rows(title: str, found: list[dict[str, Any]]) -> str:
    """A table of a report."""
    heads = list(found[0]) if found else []
    cells = [
        "".join(_cell(_short("" if value is None else f"{value:,}" if type(value) is int else str(value))) for value in row.values())
        for row in found[:NODES]
    ]
    note = f"{title}: {_counted(len(found), 'row')}"
    if len(found) > NODES:
        note += f", the first {NODES} are shown"
    return _table(heads, cells, note)


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
