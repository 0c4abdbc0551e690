"""What all tests share: the fixtures of the repository, and examples that run where they are."""

from __future__ import annotations

import os
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


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory of its own, with the fixtures in it, to work in."""
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)
