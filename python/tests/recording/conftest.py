"""The server process of these tests, and what was recorded of the calls to it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Dict, List

import pactql
import pytest

pytest.importorskip("openai", reason="the package `openai` is not installed")
pytest.importorskip("anthropic", reason="the package `anthropic` is not installed")


class Server:
    """A process that speaks the APIs."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("server.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"
        self._before = 0

    def mark(self) -> None:
        """Leaves out the requests so far."""
        self._before += len(self.requests())

    def requests(self) -> List[Any]:
        """The bodies of the requests since the mark, as the server received them."""
        with urllib.request.urlopen(f"{self.url}/requests") as response:
            noted = json.load(response)
        return [request["body"] for request in noted[self._before :]]

    def close(self) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(10)


@pytest.fixture(scope="session")
def one_server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def server(one_server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, as if it was new."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("PACTQL_RECORD", raising=False)
    one_server.mark()
    return one_server


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The store of a test."""
    return str(tmp_path / "agent.db")


def sent(path: str, provider: Any) -> Dict[str, List[Any]]:
    """What was sent in each snapshot of each session, as `render --request --as` gives it."""
    found: Dict[str, List[Any]] = {}
    with pactql.Store.open(path) as store:
        for info in store.sessions():
            session = store.session(info.name)
            found[info.name] = [
                json.loads(session.render(provider, f"@c{cycle}")) for cycle in session.cycles
            ]
        assert store.verify() == []
    return found


def texts(path: str, name: str, selector: str = "@t0 .cb") -> List[str]:
    """The texts that a selector matches in a session."""
    with pactql.Store.open(path) as store:
        return list(store.session(name).select(selector).texts())


def attempts(path: str, name: str) -> List[Dict[str, Any]]:
    """The attempts of a session, oldest first, as the command line gives them."""
    command = [sys.executable, "-m", "pactql", "edit", "attempts", f"{path}#{name}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: List[Dict[str, Any]] = json.loads(done.stdout)
    return sorted(found, key=lambda attempt: str(attempt["started_at"]))
