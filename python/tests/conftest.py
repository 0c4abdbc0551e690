"""What all tests share: the fixtures of the repository, and examples that run where they are."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pactql
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def fixtures() -> Path:
    """The sessions and logs that the documents use."""
    return ROOT / "fixtures"


@pytest.fixture
def session(fixtures: Path) -> pactql.Session:
    """The session that most examples use."""
    return pactql.Session.open(fixtures / "support-agent.jsonl")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The directory of the socket of a PostgreSQL server of our own."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not programs:
        pytest.skip("PostgreSQL's initdb is not in /usr/lib/postgresql")
    # The programs refuse to run as root. A socket's path may have 107 bytes, so the directory is short.
    as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    directory = Path(tempfile.mkdtemp(prefix="pactql-py-", dir="/tmp"))
    if as_user:
        shutil.chown(directory, "postgres")

    def start(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*as_user, *words], stdout=-3, stderr=-3, cwd="/", env={**os.environ, "LC_ALL": "C"})

    data = str(directory / "data")
    make = [f"{programs[-1]}/initdb", "-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync"]
    if start(*make, "-D", data).wait(120) != 0:
        pytest.skip("initdb failed")
    server = start(f"{programs[-1]}/postgres", "-D", data, "-k", str(directory), "-h", "")
    ready = [f"{programs[-1]}/pg_isready", "-q", "-t", "60", "-h", str(directory)]
    while start(*ready).wait(120) != 0 and server.poll() is None:
        pass
    yield str(directory)
    server.terminate()
    server.wait(60)
    shutil.rmtree(directory)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new store goes."""
    if request.param == "sqlite":
        return str(tmp_path / "agents.db")
    host = request.getfixturevalue("postgres")
    schema = "s" + "".join(each for each in request.node.name.lower() if each.isalnum())[:40]
    return f"postgres:///postgres?host={host}&user=postgres&schema={schema}"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory of its own, with the fixtures in it, to work in."""
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)
