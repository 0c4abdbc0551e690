"""Leaving a context without `commit` says what is lost."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pactql
import pytest


@pytest.fixture
def store(tmp_path: Path) -> pactql.Store:
    return pactql.Store.open(tmp_path / "agents.db")


def test_what_was_not_committed_is_named(store: pactql.Store) -> None:
    with pytest.warns(pactql.UnsavedWarning, match=r"'a' was left without `commit\(\)`, which loses 2 blocks .* of cycle 1"):
        with store.write("a") as context:
            ids = context.append("user", "Hello")
            ids += context.reply("Hi")
    with store.write("a") as context:
        assert context.select("^seq .cb").ids() == []
        context.append("user", "Hello")
        context.commit()
    with pytest.warns(pactql.UnsavedWarning, match="loses 1 block "):
        with store.write("a") as context:
            context.append("user", "More")
    with pytest.warns(pactql.UnsavedWarning, match="its changes of cycle"):
        with store.write("a") as context:
            context.pin("kept", ".cb[role='user']")
            context.set_request({"model": "m"})


@pytest.mark.filterwarnings("error")
def test_what_is_kept_or_dropped_on_purpose_is_not(store: pactql.Store) -> None:
    with store.write("a") as context:
        pass
    with store.write("a") as context:
        context.append("user", "Hello")
        context.save()
    with store.write("a") as context:
        context.append("user", "Hello")
        context.discard()
    with pytest.raises(ZeroDivisionError):
        with store.write("a") as context:
            context.append("user", "Hello")
            1 / 0
    with store.write("b") as context:
        context.append("user", "Hello")
        context.commit()
        context.select(".cb").ids()


def test_a_warning_that_is_an_error_closes_it_all_the_same(store: pactql.Store) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pactql.UnsavedWarning):
            with store.write("a") as context:
                context.append("user", "Hello")
    with store.write("a") as context:
        context.append("user", "Hello")
        context.commit()


def test_closing_and_deleting_say_it_too(store: pactql.Store) -> None:
    context = store.write("a")
    context.append("user", "Hello")
    with pytest.warns(pactql.UnsavedWarning, match=r"the session 'a' was left without `commit\(\)`, which loses 1 block") as warned:
        context.close()
    assert warned[0].filename == __file__
    context.close()
    context = store.write("a")
    context.append("user", "Hello")
    with pytest.warns(pactql.UnsavedWarning, match="loses 1 block"):
        del context
    with store.write("a") as again:
        again.append("user", "Hello")
        again.commit()


@pytest.mark.filterwarnings("error")
def test_what_loses_nothing_says_nothing(store: pactql.Store) -> None:
    pactql.Context().append("user", "Hello")
    for end in (pactql.Context.commit, pactql.Context.save, pactql.Context.discard):
        context = store.write("a")
        context.append("user", "Hello")
        end(context)
        context.close()
        context = store.write("a")
        context.append("user", "Hello")
        end(context)
        del context


@pytest.mark.filterwarnings("error", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_where_the_warning_is_an_error_a_deleted_context_is_closed(store: pactql.Store) -> None:
    context = store.write("a")
    context.append("user", "Hello")
    del context
    with store.write("a") as again:
        assert again.select("^seq .cb").ids() == []


def test_the_end_of_the_program_says_it(tmp_path: Path) -> None:
    lines = ["import pactql", f"context = pactql.Store.open({str(tmp_path / 'b.db')!r}).write('a')", "context.append('user', 'Hello')"]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "UnsavedWarning" in done.stderr, done.stderr
