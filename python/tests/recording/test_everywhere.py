"""Recording clients that frameworks make, and clients of other providers."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pactql
import pytest
from pactql.recording import Recorder

pytest.importorskip("httpx", reason="the package `httpx` is not installed")

import httpx

from .conftest import Server, attempts, sent, texts
from .test_clients import anthropic_client, openai_client

USER: Any = [{"role": "user", "content": "Where is it?"}]


@pytest.fixture
def everywhere(server: Server, path: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """A recorder of all clients."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    before = httpx.Client.send, httpx.AsyncClient.send
    recorder = pactql.record_all(path, session="all")
    yield recorder
    assert recorder.close()
    assert (recorder.failures, recorder.dropped, recorder.last_error) == (0, 0, None)
    # Nothing of it is left.
    assert (httpx.Client.send, httpx.AsyncClient.send) == before


def bodies(path: str, form: str = "openai") -> list[Any]:
    return [body for found in sent(path, form).values() for body in found]


def test_clients_that_were_there_before(server: Server, path: str) -> None:
    chat, claude = openai_client(server), anthropic_client(server)
    recorder = pactql.record_all(path)
    chat.chat.completions.create(model="m", messages=USER)
    for _ in chat.chat.completions.create(model="m", messages=[*USER, *USER], stream=True):
        pass
    claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "Claude?"}])
    assert pactql.recorder(chat) is recorder and recorder.flush(30)
    assert recorder.recorded == 3 and recorder.failures == 0
    assert recorder.close()
    # One call is all that it takes.
    chat.chat.completions.create(model="m", messages=USER)
    requests = server.requests()
    assert bodies(path)[:2] == requests[:2] and len(requests) == 4
    assert recorder.recorded == 3
    with pytest.raises(ValueError, match="is not recorded"):
        pactql.recorder(chat)


def test_what_is_no_call_is_left_alone(server: Server, path: str, everywhere: Recorder) -> None:
    with httpx.Client() as client:
        client.post(f"{server.url}/tickets/messages", json={"text": "Hello", "messages": 3})
        client.post(f"{server.url}/tickets/messages", json={"model": "of a car", "text": "Hello"})
        client.post(f"{server.url}/v1/chat/completions", json={"model": "m", "messages": USER})
        client.get(f"{server.url}/requests")
    assert everywhere.flush(30) and everywhere.recorded == 1


def test_a_client_that_records_itself_is_recorded_once(server: Server, path: str, everywhere: Recorder) -> None:
    client = pactql.record(openai_client(server), path, session="own")
    client.chat.completions.create(model="m", messages=USER)
    assert everywhere.flush(30)
    assert {name: len(found) for name, found in sent(path, "openai").items()} == {"own": 1}


def test_errors_and_asynchronous_clients(server: Server, path: str, everywhere: Recorder) -> None:
    import openai

    async def run() -> None:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            with pytest.raises(openai.BadRequestError):
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "status-400"}])
            stream = await client.chat.completions.create(model="m", messages=USER, stream=True)
            assert [chunk async for chunk in stream]
        assert await everywhere.aflush(30)

    asyncio.run(run())
    assert bodies(path) == server.requests()[1:]
    assert [attempt["status"] for attempt in attempts(path, "all")] == ["error"]


#: A package, its module, and a call that it makes with a client of its own.
FRAMEWORKS = {
    "litellm": (
        "litellm",
        "reply = module.completion(model='openai/m', messages=[{'role': 'user', 'content': 'Where is it?'}])",
        "openai",
    ),
    "langchain-openai": ("langchain_openai", "module.ChatOpenAI(model='m').invoke('Where is it?')", "openai"),
    "pydantic-ai-slim": (
        "pydantic_ai",
        "module.Agent('openai-chat:m').run_sync('Where is it?')",
        "openai",
    ),
    "openai-agents": (
        "agents",
        "module.set_tracing_disabled(True)\n"
        "module.Runner.run_sync(module.Agent(name='a', model='m'), 'Where is it?')",
        "openai-responses",
    ),
}


@pytest.mark.parametrize("package", FRAMEWORKS)
def test_a_framework(server: Server, path: str, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    module, program, form = FRAMEWORKS[package]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"the package `{package}` is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    source = f"import sys, pactql\npactql.record_all(sys.argv[1])\nimport {module} as module\n{program}\n"
    done = subprocess.run([sys.executable, "-c", source, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert bodies(path, form) == server.requests() != []


def test_the_handler_of_langchain_keeps_what_was_sent(server: Server, path: str, everywhere: Recorder) -> None:
    models = pytest.importorskip("langchain_openai", reason="the package `langchain-openai` is not installed")
    from pactql.langchain import RecordingHandler

    handler = RecordingHandler(path, session="chain")
    models.ChatOpenAI(model="m", callbacks=[handler]).invoke("Where is it?")
    assert everywhere.flush(30)
    # Once, in the session of the handler.
    assert sent(path, "openai") == {"chain": server.requests()}


def test_gemini(server: Server, path: str) -> None:
    genai: Any = pytest.importorskip("google.genai", reason="the package `google-genai` is not installed")
    options = genai.types.HttpOptions(base_url=server.url)
    plain = genai.Client(api_key="k", http_options=options)
    client = pactql.record(plain, path, session="g")
    assert type(client) is genai.Client
    assert client.models.generate_content(model="g", contents="Where is it?").text.startswith("Reply")
    pieces = client.models.generate_content_stream(model="g", contents="And where is the other?")
    assert "".join(piece.text for piece in pieces).startswith("Reply")

    async def run() -> None:
        reply = await client.aio.models.generate_content(model="g", contents="Is it there?")
        assert reply.text.startswith("Reply")
        await client.aio.aclose()

    asyncio.run(run())
    plain.models.generate_content(model="g", contents="not recorded")
    recorder = pactql.recorder(client)
    assert recorder.flush(30) and recorder.recorded == 3 and recorder.last_error is None
    # The model is in the address.
    expected = [{"model": "g", **body} for body in server.requests()[:3]]
    assert [found[0] for found in sent(path, "gemini").values()] == expected
    assert texts(path, "g/2")[-1].startswith("Reply")
    with pytest.raises(ValueError, match="is not recorded"):
        pactql.recorder(plain)


def test_bedrock(server: Server, path: str) -> None:
    boto3: Any = pytest.importorskip("boto3", reason="the package `boto3` is not installed")
    plain = boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=server.url,
        aws_access_key_id="a", aws_secret_access_key="b",
    )  # fmt: skip
    client = pactql.record(pactql.record(plain, path, session="old"), path, session="b")
    assert type(client) is type(plain)
    messages = [{"role": "user", "content": [{"text": "Where is it?"}]}]
    reply = client.converse(modelId="m:0", messages=messages, inferenceConfig={"maxTokens": 9})
    assert reply["output"]["message"]["content"][0]["text"].startswith("Reply")
    with pytest.raises(client.exceptions.ClientError):
        client.converse(modelId="m:0", messages=[{"role": "user", "content": [{"text": "status-400"}]}])
    plain.converse(modelId="m:0", messages=messages)
    recorder = pactql.recorder(client)
    assert recorder.flush(30) and recorder.recorded == 2 and recorder.last_error is None
    assert sent(path, "bedrock")["b"] == [{"modelId": "m:0", **server.requests()[0]}]
    assert [attempt["error"].partition(":")[0] for attempt in attempts(path, "b/2")] == ["HTTP 400"]


def test_an_event_stream_of_bedrock(path: str) -> None:
    from pactql.recording._bedrock import _begin, _end
    from pactql.recording._transport import Tap

    events = [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "On its "}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "way."}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "end_turn"}},
        {"metadata": {"usage": {"inputTokens": 2, "outputTokens": 3, "totalTokens": 5}}},
    ]
    recorder = Recorder(path)
    tap = Tap(recorder, "s", ())
    context: dict[str, Any] = {}
    body = b'{"messages": [{"role": "user", "content": [{"text": "Where?"}]}]}'
    _begin(tap, params={"url_path": "/model/m%3A0/converse-stream", "body": body}, context=context)
    parsed = {"stream": iter(events)}
    _end(tap, http_response=httpx.Response(200), parsed=parsed, context=context)
    assert list(parsed["stream"]) == events
    assert recorder.close() and recorder.recorded == 1 and recorder.last_error is None
    assert texts(path, "s") == ["Where?", "On its way."]


def test_the_calls_of_a_with_statement_are_one_session(server: Server, path: str) -> None:
    client = pactql.record(openai_client(server), path, session="talk")

    def ask(text: str) -> None:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}])

    ask("outside")
    with pactql.session("nightly") as name:
        assert name == "nightly"
        for number in range(4):
            ask(f"summary {number}")
        with pactql.session("inner"):
            ask("in between")
        ask("summary 4")

        async def run() -> None:
            await asyncio.to_thread(ask, "summary 5")

        asyncio.run(run())
        # A thread has a name of its own.
        other = threading.Thread(target=ask, args=("elsewhere",))
        other.start()
        other.join()
    ask("outside again")
    assert pactql.recorder(client).flush(30)
    found = {name: [body["messages"][0]["content"] for body in all] for name, all in sent(path, "openai").items()}
    assert found == {
        "inner": ["in between"],
        "nightly": [f"summary {number}" for number in range(6)],
        "talk": ["outside"],
        "talk/2": ["elsewhere"],
        "talk/3": ["outside again"],
    }


def test_compiled_patterns_are_taken_out(server: Server, path: str) -> None:
    patterns: list[Any] = [re.compile("ada LOVELACE", re.IGNORECASE), r"RT-\d+"]
    client = pactql.record(openai_client(server), path, session="p", redact=patterns)
    client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Ada Lovelace, RT-77, RS-77"}])
    assert pactql.recorder(client).flush(30)
    assert texts(path, "p")[0] == "[redacted], [redacted], RS-77"
    one = pactql.record(openai_client(server), path, session="q", redact=re.compile("Ada"))
    one.chat.completions.create(model="m", messages=[{"role": "user", "content": "Ada"}])
    assert pactql.recorder(one).flush(30) and texts(path, "q")[0] == "[redacted]"
    wrong: Any = re.compile(b"x")
    with pytest.raises(TypeError, match="a str or a compiled one"):
        pactql.record(openai_client(server), path, redact=wrong)


def test_it_can_be_switched_off(server: Server, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACTQL_RECORD", "off")
    before = httpx.Client.send
    recorder = pactql.record_all(path)
    assert httpx.Client.send is before and recorder.close()
    assert not Path(path).exists() and "pactql" in sys.modules
