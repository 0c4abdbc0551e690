"""What 200 recorded conversations cost: loading them, and six questions, beside a loop over dictionaries.

    pip install pactql-*.whl
    python python/benches/conversations.py DATA [--rounds 15]

DATA is a folder with a gzipped log of tau-bench (`*.json.gz`); without one there is a line that says so. Both sides begin with the
bytes of the log and give the same answers. They take turns, and the best of all rounds counts. The second table is what a second
thread adds to `to_dicts`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pactql
from queries import rate, shown

Messages = list[dict[str, Any]]


def loop_load(data: bytes) -> list[Messages]:
    return [record["traj"] for record in json.loads(data)]


def package_load(data: bytes) -> list[pactql.Session]:
    return pactql.import_log(data).sessions


def loop_roles(talks: list[Messages]) -> Any:
    roles: Counter[str] = Counter()
    for talk in talks:
        for message in talk:
            # A block for the text, and one for each call.
            calls = message.get("tool_calls")
            roles[message["role"]] += len(calls) + (message["content"] is not None) if calls else 1
    return roles


def loop_tools(talks: list[Messages]) -> Any:
    return Counter(
        call["function"]["name"] for talk in talks for message in talk for call in message.get("tool_calls") or ()
    )


def loop_search(talks: list[Messages]) -> Any:
    return sum("refund" in (message["content"] or "") for talk in talks for message in talk)


def loop_last(talks: list[Messages]) -> Any:
    return [next(each["content"] for each in reversed(talk) if each["role"] == "user") for talk in talks]


def loop_bytes(talks: list[Messages]) -> Any:
    return sum(len(each["content"].encode()) for talk in talks for each in talk if each["role"] == "tool")


def loop_failed(talks: list[Messages]) -> Any:
    return Counter(
        each["name"] for talk in talks for each in talk if each["role"] == "tool" and each["content"].startswith("Error")
    )


def package_roles(sessions: list[pactql.Session]) -> Any:
    return Counter(node.role for session in sessions for node in session.select(".cb"))


def package_tools(sessions: list[pactql.Session]) -> Any:
    return Counter(node["data_call_name"] for session in sessions for node in session.select(".cb[kind='call']"))


def package_search(sessions: list[pactql.Session]) -> Any:
    return sum(len(session.select(".cb[kind!='call'][content~'refund']")) for session in sessions)


def package_last(sessions: list[pactql.Session]) -> Any:
    return [session.select(".cb[role='user']")[-1].text for session in sessions]


def package_bytes(sessions: list[pactql.Session]) -> Any:
    return sum(len(text.encode()) for session in sessions for text in session.select(".cb[kind='result']").texts())


def package_failed(sessions: list[pactql.Session]) -> Any:
    return Counter(
        node["data_call_name"] for session in sessions for node in session.select(".cb[kind='result'][content~'^Error']")
    )


QUESTIONS: list[tuple[str, Callable[[list[Messages]], Any], Callable[[list[pactql.Session]], Any]]] = [
    ("blocks by role", loop_roles, package_roles),
    ("calls by tool", loop_tools, package_tools),
    ("texts with a word", loop_search, package_search),
    ("last message of the user", loop_last, package_last),
    ("bytes of tool results", loop_bytes, package_bytes),
    ("failed calls by tool", loop_failed, package_failed),
]


def best(rounds: int, tasks: list[Callable[[], object]]) -> list[float]:
    """The shortest time of each, in seconds. They take turns."""
    times = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for at, task in enumerate(tasks):
            begin = time.perf_counter()
            made = task()
            times[at] = min(times[at], time.perf_counter() - begin)
            del made
    return times


def row(name: str, loop: float, package: float) -> str:
    return f"| {name} | {shown(loop)} | {shown(package)} | {package / loop:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    files = sorted(options.data.glob("*.json.gz"))
    if not files:
        print(f"SKIPPED: {options.data} has no *.json.gz")
        return
    data = gzip.decompress(files[0].read_bytes())
    loop, package = best(options.rounds, [lambda: loop_load(data), lambda: package_load(data)])
    talks, sessions = loop_load(data), package_load(data)
    print(f"| {len(sessions)} conversations, {len(data):,} bytes | loop | pactql | ratio |\n|---|---:|---:|---:|")
    print(row("load", loop, package))
    loop_sum = package_sum = 0.0
    for name, of_loop, of_package in QUESTIONS:
        expected, found = of_loop(talks), of_package(sessions)
        assert expected == found, (name, expected, found)
        loop, package = best(options.rounds, [lambda: of_loop(talks), lambda: of_package(sessions)])
        loop_sum, package_sum = loop_sum + loop, package_sum + package
        print(row(name, loop, package))
    print(row("all six", loop_sum, package_sum))
    selections = [session.select(".cb") for session in sessions]

    def task() -> None:
        for selection in selections:
            selection.to_dicts()

    task()
    one = two = 0.0
    for _ in range(5):
        one, two = max(one, rate(1, task, 0.5)), max(two, rate(2, task, 0.5))
    print("\n| calls a second | one thread | two threads | ratio |\n|---|---:|---:|---:|")
    print(f"| `to_dicts` of all | {one:.1f} | {two:.1f} | {two / one:.2f} |")


if __name__ == "__main__":
    main()
