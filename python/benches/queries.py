"""The ten query classes: this package, a loop over dictionaries, and Egregore 0.1.5a0, in one run.

    pip install egregore==0.1.5a0 pactql-*.whl
    python python/benches/queries.py [--nodes 1000,10000] [--seconds 0.5] [--json]

Measured is the time until the caller has a list of ids, over one snapshot, with a selector that was used before. Every
contender has the same tree: turns with a container of eight blocks, a head with four, and blocks before the head's container.
Where Egregore cannot say a query, or answers something else, that is printed instead of a time. The contenders take turns, and
the median of all calls counts.

The tree is that of `benches/support/generate.rs` in shape, without blocks around the containers of turns, which Egregore's
insertion has no place for.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import random
import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import pactql

ROLES = ["assistant", "user", "tool", "system"]
KINDS = {"assistant": ["call", "text", "thinking"], "user": ["text", "note"], "tool": ["result"], "system": ["text"]}
WORDS = "the session returned an error after reading file and retrying with smaller window because token budget".split()
BLOCKS = 8

Block = dict[str, Any]
Task = Callable[[], list[str]]


def blocks(count: int, random: random.Random) -> list[Block]:
    made = []
    for number in range(count):
        role = random.choices(ROLES, [42, 25, 27, 6])[0]
        kind = "summary" if random.random() < 0.0124 else random.choice(KINDS[role])
        block = {
            "id": f"b{number:06}",
            "role": role,
            "kind": kind,
            "priority": random.randrange(10),
            "content": " ".join(random.choices(WORDS, k=random.randrange(6, 30))),
        }
        if random.random() < 0.066:
            block["ttl"] = random.choices([1, 2, 3, 5, 8], [78, 8, 6, 5, 3])[0]
        made.append(block)
    return made


class Tree:
    """Turns, oldest first, and the head: lists of blocks."""

    def __init__(self, nodes: int) -> None:
        chance = random.Random(nodes)
        turns = (nodes - 30) // (BLOCKS + 2)
        made = blocks(turns * BLOCKS + 4 + 4, chance)
        self.turns = [made[at * BLOCKS : (at + 1) * BLOCKS] for at in range(turns)]
        self.head, self.before = made[-8:-4], made[-4:]
        self.asked = self.turns[turns // 2][3]["id"]

    def document(self) -> dict[str, Any]:
        def node(type: str, id: str, children: list[Any], **more: Any) -> dict[str, Any]:
            return {"id": id, "nodeType": type, "children": children, **more}

        def core(id: str, inside: list[Block]) -> dict[str, Any]:
            each = [{**block, "nodeType": "cb", "creation_index": at} for at, block in enumerate(inside)]
            return node("mc", id, each, offset=0)

        turns = [
            node("mt", f"t{at}", [core(f"c{at}", turn)], created_at_ns=at + 1) for at, turn in enumerate(self.turns)
        ]
        before = [{**block, "nodeType": "cb", "offset": at - 4} for at, block in enumerate(self.before)]
        head = node("^ah", "^ah", [*before, core("c-head", self.head)])
        return node("^root", "root", [node("^sys", "^sys", []), node("^seq", "^seq", turns), head])


def walk(node: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    left = [node]
    while left:
        each = left.pop()
        found.append(each)
        left.extend(reversed(each.get("children", ())))
    return found


def by_hand(root: dict[str, Any], asked: str) -> dict[str, Task]:
    """What a program does that keeps its tree as dictionaries."""
    _, seq, head = root["children"]

    def by_id() -> list[str]:
        left = [root]
        while left:
            each = left.pop()
            if each["id"] == asked:
                return [each["id"]]
            left.extend(each.get("children", ()))
        return []

    def is_block(each: dict[str, Any]) -> bool:
        return each["nodeType"] == "cb"

    return {
        "by-id": by_id,
        "type-and-role": lambda: [e["id"] for e in walk(root) if is_block(e) and e["role"] == "assistant"],
        "last-turn-core": lambda: [
            e["id"] for e in seq["children"][-1]["children"][0]["children"] if e["role"] == "assistant"
        ],
        "last-three-turns": lambda: [
            e["id"] for turn in seq["children"][-3:] for e in walk(turn) if is_block(e) and e["role"] == "user"
        ],
        "rare-kind-priority": lambda: [
            e["id"] for e in walk(root) if is_block(e) and e["kind"] == "summary" and e["priority"] >= 8
        ],
        "numeric-ttl": lambda: [e["id"] for e in walk(root) if e.get("ttl") is not None and e["ttl"] <= 1],
        "head-pre": lambda: [e["id"] for e in head["children"] if is_block(e) and e["offset"] < 0],
        "descendant-chain": lambda: [
            e["id"] for turn in seq["children"] for c in turn["children"] for e in c["children"] if e["kind"] == "call"
        ],
        "every-block": lambda: [e["id"] for e in walk(root) if is_block(e)],
        "first-of-each-turn": lambda: [turn["children"][0]["children"][0]["id"] for turn in seq["children"]],
    }


SELECTORS = {
    "by-id": "@t0 #ASKED",
    "type-and-role": "@t0 .cb[role='assistant']",
    "last-turn-core": "@t0 ^seq .mt:depth(1) > .mc > .cb[role='assistant']",
    "last-three-turns": "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
    "rare-kind-priority": "@t0 .cb[kind='summary'][priority>=8]",
    "numeric-ttl": "@t0 [ttl<=1]",
    "head-pre": "@t0 ^ah > .cb[offset<0]",
    "descendant-chain": "@t0 ^seq .mt .mc .cb[kind='call']",
    "every-block": "@t0 .cb",
    "first-of-each-turn": "@t0 ^seq > .mt > .mc > .cb:first",
}

EGREGORE = {
    "by-id": "#ASKED",
    "type-and-role": "(d0..d*) ?? {role='assistant'}",
    "last-turn-core": "(d1) > .cont > {role='assistant'}",
    "last-three-turns": "(d1..d3) ?? {role='user'}",
    "rare-kind-priority": "(d0..d*) ?? {kind='summary' priority>=8}",
    "numeric-ttl": "[ttl<=1]",
    "head-pre": "(d0, min..-1)",
    "descendant-chain": "(d1..d*) > .cont > {kind='call'}",
    "every-block": ".block",
    "first-of-each-turn": "(d1..d*, 0, 0)",
}


def of_package(session: pactql.Session, asked: str) -> dict[str, Task]:
    engine = pactql.Engine(edition="v0.1")

    def task(selector: str) -> Task:
        prepared = engine.prepare(selector)
        return lambda: prepared.select(session).ids()

    return {name: task(selector.replace("ASKED", asked)) for name, selector in SELECTORS.items()}


def of_egregore(tree: Tree) -> dict[str, Task]:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    from egregore.core.context_management import Context
    from egregore.core.context_management.pact.components.core import TextContent

    def component(block: Block) -> Any:
        made = TextContent(content=block["content"], key=block["id"], ttl=block.get("ttl"))
        made.metadata.role, made.metadata.kind = block["role"], block["kind"]
        made.metadata.priority = block["priority"]
        return made

    context = Context()
    for turn in [*tree.turns, tree.head]:
        for at, block in enumerate(turn):
            context.pact_insert("d0,0" if at == 0 else f"d0,0,{at}", component(block))
    for at, block in enumerate(reversed(tree.before)):
        context.pact_insert(f"d0,{-1 - at}", component(block))

    def task(selector: str) -> Task:
        return lambda: [found.key for found in context.pact_select(selector)]

    return {name: task(selector.replace("ASKED", tree.asked)) for name, selector in EGREGORE.items()}


def answer(task: Task) -> list[str] | str:
    try:
        return task()
    except Exception as error:
        return f"{type(error).__name__}"


def medians(tasks: dict[str, Task], seconds: float) -> dict[str, float]:
    """The median time of each, in seconds. They take turns, for so long each."""
    times: dict[str, list[float]] = {name: [] for name in tasks}
    left = set(tasks)
    while left:
        for name in list(left):
            begin = time.perf_counter()
            tasks[name]()
            first = time.perf_counter() - begin
            # Short calls are timed together, so that the clock does not count.
            calls = max(1, min(1_000, int(0.002 / max(first, 1e-9))))
            begin = time.perf_counter()
            for _ in range(calls):
                tasks[name]()
            times[name].append((time.perf_counter() - begin) / calls)
            spent = sum(times[name]) * calls
            if (spent > seconds and len(times[name]) >= 5) or spent > 10 * seconds or len(times[name]) >= 200:
                left.discard(name)
    return {name: statistics.median(each) for name, each in times.items()}


def shown(seconds: float) -> str:
    for unit, size in [("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)]:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def compare(nodes: int, seconds: float, with_egregore: bool) -> list[dict[str, Any]]:
    tree = Tree(nodes)
    document = tree.document()
    session = pactql.Session.parse(json.dumps({"root": document}))
    contenders = {"pactql": of_package(session, tree.asked), "loop": by_hand(document, tree.asked)}
    sink = io.StringIO()
    if with_egregore:
        with contextlib.redirect_stdout(sink):
            contenders["Egregore"] = of_egregore(tree)
    rows = []
    for name in SELECTORS:
        expected = contenders["loop"][name]()
        row: dict[str, Any] = {"query": name, "ids": len(expected)}
        assert sorted(contenders["pactql"][name]()) == sorted(expected), name
        tasks = {}
        for contender, each in contenders.items():
            with contextlib.redirect_stdout(sink):
                found = answer(each[name])
            if isinstance(found, str):
                row[contender] = f"cannot ({found})"
            elif sorted(filter(None, found)) != sorted(expected):
                row[contender] = f"other answer ({len(found)} ids)"
            else:
                tasks[contender] = each[name]
        with contextlib.redirect_stdout(sink):
            row.update(medians(tasks, seconds))
        sink.truncate(0)
        rows.append(row)
        print(f"{nodes} {name}", file=sys.stderr)
    return rows


def rate(threads: int, task: Callable[[], object], seconds: float) -> float:
    """Calls a second of so many threads."""
    done = [0] * threads
    stop = threading.Event()
    ready = threading.Barrier(threads + 1)

    def work(at: int) -> None:
        ready.wait()
        while not stop.is_set():
            task()
            done[at] += 1

    running = [threading.Thread(target=work, args=(at,)) for at in range(threads)]
    for thread in running:
        thread.start()
    ready.wait()
    begin = time.perf_counter()
    time.sleep(seconds)
    stop.set()
    for thread in running:
        thread.join()
    return sum(done) / (time.perf_counter() - begin)


def threads(nodes: int, seconds: float) -> list[dict[str, Any]]:
    """What a second thread adds. One and two take turns; the best of each counts, as other work only takes away."""
    tree = Tree(nodes)
    session = pactql.Session.parse(json.dumps({"root": tree.document()}))
    engine = pactql.Engine()
    searched = engine.prepare("@t0 .cb[content~'budget.*error.*window']")
    chain = engine.prepare("@t0 ^seq .mt .mc .cb[kind='call'][priority>=8][content~'token']")
    tasks: dict[str, Callable[[], object]] = {
        "search of texts, counted": lambda: len(searched.select(session)),
        "chain with a search, ids": lambda: chain.select(session).ids(),
        "tokens by role": lambda: session.tokens("@t0", by="role", tokenizer="bytes/4"),
        "a session as text": lambda: session.dumps(),
    }
    rows = []
    for name, task in tasks.items():
        task()
        one, two = 0.0, 0.0
        for _ in range(5):
            one = max(one, rate(1, task, seconds))
            two = max(two, rate(2, task, seconds))
        rows.append({"work": name, "one": one, "two": two})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--nodes", default="1000,10000")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--no-egregore", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    sizes = [int(size) for size in options.nodes.split(",")]
    tables = {size: compare(size, options.seconds, not options.no_egregore) for size in sizes}
    scaling = threads(max(sizes), options.seconds)
    if options.json:
        print(json.dumps({"queries": tables, "threads": scaling}))
        return
    for size, rows in tables.items():
        print(f"\n| {size:,} nodes | ids | pactql | loop | Egregore |\n|---|---:|---:|---:|---:|")
        for row in rows:
            cells = [row.get(name, "") for name in ("pactql", "loop", "Egregore")]
            texts = [shown(cell) if isinstance(cell, float) else cell for cell in cells]
            print(f"| {row['query']} | {row['ids']} | " + " | ".join(texts) + " |")
    print("\n| calls a second | one thread | two threads | ratio |\n|---|---:|---:|---:|")
    for row in scaling:
        ratio = row["two"] / row["one"]
        print(f"| {row['work']} | {row['one']:.0f} | {row['two']:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
