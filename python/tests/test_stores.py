"""Stores, contexts, logs and budgets."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pactql
import pytest


@pytest.fixture
def store(url: str, session: pactql.Session, fixtures: Path) -> Iterator[pactql.Store]:
    store = pactql.Store.open(url)
    store.add("support/1", session, source="a file")
    store.add("plants", pactql.Session.open(fixtures / "greenhouse.jsonl"))
    yield store
    store.close()


def test_sessions_of_a_store(store: pactql.Store, session: pactql.Session) -> None:
    assert [(each.name, each.snapshots, each.source) for each in store.sessions()] == [
        ("plants", 4, None),
        ("support/1", 6, "a file"),
    ]
    assert [each.name for each in store.sessions("support/*")] == ["support/1"]
    assert "plants" in store and "plans" not in store
    stored = store["support/1"]
    assert stored.name == "support/1" and stored.dumps() == session.dumps()
    assert stored.select("@t0 .cb").texts() == session.select("@t0 .cb").texts()
    assert stored.select("@t0 .cb").session == "support/1"
    with pytest.raises(pactql.SessionNotFound, match="there is `plants`") as raised:
        store.session("plans")
    assert isinstance(raised.value, LookupError) and raised.value.code == "E_SESSION_NOT_FOUND"
    with pytest.raises(pactql.SessionExists):
        store.add("plants", session)


def test_all_sessions_are_asked(store: pactql.Store) -> None:
    answers = store.select("@t0 .cb[role=$role]", role="user")
    found = dict(answers)
    assert list(found) == ["plants", "support/1"] and answers.candidates == 2
    for name, nodes in found.items():
        assert nodes.session == name
        assert nodes.ids() == store[name].select("@t0 .cb[role='user']").ids()
        assert nodes.where("^seq .cb").ids() == store[name].select("@t0 ^seq .cb[role='user']").ids()
    # They can be read again, and an iterator goes on where it was.
    assert dict(answers) == found
    iterator = iter(answers)
    assert next(iterator)[0] == "plants" and [name for name, _ in iterator] == ["support/1"]
    assert [name for name, _ in store.select("@t0 .cb", sessions="s*/*")] == ["support/1"]
    changes = dict(store.range("@t-1..@t0 .cb", sessions="support/*", stats=True))
    assert changes["support/1"].to_dict() == store["support/1"].range("@t-1..@t0 .cb", stats=True).to_dict()
    assert changes["support/1"].session == "support/1"
    with pytest.raises(pactql.SelectorError, match="`range`"):
        store.select("@t-1..@t0 .cb")
    with pytest.raises(pactql.SelectorError, match="`select`"):
        store.range("@t0 .cb")


def test_diffs_of_all_sessions_say_why_there_are_none(store: pactql.Store) -> None:
    assert store.range("@t-1..@t0 .cb").why_empty() == []
    found = store.range("@t-1..@t0 .cb[knd='call']")
    assert list(found) == [] and found.why_empty() == ["no node has `knd`; did you mean `kind`?"]
    [why] = store.range("@t0..@t0 ^sys .cb", sessions="support/*").why_empty()
    assert why.startswith("in support/1, 3 nodes match, and "), why
    # A session that lacks the snapshots is no match.
    assert store.range("@c90..@c91 .cb").why_empty()


def test_a_change_of_a_misspelled_name_warns(store: pactql.Store) -> None:
    with store.write("plants") as context:
        for change in (context.remove, lambda selector: context.update(selector, {"key": "x"}), lambda selector: context.move(selector, "^ah")):
            with pytest.warns(pactql.SelectorWarning, match="nothing is changed: no node has `rol`; did you mean `role`") as warned:
                assert change(".cb[rol='user']") == []
            assert warned[0].filename == __file__
        # What may well be missing.
        assert context.remove(".cb[data_old=true]") == []
        context.discard()


def test_a_store_is_not_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "sqlite::memory:"):
        with pytest.raises(pactql.StoreError, match="a store is a file, and `:memory:` is none"):
            pactql.Store.open(name)
    assert list(tmp_path.iterdir()) == []


def test_a_session_without_snapshots_is_not_written(store: pactql.Store, tmp_path: Path) -> None:
    store.write("new").close()
    for write in (store["new"].dumps, lambda: store["new"].save(tmp_path / "new.jsonl")):
        with pytest.raises(pactql.SnapshotNotFound, match="no snapshots, so there is nothing to write"):
            write()
    assert list(tmp_path.glob("*.jsonl*")) == []
    with store.write("new") as context:
        context.save()
    store["new"].save(tmp_path / "new.jsonl")
    assert pactql.Session.open(tmp_path / "new.jsonl").has_working


def test_answers_outlive_the_store(store: pactql.Store) -> None:
    answers = store.select("@t0 .cb")
    store.close()
    assert len(list(answers)) == 2
    with pytest.raises(pactql.StoreError, match="the store is closed"):
        store.sessions()


def test_sql(store: pactql.Store) -> None:
    selector = "@t0 .cb[role='user']"
    assert store.sql(selector).startswith("with") or "select" in store.sql(selector)
    rows = store.run_sql(selector, sessions="support/*")
    assert [row["id"] for row in rows] == store["support/1"].select(selector).ids()
    assert set(rows[0]) == {"session", "seq", "snapshot", "id", "ord"}
    with pytest.raises(pactql.SqlError):
        pactql.Engine().sql("@t0 .cb[content~'(?i)x\\b']", "duckdb") and store.sql("@t0 .cb[role=$x]")


def test_forks_names_and_ends(store: pactql.Store, tmp_path: Path) -> None:
    store.fork("support/1", "@t-2", "support/2")
    assert len(store["support/2"]) == 4
    store.rename("support/2", "support/3")
    store.delete("support/3")
    assert "support/3" not in store
    assert store.prune(keep=2, dry_run=True)["snapshots"] > 0 and len(store["support/1"]) == 6
    assert store.prune(keep=2, sessions="support/*")["sessions"] == [("support/1", 4)]
    with pytest.raises(ValueError, match="`keep` is 1 or more, and not 0"):
        store.prune(keep=0)
    with pytest.raises(ValueError, match="`prune` takes what stays"):
        store.prune()
    assert len(store["support/1"]) == 2
    assert store.erase("support/1", ["cb:u2"]) == [] and store.verify() == []
    assert "wobbles" not in str(store["support/1"].select("@* .cb").texts())
    store.backup(tmp_path / "copy.db")
    with pactql.Store.open(tmp_path / "copy.db", create=False, read_only=True) as copy:
        assert [each.name for each in copy.sessions()] == ["plants", "support/1"]


def test_a_store_that_is_missing(url: str) -> None:
    missing: list[Any] = [{"create": False}, {"read_only": True}]
    for options in missing:
        with pytest.raises(pactql.InputMissing) as raised:
            pactql.Store.open(url, **options)
        assert raised.value.code == "E_MISSING" and raised.value.help and isinstance(raised.value, FileNotFoundError)
        assert raised.value.errno == errno.ENOENT
    pactql.Store.open(url).close()
    pactql.Store.open(url, create=False).close()


@pytest.mark.parametrize("seconds", [0, 0.5, 2147483.647, 2147484.0, 2**40])
def test_a_store_waits_for_any_time(url: str, seconds: float) -> None:
    with pactql.Store.open(url, busy=seconds, lease=seconds) as store:
        assert list(store) == []


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan"), float("inf"), -float("inf"), 1e300])
def test_times_that_are_none(tmp_path: Path, seconds: float) -> None:
    path = tmp_path / "x.db"
    with pytest.raises(ValueError, match="`busy` is a number of seconds"):
        pactql.Store.open(path, busy=seconds)
    with pytest.raises(ValueError, match="`lease` is a number of seconds"):
        pactql.Store.open(path, lease=seconds)
    with pytest.raises(ValueError, match="`older_than` is a number of seconds"):
        pactql.Store.open(path).prune(older_than=seconds)


def test_a_store_has_its_sessions_by_name(store: pactql.Store, tmp_path: Path) -> None:
    assert list(store) == ["plants", "support/1"] and len(store) == 2 and store
    assert {name: len(store[name]) for name in store} == {"plants": 4, "support/1": 6}
    assert 1 not in store and None not in store
    with pytest.raises(TypeError, match="by the names of its sessions, and not by int"):
        store[0]  # type: ignore[index]
    empty = pactql.Store.open(tmp_path / "empty.db")
    assert empty and len(empty) == 0 and list(empty) == []


def test_writing(store: pactql.Store, url: str) -> None:
    with store.write("new", max_tokens=10_000) as context:
        context.set_system("Be brief.")
        context.set_tools([{"type": "function", "function": {"name": "weather"}}])
        context.set_request({"model": "m", "temperature": 0.5})
        assert len(context.append("user", "How warm?", images=["https://example.org/a.png"])) == 2
        request = context.render("openai")
        assert request.json()["model"] == "m" and json.loads(request.body) == request.json()
        context.reply("", calls=[("c1", "weather", {"city": "Graz"})])
        assert context.attempts[0]["status"] == "completed"
        assert context.commit()["cycle"] == 1 and not context.is_changed
        context.append("tool", "21 °C", call_id="c1")
        context.render("anthropic")
        context.fail_attempt("overloaded")
        assert context.select("^ah .cb[data_call_id=$id]", id="c1").texts() == ["21 °C"]
        with pactql.Store.open(url) as other, pytest.raises(pactql.SessionBusy):
            other.write("new")
        context.save()
    with pytest.raises(pactql.StoreError, match="the context is closed"):
        context.commit()
    with store.write("new") as context:
        assert context.cycle == 2 and context.select("^ah .cb").texts() == ["21 °C"]
        assert context.name == "new" and context.session.has_working


def test_passwords_are_not_shown(url: str, tmp_path: Path) -> None:
    assert repr(pactql.Store.open(tmp_path / "x.db")) == f"<Store {tmp_path}/x.db>"
    if "://" in url:
        store = pactql.Store.open(url.replace("postgres:///", "postgres://postgres:secret@/") + "&password=secret")
        assert repr(store) == "<Store postgres:///postgres>"


def test_changes_of_a_tree() -> None:
    context = pactql.Context()
    first = context.add("^ah", {"role": "user", "content": "one", "key": "k"})
    second = context.add("(d0, end)", 'block:text { role=user } "two"')
    assert context.update("#k", {"priority": 3}) == [first]
    assert context.select("^ah #k")[0].priority == 3
    third = context.replace(f".cb[id='{second}']", {"content": {"big": 2**70}})
    assert context.select(".cb[id=$id]", id=third)[0].content == {"big": 2**70}
    assert context.pin("it", "#k") == first and context.references == {"it": first}
    with pytest.raises(pactql.MutationError) as raised:
        context.remove("#k")
    assert raised.value.code == "E_PINNED"
    assert context.unpin("it") == first and context.remove("#k") == [first]
    block = context.reply("Hel")[0]
    context.push(block, "lo")
    assert context.select(".cb[id=$id]", id=block).texts() == ["Hello"]
    context.commit()
    fork = context.fork("@t0")
    assert fork.cycle == context.cycle == 2
    context.discard()
    resumed = pactql.Context.resume(pactql.Session.parse(context.session.dumps()))
    assert resumed.cycle == 2
    with pytest.raises(ValueError, match="not JSON compliant"):
        context.add("^ah", {"content": float("nan")})


def test_a_context_of_another_edition() -> None:
    context = pactql.Context(edition="v0.1")
    id = context.add("^ah", {"role": "user", "content": "one"})
    context.commit()
    blocks = context.select("@t0 ^seq .cb")
    assert context.select(f"@t0 #{id}").ids() == blocks.where(f"#{id}").ids() == [id]
    assert context.session.select(f"#{id}").ids() == context.fork("@t0").select(f"@t0 #{id}").ids() == [id]


def test_a_session_shows_what_is_written(store: pactql.Store) -> None:
    with store.write("live") as context:
        context.append("user", "one")
        context.commit()
        session = store.session("live")
        context.append("user", "two")
        context.commit()
        assert len(session) == 1 and store.refresh(session) and len(session) == 2


def test_logs(store: pactql.Store, fixtures: Path) -> None:
    path = fixtures / "chat.openai.json"
    log = pactql.import_log(path)
    assert (log.format, [each.name for each in log.sessions]) == ("openai", ["chat.openai"])
    assert "messages  understood 14" in str(log) and log.report
    assert pactql.import_log(path.read_bytes(), name="x").sessions[0].name == "x"
    first = store.import_log(path, name="chat")
    assert (first["new"], first["snapshots"]) == (1, 5)
    again = store.import_log(path, name="chat")
    assert (again["same"], again["snapshots"]) == (1, 0)
    assert len(store["chat"]) == 5
    with pytest.raises(pactql.InputMissing):
        pactql.import_log(fixtures / "missing.json")
    with pytest.raises(pactql.InputError):
        pactql.import_log(b"{")
    with pytest.raises(ValueError, match="format of logs"):
        pactql.import_log(path, format="acme")


def test_sessions_of_logs_have_the_names_of_the_command_line(fixtures: Path, tmp_path: Path) -> None:
    """Logs with several sessions, subagents and branches, and files with odd names."""
    logs = sorted(fixtures.glob("*.openai*.json*")) + sorted(fixtures.glob("*claude*")) + sorted(fixtures.glob("chat.*"))
    say = {"role": "user", "content": "a"}
    for name, log in {
        "two.json": [[say], [say]],
        "a.json.gz.ndjson": [say],
        ".json": [say],
        "back\\slash*.json": [say],
        "many.jsonl.json": [[say]] * 12,
    }.items():
        path = tmp_path / name
        path.write_text(json.dumps(log))
        logs.append(path)
    assert len(logs) > 6
    for number, log in enumerate(logs):
        store = tmp_path / f"{number}.db"
        words = [sys.executable, "-m", "pactql", "import", str(log), "-o", str(store)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        try:
            names = sorted(str(each.name) for each in pactql.import_log(log).sessions)
        except pactql.InputError:
            assert done.returncode != 0, log
            continue
        assert done.returncode == 0, done.stderr
        assert names == list(pactql.Store.open(store)), log


def test_budgets(tmp_path: Path) -> None:
    sources = tmp_path / "docs"
    sources.mkdir()
    for number in range(3):
        (sources / f"{number}.md").write_text(f"refund number {number} " * 5)
    manifest = pactql.build_cache(sources, tmp_path / "cache")
    assert manifest["document_count"] == 3
    resolved = pactql.resolve(tmp_path / "cache", "refund", 40)
    assert resolved["selection"]["tokens_used"] <= 40 and resolved["documents"]
    with pytest.raises(pactql.CacheError):
        pactql.build_cache(sources, tmp_path / "cache")
    with pytest.raises(pactql.InputMissing):
        pactql.resolve(tmp_path / "none", "x", 5)


def test_threads_share_all_of_it(store: pactql.Store) -> None:
    expected = {name: nodes.ids() for name, nodes in store.select("@t0 .cb")}
    answers = iter(store.select("@t0 .cb"))
    one = store["support/1"].select("@t0 .cb")
    found: list[tuple[str, list[str]]] = []
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                assert [node.id for node in one] == expected["support/1"]
                assert store["plants"].select("@t0 .cb").ids() == expected["plants"]
            for name, nodes in answers:
                found.append((name, nodes.ids()))
            with store.write(f"thread-{number}") as context:
                context.append("user", str(number))
                context.commit()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == [] and dict(found) == expected and len(found) == 2
    assert len(store.sessions("thread-*")) == 8


def test_a_file_of_snapshots_is_imported_too(tmp_path: Path, fixtures: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    path = fixtures / "support-agent.jsonl"
    assert store.import_log(path) == {"new": 1, "grown": 0, "same": 0, "snapshots": 6, "renamed": [], "kept_names": []}
    assert store.import_log(path.read_bytes(), name="a")["new"] == 1
    assert [(each.name, each.source) for each in store.sessions()] == [("a", None), ("support-agent", str(path))]
    assert store["a"].dumps() == store["support-agent"].dumps()
    with pytest.raises(pactql.SessionExists):
        store.import_log(path)
    with pytest.raises(pactql.InputError, match="expected a message"):
        store.import_log(b"[{}]")


def test_why_no_session_has_anything(tmp_path: Path, session: pactql.Session) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    assert store.select(".cb").why_empty() == ["the store has no sessions"]
    store.add("a", session)
    store.add("b", session)
    assert store.select("@t0 .cb[role='user']").why_empty() == []
    # Of all sessions where none has a name, else of the first.
    assert store.select("@t0 .cb[rol='user']").why_empty() == ["no node has `rol`; did you mean `role`?"]
    assert store.select("@c99 .cb").why_empty()[0].startswith("in a, ")
    [why] = store.select("@t0 .cb[role='user'][kind='call']").why_empty()
    assert why.startswith("in a, ")
    assert store.select("@t0 .cb", sessions="x*").why_empty() == ["no session has a name that `x*` matches"]
    asked = store.select("@t0 .cb[ttl<1][ttl>3]")
    assert list(asked) == [] and asked.warnings == session.select("@t0 .cb[ttl<1][ttl>3]").warnings != []
    assert store.range("@t-1..@t0 .cb").why_empty() == []


def test_a_list_is_no_text(tmp_path: Path, session: pactql.Session) -> None:
    store, text = pactql.Store.open(tmp_path / "agents.db"), "cb:u2"
    store.add("a", session)
    wrong: Any = text
    for call in (lambda: store.erase("a", wrong), lambda: session.to_html(redact=wrong)):
        with pytest.raises(TypeError, match=r"expected a list of texts, and found one: write \['cb:u2'\]"):
            call()
    message: Any = {"role": "user", "content": "Hello"}
    with pytest.raises(TypeError, match=r"`append\('user', 'Hello'\)`, and not dict"):
        pactql.Context().append(message)
    number: Any = 3
    for report in (session.show, session.tokens, session.steps):
        with pytest.raises(TypeError, match="an address is a text such as '@c3', and not int"):
            report(number)


def test_a_name_that_was_given_stays(tmp_path: Path, fixtures: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    path = fixtures / "chat.openai.json"
    store.import_log(path, name="support/1")
    assert store.import_log(path)["kept_names"] == [("chat.openai", "support/1")]
    assert [each.name for each in store.sessions()] == ["support/1"]
