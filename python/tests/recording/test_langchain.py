"""Recording LangChain: the callback handler, with a model that answers by itself."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Iterator, List, Optional

import pactql
import pytest

pytest.importorskip("langchain_core", reason="the package `langchain-core` is not installed")

from langchain_core.language_models import BaseChatModel  # noqa: E402
from langchain_core.messages import (  # noqa: E402
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult  # noqa: E402
from pactql.langchain import RecordingHandler  # noqa: E402
from pactql.recording import Recorder  # noqa: E402

from .conftest import attempts, sent, texts  # noqa: E402

TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}


class Model(BaseChatModel):
    """Calls a tool, then answers."""

    temperature: float = 0.5

    @property
    def _llm_type(self) -> str:
        return "test"

    @property
    def _identifying_params(self) -> Any:
        return {"model": "m", "temperature": self.temperature}

    def _answer(self, messages: List[BaseMessage]) -> AIMessage:
        if "fail" in str(messages[-1].content):
            raise RuntimeError("no")
        usage: Any = {
            "input_tokens": 20,
            "output_tokens": 7,
            "total_tokens": 27,
            "input_token_details": {"cache_read": 4},
        }
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("It is on its way.", usage_metadata=usage)
        call: Any = {"name": "look_up", "args": {"order": 42}, "id": "c1", "type": "tool_call"}
        about = {"finish_reason": "tool_calls", "model_name": "m-1"}
        return AIMessage("", tool_calls=[call], usage_metadata=usage, response_metadata=about)

    def _generate(
        self,
        messages: List[BaseMessage],
        stop: Optional[List[str]] = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])


class Streaming(Model):
    def _stream(
        self,
        messages: List[BaseMessage],
        stop: Optional[List[str]] = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for word in ("It ", "is ", "here."):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


def flush(handler: RecordingHandler) -> None:
    assert handler.recorder is not None and handler.recorder.flush(30)
    assert (handler.recorder.failures, handler.recorder.last_error) == (0, None)


def test_messages_tools_and_parameters(path: str) -> None:
    handler = RecordingHandler(path, session="lc")
    model = Model().bind(tools=[TOOL])
    messages: List[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Where is it?")]
    reply = model.invoke(messages, config={"callbacks": [handler]})
    first = list(messages)
    messages += [reply, ToolMessage("There.", tool_call_id="c1")]
    model.invoke(messages, config={"callbacks": [handler]})
    flush(handler)
    found = sent(path, "openai")
    assert [body["messages"] for body in found["lc"]] == [
        convert_to_openai_messages(first),
        convert_to_openai_messages(messages),
    ]
    for body in found["lc"]:
        assert body["tools"] == [TOOL] and body["temperature"] == 0.5 and body["model"] == "m"
    assert texts(path, "lc", "@t0 .cb[role=assistant]")[-1] == "It is on its way."
    assert texts(path, "lc", "@t0 .cb[kind=call]") == ['{"order": 42}']


def test_streams_errors_and_threads(path: str) -> None:
    handler = RecordingHandler(path)

    async def run() -> None:
        config: Any = {"callbacks": [handler], "metadata": {"thread_id": "t-1"}}
        chunks = [chunk async for chunk in Streaming().astream("Where?", config=config)]
        assert len(chunks) >= 3
        with pytest.raises(RuntimeError, match="no"):
            await Model().ainvoke("fail", config=config)

    asyncio.run(run())
    for _ in Streaming().stream("Where now?", config={"callbacks": [handler]}):
        pass
    flush(handler)
    assert texts(path, "t-1") == ["Where?", "It is here."]
    assert texts(path, "recording") == ["Where now?", "It is here."]
    [attempt] = attempts(path, "t-1/2")
    assert (attempt["status"], attempt["error"]) == ("error", "RuntimeError: no")


def test_it_can_be_switched_off(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PACTQL_RECORD", "0")
    handler = RecordingHandler(path)
    assert Model().invoke("x", config={"callbacks": [handler]}).tool_calls
    assert handler.recorder.closed and handler.recorder.flush()
    assert not os.path.exists(path)


def test_messages_that_change_afterwards(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = RecordingHandler(path, session="c")
    message = HumanMessage([{"type": "text", "text": "as it was"}])
    config: Any = {"callbacks": [handler]}
    # Nobody writes yet.
    monkeypatch.setattr(handler.recorder._writer, "_awake", lambda: None)
    reply = Model().invoke([message], config=config)
    message.content[0]["text"] = "as it is"  # type: ignore[index]
    reply.content = "something else"
    reply.tool_calls[0]["args"]["order"] = 43
    monkeypatch.undo()
    flush(handler)
    assert texts(path, "c") == ["as it was", "", '{"order": 42}']


def test_an_error_is_redacted_and_large_calls_are_counted(path: str) -> None:
    recorder = Recorder(path, redact=lambda body: "gone" if isinstance(body, str) else body)
    handler = RecordingHandler(recorder, session="e")
    with pytest.raises(RuntimeError, match="no"):
        Model().invoke("fail", config={"callbacks": [handler]})
    flush(handler)
    [attempt] = attempts(path, "e")
    assert attempt["error"] == "RuntimeError: gone"
    sizes: List[int] = []
    assert recorder._writer is not None
    put = recorder._writer.put

    def noted(call: Any) -> None:
        sizes.append(call.size)
        put(call)

    recorder._writer.put = noted  # type: ignore[method-assign]
    Model().invoke("x" * 10_000, config={"callbacks": [handler]})
    flush(handler)
    assert 10_000 < sizes[0] < 20_000
    recorder.close()
    with pytest.raises(ValueError, match="closed"):
        RecordingHandler(recorder)
