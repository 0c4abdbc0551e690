"""Nothing that was recorded is lost at the end of a process: how it was started, what kind of worker, how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pactql
import pytest

from .conftest import Server

pytest.importorskip("httpx", reason="the package `httpx` is not installed")

PROGRAM = '''
import multiprocessing, os, signal, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
import pactql

CALLS = 3

def calls(name, ending="return", ready=None):
    import httpx
    path, url = sys.argv[1:3] if len(sys.argv) > 2 else os.environ["PLACE"].split(" ")
    recorder = pactql.record_all(path, session=name)
    with httpx.Client(timeout=60) as client:
        for number in range(CALLS):
            body = {"model": "m", "messages": [{"role": "user", "content": f"{name} {number}"}]}
            client.post(url + "/v1/chat/completions", json=body).raise_for_status()
    if ready is not None:
        ready.set()
    if ending == "sys.exit":
        sys.exit(3)
    if ending == "os._exit":
        recorder.flush()
        os._exit(4)
    if ending == "exception":
        raise RuntimeError("as it was asked")
    if ending == "SIGTERM":
        time.sleep(60)
    if ending == "thread":
        threading.Thread(target=lambda: (time.sleep(0.2), calls(name + "-late"))).start()

def main(method):
    os.environ["PLACE"] = " ".join(sys.argv[1:3])
    context = multiprocessing.get_context(method)
    workers = {}
    for ending in ("return", "sys.exit", "os._exit", "exception", "SIGTERM", "thread"):
        ready = context.Event()
        workers[ending] = context.Process(target=calls, args=("process-" + ending, ending, ready)), ready
        workers[ending][0].start()
    with context.Pool(2) as pool:
        # It ends by SIGTERM as soon as the results are there.
        pool.map(calls, ["pool-1", "pool-2"], chunksize=1)
    pool = context.Pool(1)
    pool.map(calls, ["closed-1"])
    pool.close()
    pool.join()
    with ProcessPoolExecutor(2, mp_context=context) as executor:
        list(executor.map(calls, ["executor-1", "executor-2"]))
    process, ready = workers["SIGTERM"]
    ready.wait(60)
    process.terminate()
    codes = {}
    for ending, (process, _) in workers.items():
        process.join(60)
        codes[ending] = process.exitcode
    expected = {"return": 0, "sys.exit": 3, "os._exit": 4, "exception": 1, "SIGTERM": -signal.SIGTERM, "thread": 0}
    assert codes == expected, codes

if __name__ == "__main__":
    method = sys.argv[3]
    if method == "alone":
        calls("alone", "SIGTERM", type("Ready", (), {"set": lambda self: print("ready", flush=True)})())
    else:
        main(method)
'''


def program(tmp_path: Path, *arguments: str) -> "subprocess.Popen[str]":
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    # Newer versions of Python warn of copies of processes with threads.
    command = [sys.executable, "-W", "ignore", str(script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kept(path: str) -> list[str]:
    """What was asked in the calls of a store."""
    with pactql.Store.open(path) as store:
        return sorted(node.text for session in store.values() for node in session.select("@* .cb[role='user']"))


def asked(server: Server) -> list[str]:
    return sorted(body["messages"][0]["content"] for body in server.requests())


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_all_calls_of_workers_are_kept(server: Server, path: str, tmp_path: Path, method: str) -> None:
    if sys.platform == "win32" and method != "spawn":
        pytest.skip("the system has no fork")
    process = program(tmp_path, path, server.url, method)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert kept(path) == asked(server)
    # Six processes, one of which calls once more in a thread, and five workers of pools.
    assert len(asked(server)) == (7 + 5) * 3


def test_a_program_that_is_terminated_has_recorded(server: Server, path: str, tmp_path: Path) -> None:
    process = program(tmp_path, path, server.url, "alone")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.terminate()
    assert process.wait(60) == -signal.SIGTERM
    process.communicate()
    assert kept(path) == asked(server) == ["alone 0", "alone 1", "alone 2"]


def test_what_is_killed_loses_a_moment_at_most(server: Server, path: str, tmp_path: Path) -> None:
    process = program(tmp_path, path, server.url, "alone")
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for _ in range(200):
        # Nobody asks for it to be written.
        if len(kept(path)) == 3:
            break
        time.sleep(0.01)
    process.kill()
    process.communicate()
    assert kept(path) == asked(server)


def test_a_handler_of_the_program_decides(server: Server, path: str, tmp_path: Path) -> None:
    source = """
import os, signal, sys, time
import pactql
def stop(number, frame):
    before(number, frame)
    print("stopped", flush=True)
    sys.exit(7)
recorder = pactql.record_all(sys.argv[1])
before = signal.getsignal(signal.SIGTERM)
signal.signal(signal.SIGTERM, stop)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", source, path], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("stopped\n", 7), done.stderr
