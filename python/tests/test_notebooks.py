"""What a notebook shows."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pactql
import pytest

HOSTILE = "</td><script>alert(1)</script><img src=x onerror=\"alert('x')\">&amp;"


class Tags(HTMLParser):
    """The tags and attributes of a page, and whether all are closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(html: str) -> str:
    page = Tags(html)
    assert page.open == []
    assert page.tags <= {"div", "table", "thead", "tbody", "tr", "th", "td", "b", "ul", "li", "br"}
    assert page.attributes <= {"style"}
    assert "url(" not in html and "<script" not in html
    return html


def hostile() -> pactql.Session:
    def document(cycle: int, text: str, kind: str) -> str:
        block = {"id": HOSTILE, "role": HOSTILE, "kind": kind, "data_x": text, "content": text}
        return json.dumps({"cycle": cycle, "root": {"id": "r", "children": [{"id": "^ah", "children": [block]}]}})

    lines = [document(1, "a", "text"), document(2, HOSTILE, HOSTILE)]
    return pactql.Session.parse("\n".join(lines), name=HOSTILE)


def test_everything_is_escaped() -> None:
    session = hostile()
    for shown in (session, session.select("@t0 *"), session.range("@t-1..@t0 *")):
        html = check(shown._repr_html_())
        assert "&lt;script&gt;" in html and html == shown._repr_html_()


def test_a_selection_is_a_table(session: pactql.Session) -> None:
    html = check(session.select("@t0 .cb[role='user']")._repr_html_())
    assert "cb:u2" in html and "3 nodes<" in html
    many = check(session.select("@* *")._repr_html_())
    assert "the first 20 are shown" in many and many.count("<tr>") == 21
    nothing = check(session.select("@t0 .cb[rol='x']")._repr_html_())
    assert "did you mean" in nothing


def test_a_session_is_its_tree_and_its_tokens(session: pactql.Session) -> None:
    html = check(session._repr_html_())
    assert "6 snapshots" in html and "^seq" in html and "cb:u2" in html and "counted with" in html
    check(pactql.Context().session._repr_html_())


def test_a_diff_is_its_changes(session: pactql.Session) -> None:
    html = check(session.range("@t-2..@t0 .cb")._repr_html_())
    assert "+ added" in html and "cb:c5" in html


@pytest.mark.parametrize("text", ["", "x" * 10_000, "a\n\tb", "𝄞" * 500])
def test_texts_are_cut(text: str) -> None:
    document = {"root": {"id": "r", "children": [{"id": "^ah", "children": [{"id": "b", "content": text}]}]}}
    html = check(pactql.Session.parse(json.dumps(document)).select(".cb")._repr_html_())
    assert len(html) < 3_000


def test_a_diff_shows_texts_and_tools() -> None:
    def document(cycle: int, *blocks: dict[str, str]) -> str:
        return json.dumps({"cycle": cycle, "root": {"id": "r", "children": [{"id": "^ah", "children": list(blocks)}]}})

    text = "You are brief.\nYou are kind.\nYou are <b>bold</b>."
    call = {"id": "c", "role": "assistant", "kind": "call", "content": "{}", "data_call_name": "look_up"}
    system = {"id": "s", "role": "system", "kind": "text"}
    lines = [document(1, {**system, "content": text}), document(2, {**system, "content": text.replace("are k", "are very k")}, call)]
    session = pactql.Session.parse("\n".join(lines))
    html = check(session.range("@t-1..@t0 .cb")._repr_html_())
    assert "-You are kind." in html and "+You are very kind." in html and " You are brief." in html
    assert "<b>look_up</b>" in html and "&lt;b&gt;bold" in html and "<b>bold" not in html
    back = check(session.range("@t-1..@t0 .cb", content="unified")._repr_html_())
    assert back == html
