"""Sessions, selections and nodes."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Collection, Iterable, Reversible
from functools import partial
from pathlib import Path
from typing import Any

import pactql
import pytest

DOCUMENT = {
    "cycle": 7,
    "root": {
        "id": "r",
        "children": [
            {"id": "^sys", "nodeType": "^sys", "children": [{"id": "s", "role": "system", "content": "Be brief."}]},
            {
                "id": "^ah",
                "nodeType": "^ah",
                "children": [
                    {
                        "id": "b",
                        "role": "user",
                        "kind": "text",
                        "key": "k",
                        "tags": ["x", "y"],
                        "ttl": 3,
                        "priority": 2,
                        "content": "Grüße <b>",
                        "data_n": 5,
                        "data_list": [1, {"a": None}],
                    },
                    {"id": "j", "content": {"big": 123456789012345678901234567890, "z": 1, "a": [1.5]}},
                ],
            },
        ],
    },
}


def small() -> pactql.Session:
    return pactql.Session.parse(json.dumps(DOCUMENT))


@pytest.mark.parametrize("form", [str, str.encode, lambda t: bytearray(t.encode()), lambda t: memoryview(t.encode())])
def test_parse_takes_texts_and_bytes(form) -> None:  # type: ignore[no-untyped-def]
    assert pactql.Session.parse(form(json.dumps(DOCUMENT))).cycles == [7]


@pytest.mark.parametrize("wrong", [5, None, ["x"], {"a": 1}])
def test_parse_refuses_other_values(wrong: object) -> None:
    with pytest.raises(TypeError, match="expected str or bytes"):
        pactql.Session.parse(wrong)  # type: ignore[arg-type]


def test_a_node_has_its_headers() -> None:
    node = small().select("@t0 .cb[id=$id]", id="b")[0]
    assert (node.id, node.type, node.role, node.kind, node.key) == ("b", "cb", "user", "text", "k")
    assert (node.tags, node.ttl, node.priority, node.offset, node.cadence) == (("x", "y"), 3, 2, 0, None)
    assert (node.depth, node.snapshot, node.cycle) == (0, 7, None)
    assert node.text == node.content == "Grüße <b>"
    assert node.attrs == {"data_list": [1, {"a": None}], "data_n": 5}
    assert node["data_n"] == 5 and node.get("data_x", "no") == "no" and "data_list" in node
    with pytest.raises(KeyError):
        node["data_x"]
    assert node.parent_id == "^ah" and node.parent is not None and node.parent.child_ids == ["b", "j"]
    assert [child.id for child in node.parent.children] == ["b", "j"]
    assert node.parent.children[0] == node and hash(node.parent.children[0]) == hash(node)
    root = node.parent.parent
    assert root is not None and root.id == "r" and root.parent is None and root.parent_id is None
    assert len(node.content_hash) == 64
    assert repr(node) == '<Node b user text "Grüße <b>">'


def test_content_keeps_every_digit_and_the_order() -> None:
    content = small().select("@t0 .cb[id='j']")[0].content
    assert content == DOCUMENT["root"]["children"][1]["children"][1]["content"]  # type: ignore[index]


NUMBERS = ["12345678901234567890123", "-98765432109876543210987", "9223372036854775807", "9223372036854775808", "-9223372036854775809",
           "18446744073709551616", "0", "-0", "-1", "1.0", "1e3", "0.1", "5e-324", "1" + "0" * 300, "[1,12345678901234567890123]",
           '{"z":{"a":98765432109876543210987},"b":[-0.5]}', '"a\\u00e9\\n"', '"é"', '""', "true", "false", "null", "[" * 300 + "]" * 300]


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:30])
def test_values_are_those_of_json(text: str) -> None:
    """Attributes and contents are what `json.loads` makes of them: integers with all their digits."""
    block = f'{{"id":"b","offset":1,"content":{text},"data_v":{text}}}'
    document = f'{{"root":{{"id":"r","children":[{{"id":"^ah","children":[{block}]}}]}}}}'
    node = pactql.Session.parse(document).select(".cb")[0]
    expected = json.loads(text)
    for found in (node.attrs["data_v"], node["data_v"], node.get("data_v"), node.content, node.to_dict()["data_v"]):
        assert found == expected and type(found) is type(expected)
    assert "data_v" in node


def test_a_change_keeps_every_digit() -> None:
    numbers = [2**70, 2**70 + 1, -(2**70)]
    lines = [
        {"cycle": at + 1, "root": {"id": "r", "children": [{"id": "^ah", "children": [{"id": "b", "offset": 1, "data_n": number}]}]}}
        for at, number in enumerate(numbers)
    ]
    diff = pactql.Session.parse("\n".join(map(json.dumps, lines))).range("@history .cb")
    assert [change.delta["data_n"] for pair in diff for change in pair.changed] == [
        (numbers[2], numbers[1]), (numbers[1], numbers[0]),
    ]


def test_a_node_is_not_a_collection() -> None:
    node = small().select("@t0 .cb[id='b']")[0]
    with pytest.raises(TypeError, match="not iterable"):
        list(node)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="by the names of its members, and not by int"):
        node[0]  # type: ignore[index]
    assert not isinstance(node, Iterable) and 0 not in node


def test_a_node_outlives_what_it_is_from() -> None:
    node = small().select("@t0 .cb[id='b']")[0]
    parent = node.parent
    del node
    assert parent is not None and parent.children[1].id == "j"


def test_to_dict_has_what_is_set() -> None:
    found = small().select("@t0 .cb[id='b']").to_dicts()
    assert found[0]["data_n"] == 5 and found[0]["parent_id"] == "^ah" and "cadence" not in found[0]
    assert found[0] == small().select("@t0 .cb[id='b']")[0].to_dict()


def test_a_selection_is_a_sequence(session: pactql.Session) -> None:
    blocks = session.select("@t0 .cb")
    ids = blocks.ids()
    assert isinstance(blocks, Collection) and isinstance(blocks, Reversible) and len(blocks) == len(ids) > 10 and bool(blocks)
    assert [node.id for node in blocks] == ids
    assert [node.id for node in reversed(blocks)] == ids[::-1]
    assert [blocks[at].id for at in range(len(ids))] == ids
    assert [blocks[at].id for at in range(-len(ids), 0)] == ids
    assert blocks[3] in blocks and "cb:u2" not in blocks
    assert blocks.index(blocks[3]) == 3 and blocks.count(blocks[3]) == 1
    assert blocks.texts() == [node.text for node in blocks]
    for wrong in (len(ids), -len(ids) - 1):
        with pytest.raises(IndexError):
            blocks[wrong]
    with pytest.raises(TypeError):
        blocks["0"]  # type: ignore[call-overload]
    with pytest.raises(ValueError):
        blocks.index(session.select("@t-1 .cb")[0])


HUGE = 10**30


class Index:
    """A whole number that is not an `int`."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_positions_are_those_of_lists(session: pactql.Session) -> None:
    blocks, diff = session.select("@t0 .cb"), session.range("@history .cb")
    sequences: list[Any] = [blocks, diff]
    for sequence in sequences:
        items = list(sequence)
        for at in (0, 1, -1, len(items) - 1, -len(items), True, Index(1), Index(-1)):
            assert sequence[at] == items[at]
        for at in (len(items), -len(items) - 1, HUGE, -HUGE, 2**63, -(2**63), Index(HUGE)):
            with pytest.raises(IndexError, match="out of range"):
                sequence[at]
        for wrong in ("0", 1.0, None, (0,)):
            kind = type(wrong).__name__
            with pytest.raises(TypeError, match=f"is indexed by integers and slices, and not by {kind}$"):
                sequence[wrong]
        for bounds in (("a", None), (1.5, None), (None, "a")):
            with pytest.raises(TypeError):
                sequence[slice(*bounds)]
        with pytest.raises(ValueError, match="slice step cannot be zero"):
            sequence[::0]
    for node in (blocks[0], blocks[5], blocks[-1]):
        ids = blocks.ids()
        for start in (0, 3, -3, HUGE, -HUGE):
            for stop in (0, 3, -3, len(ids), HUGE, -HUGE):
                try:
                    expected = ids.index(node.id, start, stop)
                except ValueError:
                    with pytest.raises(ValueError):
                        blocks.index(node, start, stop)
                else:
                    assert blocks.index(node, start, stop) == expected


def test_a_diff_is_a_sequence(session: pactql.Session) -> None:
    diff = session.range("@history .cb")
    pairs = list(diff)
    assert len(pairs) == len(diff) == 5 and list(reversed(diff)) == pairs[::-1]
    for which in SLICES:
        assert diff[which] == pairs[which]
    assert diff[0] in diff and diff[0] != diff[1] and hash(diff[0]) == hash(pairs[0])
    assert session.range("@history .cb")[0] in diff


SLICES = [
    slice(*bounds)
    for bounds in [
        (None,), (3,), (2, 5), (5, 2), (0, 0), (4, None), (-3, None), (None, -2), (2, -2), (-4, -1),
        (None, None, 2), (1, None, 3), (None, None, -1), (7, 2, -2), (100, 200), (-100, 3), (2, 100), (1, -1),
        (10**30, None), (None, 10**30), (-(10**30), None), (None, -(10**30)), (None, None, 10**30), (None, None, -(10**30)),
        (-(10**30), 10**30, 2), (2**63 - 1, None), (-(2**63), 3),
    ]
]


@pytest.mark.parametrize("which", SLICES, ids=str)
def test_slices_are_those_of_lists(session: pactql.Session, which: slice) -> None:
    blocks = session.select("@t0 .cb")
    ids = blocks.ids()
    part = blocks[which]
    assert part.ids() == ids[which] and len(part) == len(ids[which])
    assert [node.id for node in part] == ids[which]
    # A slice of a slice, a filter of a slice, and what a slice says first.
    for again in SLICES:
        assert part[again].ids() == ids[which][again], again
    calls = set(session.select("@t0 .cb[kind='call']").ids())
    assert part.where(".cb[kind='call']").ids() == [id for id in ids[which] if id in calls]
    first = part.first()
    assert (first.id if first else None) == next(iter(ids[which]), None)


def test_where_keeps_what_is_inside(session: pactql.Session) -> None:
    calls = session.select("@t0 .cb[kind='call']")
    newest = calls.where(".mt:depth(1)")
    assert newest.ids() == ["cb:c5"]
    assert calls.where(".cb[kind=$kind]", kind="text").ids() == []
    assert calls.where(".cb[kind=$kind]", {"kind": "call"}).ids() == calls.ids()


def test_nothing_found_says_why(session: pactql.Session) -> None:
    nothing = session.select("@t0 .cb[rol='user']")
    assert not nothing and nothing.first() is None and nothing.ids() == []
    assert nothing.why_empty() == ["no node has `rol`; did you mean `role`?"]
    assert repr(nothing) == "<Selection: no nodes>"
    # What is said of slices and of `where` has the names that they have in Python.
    blocks = session.select("@t0 .cb")
    for narrowed in (blocks[100:], blocks[::-1][100:], blocks[::-1][:3].where("^sys"), blocks.where("none")):
        assert narrowed.ids() == [] and narrowed.why_empty() == ["a slice or `where` left no node"]
    assert nothing[::-1].why_empty() == nothing.why_empty()
    assert blocks[::-1].why_empty() == []


@pytest.mark.parametrize(
    ("selector", "values", "count"),
    [
        ("@t0 .cb[role=$role]", {"role": "user"}, 3),
        ("@t0 .cb[role=$role]", {"role": ["user", "tool"]}, None),
        ("@t0 .cb[role=$role]", {"role": ("user",)}, 3),
        ("@t0 .cb[role=$role]", {"role": None}, 0),
        ("@t0 .cb[priority>=$p]", {"p": 0}, None),
        ("@t0 .cb[priority>=$p]", {"p": 0.5}, None),
        ("@t0 .cb[data_flag=$f]", {"f": True}, 0),
    ],
)
def test_parameters(session: pactql.Session, selector: str, values: dict[str, Any], count: int | None) -> None:
    by_keyword = session.select(selector, **values)
    by_mapping = session.select(selector, values)
    assert by_keyword.ids() == by_mapping.ids()
    if count is not None:
        assert len(by_keyword) == count


@pytest.mark.parametrize(
    ("value", "error"),
    [(2**70, OverflowError), (float("nan"), ValueError), (float("inf"), ValueError), (object(), TypeError), (b"x", TypeError), ([["a"]], TypeError)],
)
def test_values_that_are_none(session: pactql.Session, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.select("@t0 .cb[role=$role]", role=value)


def test_a_name_given_twice(session: pactql.Session) -> None:
    with pytest.raises(TypeError, match="given twice"):
        session.select("@t0 .cb[role=$role]", {"role": "a"}, role="b")


def test_the_kinds_of_answers_are_kept_apart(session: pactql.Session) -> None:
    with pytest.raises(pactql.SelectorError, match="`range` returns the diffs"):
        session.select("@t-1..@t0 .cb")
    with pytest.raises(pactql.SelectorError, match="`select` returns the nodes"):
        session.range("@t0 .cb")
    assert len(session.select("@t-1..@t0 .cb @mode=union")) > 0


def test_which_snapshots_were_read(session: pactql.Session) -> None:
    assert session.select("@t-1 .cb").cycles == [5]
    assert session.select("@* .cb").cycles == [6, 5, 4, 3, 2, 1]
    assert session.select("@* .cb").first() == session.select("@* .cb")[0]


def test_ranges(session: pactql.Session) -> None:
    diff = session.range("@t-3..@t0 .cb", stats=True)
    assert (diff.mode, len(diff), diff.query) == ("pairwise", 3, "@t-3..@t0 .cb")
    assert [each.label for each in diff.snapshots] == ["@t0", "@t-1", "@t-2", "@t-3"]
    assert diff.to_dict() == json.loads(diff.to_json())
    for pair, other in zip(diff, diff.to_dict()["diffs"]):
        assert (pair.added, pair.removed) == (other["added_ids"], other["removed_ids"])
        assert (pair.newer.cycle, pair.older.cycle) == (other["from"]["cycle"], other["to"]["cycle"])
        assert [change.id for change in pair.changed] == [change["id"] for change in other["changed"]]
        for change, as_json in zip(pair.changed, other["changed"]):
            delta = as_json.get("delta", {})
            assert change.delta == {name: (each["from"], each["to"]) for name, each in delta.items()}
        assert pair.stats == other["stats"]
    assert diff[-1].older.label == "@t-3" and diff.rows > 0 and diff
    with pytest.raises(IndexError):
        diff[3]
    assert not session.range("@t-1..@t0 .cb[kind='nothing']")


def test_options_of_ranges(session: pactql.Session) -> None:
    diff = session.range("@history .cb", max_snapshots=2, max_changes=1, content="unified", materialize=["content"])
    assert diff.truncated and diff.errors and len(diff.snapshots) == 2
    with pytest.raises(ValueError, match="unknown form of a content diff `colour`"):
        session.range("@history .cb", content="colour")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="field to materialize"):
        session.range("@history .cb", materialize=["x"])  # type: ignore[list-item]


def test_explain(session: pactql.Session) -> None:
    explained = session.explain("@t0 .cb[ttl<=1]", analyze=True)
    assert "strategy" in str(explained) and explained.normalized == "@t0 .cb[ttl<=1]"
    assert explained.to_dict()["analysis"]["rows"] >= 0


def test_save_and_open(session: pactql.Session, tmp_path: Path) -> None:
    path = tmp_path / "copy.jsonl"
    session.save(path)
    assert pactql.Session.open(path).dumps() == session.dumps() == path.read_text("utf-8")
    with pytest.raises(FileExistsError):
        session.save(path)
    session.save(str(path), overwrite=True, full=True)
    assert pactql.Session.open(path).dumps() == session.dumps()
    assert [each.name for each in tmp_path.iterdir()] == ["copy.jsonl"]
    with pytest.raises(FileNotFoundError):
        session.save(tmp_path / "no" / "x.jsonl")


def test_an_engine_of_another_edition(session: pactql.Session) -> None:
    engine = pactql.Engine(edition="v0.1")
    assert engine.select(session, "#cb:u2").ids() == ["cb:u2"]
    assert engine.format("#cb:u2") == "@t0 {id='cb:u2'}"
    with pytest.raises(ValueError, match="unknown edition"):
        pactql.Engine(edition="v9")  # type: ignore[arg-type]


def test_prepared(session: pactql.Session) -> None:
    prepared = pactql.Engine().prepare("@t0 .cb[role=$role]")
    assert prepared.params == ["role"] and prepared.select(session, role="tool")[0].role == "tool"
    with pytest.raises(pactql.SelectorError):
        prepared.select(session)
    with pytest.raises(pactql.SelectorError, match="there is `\\$?role`"):
        prepared.select(session, rol="user")


def test_fit_and_tokens(session: pactql.Session) -> None:
    fit = session.select("@t0 .cb").fit(60, "refund order")
    assert fit.resolution["selection"]["tokens_used"] <= 60
    assert [node.id for node in fit.nodes] == [each["id"] for each in fit.resolution["documents"]]
    report = session.tokens("@t0", by="role")
    newest = report["snapshots"][0]
    assert sum(group["tokens"] for group in newest["groups"]) == newest["tokens"]
    # The last step is what came after the last reply.
    assert len(session.prefix()["steps"]) == 6 and len(session.steps()["steps"]) == 7
    assert pactql.count_tokens("hello world") == 2


def test_any_slice_fits_a_budget(session: pactql.Session) -> None:
    blocks = session.select("@t0 .cb")
    for which in (slice(1, -1), slice(None, None, 2), slice(None, None, -1), slice(2, 5), slice(0, 0)):
        part = blocks[which]
        fit = part.fit(60, "refund order")
        assert all(node in part for node in fit.nodes) and fit.resolution["selection"]["tokens_used"] <= 60
        # The order of the nodes does not matter: the best of them are taken.
        again = session.select("@t0 .cb[id=$ids]", ids=part.ids()).fit(60, "refund order") if part else None
        assert [node.id for node in fit.nodes] == [node.id for node in again.nodes] if again else not fit.nodes


def test_options_of_ranges_have_types(session: pactql.Session) -> None:
    prepared = pactql.Engine().prepare("@history .cb[role=$role]")
    asks: list[Any] = [partial(session.range, "@history .cb[role=$role]"), partial(prepared.range, session)]
    for ask in asks:
        plain = ask(role="user", content=None, max_snapshots=None, max_changes=None)
        assert plain.to_dict() == ask(params={"role": "user"}).to_dict()
        for wrong in ({"stats": "yes"}, {"content": 5}, {"context_lines": "a"}, {"materialize": 5}, {"max_snapshots": "a"}, {"max_changes": 1.5}):
            with pytest.raises(TypeError, match=f"argument '{next(iter(wrong))}'"):
                ask(role="user", **wrong)
        with pytest.raises(OverflowError):
            ask(role="user", max_changes=-1)
    with pytest.raises(TypeError, match="`params` is a mapping, and not list"):
        session.select("@t0 .cb", ["a"])  # type: ignore[arg-type]


def test_render_is_the_request(fixtures: Path) -> None:
    log = pactql.import_log(fixtures / "chat.openai.json")
    messages = json.loads(log.sessions[0].render("openai"))
    assert messages[0]["role"] == "system"
    with pytest.raises(ValueError, match="unknown provider"):
        log.sessions[0].render("acme")  # type: ignore[arg-type]


def test_errors_are_shown_with_their_places(session: pactql.Session) -> None:
    with pytest.raises(pactql.SelectorError) as raised:
        session.select("@t0 .cb[role='é']:lats")
    error = raised.value
    assert error.code == "E_SELECTOR_INVALID" and isinstance(error, ValueError)
    (start, end, _), *_ = error.spans
    assert error.text[start:end] == ":lats"
    assert error.correction == "@t0 .cb[role='é']:last" and error.help == f"write `{error.correction}`"
    assert "^^^^^ no such pseudo-class" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.spans) == (type(error), str(error), error.spans)


def test_several_mistakes_come_together(session: pactql.Session) -> None:
    with pytest.raises(pactql.SelectorError) as raised:
        session.select("@t0 .cb:lats[ttl='x'] .mt:nope[ttl~'y']")
    assert len(raised.value.more) >= 1 and all(error.spans for error in raised.value.more)


def test_the_classes_of_errors(session: pactql.Session, tmp_path: Path) -> None:
    with pytest.raises(pactql.SnapshotNotFound):
        session.select("@t-99 .cb")
    with pytest.raises(FileNotFoundError):
        pactql.Session.open(tmp_path / "missing.jsonl")
    with pytest.raises(pactql.InputMissing):
        pactql.Session.open(tmp_path / "missing.jsonl")
    with pytest.raises(pactql.InputError) as raised:
        pactql.Session.parse('{"root": {"id": 5}}')
    fault = raised.value.faults[0]
    assert (fault["line"], fault["path"]) == (1, "$.root.id") and fault["message"] in str(raised.value)
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(pactql.InputError) as raised:
        pactql.Session.open(broken)
    assert raised.value.faults[0]["file"] == str(broken)


def test_reports_are_those_of_the_command_line(session: pactql.Session) -> None:
    shown = session.show("@c1")["snapshots"][0]
    assert shown["cycle"] == 1 and {block["id"] for block in shown["blocks"]} >= set(session.select("@c1 .cb").ids())
    assert [block["id"] for block in session.grep("REFUND", ignore_case=True)["blocks"]]
    assert session.grep("REFUND")["blocks"] == []
    assert session.top(by="role") == session.top() and session.top("@*")["groups"]
    whole, less = (session.tokens(without=each) for each in (".cb[key='none']", ".cb[kind='result']"))
    assert whole["blocks"] == 0 and less["blocks"] > 0
    assert {"tools", "requests"} & set(session.unused()) and session.duplicates()["snapshots"]
    assert session.usage("model")["sessions"] == 1
    assert session.fields()["nodes"] > 0
    unmet = session.check("some @t0 .cb\nnone @t0 .cb")
    assert [each["holds"] for each in unmet["conditions"]] == [True, False] == [row["holds"] for row in unmet.rows()]
    # What is asserted is whether they hold.
    assert not unmet and unmet.holds is False and session.check("some @t0 .cb")
    with pytest.raises(pactql.Error, match="needs a selector"):
        session.check("some")
    same = session.diff(session)
    assert same["equal"] == same["a"]["steps"] == same["b"]["steps"] and "parted" not in same
    assert session.blame("cb:u2")["events"][0]["event"] == "appeared"
    with pytest.raises(KeyError, match="no snapshot has a node `nope`"):
        session.blame("nope")
    page = session.to_html(redact=["Graz"])
    assert page.startswith("<!doctype html>") and "Graz" not in page
    assert session.attempts == []
    with pytest.raises(KeyError, match="no attempt `a1-1`"):
        session.render(attempt="a1-1")


def test_snapshots(session: pactql.Session) -> None:
    assert [each.cycle for each in session] == session.cycles
    newest, first = session[-1], session[0]
    for written in ("@t0 .cb", " @c1 .cb"):
        with pytest.raises(pactql.SelectorError, match="the snapshot is chosen already, @c1,") as raised:
            first.select(written)
        error = raised.value
        assert error.help == "write `.cb`" and error.text == written and written[slice(*error.spans[0][:2])][0] == "@"
    with pytest.raises(pactql.SelectorError) as raised:
        first.select(".cb[role == 'user']")
    assert raised.value.text == raised.value.text.lstrip("@") and "@c1" not in str(raised.value)
    assert newest == session[5] != first and len({newest, session[5], first}) == 2
    assert newest.nodes.ids() == session.select("@t0 *").ids()
    assert newest.select(".cb[role=$role]", role="user").ids() == session.select("@t0 .cb[role='user']").ids()
    request = json.loads(session.render("openai", "@c6"))
    assert newest.messages("openai") == (request if isinstance(request, list) else request["messages"])
    assert newest.messages("thread") and newest.request == json.loads(session.render(None, "@c6"))
    assert all(node.role == "assistant" for node in newest.reply)
    assert [each.cycle for each in session[1:3]] == session.cycles[1:3] and session[6:] == []
    with pytest.raises(IndexError):
        session[6]
    assert newest.time is None or newest.time.tzinfo is not None


def test_a_snapshot_of_a_log_has_its_call() -> None:
    answer: dict[str, Any] = {"id": "r1", "model": "m-1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}
    answer["usage"] = {"prompt_tokens": 7, "completion_tokens": 2}
    call = {"request": {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}, "response": answer}
    newest = pactql.import_log(json.dumps(call).encode()).sessions[0][-1]
    assert (newest.model, newest.stop_reason) == ("m-1", "stop")
    assert newest.usage["input_tokens"] == 7 and newest.usage["output_tokens"] == 2
    assert [node.text for node in newest.reply] == ["Hi"]


def test_open_takes_what_people_have(fixtures: Path, tmp_path: Path) -> None:
    session = pactql.open(fixtures / "support-agent.jsonl")
    assert isinstance(session, pactql.Session) and len(session) == 6
    log = pactql.open(str(fixtures / "chat.openai.json"))
    assert isinstance(log, pactql.Session) and log.name == "chat.openai"
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    for source in (messages, json.dumps(messages).encode()):
        chat = pactql.open(source)
        assert isinstance(chat, pactql.Session) and chat.select("@t0 .cb").texts() == ["Hello", "Hi"]
    lines = (fixtures / "leap-day.claude-code.jsonl").read_text("utf-8").splitlines()
    assert isinstance(pactql.open(iter(lines)), pactql.Session)
    path = tmp_path / "a.db"
    with pactql.Store.open(path) as store:
        store.add("one", session)
        store.add("two", log)
        assert store.keys() == ["one", "two"] and [name for name, _ in store.items()] == store.keys()
        assert [len(each) for each in store.values()] == [6, 5]
        assert store.get("three") is None and store.get("three", 3) == 3
        found = store.get("one")
        assert found is not None and len(found) == 6
        del store["two"]
        assert list(store) == ["one"]
        with pytest.raises(KeyError):
            del store["two"]
    opened = pactql.open(path)
    assert isinstance(opened, pactql.Store) and list(opened) == ["one"]
    one = pactql.open(f"{path}#one")
    assert isinstance(one, pactql.Session) and len(one) == 6
    bad = tmp_path / "bad.json"
    bad.write_text("{", "utf-8")
    with pytest.raises(pactql.InputError):
        pactql.open(bad)
    with pytest.raises(FileNotFoundError):
        pactql.open(tmp_path / "none.jsonl")
    number: Any = 5
    with pytest.raises(TypeError, match="not int"):
        pactql.open(number)


def printed(*arguments: str) -> Any:
    done = subprocess.run([sys.executable, "-m", "pactql", *arguments, "--json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_largest_groups_are_those_of_the_command_line(fixtures: Path, tmp_path: Path) -> None:
    context = pactql.Context()
    context.append("user", "Hello")
    context.reply("Hi")
    context.commit()
    context.append("user", "A question that nothing has answered")
    path = tmp_path / "talk.jsonl"
    context.session.save(path)
    for file in (path, fixtures / "support-agent.jsonl", fixtures / "chat.openai.json"):
        session: Any = pactql.open(file)
        assert session.top() == printed("top", str(file))
        assert session.top(by="turn") == printed("top", str(file), "--by", "turn")
        assert session.top("@t0", by="tool") == printed("top", str(file), "@t0", "--by", "tool")
    assert session.top(by="session")["groups"][0]["name"] == "chat.openai"


def test_a_report_says_why_its_selector_finds_nothing(session: pactql.Session) -> None:
    typed, note = ".cb[knd='call']", "no node has `knd`; did you mean `kind`?"
    tables = [session.tokens(only=typed), session.tokens(without=typed), session.steps(only=typed), session.prefix(only=typed)]
    for table in tables:
        assert table.notes[0] == table["notes"][0] == note
        assert note in table._repr_html_()
    others: list[Any] = [session.grep("a", only=typed), session.top(only=typed), session.show(only=typed), session.duplicates(only=typed)]
    assert [each["notes"][0] for each in others] == [note] * 4
    found = session.tokens(only=".cb[kind='call']")
    assert found.notes == [] and "notes" not in found and "notes" not in session.top()


def test_a_diff_of_nothing_says_why(session: pactql.Session) -> None:
    diff = session.range("@history .cb[knd=$kind]", kind="x")
    assert diff.rows == 0 and diff.why_empty() == ["no node has `knd`; did you mean `kind`?"]
    assert "did you mean `kind`?" in diff._repr_html_()
    [why] = session.range("@t0..@t-1 ^sys .cb").why_empty()
    assert why.startswith("3 nodes match, and none of 2 snapshots changes any")
    assert session.range("@history .cb").why_empty() == []
    assert pickle.loads(pickle.dumps(diff)).why_empty() == []


def test_what_where_leaves_out_is_said(session: pactql.Session) -> None:
    note = ["no node has `knd`; did you mean `kind`?"]
    for found in (session.select("@t0 .cb"), session.select("@* .cb"), session.select("@t0 .cb[role='user']"), session.select("@t0 .cb")[::2]):
        assert found.where(".cb[knd='call']").why_empty() == note
        assert found.where(".cb[knd='call']")[:3].where(".cb").why_empty() == note
    calls = session.select("@t0 .cb[kind='call']")
    assert calls.where(".cb[role='user']").why_empty() == ["a slice or `where` left no node"]
    assert calls[:0].why_empty() == ["a slice or `where` left no node"]
    assert session.select("@t0 .cb[rol='user']").where(".cb[knd='call']").why_empty() == ["no node has `rol`; did you mean `role`?"]


def test_a_row_of_a_step_has_its_call() -> None:
    answer: dict[str, Any] = {"id": "r1", "model": "m-1", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}]}
    answer["usage"] = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    call = {"request": {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}, "response": answer}
    report = pactql.import_log(json.dumps(call).encode()).sessions[0].steps()
    [row], [step] = report.rows(), report.steps
    for name in ("model", "input_tokens", "cached_tokens", "output_tokens", "stop_reason"):
        assert row[name] == step[name] and row[name] is not None, name
    assert row["events"] == "reply" and {"duration_ms", "cache_write_tokens"} <= set(row)


def test_calls_of_a_log_that_failed_are_events() -> None:
    asked = {"request": {"model": "m-1", "messages": [{"role": "user", "content": "Hello"}]}}
    failed = {**asked, "response": {"error": {"message": "no such model"}}}
    session = pactql.import_log(json.dumps(failed).encode()).sessions[0]
    assert session.attempts == []
    assert [event["event"] for event in session.steps().steps[-1]["events"]] == ["failed"]


def test_arguments_that_exclude_each_other_are_refused(session: pactql.Session) -> None:
    with pytest.raises(ValueError, match="`all` and `at` exclude each other"):
        session.tokens("@t-3", all=True)
    with pytest.raises(ValueError, match="`without` and `by` exclude each other"):
        session.tokens(without=".cb", by="tool")
    with pytest.raises(ValueError, match="`without` and `only` exclude each other"):
        session.tokens(without=".cb", only="^sys")
    with pytest.raises(ValueError, match="`attempt` and `at` exclude each other"):
        session.render(None, "@t0", attempt="a1-1")


def test_half_a_surrogate_pair_is_read_as_in_a_file(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "\ud83d Hello"}, {"role": "assistant", "content": "Hi"}]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    read: Any = pactql.open(path)
    assert pactql.open(messages).select("@t0 .cb").texts() == read.select("@t0 .cb").texts()
    assert pactql.open({"messages": messages}).select("@t0 .cb").texts() == read.select("@t0 .cb").texts()
    lines = [json.dumps(each, ensure_ascii=False) for each in messages]
    assert pactql.open(lines).select("@t0 .cb").texts() == read.select("@t0 .cb").texts() == ["\ufffd Hello", "Hi"]


def test_a_path_of_bytes(fixtures: Path, tmp_path: Path) -> None:
    opened: Any = pactql.open(bytes(fixtures / "support-agent.jsonl"))
    assert len(opened) == 6
    with pytest.raises(pactql.InputMissing):
        pactql.open(bytes(tmp_path / "none.jsonl"))
    assert len(pactql.open((fixtures / "chat.openai.json").read_bytes())) == 5
    with pytest.raises(pactql.InputError):
        pactql.open(b"")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8")
def test_a_name_that_is_not_utf8(fixtures: Path, tmp_path: Path) -> None:
    path = bytes(tmp_path) + b"/caf\xe9.json"
    with open(path, "wb") as file:
        file.write((fixtures / "chat.openai.json").read_bytes())
    for each in (path, os.fsdecode(path), Path(os.fsdecode(path))):
        opened: Any = pactql.open(each)
        assert len(opened) == 5
    # The name of the session is of what can be read of it.
    assert opened.name == "caf\ufffd"


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_no_file_is_written_compressed(session: pactql.Session, tmp_path: Path, ending: str) -> None:
    plain = tmp_path / "session.jsonl"
    with pytest.raises(ValueError, match=f"a file is not written compressed; write it to {plain}$"):
        session.save(f"{plain}{ending}")
    assert list(tmp_path.iterdir()) == []


def test_a_node_has_its_time_as_it_is_written(session: pactql.Session) -> None:
    node = session.select("@t0 .cb[role='user']").first()
    assert node is not None and node.to_dict()["created_at_iso"] == node["created_at_iso"] == "2026-03-02T09:19:05.002Z"
    [found] = session.select("@t0 .cb[created_at_iso=$time][id=$id]", time=node["created_at_iso"], id=node.id)
    assert found == node
    # A log without times does not say 1970.
    chat = pactql.open([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    assert all("created_at_iso" not in each.to_dict() and each.get("created_at_iso") is None for each in chat.select("@t0 *"))
