"""Recording across processes: several into one store, one that is killed, copies of one, and the end of a program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List

import pactql
import pytest

from .conftest import Server, attempts, sent, texts

#: What every program below begins with: its arguments are the store, the server and the name of the session.
HEAD = """
import os, sys, time
import openai, pactql
path, url, name = sys.argv[1:4]
client = pactql.record(openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0), path, session=name)
def ask(*texts, **more):
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return client.chat.completions.create(model="m", messages=messages, **more).choices[0].message.content
"""


def start(program: str, path: str, server: Server, name: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HEAD + program, path, server.url, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def end(process: "subprocess.Popen[str]", code: int = 0) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out


def test_the_end_of_a_program_waits(server: Server, path: str) -> None:
    end(start("for n in range(20): ask(f'question {n}')", path, server, "x"))
    found = sent(path, "openai")
    assert [body for bodies in found.values() for body in bodies] and len(found) == 20
    assert sorted(map(str, server.requests())) == sorted(str(body) for [body] in found.values())


def test_a_program_that_fails_has_recorded(server: Server, path: str) -> None:
    assert "ZeroDivisionError" in start("ask('a'); 1 / 0", path, server, "x").communicate()[1]
    assert sent(path, "openai") == {"x": server.requests()}


def test_a_program_ends_with_a_stream_that_is_open(server: Server, path: str) -> None:
    program = """
stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
pieces = iter(stream)
while not next(pieces).choices[0].delta.content:
    pass
"""
    # The interpreter closes the stream when no thread can be started any more.
    end(start(program, path, server, "x"))
    assert sent(path, "openai") == {"x": server.requests()}
    assert [attempt["status"] for attempt in attempts(path, "x")] == ["canceled"]


def test_several_processes_record_into_one_store(server: Server, path: str) -> None:
    program = """
texts = []
for turn in range(4):
    texts += [f"{name} {turn}"]
    texts += [ask(*texts)]
"""
    # Two of them have the same name, and each another conversation or the same.
    processes = [start(program, path, server, name) for name in ("a", "b", "c", "d")]
    for process in processes:
        end(process)
    found = sent(path, "openai")
    assert {name: len(bodies) for name, bodies in found.items()} == dict.fromkeys("abcd", 4)
    for name, bodies in found.items():
        assert [len(body["messages"]) for body in bodies] == [1, 3, 5, 7]
        assert all(body in server.requests() for body in bodies)


def test_a_conversation_goes_on_in_another_process(server: Server, path: str) -> None:
    reply = end(start("print(ask('first'))", path, server, "s")).strip()
    for number in range(3):
        program = f"ask('first', {reply!r}, 'more {number}')"
        end(start(program, path, server, "s"))
    assert sent(path, "openai") == {"s": server.requests()}


def test_what_was_flushed_survives_being_killed(server: Server, path: str) -> None:
    program = """
for n in range(5): ask(f"question {n}")
assert pactql.recorder(client).flush(60)
print("flushed", flush=True)
ask("slow one")
"""
    process = start(program, path, server, "k")
    assert process.stdout is not None and process.stdout.readline() == "flushed\n"
    # In the middle of a call.
    time.sleep(0.2)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    found = sent(path, "openai")
    assert [body for bodies in found.values() for body in bodies] == [
        body for body in server.requests() if "question" in str(body)
    ]
    # The next program goes on.
    end(start("ask('question 5')", path, server, "k"))
    assert len(sent(path, "openai")) == 6


@pytest.mark.parametrize("wait", [0.0, 0.01, 0.05, 0.2, 0.5])
def test_killed_at_any_moment(server: Server, path: str, wait: float) -> None:
    program = """
import threading
recorder = pactql.recorder(client)
def talk(number):
    texts = []
    for turn in range(50):
        texts += [f"question {number} {turn}"]
        texts += [ask(*texts)]
        recorder.flush()
        # In one piece, as several threads write.
        os.write(1, f"{number} {turn} {recorder.failures}\n".encode())
for number in range(4):
    threading.Thread(target=talk, args=(number,)).start()
"""
    process = start(program, path, server, "k")
    assert process.stdout is not None
    acknowledged = [process.stdout.readline()]
    time.sleep(wait)
    process.kill()
    acknowledged += process.communicate()[0].splitlines()
    whole = [line.split() for line in acknowledged if len(line.split()) == 3]
    found = {bodies[0]["messages"][0]["content"]: bodies for bodies in sent(path, "openai").values()}
    for number, turn, failures in whole:
        assert failures == "0"
        bodies = found[f"question {number} 0"]
        assert len(bodies[int(turn)]["messages"]) == 2 * int(turn) + 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_copy_of_a_process_records_by_itself(server: Server, path: str) -> None:
    program = """
ask("parent before")
assert pactql.recorder(client).flush(60)
ask("parent, not flushed")
# A stream that both go on to have: it is the parent's.
stream = client.chat.completions.create(
    model="m", messages=[{"role": "user", "content": "stream-slow"}], stream=True)
next(iter(stream))
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        ask(f"child {number}")
        done = pactql.recorder(client).flush(60)
        os._exit(0 if done and pactql.recorder(client).failures == 0 else 1)
    children.append(child)
ask("parent after")
stream.close()
for child in children:
    assert os.waitpid(child, 0)[1] == 0
"""
    # Python warns of copies of processes with threads.
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + program, path, server.url, "f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end(process)
    found = sent(path, "openai")
    said = sorted(bodies[0]["messages"][0]["content"] for bodies in found.values() if bodies)
    expected = ["parent before", "parent, not flushed", "parent after"]
    assert said == sorted(expected + [f"child {number}" for number in range(3)])
    # The stream was closed before anything had been said in it.
    [stopped] = [name for name, bodies in found.items() if not bodies]
    assert [attempt["status"] for attempt in attempts(path, stopped)] == ["canceled"]


def test_a_context_that_writes_the_session_is_left_alone(server: Server, path: str) -> None:
    with pactql.Store.open(path) as store, store.write("s") as context:
        context.append("user", "by hand")
        context.commit()
        end(start("ask('x')", path, server, "s"))
    assert texts(path, "s") == ["by hand"]
    assert texts(path, "s/2")[0] == "x"


def test_a_store_that_others_keep_busy(server: Server, tmp_path: Path) -> None:
    """Two programs of one name and one conversation: each call goes on after the one before, whichever wrote it."""
    path = str(tmp_path / "agent.db")
    program = """
for turn in range(10):
    ask("same question", "same answer", f"{os.getpid()} {turn}")
"""
    processes: List[Any] = [start(program, path, server, "s") for _ in range(3)]
    for process in processes:
        end(process)
    found = sent(path, "openai")
    bodies = [body for bodies in found.values() for body in bodies]
    assert sorted(map(str, bodies)) == sorted(map(str, server.requests()))
    assert set(found) == {"s"} and len(bodies) == 30
