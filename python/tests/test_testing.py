"""Assertions over contexts, and the pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Callable

import pactql
import pytest
from pactql.testing import assert_context, assert_order, assert_prefix_stable, assert_tokens


def test_what_holds(session: pactql.Session) -> None:
    assert assert_context(session, "@t0 ^sys .cb[key=policy]", count=1).ids() == ["cb:policy"]
    assert_context(session, "@t0 .cb[role=$role]", at_least=2, at_most=3, role="user")
    assert_context(session[-1], "^ah .cb, ^seq .cb")
    assert_context(session, "@t0 .cb[kind='nothing']", count=0)
    # An attribute that no node has, and that is like none they have.
    assert_context(session, "@t0 .cb[data_is_error=true]", count=0)
    assert_context(session, "@t0 .cb[kind='call']", text="{")
    assert_order(session[-1], "^sys .cb", "^seq .cb[kind='call']")
    assert_tokens(session, 100_000)
    assert_tokens(session[0], 100_000, by="role")


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            lambda session: assert_context(session, "@t0 .cb[role='user']", count=1),
            ["error: 3 nodes, expected 1", "1 │ @t0 .cb[role='user']", "  │ ^^^^^", "→     cb:u2 user text".replace("     ", " ")],
        ),
        (
            lambda session: assert_context(session, "@t0 .cb[rol='user']"),
            ["error: no nodes, expected at least 1", "did you mean `role`?", "^seq"],
        ),
        (lambda session: assert_context(session, "@t0 .cb[role='user']", at_most=2), ["3 nodes, expected at most 2"]),
        (
            lambda session: assert_context(session, "@t0 .cb[role='user']", text="Great."),
            ["'Great.' is not in cb:u2"],
        ),
        (
            lambda session: assert_order(session[-1], "^seq .cb", "^sys .cb"),
            ["it begins before what '^seq .cb' finds ends", "1 │ ^sys .cb"],
        ),
        (lambda session: assert_order(session[-1], ".cb[role='nobody']", ".cb"), ["it finds nothing"]),
        (
            lambda session: assert_context(session, "@t0 .cb[rol='user']", count=0),
            ["error: no nodes, as it has to be, and the selector has a name that no node", "= no node has `rol`; did you mean `role`?"],
        ),
        (lambda session: assert_context(session[-1], ".cb[knd=$kind]", at_most=3, kind="call"), ["did you mean `kind`?"]),
        # Also where it finds something else.
        (
            lambda session: assert_context(session, "@t0 .cb[rol='user'], .cb[role='user']", count=3),
            ["error: 3 nodes, as it has to be", "did you mean `role`?"],
        ),
        (lambda session: assert_tokens(session, 10), ["tokens, expected at most 10", "seq"]),
        (lambda session: assert_prefix_stable(session), ["begin otherwise than the one before", "→ @c"]),
    ],
)  # fmt: skip
def test_what_fails_is_shown(session: pactql.Session, check: Callable[[Any], Any], words: list[str]) -> None:
    with pytest.raises(AssertionError) as raised:
        check(session)
    shown = " ".join(str(raised.value).split(" "))
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    for each in words:
        assert any(" ".join(each.split()) in line for line in lines), (each, shown)


def test_a_name_that_older_snapshots_have_is_none_misspelled() -> None:
    context = pactql.Context()
    context.append("user", "Hello", parts=[{"kind": "text", "content": "x", "data_score": 1, "data_scope": "a", "ttl": 1}])
    context.commit()
    context.append("user", "More", parts=[{"kind": "text", "content": "y", "data_scope": "a"}])
    context.commit()
    assert context.select("@t0 .cb[data_score=1]").why_empty()[0].startswith("no node has `data_score`; did you mean")
    assert_context(context.session, "@t0 .cb[data_score=1]", count=0)


def test_a_value_that_is_like_another_warns(session: pactql.Session) -> None:
    with pytest.warns(pactql.SelectorWarning, match="no node has the role `usr`; did you mean") as warned:
        assert_context(session, "@t0 .cb[role='usr']", count=0)
    assert warned[0].filename == __file__
    # What holds of no node is said of a condition, too, which is true or false.
    with pytest.warns(pactql.SelectorWarning, match="`none @t0 .cb.knd='call'.` holds, and no node has `knd`") as warned:
        report = session.check("none @t0 .cb[knd='call']\nsome @t0 .cb")
    assert warned[0].filename == __file__ and len(warned) == 1 and report
    assert [row["notes"] for row in report.rows()] == ["no node has `knd`; did you mean `kind`?", ""]
    assert "did you mean `kind`?" in report._repr_html_()


@pytest.mark.parametrize("selectors", [[], [".cb"]])
def test_an_order_is_one_of_two(session: pactql.Session, selectors: list[str]) -> None:
    with pytest.raises(TypeError, match=f"takes two selectors or more, and not {len(selectors)}"):
        assert_order(session[-1], *selectors)


def test_a_mistake_in_a_selector_is_one_of_it(session: pactql.Session) -> None:
    with pytest.raises(pactql.SelectorError, match="found `==`"):
        assert_context(session, "@t0 .cb[role == 'user']")


def test_a_bound_is_a_number(session: pactql.Session) -> None:
    count: Any = "1"
    with pytest.raises(TypeError, match="`count` is a number, and not str: '1'"):
        assert_context(session, "@t0 ^sys .cb[key=policy]", count=count)


def test_a_snapshot_is_chosen_already(session: pactql.Session) -> None:
    with pytest.raises(pactql.SelectorError, match="write `.cb`"):
        assert_context(session[-1], "@t0 .cb")


def test_a_tree_that_is_long_is_cut() -> None:
    lines = [pactql.Context()]
    for number in range(60):
        lines[0].append("user", f"message {number}")
    with pytest.raises(AssertionError) as raised:
        assert_context(lines[0].session, ".cb[content~'message 5$']", count=2)
    assert "… " in str(raised.value) and len(str(raised.value).splitlines()) < 60


TEST = '''
import pactql
from pactql.testing import assert_context

def test_it_is_there(pactql_store):
    with pactql_store.write("talk") as context:
        context.append("user", "Hello")
        context.commit()
    assert_context(pactql_store["talk"], "@t0 .cb[role='user']", count=1)

def test_it_is_new(pactql_store):
    assert list(pactql_store) == []
    with pactql_store.write("talk") as context:
        context.append("user", "Hello")
        context.commit()
    assert_context(pactql_store["talk"], "@t0 .cb[role='tool']", count=1)
'''


def test_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    installed = any(each.name == "pactql" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "pactql._pytest"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "error: no nodes, expected 1" in done.stdout and "user text: Hello" in done.stdout
    # Where the test is, and not where the helper is.
    assert "test_it.py:16: AssertionError" in done.stdout, done.stdout
