"""Examples run: of docstrings, of the package's README, and of the tutorial.

In a document an example is a block fenced as `pycon`. The blocks of a document run in order and share their names,
in a directory with the fixtures.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pactql
import pytest

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "python" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run(name: str, text: str, line: int, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(text, names, name, name, line)
    found: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    runner.run(test, out=found.append, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0, "".join(found)


def documented() -> list[tuple[str, str]]:
    """The names of what has a docstring with examples, and the docstrings."""
    found = {}
    for name in pactql.__all__:
        thing = getattr(pactql, name)
        inside = [(f"{name}.{each}", getattr(thing, each)) for each in vars(thing)] if isinstance(thing, type) else []
        for path, each in [(name, thing), *inside]:
            text = getattr(each, "__doc__", None)
            if isinstance(text, str) and ">>>" in text:
                found[path] = text
    found["pactql"] = pactql.__doc__ or ""
    return sorted(found.items())


@pytest.mark.parametrize(("name", "text"), documented(), ids=[name for name, _ in documented()])
def test_docstrings(name: str, text: str, place: Path) -> None:
    session = pactql.Session.open("fixtures/support-agent.jsonl")
    run(name, text, 0, {"pactql": pactql, "session": session})


def test_everything_has_a_docstring() -> None:
    missing = []
    for name in pactql.__all__:
        thing = getattr(pactql, name)
        if name.startswith("__"):
            continue
        if not thing.__doc__:
            missing.append(name)
        if isinstance(thing, type) and not issubclass(thing, Exception):
            members = [each for each in vars(thing) if not each.startswith("_")]
            missing += [f"{name}.{each}" for each in members if not getattr(thing, each).__doc__]
    assert missing == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents(path: Path, place: Path) -> None:
    text = path.read_text("utf-8")
    names: dict[str, Any] = {}
    for block in BLOCK.finditer(text):
        run(path.name, block.group(1), text[: block.start(1)].count("\n"), names)
    for each in names.values():
        if isinstance(each, (pactql.Store, pactql.Context)):
            each.close()


def test_the_documents_have_examples() -> None:
    for path in (ROOT / "python" / "README.md", ROOT / "docs" / "python.md"):
        assert len(BLOCK.findall(path.read_text("utf-8"))) >= 3, path
