"""Recording with the packages of the providers, against a server process."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List

import anthropic
import openai
import pactql
import pytest
from pactql.recording import Recorder, RecordingWarning, _call

from .conftest import Server, attempts, sent, texts

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks an order up",
        "parameters": {"type": "object", "properties": {"z": {"type": "string"}, "a": {}}},
    },
}


def openai_client(server: Server, **more: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk-test", **more)


def anthropic_client(server: Server, **more: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.url, api_key="sk-ant-test", **more)


def flush(client: Any) -> Recorder:
    """Waits for what was recorded, which must be all of it."""
    recorder = pactql.recorder(client)
    assert recorder.flush(30)
    assert (recorder.failures, recorder.dropped, recorder.last_error) == (0, 0, None)
    return recorder


def test_chat_completions(server: Server, path: str) -> None:
    client = pactql.record(openai_client(server), path, session="support-42")
    assert type(client) is openai.OpenAI
    messages: List[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Where is it? tools"}]},
    ]
    reply = client.chat.completions.create(
        model="m", messages=messages, tools=[TOOL], temperature=0.2, seed=7, user="ada"
    )
    call = reply.choices[0].message.tool_calls
    assert call is not None
    messages.append(reply.choices[0].message)
    messages.append({"role": "tool", "tool_call_id": call[0].id, "content": "On its way."})
    stream = client.chat.completions.create(
        model="m",
        messages=messages,
        tools=[TOOL],
        stream=True,
        stream_options={"include_usage": True},
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text.startswith("Reply ")
    messages.append({"role": "assistant", "content": text})
    messages.append({"role": "user", "content": "Thanks, gzip."})
    client.chat.completions.with_raw_response.create(model="m", messages=messages)
    with client.chat.completions.with_streaming_response.create(
        model="m", messages=messages
    ) as response:
        assert b"Reply" in response.read()
    with client.chat.completions.stream(model="m", messages=messages) as events:
        for _ in events:
            pass
        assert events.get_final_completion().choices[0].message.content
    recorder = flush(client)
    assert recorder.recorded == 5
    assert sent(path, "openai") == {"support-42": server.requests()}
    assert text in texts(path, "support-42", "@c2 .cb[role=assistant]")
    with pactql.Store.open(path) as store:
        usage = json.loads(store.session("support-42").dumps(full=True).splitlines()[0])["usage"]
    assert (usage["input_tokens"], usage["cached_tokens"], usage["output_tokens"]) == (20, 4, 7)
    assert usage["request_id"].startswith("req-")
    assert usage["latency_ms"] >= 0 and usage["stop_reason"] == "tool_calls"


def test_responses(server: Server, path: str) -> None:
    client = pactql.record(openai_client(server), path, session="r")
    tool: Any = {"type": "function", "name": "look_up", "parameters": {}, "strict": True}
    first = client.responses.create(
        model="m", instructions="Be brief.", input="Where is it? tools", tools=[tool]
    )
    call: Any = first.output[0]
    output: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "There."}]
    second = client.responses.create(
        model="m", input=output, previous_response_id=first.id, tools=[tool], stream=True
    )
    assert [event.type for event in second][-1] == "response.completed"
    with client.responses.stream(model="m", input="And now?") as events:
        for _ in events:
            pass
        assert events.get_final_response().output_text.startswith("Reply")
    flush(client)
    requests = server.requests()
    assert sent(path, "openai-responses") == {"r": requests[:2], "r/2": requests[2:]}
    # What the model saw in the second call has the first one in it.
    assert texts(path, "r", "@t0 ^seq .cb")[:3] == [
        "Where is it? tools",
        '{"order": 42}',
        "There.",
    ]


def test_messages(server: Server, path: str) -> None:
    client = pactql.record(anthropic_client(server), path, session="m")
    assert type(client) is anthropic.Anthropic
    tool: Any = {"name": "look_up", "input_schema": {"type": "object", "properties": {"b": {}, "a": {}}}}
    messages: List[Any] = [{"role": "user", "content": "Where is it? tools"}]
    system: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    more: Dict[str, Any] = {"model": "m", "max_tokens": 100, "system": system, "tools": [tool]}
    first = client.messages.create(messages=messages, **more)
    messages.append({"role": "assistant", "content": first.content})
    used: Any = first.content[-1]
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "There."}
    messages.append({"role": "user", "content": [result]})
    with client.messages.stream(messages=messages, **more) as stream:
        text = "".join(stream.text_stream)
    messages.append({"role": "assistant", "content": text})
    messages.append({"role": "user", "content": "And now? tools"})
    events = client.messages.create(messages=messages, stream=True, **more)
    assert [event.type for event in events][-1] == "message_stop"
    messages.pop()
    client.beta.messages.create(messages=[*messages, {"role": "user", "content": "Beta."}], **more)
    client.messages.count_tokens(messages=messages, model="m")
    flush(client)
    requests = server.requests()
    # Counting tokens is no call of a model.
    assert sent(path, "anthropic") == {"m": requests[:4]}
    assert text in texts(path, "m", "@c2 .cb[role=assistant]")
    call = [text for text in texts(path, "m", "@c3 .cb[kind=call]")]
    assert json.loads(call[-1]) == {"order": 42, "deep": {"b": 1, "a": 2}}


def test_asynchronous_clients(server: Server, path: str) -> None:
    async def run() -> None:
        recorder = Recorder(path)
        chat = pactql.record(
            openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k"), recorder, session="a"
        )
        claude = pactql.record(
            anthropic.AsyncAnthropic(base_url=server.url, api_key="k"), recorder, session="b"
        )
        assert type(chat) is openai.AsyncOpenAI and type(claude) is anthropic.AsyncAnthropic
        async with chat, claude:
            stream = await chat.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "x"}], stream=True
            )
            assert [chunk async for chunk in stream]
            await chat.responses.create(model="m", input="y")
            async with claude.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
            ) as events:
                assert (await events.get_final_message()).stop_reason == "end_turn"
            # One that is stopped while it waits.
            slow = claude.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "slow"}]
            )
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(slow, 0.3)
        assert await asyncio.to_thread(recorder.flush, 30)
        assert (recorder.recorded, recorder.failures) == (4, 0)

    asyncio.run(run())
    requests = server.requests()
    assert sent(path, "openai")["a"] == requests[:1]
    assert sent(path, "openai-responses")["a/2"] == requests[1:2]
    assert sent(path, "anthropic")["b"] == requests[2:3]
    assert [attempt["status"] for attempt in attempts(path, "b/2")] == ["canceled"]


def test_errors_are_the_same_and_are_attempts(server: Server, path: str) -> None:
    plain = openai_client(server, max_retries=1)
    client = pactql.record(plain, path, session="e")

    def error(client: openai.OpenAI, text: str) -> Any:
        with pytest.raises(openai.OpenAIError) as raised:
            client.with_options(timeout=1).chat.completions.create(
                model="m", messages=[{"role": "user", "content": text}]
            )
        return type(raised.value), str(raised.value)

    for text in ("status-400", "status-500", "hang-up", "slow"):
        server.mark()
        assert error(client, text) == error(plain, text)
    ok = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "once-529"}]
    )
    assert ok.choices
    flush(client)
    errors = {
        name: [(attempt["status"], attempt["error"].split(":")[0]) for attempt in found]
        for name in ("e", "e/2", "e/3", "e/4")
        for found in [attempts(path, name)]
    }
    assert errors == {
        "e": [("error", "HTTP 400")],
        # A call that is made again is the same cycle.
        "e/2": [("error", "HTTP 500")] * 2,
        "e/3": [("error", "RemoteProtocolError")] * 2,
        "e/4": [("error", "ReadTimeout")] * 2,
    }
    # What the API refused can be looked at, though no call of the session has succeeded.
    with pactql.Store.open(path, create=False) as store:
        refused = store["e"]
        assert len(refused) == 0
        request = json.loads(refused.render(attempt=refused.attempts[0]["attempt_id"]))
        assert request == {"model": "m", "messages": [{"role": "user", "content": "status-400"}]}
    again = attempts(path, "e/5")
    assert [attempt["status"] for attempt in again] == ["error", "completed"]
    assert sent(path, "openai")["e/5"] == server.requests()[-1:]


def test_streams_that_end_early(server: Server, path: str) -> None:
    client = pactql.record(anthropic_client(server, max_retries=0), path, session="s")
    more: Dict[str, Any] = {"model": "m", "max_tokens": 9, "stream": True}

    def ask(text: str) -> Any:
        return client.messages.create(messages=[{"role": "user", "content": text}], **more)

    with pytest.raises(Exception):  # noqa: B017 - that of the transport, whichever it is
        for _ in ask("stream-cut"):
            pass
    stopped = ask("stream-slow please")
    for event in stopped:
        if event.type == "content_block_delta":
            break
    stopped.close()
    # One that nobody reads.
    unread = ask("unread")
    del unread
    chat = pactql.record(openai_client(server), pactql.recorder(client) or path, session="c")
    for chunk in chat.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "x"}], stream=True
    ):
        if chunk.choices[0].finish_reason:
            break
    # A stream that is left open ends when it is collected, and some versions of the SDK keep it in a cycle.
    gc.collect()
    flush(client)
    requests = server.requests()
    found = sent(path, "anthropic")
    assert found["s"] == requests[:1] and found["s/2"] == requests[1:2]
    assert [attempt["status"] for attempt in attempts(path, "s")] == ["error"]
    assert [attempt["status"] for attempt in attempts(path, "s/2")] == ["canceled"]
    assert texts(path, "s/2", "@t0 .cb[role=assistant]")[0].startswith("Repl")
    assert [attempt["status"] for attempt in attempts(path, "s/3")] == ["canceled"]
    # All of the reply had come.
    assert attempts(path, "c") == []


def test_32_conversations_at_once(server: Server, path: str) -> None:
    current: "contextvars.ContextVar[str]" = contextvars.ContextVar("current")
    client = pactql.record(openai_client(server), path, session=current.get)
    barrier = threading.Barrier(32)

    def talk(number: int) -> List[Any]:
        current.set(f"talk-{number}")
        barrier.wait(30)
        messages: List[Any] = [{"role": "user", "content": f"question {number}"}]
        bodies = []
        for turn in range(4):
            stream = turn % 2 == 1
            bodies.append({"messages": list(messages), "model": "m", "temperature": number / 64})
            reply: Any = client.chat.completions.create(
                model="m", messages=messages, temperature=number / 64, stream=stream
            )
            bodies[-1]["stream"] = stream
            if stream:
                text = "".join(chunk.choices[0].delta.content or "" for chunk in reply)
            else:
                text = reply.choices[0].message.content
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "user", "content": f"more {turn}"})
        return bodies

    with ThreadPoolExecutor(32) as pool:
        expected = list(pool.map(talk, range(32)))
    flush(client)
    found = sent(path, "openai")
    assert sorted(found) == sorted(f"talk-{number}" for number in range(32))
    received = server.requests()
    for number, bodies in enumerate(expected):
        assert found[f"talk-{number}"] == bodies
        for body in bodies:
            assert body in received
    assert len(received) == 32 * 4


def test_one_name_for_many_conversations(server: Server, path: str) -> None:
    client = pactql.record(anthropic_client(server), path, session="n")

    def talk(number: int) -> List[Any]:
        messages: List[Any] = [{"role": "user", "content": f"question {number}"}]
        bodies = []
        for _ in range(3):
            body: Dict[str, Any] = {"model": "m", "max_tokens": 9, "messages": list(messages)}
            reply = client.messages.create(**body)
            bodies.append(body)
            messages += [{"role": "assistant", "content": reply.content[0].text}]
            messages += [{"role": "user", "content": "more"}]
        return bodies

    with ThreadPoolExecutor(8) as pool:
        expected = list(pool.map(talk, range(8)))
    flush(client)
    found = sent(path, "anthropic")
    assert sorted(found) == ["n", *(f"n/{number}" for number in range(2, 9))]
    order = lambda bodies: json.dumps(bodies)  # noqa: E731
    assert sorted(found.values(), key=order) == sorted(expected, key=order)


def test_copies_record_and_the_original_does_not(server: Server, path: str) -> None:
    original = openai_client(server)
    client = pactql.record(original, path, session="o")
    ask = [{"role": "user", "content": "x"}]
    original.chat.completions.create(model="m", messages=ask)  # type: ignore[arg-type]
    copy = client.with_options(timeout=20).copy(default_headers={"x-a": "b"})
    assert copy.timeout == 20 and copy.max_retries == original.max_retries
    copy.chat.completions.create(model="m", messages=ask)  # type: ignore[arg-type]
    assert flush(client).recorded == 1
    with pytest.raises(ValueError, match="is not recorded"):
        pactql.recorder(original)
    # Closing it closes the connections that both have, as closing a copy of the SDK does.
    with client:
        pass
    assert client.is_closed()


def test_nothing_reaches_the_caller(server: Server, tmp_path: Any) -> None:
    not_a_store = tmp_path / "agent.db"
    not_a_store.write_text("this is no store" * 100)
    client = pactql.record(openai_client(server), not_a_store, session="f")
    ask: Any = [{"role": "user", "content": "x"}]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            assert client.chat.completions.create(model="m", messages=ask).choices
        recorder = pactql.recorder(client)
        assert recorder.flush(30)
    assert (recorder.recorded, recorder.failures) == (0, 3)
    assert [warning.category for warning in caught] == [RecordingWarning]
    assert "not a store" in str(caught[0].message)
    assert "this is no store" in not_a_store.read_text()

    # Neither a function that fails, nor a name that cannot be one, nor warnings that are errors.
    def broken(_: Any) -> Any:
        raise RuntimeError("no")

    for more in ({"redact": broken}, {"session": "a*b"}, {"session": broken}):
        arguments: Dict[str, Any] = {"session": "f", **more}
        client = pactql.record(openai_client(server), tmp_path / "other.db", **arguments)
        assert client.chat.completions.create(model="m", messages=ask).choices
        recorder = pactql.recorder(client)
        assert recorder.flush(30)
        assert (recorder.recorded, recorder.failures) == (0, 1)


def test_redaction(server: Server, path: str) -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    ask: Any = [{"role": "user", "content": f"my key is {key}, I am Ada Lovelace"}]
    by_pattern = pactql.record(openai_client(server), path, session="p", redact=r"Ada \w+")
    by_pattern.chat.completions.create(model="m", messages=ask)
    flush(by_pattern)
    assert texts(path, "p")[0] == "my key is [redacted], I am [redacted]"

    def shorter(body: Any) -> Any:
        for message in body.get("messages", ()):
            message["content"] = message["content"].replace("Lovelace", "L.")
        return None if "drop me" in str(body) else body

    by_function = pactql.record(openai_client(server), path, session="q", redact=shorter)
    by_function.chat.completions.create(model="m", messages=ask)
    by_function.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "drop me"}]
    )
    assert flush(by_function).recorded == 1
    assert texts(path, "q")[0] == "my key is [redacted], I am Ada L."
    # What was sent is as it was.
    assert all(key in str(request) for request in server.requests()[:2])
    off = pactql.record(openai_client(server), path, session="off", redact=False)
    off.chat.completions.create(model="m", messages=ask)
    flush(off)
    assert key in texts(path, "off")[0]
    with pytest.raises(ValueError, match="pattern"):
        pactql.record(openai_client(server), path, redact="(")


def test_it_can_be_switched_off(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACTQL_RECORD", "0")
    client = openai_client(server)
    assert pactql.record(client, path) is client
    assert not os.path.exists(path)


def test_other_clients_are_refused(path: str) -> None:
    with pytest.raises(TypeError, match="builtins.dict"):
        pactql.record({}, path)


def test_clients_with_a_transport_of_their_own(path: str) -> None:
    # Whichever of the two the package is made with.
    http: Any = getattr(openai._base_client, "httpx2", None) or getattr(openai._base_client, "httpx")
    body = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
        ],
    }
    transport = http.MockTransport(lambda request: http.Response(200, json=body))
    client = pactql.record(
        openai.OpenAI(
            base_url="http://nowhere.invalid", api_key="k", http_client=http.Client(transport=transport)
        ),
        path,
        session="t",
    )
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    flush(client)
    assert texts(path, "t") == ["x", "ok"]


def test_a_full_queue_drops_the_oldest(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(path, queue_calls=4)
    client = pactql.record(openai_client(server), recorder, session="d")
    # Nobody writes yet.
    monkeypatch.setattr(recorder._writer, "_awake", lambda: None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(10):
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": f"n{number}"}]
            )
    monkeypatch.undo()
    assert recorder.dropped == 6 and len(caught) == 1
    assert recorder.flush(30) and recorder.recorded == 4
    kept = sorted(requests[0]["messages"][0]["content"] for requests in sent(path, "openai").values())
    assert kept == ["n6", "n7", "n8", "n9"]


def test_what_runs_on_the_thread_of_the_caller(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a recording reads, copies or writes there: the request's bytes are the very object that was sent."""
    recorder = Recorder(path)
    client = pactql.record(openai_client(server), recorder, session="w")
    seen: List[Any] = []
    assert recorder._writer is not None
    put = recorder._writer.put

    def look(call: Any) -> None:
        seen.append((threading.current_thread(), call.request, type(call.chunks[0])))
        put(call)

    monkeypatch.setattr(recorder._writer, "put", look)
    written: List[Any] = []
    row = _call.Call.row

    def noted(self: Any, *more: Any) -> Any:
        written.append(threading.current_thread().name)
        return row(self, *more)

    monkeypatch.setattr(_call.Call, "row", noted)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    flush(client)
    assert seen[0][0] is threading.current_thread()
    assert isinstance(seen[0][1], bytes) and seen[0][2] is bytes
    assert written == ["pactql-recording"]


def test_a_function_that_ends_the_program_does_not_end_the_writer(server: Server, path: str) -> None:
    def leave(value: Any) -> Any:
        raise SystemExit(1)

    recorder = Recorder(path, redact=leave)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        client = pactql.record(openai_client(server), recorder)
        for _ in range(2):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
            assert recorder.flush(30)
    assert recorder.failures == 2
