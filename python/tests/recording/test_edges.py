"""Recording at its edges: what is shared, what is given back, what is odd, what must not be kept."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from pathlib import Path
from typing import Any, Callable, List

import anthropic
import openai
import pactql
import pytest
from pactql.recording import Recorder, RecordingWarning

from .conftest import Server, attempts, sent, texts
from .test_clients import anthropic_client, flush, openai_client


def ask(client: Any, text: str, **more: Any) -> Any:
    messages: List[Any] = [{"role": "user", "content": text}]
    return client.chat.completions.create(model="m", messages=messages, **more)


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something that a thread does comes true."""
    for _ in range(500):
        gc.collect()
        if holds():
            return True
        time.sleep(0.01)
    return False


def asleep(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The writer of a recorder, which writes nothing until `monkeypatch` is undone."""
    writer = recorder._writer
    assert writer is not None
    monkeypatch.setattr(writer, "_awake", lambda: None)
    return writer


def test_a_recorded_client_that_is_gone_leaves_the_connections_open(server: Server, path: str) -> None:
    original = openai_client(server)
    stream = ask(original, "stream-slow", stream=True)
    first = next(stream)
    recorded = pactql.record(original, path)
    ask(recorded, "x")
    flush(recorded)
    del recorded
    gc.collect()
    assert not original.is_closed()
    rest = list(stream)
    assert first.choices and len(rest) > 1
    assert ask(original, "x").choices
    original.close()


def test_the_last_client_closes_the_connections(server: Server, path: str) -> None:
    recorded = pactql.record(openai_client(server), path)
    transport: Any = recorded._client._transport
    pool = transport.inner._pool
    ask(recorded, "x")
    flush(recorded)
    assert len(pool.connections) == 1
    with warnings.catch_warnings():
        # A socket that nobody closes says so.
        warnings.simplefilter("error", ResourceWarning)
        del recorded, transport
        gc.collect()
    assert pool.connections == []


def test_recording_twice_records_once(server: Server, path: str, tmp_path: Path) -> None:
    once = pactql.record(openai_client(server), path, session="a")
    twice = pactql.record(once, path, session="b")
    ask(twice, "x")
    other = Recorder(tmp_path / "other.db")
    both = pactql.record(pactql.record(twice, other, session="o"), path, session="c")
    ask(both, "y")
    for client in (once, twice, both):
        flush(client)
    assert other.flush(30) and other.recorded == 1
    with pactql.Store.open(path) as store:
        assert [info.name for info in store.sessions()] == ["b", "c"]
    assert texts(other.store, "o")[0] == "y"


def recorder_of(client: Any) -> Recorder:
    return pactql.recorder(client)


def test_a_closed_recorder_is_refused(server: Server, path: str) -> None:
    recorder = Recorder(path)
    assert not recorder.closed and recorder.close() and recorder.closed
    with pytest.raises(ValueError, match="closed"):
        pactql.record(openai_client(server), recorder)


@pytest.mark.parametrize("value", ["0", "off", "False", " no "])
def test_what_is_off_can_be_flushed(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("PACTQL_RECORD", value)
    client = openai_client(server)
    assert pactql.record(client, path) is client
    recorder = recorder_of(client)
    assert recorder.flush() and recorder.close()
    assert pactql.record(client, Recorder(path)) is client
    assert not Path(path).exists()


def test_threads_are_given_back(server: Server, tmp_path: Path) -> None:
    def writing() -> int:
        return sum(thread.name == "pactql-recording" for thread in threading.enumerate())

    assert eventually(lambda: writing() == 0)
    closed = Recorder(tmp_path / "0.db")
    ask(pactql.record(openai_client(server), closed), "x")
    assert closed.close()
    for number in range(1, 4):
        # Nobody closes these, nor waits for them.
        ask(pactql.record(openai_client(server), tmp_path / f"{number}.db"), "x")
    assert eventually(lambda: writing() == 0)
    for number in range(4):
        assert texts(str(tmp_path / f"{number}.db"), "recording")[0] == "x"
    # And the same store can be recorded into again.
    again = pactql.record(openai_client(server), tmp_path / "1.db", session="again")
    ask(again, "y")
    assert flush(again).recorded == 1 and writing() == 1


def test_a_store_that_was_removed_is_made_anew(server: Server, path: str) -> None:
    client = pactql.record(openai_client(server), path, session="s")
    ask(client, "before")
    flush(client)
    for end in ("", "-wal", "-shm"):
        Path(path + end).unlink(missing_ok=True)
    ask(client, "after")
    assert flush(client).recorded == 2
    assert texts(path, "s")[0] == "after"


def test_no_name_is_the_usual_name(server: Server, path: str) -> None:
    client = pactql.record(openai_client(server), path, session=lambda: None)
    ask(client, "x")
    flush(client)
    assert list(sent(path, "openai")) == ["recording"]


def test_halves_of_surrogate_pairs_are_replaced(server: Server, path: str) -> None:
    def redact(body: Any) -> Any:
        if isinstance(body, dict) and "messages" in body:
            body["messages"][0]["content"] += "\ud800"
        return body

    broken = pactql.record(openai_client(server), path, session="s\udc80", redact=redact)
    others = pactql.record(openai_client(server), path, session="o")
    ask(broken, "x")
    ask(others, "y")
    flush(broken)
    flush(others)
    assert texts(path, "s\ufffd")[0] == "x\ufffd"
    assert texts(path, "o")[0] == "y"
    # One that was sent, which some clients do.
    others.post(
        "/chat/completions",
        cast_to=object,
        content=b'{"model":"m","messages":[{"role":"user","content":"z\\ud800"}]}',
        options={"headers": {"content-type": "application/json"}},
    )
    flush(others)
    assert texts(path, "o/2")[0] == "z\ufffd"


def test_a_call_that_cannot_be_read_leaves_the_others(server: Server, path: str) -> None:
    recorder = Recorder(path)
    client = pactql.record(openai_client(server), recorder, session="k")
    assert recorder._writer is not None
    put = recorder._writer.put

    def altered(call: Any) -> None:
        if b"bad" in call.request:
            call.started_ns = "never"
        put(call)

    recorder._writer.put = altered  # type: ignore[method-assign]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        for text in ("one", "bad", "two"):
            ask(client, text)
        assert recorder.flush(30)
    assert (recorder.recorded, recorder.failures) == (2, 1)


def test_the_function_sees_what_an_api_says_of_an_error(server: Server, path: str) -> None:
    seen: List[Any] = []

    def redact(body: Any) -> Any:
        seen.append(body)
        if "error" in body:
            body["error"]["message"] = "gone"
        return body

    client = pactql.record(openai_client(server, max_retries=0), path, session="e", redact=redact)
    with pytest.raises(openai.InternalServerError):
        ask(client, "status-500")
    # What the client itself says has nothing of a body.
    with pytest.raises(openai.APITimeoutError):
        ask(client.with_options(timeout=0.2), "slow")
    flush(client)
    assert [attempt["error"].partition(":")[0] for attempt in attempts(path, "e")] == ["HTTP 500"]
    assert '"message": "gone"' in attempts(path, "e")[0]["error"]
    assert len(seen) == 3 and all(isinstance(body, dict) for body in seen)


@pytest.mark.parametrize("text", ["status-500", "x"])
def test_none_for_a_response_records_nothing(server: Server, path: str, text: str) -> None:
    def redact(body: Any) -> Any:
        return body if "messages" in body else None

    client = pactql.record(openai_client(server, max_retries=0), path, redact=redact)
    try:
        ask(client, text)
    except openai.InternalServerError:
        pass
    assert flush(client).recorded == 0


def test_what_waits_is_bounded_in_bytes(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(path, queue_bytes=20_000)
    client = pactql.record(openai_client(server), recorder, session="b")
    writer = asleep(recorder, monkeypatch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        for number in range(9):
            ask(client, f"n{number} " + "x" * 4_000)
        assert 12_000 < writer._bytes <= 20_000
        # A larger one is all that waits.
        ask(client, "large " + "x" * 50_000)
    monkeypatch.undo()
    assert recorder.dropped == 9
    assert recorder.flush(30) and recorder.recorded == 1
    assert writer._bytes == 0


def test_whoever_flushes_is_not_forgotten_where_calls_are_dropped(
    server: Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(path, queue_calls=2)
    client = pactql.record(openai_client(server), recorder, session="m")
    writer = asleep(recorder, monkeypatch)
    flushed: List[bool] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        ask(client, "0")
        waiting = threading.Thread(target=lambda: flushed.append(recorder.flush(30)))
        waiting.start()
        assert eventually(lambda: writer._queue.qsize() == 2)
        for number in range(1, 6):
            ask(client, str(number))
    monkeypatch.undo()
    writer._awake()
    waiting.join(30)
    assert flushed == [True]


def test_a_name_may_look_like_one_with_a_number(server: Server, path: str) -> None:
    numbered = pactql.record(openai_client(server), path, session="order/2")
    plain = pactql.record(openai_client(server), path, session="order")
    ask(numbered, "hello")
    flush(numbered)
    ask(plain, "hello")
    ask(plain, "another")
    flush(plain)
    found = sent(path, "openai")
    assert {name: len(bodies) for name, bodies in found.items()} == {
        "order": 1,
        "order/2": 1,
        "order/3": 1,
    }


def test_secrets_of_an_error_are_gone_wherever_they_are(path: str) -> None:
    key = "sk-proj-0123456789abcdefghijABCDEFGHIJ"
    http: Any = getattr(openai._base_client, "httpx2", None) or getattr(openai._base_client, "httpx")
    for number, body in enumerate(
        (
            {"error": {"message": "x" * (3_980 - number) + key}, "rest": "y" * 9_000}
            for number in range(0, 20, 3)
        )
    ):
        body["request"] = {"headers": {"authorization": "Bearer TOPSECRETVALUE"}}
        transport = http.MockTransport(lambda request, body=body: http.Response(401, json=body))
        client = pactql.record(
            openai.OpenAI(base_url="http://nowhere.invalid", api_key="k", max_retries=0, http_client=http.Client(transport=transport)),
            path,
            session=f"k{number}",
        )
        with pytest.raises(openai.AuthenticationError):
            ask(client, "x")
        flush(client)
        [attempt] = attempts(path, f"k{number}")
        assert len(attempt["error"]) == 4_001 and attempt["error"].startswith("HTTP 401: {")
    with open(path, "rb") as file:
        stored = file.read()
    assert b"sk-proj-" not in stored and b"TOPSECRETVALUE" not in stored


def test_writers_that_wrote_nothing_are_forgotten(tmp_path: Path) -> None:
    from pactql.recording._recorder import _Writer

    before = len(_Writer._all)
    for number in range(3):
        Recorder(tmp_path / f"{number}.db").close()
    assert len(_Writer._all) == before


def test_azure_is_recorded_and_bedrock_refused(server: Server, path: str) -> None:
    azure = openai.AzureOpenAI(base_url=f"{server.url}/v1", api_key="k", api_version="2024-10-21")
    client = pactql.record(azure, path, session="z")
    assert type(client) is openai.AzureOpenAI
    ask(client, "x")
    flush(client)
    assert sent(path, "openai")["z"] == server.requests()
    bedrock = anthropic.AnthropicBedrock(
        aws_access_key="a", aws_secret_key="b", aws_region="us-east-1"
    )
    with pytest.raises(TypeError, match="AnthropicBedrock"):
        pactql.record(bedrock, path)


def test_messages_that_fail_are_redacted(server: Server, path: str) -> None:
    key = "sk-ant-0123456789abcdefghijABCDEFGHIJ"
    client = pactql.record(anthropic_client(server, max_retries=0), path, session="a")
    with pytest.raises(anthropic.APIStatusError):
        client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": f"status-529 {key}"}]
        )
    flush(client)
    with open(path, "rb") as file:
        assert key.encode() not in file.read()
