"""Values behave as values of Python do: copied, pickled, compared, given as parameters."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import pickle
import sqlite3
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime, timedelta, timezone
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import pactql
import pytest


def described(value: Any) -> Any:
    """What a value is, without whose memory it is in."""
    if isinstance(value, pactql.Session):
        return value.name, value.dumps(full=True)
    if isinstance(value, pactql.Snapshot):
        return value.cycle, described(value.session)
    if isinstance(value, pactql.Node):
        return value.snapshot, value.to_dict()
    if isinstance(value, pactql.Selection):
        return value.session, [described(node) for node in value]
    return value.session if isinstance(value, pactql.RangeDiff) else None, value.to_json()


def values(session: pactql.Session) -> list[Any]:
    found = session.select("@t0 .cb")
    return [session, session[-1], found, found[0], found[::-2], found[1:3], session.select("@t-2 .cb"), session.select("@* .cb")]


def diffs() -> list[Any]:
    """Diffs with everything that they can have, and their parts."""
    versions: list[tuple[Any, str, int]] = [({"a": [1, 2]}, "one\ntwo", 1), ({"a": [1], "c": "é"}, "one\nthree", 10**25)]
    documents = []
    for at, (content, text, number) in enumerate(versions):
        blocks = [
            {"id": "a", "nodeType": "cb", "offset": 1, "content": content},
            {"id": "b", "nodeType": "cb", "offset": 2, "content": text, "data_n": number, "ttl": 9},
        ]
        head = {"id": "^ah", "nodeType": "^ah", "children": blocks}
        documents.append(json.dumps({"cycle": at + 1, "root": {"id": "r", "children": [head]}}))
    session = pactql.Session.parse("\n".join(documents))
    found: list[Any] = []
    for mode in CONTENTS:
        diff = session.range("@t0..@t-1 *", content=mode, materialize=["content", "mime"], stats=True, max_changes=100)
        changed = diff[0].changed
        assert any(change.content_diff and change.materialized for change in changed) and any(change.delta for change in changed)
        found += [diff, *diff, *changed, *diff.snapshots]
    return [*found, session.range("@t0..@t-1 *", max_snapshots=1, max_changes=1)]


CONTENTS: list[Literal["unified", "jsonpatch", "tokens"]] = ["unified", "jsonpatch", "tokens"]


def test_copies(session: pactql.Session) -> None:
    for value in values(session) + diffs():
        for again in (copy.copy(value), copy.deepcopy(value)):
            assert again == value and hash(again) == hash(value)
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value) and described(again) == described(value)
    context = pactql.Context()
    context.append("user", "Hello")
    working = pickle.loads(pickle.dumps(context.select("^ah .cb")))
    assert working.texts() == ["Hello"]


def test_copies_of_a_store(tmp_path: Path, session: pactql.Session) -> None:
    with pactql.Store.open(tmp_path / "agents.db") as store:
        store.add("a", session)
        answers = dict(store.select("@t0 .cb[role='user']"))
        again = pickle.loads(pickle.dumps(answers))
        assert described(again["a"]) == described(answers["a"]) and again["a"].session == "a"
        assert pickle.loads(pickle.dumps(store["a"])).cycles == session.cycles
        for diff in dict(store.range("@history .cb")).values():
            again = pickle.loads(pickle.dumps(diff))
            assert again == diff and described(again) == described(diff) and again.session == "a"


def texts(nodes: pactql.Selection) -> list[str]:
    return nodes.texts()


def test_a_selection_goes_to_another_process(session: pactql.Session) -> None:
    found = session.select("@t0 .cb[role='user']")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(texts, found).result() == found.texts()


def test_equality_of_selections(session: pactql.Session) -> None:
    found = session.select("@t0 .cb[role='user']")
    assert found == session.select("@t0 .cb[role=$role]", role="user") and found == found[:]
    assert found != found[1:] and found != found[::-1] and found != list(found)
    assert len({found, session.select("@t0 .cb[role='user']")}) == 1


def test_equality_of_diffs(session: pactql.Session) -> None:
    diff, other = session.range("@history .cb"), session.range("@history .cb[role='tool']")
    assert diff == session.range("@history .cb") and diff != other and diff != session.range("@t0..@t-1 .cb")
    assert diff[0] == list(diff)[0] != diff[1] and diff[0] != diff[0].to_json() and diff[0].newer == diff.snapshots[0]
    assert len({diff, session.range("@history .cb")}) == 1 and len({*diff, *session.range("@history .cb")}) == len(diff)


def test_parameters(session: pactql.Session) -> None:
    def ids(**params: Any) -> list[str]:
        return session.select("@t0 .cb[role=$role]", **params).ids()

    assert ids(role={"user", "tool"}) == ids(role=frozenset(["tool", "user"])) == ids(role=["user", "tool"])
    every = session.select("@t0 .cb")
    when = sorted(node.created_at_ns for node in every)[len(every) // 2]
    moment = datetime.fromtimestamp(when // 1_000 / 1_000_000, timezone.utc)
    at = session.select("@t0 .cb[created_at_ns>=$at]", at=moment)
    assert 0 < len(at) < len(every) and at == session.select("@t0 .cb[created_at_ns>=$at]", at=when // 1_000 * 1_000)
    assert at == session.select("@t0 .cb[created_at_ns>=$at]", at=moment.astimezone(timezone(timedelta(hours=5))))
    assert session.select("@t0 .cb[created_at_ns>$d]", d=timedelta(days=1)) == session.select("@t0 .cb[created_at_ns>86400000000000]")
    with pytest.raises(TypeError, match="a datetime, a timedelta, or a list or set"):
        ids(role=object())
    with pytest.raises(TypeError, match="has no lists in it"):
        ids(role=[{"user"}])


def test_members_of_a_node(session: pactql.Session) -> None:
    node = session.select("@t0 .cb[kind='call']")[0]
    assert node["role"] == node.role and node["id"] == node.id and node["content"] == node.content
    assert {name: node[name] for name in node.to_dict()} == node.to_dict()
    assert "role" in node and "data_call_id" in node and "zzz" not in node and node.get("ttl", 3) == (node.ttl or 3)
    with pytest.raises(KeyError, match="zzz"):
        node["zzz"]


def test_tables_of_reports(session: pactql.Session) -> None:
    reports: list[Any] = [
        session.steps(), session.tokens("@history", by="role"), session.prefix(), session.usage("model"),
        session.tokens(without=".cb[kind='call']"),
    ]  # fmt: skip
    for report in reports:
        rows = report.rows()
        assert rows and all(list(row) == list(rows[0]) for row in rows)
        assert json.loads(json.dumps(report)) == report
        assert "<table>" in report._repr_html_()
        polars = pytest.importorskip("polars")
        assert len(polars.DataFrame(rows)) == len(rows)
    assert len(session.steps().rows()) == len(session) + 1


def test_watching(tmp_path: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")

    def write(text: str) -> None:
        with store.write("a") as context:
            context.append("user", text)
            context.commit()

    write("one")
    watch = store.watch("a", timeout=0, interval=0.01)
    assert list(watch) == []
    write("two")
    write("three")
    assert [snapshot.cycle for snapshot in watch] == [2, 3]

    async def run() -> list[int]:
        return [snapshot.cycle async for snapshot in store.watch("a", past=True, timeout=0)]

    assert asyncio.run(run()) == [1, 2, 3]
    assert "1 session<" in store._repr_html_()


CTRACE = """
create table run (id, project, started_at, provider);
create table call (id, run_id, seq, params, usage, latency_ms, error);
create table block (content_hash, role, kind, text);
create table call_block (call_id, block_id, position, label, label_source);
insert into run values ('r1', 'p', '2026-03-02T09:00:00+00:00', 'openai');
insert into call values ('c1', 'r1', 1, '{}', null, null, null);
insert into block values ('u', 'user', 'message', 'Find it.');
insert into call_block values ('c1', 'u', 0, null, null);
"""
"""A log of ctxdiff."""


def zstandard(data: bytes) -> bytes:
    """A frame of Zstandard, whose blocks are as they are."""
    size = 100_000
    blocks = [data[at : at + size] for at in range(0, len(data), size)]
    heads = [(len(block) << 3 | (at == len(blocks) - 1)).to_bytes(3, "little") for at, block in enumerate(blocks)]
    head = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")
    return head + b"".join(head + block for head, block in zip(heads, blocks))


def test_open(tmp_path: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(source: Any, **more: Any) -> Any:
        session = pactql.open(source, **more)
        assert isinstance(session, pactql.Session)
        return len(session), session.name

    log, snapshots = fixtures / "chat.openai.json", fixtures / "support-agent.jsonl"
    assert steps(log) == (5, "chat.openai") and steps(snapshots) == (6, None)
    for path in (log, snapshots):
        for ending, pack in (("gz", gzip.compress), ("zst", zstandard)):
            packed = tmp_path / f"{path.name}.{ending}"
            packed.write_bytes(pack(path.read_bytes()))
            assert steps(packed) == steps(path)
    assert len(pactql.import_log(tmp_path / "chat.openai.json.zst").sessions[0]) == 5
    messages = json.loads(log.read_text())
    assert steps(messages)[0] == 5 and steps(json.dumps(message) for message in messages)[0] == 5
    for data in (log.read_bytes(), gzip.compress(log.read_bytes()), zstandard(log.read_bytes())):
        assert steps(data)[0] == 5
    store = tmp_path / "agents.db"
    with pactql.Store.open(store) as opened:
        opened.import_log(log, name="a")
    assert isinstance(pactql.open(store), pactql.Store)
    assert steps(f"{store}#a") == (5, "a") and steps(store, name="a") == (5, "a")
    folder = tmp_path / "logs"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "one.json").write_bytes(log.read_bytes())
    assert steps(folder) == (5, "below/one")
    # As `pactql sessions` lists them: whatever they are called, logs and sessions by the names of their files.
    (folder / "two.traj").write_bytes(zstandard(log.read_bytes()))
    (folder / "three.jsonl.gz").write_bytes(gzip.compress(snapshots.read_bytes()))
    with pytest.raises(ValueError, match="3 sessions; `name=` says which: 'below/one', 'three', 'two.traj'"):
        pactql.open(folder)
    assert steps(folder, name="two.traj") == (5, "two.traj") and steps(folder, name="three") == (6, "three")
    # What is no log stops nothing.
    (folder / "bad.jsonl.gz").write_bytes(gzip.compress(log.read_bytes())[:99])
    with pytest.warns(UserWarning, match="left out 1 file without a session or a log that is read: .*bad.jsonl.gz"):
        assert steps(folder, name="three") == (6, "three")
    # Files of one name, and a store with a session that is damaged.
    other = tmp_path / "other"
    other.mkdir()
    (other / "one.jsonl").write_bytes(snapshots.read_bytes())
    (other / "one.json").write_bytes(snapshots.read_bytes().splitlines()[0])
    with pactql.Store.open(other / "s.db") as opened:
        opened.import_log(log, name="a")
        opened.import_log(snapshots, name="b")
    with sqlite3.connect(other / "s.db") as database:
        database.execute("delete from snapshot where session_id = (select session_id from session where name = 'b')")
    database.close()
    with pytest.warns(UserWarning, match="left out s.db#b: the store is damaged"):
        assert steps(other, name="one") == (1, "one")
    with pytest.warns(UserWarning, match="left out s.db#b: the store is damaged"):
        assert steps(other, name="one-2") == (6, "one-2")
    with pytest.warns(UserWarning, match="left out s.db#b: the store is damaged"):
        assert steps(other, name="s.db#a") == (5, "s.db#a")
    with pytest.raises(pactql.StoreError, match="its snapshots are missing"):
        pactql.open(other, name="s.db#b")
    # A subagent is opened by its name.
    release = fixtures / "release.claude-code.jsonl"
    with pytest.warns(UserWarning, match="left out 1 branch or subagent of .*; `name=` opens one: 'release.claude-code', 'rel"):
        assert steps(release)[1] == "release.claude-code"
    assert steps(release, name="release.claude-code/reviewer-1")[1] == "release.claude-code/reviewer-1"
    assert steps(f"{release}#release.claude-code/reviewer-1")[1] == "release.claude-code/reviewer-1"
    # A log may be a SQLite file, too.
    with sqlite3.connect(tmp_path / "run.ctrace") as database:
        database.executescript(CTRACE)
    database.close()
    assert steps(tmp_path / "run.ctrace") == (1, "run.ctrace")
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("create table other (x)")
    database.close()
    with pytest.raises(pactql.StoreError):
        pactql.open(tmp_path / "other.db")
    # The log that an agent wrote last.
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_DATA_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(pactql.InputMissing, match="no logs of agents"):
        pactql.open()
    place = tmp_path / ".claude" / "projects" / "p"
    place.mkdir(parents=True)
    (place / "x.jsonl").write_text("\n".join(map(json.dumps, messages)))
    assert steps(None) == (5, "x")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ([{"x": 1}], "pactql.open(messages)` takes the list itself"),
        (3, "expected a path, messages or lines of a log, not int"),
        ("missing.json", "missing.json: no such file or directory"),
        ([], "expected messages, or lines of a log, and there are none"),
        ("fixtures", "sessions; `name=` says which"),
    ],
)
def test_what_cannot_be_opened(source: Any, words: str, place: Path) -> None:
    with pytest.raises((pactql.Error, TypeError, ValueError)) as raised:
        pactql.open(source)
    assert words in str(raised.value) and "--" not in str(raised.value)


def test_errors_name_what_there_is_in_python(tmp_path: Path, fixtures: Path) -> None:
    with pytest.raises(pactql.InputError, match="is a log .openai., and not a file of snapshots") as raised:
        pactql.Session.open(fixtures / "chat.openai.json")
    assert raised.value.faults == [] and raised.value.help == "`pactql.open(path)` reads both"
    store = pactql.Store.open(tmp_path / "agents.db")
    with pytest.raises(pactql.SessionNotFound) as missing:
        store.session("nobody")
    assert missing.value.help == "`store.keys()` lists its sessions"
