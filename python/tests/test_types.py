"""A program that uses everything, for the type checkers: mypy checks it with the other tests, pyright where it is installed.

Nothing here is a cast or `Any` that a user would not write.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pactql
import pytest
from pactql.testing import assert_context, assert_order, assert_prefix_stable, assert_tokens

if TYPE_CHECKING:
    import openai


def reading(path: Path) -> int:
    # A path may be a store; a name, and messages, are of a session.
    opened = pactql.open(path)
    session: pactql.Session = opened["a"] if isinstance(opened, pactql.Store) else opened
    session = pactql.open(path, name="a") if path.exists() else pactql.open([{"role": "user", "content": "Hello"}])
    first: list[str] = pactql.open("fixtures/support-agent.jsonl").select("@t0 .cb").texts()
    assert first and session.tokens(by="block")
    found: pactql.Selection = session.select("@t0 .cb[role=$r]", r={"user"}, at=datetime.now(), d=timedelta(1))
    texts: list[str] = [node.text for node in found[1:]] + [str(node["role"]) for node in found]
    newest: pactql.Snapshot = session[-1]
    latency: timedelta | None = newest.latency
    step: int | None = session.steps().steps[0].get("added")
    tokens: int = session.tokens("@t0", by="role").snapshots[0]["tokens"]
    spared: int = session.tokens(without=".cb").then["input_tokens"]
    rows: list[dict[str, object]] = session.prefix().rows()
    shown: str = session.show()["snapshots"][0]["blocks"][0]["text"]
    lines: int = session.grep("x")["lines"]
    holds: bool = session.check("some @t0 .cb").holds
    cost: int = session.usage("model").total["nano_dollars"]
    failed: list[str] = [each["attempt_id"] for each in session.attempts if each["status"] == "error"]
    equal: int = session.diff(session)["equal"]
    assert latency is None and texts and step and rows and shown and failed and equal
    return tokens + spared + lines + cost + int(holds) + len(found)


def stores(store: pactql.Store) -> None:
    with store.write("a") as context:
        ids: list[str] = context.append("user", "Hello")
        context.commit()
    name: str
    nodes: pactql.Selection
    for name, nodes in store.select("@t0 .cb"):
        print(name, nodes.ids(), ids)
    for snapshot in store.watch("a", timeout=1):
        cycle: int = snapshot.cycle
        print(cycle)
    session: pactql.Session | None = store.get("a")
    assert session is not None


async def recording(client: "openai.OpenAI", store: pactql.Store) -> None:
    recorded: "openai.OpenAI" = pactql.record(client, store, session="a", redact=[re.compile("x"), "y"])
    done: bool = pactql.recorder(recorded).flush() and await pactql.recorder(recorded).aflush(1.0)
    recorder: pactql.Recorder = pactql.record_all("agent.db")
    with pactql.session("nightly") as name:
        print(name, done)
    recorder.close()
    async for snapshot in store.watch("a"):
        made: pactql.Replay = snapshot.send(client, change={"model": "m"}, dry_run=True)
        again: pactql.Replay = pactql.replay(store["a"], client, from_=snapshot, change=lambda request: request)
        print(made.input_tokens, again.calls[0].request, again.diff().get("parted"))


def asserting(session: pactql.Session) -> None:
    first: pactql.Node | None = assert_context(session, "@t0 .cb", at_least=1, text="x").first()
    assert_order(session[-1], "^sys .cb", "^seq .cb")
    assert_prefix_stable(session)
    assert_tokens(session[-1], 100, by="role")
    assert first is not None


def test_pyright_is_content(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("the package `pyright` is not installed")
    shutil.copy(__file__, tmp_path / "program.py")
    packages = Path(pactql.__path__[0]).parent
    settings = {"include": ["program.py"], "extraPaths": [str(packages)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)
    if not done.stdout.lstrip().startswith("{"):
        pytest.skip("pyright cannot be run here: it needs Node.js")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    found = [f"{each['range']['start']['line'] + 1}: {each['message']}" for each in report["generalDiagnostics"]]
    assert found == []
