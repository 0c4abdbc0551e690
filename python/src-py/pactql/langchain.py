"""Recording LangChain and LangGraph: a callback handler.

    from pactql.langchain import RecordingHandler
    graph.invoke(inputs, config={"callbacks": [RecordingHandler("agent.db", session="support-42")]})

Each call of a chat model is a snapshot of the messages, tools and parameters that LangChain gave the model, in the form
of Chat Completions, with the reply and its usage. What the provider was sent is recorded by
`pactql.record(client, …)`; use one of the two.
"""

from __future__ import annotations

import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Union
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, LLMResult

from .recording._call import Call
from .recording._recorder import Recorder, Redact

__all__ = ["RecordingHandler"]


class RecordingHandler(BaseCallbackHandler):
    """Records the calls of chat models. The arguments are those of `pactql.record`.

    Without a session, the name is the ``thread_id`` that LangGraph was configured with, or ``recording``.
    """

    raise_error = False
    # It does nothing that waits, so a thread of its own would cost more.
    run_inline = True

    def __init__(
        self,
        store: Union[str, "os.PathLike[str]", Recorder],
        session: Union[str, Callable[[], str], None] = None,
        *,
        redact: Redact = None,
    ) -> None:
        self._session = session
        self._calls: Dict[UUID, Call] = {}
        #: `None` where recording is turned off.
        self.recorder: Optional[Recorder] = None
        if os.environ.get("PACTQL_RECORD") == "0":
            return
        if isinstance(store, Recorder):
            self.recorder = store
        else:
            self.recorder = Recorder(store, redact=redact)

    def on_chat_model_start(
        self,
        serialized: Optional[Dict[str, Any]],
        messages: List[List[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        """Notes a call. The messages are read when it is written."""
        if self.recorder is None:
            return
        try:
            session = self._session() if callable(self._session) else self._session
            if session is None:
                session = (metadata or {}).get("thread_id", "recording")
            sent = list(messages[0]) if messages else []
            parameters = dict(kwargs.get("invocation_params") or {})
            call = Call(
                self.recorder, "openai", str(session), lambda: _request(sent, parameters)
            )
            self._calls[run_id] = call
        except Exception as error:  # noqa: BLE001 - nothing may reach the caller
            self.recorder._failed(f"{type(error).__name__}: {error}")

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes the reply."""
        call = self._calls.pop(run_id, None)
        if call is not None:
            call.chunks.append(lambda: _response(response))
            call.finish()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes why there is none, and what came of it."""
        call = self._calls.pop(run_id, None)
        if call is not None:
            response = kwargs.get("response")
            if isinstance(response, LLMResult) and response.generations:
                call.chunks.append(lambda: _response(response))
            call.fail(error)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _converted(messages: Sequence[BaseMessage]) -> List[Dict[str, Any]]:
    converted = convert_to_openai_messages(list(messages))
    return converted if isinstance(converted, list) else [converted]


def _request(messages: Sequence[BaseMessage], parameters: Dict[str, Any]) -> str:
    """The request in the form of Chat Completions."""
    request = {name: value for name, value in parameters.items() if not name.startswith("_")}
    if "model" not in request and "model_name" in request:
        request["model"] = request.pop("model_name")
    request["messages"] = _converted(messages)
    return _text(request)


def _response(result: LLMResult) -> Optional[str]:
    """The first reply in the form of Chat Completions."""
    generations = result.generations[0] if result.generations else []
    if not generations or not isinstance(generations[0], ChatGeneration):
        return None
    message = generations[0].message
    about = dict(getattr(message, "response_metadata", None) or {})
    counted = dict(getattr(message, "usage_metadata", None) or {})
    usage: Dict[str, Any] = {}
    if counted:
        usage = {
            "prompt_tokens": counted.get("input_tokens"),
            "completion_tokens": counted.get("output_tokens"),
            "prompt_tokens_details": {
                "cached_tokens": (counted.get("input_token_details") or {}).get("cache_read")
            },
            "completion_tokens_details": {
                "reasoning_tokens": (counted.get("output_token_details") or {}).get("reasoning")
            },
        }
    stop = about.get("finish_reason") or about.get("stop_reason")
    response: Dict[str, Any] = {
        "choices": [{"index": 0, "message": _converted([message])[0], "finish_reason": stop}],
        "usage": usage,
    }
    model = about.get("model_name") or about.get("model")
    if model is not None:
        response["model"] = model
    if getattr(message, "id", None):
        response["id"] = message.id
    return _text(response)
