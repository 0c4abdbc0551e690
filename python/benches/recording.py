"""What recording costs the thread that makes a call: `python benches/recording.py [CALLS]`.

The server is a transport in this process that answers at once. Times are of the calling thread alone (its processor
time), so the writer's thread does not count; the last column is by the wall clock, in which it does.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, List

import openai
import pactql
from pactql.recording import Recorder

http: Any = sys.modules[openai.OpenAI(api_key="k")._client.__class__.__mro__[2].__module__.split(".")[0]]


def client() -> openai.OpenAI:
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    data = json.dumps(body).encode()

    def answer(_: Any) -> Any:
        # A stream, as a response from the network is.
        headers = {"content-type": "application/json"}
        return http.Response(200, headers=headers, stream=Body(data))

    class Body(http.SyncByteStream):  # type: ignore[misc]
        def __init__(self, data: bytes) -> None:
            self.data = data

        def __iter__(self) -> Any:
            yield self.data

    transport = http.MockTransport(answer)
    return openai.OpenAI(
        base_url="http://localhost", api_key="k", http_client=http.Client(transport=transport)
    )


def measure(call: Callable[[int], None], calls: int) -> List[List[float]]:
    """Microseconds of each call: of the thread, and by the wall clock."""
    found = []
    for number in range(calls):
        wall, own = time.perf_counter_ns(), time.thread_time_ns()
        call(number)
        found.append([(time.thread_time_ns() - own) / 1e3, (time.perf_counter_ns() - wall) / 1e3])
    return found


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    messages: Any = [
        {"role": "assistant" if n % 2 else "user", "content": f"message {n} " + "lorem ipsum " * 40}
        for n in range(200)
    ]
    with tempfile.TemporaryDirectory() as directory:
        recorder = Recorder(Path(directory) / "agent.db")
        plain = client()
        recorded = pactql.record(plain, recorder, session="bench")
        # What recording itself runs on the caller's thread.
        inside: List[float] = []
        transport: Any = recorded._client._transport
        tap = transport.tap
        submit = Recorder._submit

        def timed(function: Callable[..., Any]) -> Callable[..., Any]:
            def run(*arguments: Any) -> Any:
                before = time.thread_time_ns()
                result = function(*arguments)
                spent[0] += (time.thread_time_ns() - before) / 1e3
                return result

            return run

        spent = [0.0]

        class Timed:
            begin = staticmethod(timed(tap.begin))
            attach = staticmethod(timed(tap.attach))

        def ask(to: openai.OpenAI, number: int) -> None:
            messages[-1]["content"] = f"message {number}"
            to.chat.completions.create(model="m", messages=messages)

        for _ in range(20):
            ask(plain, 0)
            ask(recorded, 0)
        recorder.flush()
        without = measure(lambda number: ask(plain, number), calls)
        recorder.flush()
        with_it = measure(lambda number: ask(recorded, number), calls)
        recorder.flush()
        transport.tap = Timed
        Recorder._submit = timed(submit)  # type: ignore[method-assign]
        for number in range(calls):
            spent[0] = 0.0
            ask(recorded, number)
            inside.append(spent[0])
        before = time.perf_counter()
        recorder.flush()
        behind = time.perf_counter() - before
        size = len(json.dumps({"model": "m", "messages": messages}))
        print(f"{calls} calls of {len(messages)} messages, {size:,} bytes each")
        print("a call                      median µs   99 % µs")
        rows = [
            ("without recording, thread", [row[0] for row in without]),
            ("with recording, thread", [row[0] for row in with_it]),
            ("of it recording itself", inside),
            ("without, wall clock", [row[1] for row in without]),
            ("with, wall clock", [row[1] for row in with_it]),
        ]
        for name, times in rows:
            high = statistics.quantiles(times, n=100)[98]
            print(f"{name:<26} {statistics.median(times):>10.0f} {high:>9.0f}")
        print(f"the last {calls} calls were in the store {behind:.2f} s after the last one ended")
        print(f"recorded {recorder.recorded}, failures {recorder.failures}, dropped {recorder.dropped}")
        recorder.close()


if __name__ == "__main__":
    main()
