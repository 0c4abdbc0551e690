"""Leaving a context without `commit` says what is lost."""

from __future__ import annotations

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
