"""The interpreter lock is given back while the library works."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pactql
import pytest

BLOCKS = 3_000


def document(cycle: int) -> str:
    blocks = ",".join(
        f'{{"id":"b{number}","offset":{number + 1},"role":"user","content":"text {number * cycle}"}}'
        for number in range(BLOCKS)
    )
    return (
        f'{{"cycle":{cycle},"root":{{"id":"r","nodeType":"^root","children":'
        f'[{{"id":"^ah","nodeType":"^ah","children":[{blocks}]}}]}}}}'
    )


TEXT = document(1) + "\n" + document(2)


@pytest.fixture(scope="module")
def large() -> pactql.Session:
    return pactql.Session.parse(TEXT)


@pytest.fixture
def no_switches() -> Iterator[None]:
    """No thread is made to give the lock away: another one runs only if it is given back."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    yield
    sys.setswitchinterval(before)


def is_released(call: Callable[[], object]) -> bool:
    """Whether another thread runs while a call does. One call may be too short for that; many are not."""
    gate, ran = threading.Lock(), threading.Event()
    gate.acquire()

    def other() -> None:
        gate.acquire()
        ran.set()

    thread = threading.Thread(target=other)
    thread.start()
    gate.release()
    for _ in range(200):
        call()
        if ran.is_set():
            break
    found = ran.is_set()
    thread.join()
    return found


SELECTOR = "@t0 .cb[content~'9+5']"


@pytest.mark.usefixtures("no_switches")
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda session: pactql.Session.parse(TEXT), id="parse"),
        pytest.param(lambda session: len(session.select(SELECTOR)), id="len"),
        pytest.param(lambda session: session.select(SELECTOR).ids(), id="ids"),
        pytest.param(lambda session: session.select(SELECTOR).first(), id="first"),
        pytest.param(lambda session: session.select(SELECTOR)[0], id="item"),
        pytest.param(lambda session: next(iter(session.select(SELECTOR))), id="iterator"),
        pytest.param(lambda session: session.select("@t0 .cb").where("[content~'9+5']").ids(), id="where"),
        pytest.param(lambda session: session.range("@t-1..@t0 .cb[content~'5']"), id="range"),
        pytest.param(lambda session: session.explain(SELECTOR, analyze=True), id="explain"),
        pytest.param(lambda session: session.tokens("@t0"), id="tokens"),
        pytest.param(lambda session: session.prefix(), id="prefix"),
        pytest.param(lambda session: session.dumps(), id="dumps"),
        pytest.param(lambda session: session.render("openai"), id="render"),
        pytest.param(lambda session: pactql.count_tokens("a word " * 1_000), id="count_tokens"),
    ],
)
def test_a_call_gives_the_lock_back(call: Callable[[pactql.Session], object], large: pactql.Session) -> None:
    assert is_released(lambda: call(large))


@pytest.mark.usefixtures("no_switches")
def test_calls_of_stores_give_the_lock_back(large: pactql.Session, tmp_path: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    numbers = iter(range(1_000))
    assert is_released(lambda: store.add(f"s{next(numbers)}", large))
    assert is_released(lambda: list(store.select(SELECTOR)))
    assert is_released(lambda: store.verify())
    with store.write("s0") as context:

        def commit() -> None:
            context.append("user", "x")
            context.commit()

        assert is_released(commit)


def test_what_does_not_work_is_seen() -> None:
    """A call that keeps the lock is found by the test above."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000)
    try:
        assert not is_released(lambda: sum(range(1_000)))
    finally:
        sys.setswitchinterval(before)


def in_child(call: Callable[[], object]) -> str:
    """What a call does in a forked process: `done`, the name of an exception, or `hangs`."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # What Python says of threads is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            call()
            found = "done"
        except BaseException as error:
            found = type(error).__name__
        os.write(writer, found.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as lines:
        found = lines.read()
    os.waitpid(child, 0)
    return found or "hangs"


def test_a_forked_process_goes_on(large: pactql.Session, tmp_path: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    store.add("s", large)
    stored, answers = store.session("s"), store.select("@t0 .cb")
    context = store.write("c")

    def anew() -> None:
        with pactql.Store.open(tmp_path / "agents.db") as own:
            assert len(dict(own.select(SELECTOR))["s"]) == len(own["s"].select(SELECTOR)) > 0

    def twice() -> None:
        pactql.Session.parse(TEXT)
        assert in_child(lambda: pactql.Session.parse(TEXT)) == "done"

    # The library has threads in this process before the fork.
    large.select("@t0 .cb").fit(100, "text")
    assert in_child(lambda: large.select(SELECTOR).ids()) == "done"
    assert in_child(lambda: pactql.Session.parse(TEXT)) == "done"
    assert in_child(lambda: large.range("@t-1..@t0 .cb")) == "done"
    assert in_child(lambda: large.select("@t0 .cb").fit(100, "text")) == "done"
    assert in_child(lambda: large.tokens("@t0")) == "done"
    assert in_child(anew) == "done"
    assert in_child(twice) == "done"
    for call in (store.sessions, lambda: stored.select("@t0 .cb"), lambda: next(answers), context.commit):
        assert in_child(call) == "StoreError"
    # Also what takes a session of the store, which would be read over the connection of the parent.
    taking: list[Callable[[], object]] = [
        lambda: pactql.Engine().explain(SELECTOR, stored, analyze=True),
        lambda: pactql.Context.resume(stored),
        lambda: pactql.Store.open(tmp_path / "own.db").add("s", stored),
    ]
    for each in taking:
        assert in_child(each) == "StoreError"
    assert in_child(store.close) == in_child(context.close) == "done"
    # The parent has all of it as before.
    context.append("user", "x")
    context.commit()
    assert len(list(answers)) == 1 and len(store["c"]) == 1 and store.verify() == []


def test_reading_waits_without_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    os.mkfifo(path)
    opened: list[pactql.Session] = []
    thread = threading.Thread(target=lambda: opened.append(pactql.Session.open(path)))
    thread.start()
    path.write_text(TEXT)
    thread.join(timeout=60)
    assert opened[0].cycles == [1, 2]
