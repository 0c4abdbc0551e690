"""The command line, as a script and as a module."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest

SCRIPT = Path(sysconfig.get_path("scripts")) / "pactql"
PROGRAMS = [[str(SCRIPT)], [sys.executable, "-m", "pactql"]]


def run(program: list[str], *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("program", PROGRAMS, ids=["script", "module"])
def test_it_is_the_program(program: list[str], fixtures: Path) -> None:
    done = run(program, "select", str(fixtures / "support-agent.jsonl"), "@t0 .cb[role='user']")
    assert (done.returncode, done.stdout, done.stderr) == (0, "cb:u2\ncb:i1\ncb:u3\n", "")
    done = run(program, "fmt", "--check", "@t0 .cb[role='x']:lats")
    assert done.returncode == 2 and "no such pseudo-class" in done.stderr and done.stdout == ""
    done = run(program, "selct")
    assert done.returncode == 1 and "select" in done.stderr
    done = run(program, "--version")
    assert done.returncode == 0 and done.stdout.startswith("pactql ")
    done = run(program, "select", "-", "@t0 .cb", "--count", input='{"root":{"id":"r"}}')
    assert (done.returncode, done.stdout) == (0, "0\n")


@pytest.mark.parametrize("program", PROGRAMS, ids=["script", "module"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(program: list[str], number: signal.Signals, tmp_path: Path) -> None:
    fifo = tmp_path / "session.jsonl"
    os.mkfifo(fifo)
    process = subprocess.Popen([*program, "select", str(fifo), "@t0 .cb"], stdout=-1, stderr=-1, text=True)
    # It waits for the other end of the pipe once it runs.
    writer = os.open(fifo, os.O_WRONLY)
    time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    os.close(writer)
    assert (process.returncode, out, err) == (128 + number, "", "interrupted\n")


def test_a_closed_pipe_ends_quietly(fixtures: Path) -> None:
    command = f"'{sys.executable}' -m pactql select '{fixtures}/support-agent.jsonl' '@t0 *' --format nodes | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("\n") == 1 and done.stderr == ""
