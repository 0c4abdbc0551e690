"""Recording LangChain and LangGraph: a callback handler.

    from pactql.langchain import RecordingHandler
    graph.invoke(inputs, config={"callbacks": [RecordingHandler("agent.db", session="support-42")]})

Each call of a chat model is a snapshot of the messages, tools and parameters that LangChain gave the model, in the form
of Chat Completions, with the reply and its usage: a reconstruction. Where `pactql.record_all` of the same store sees what
goes over the wire, that is kept in its place.
"""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, LLMResult

from ._pactql import Store
from .recording._call import Call, around, checked
from .recording._recorder import Recorder, Redact, is_off

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
        store: Union[str, "os.PathLike[str]", Store, Recorder],
        session: Union[str, Callable[[], str], None] = None,
        *,
        redact: Redact = None,
    ) -> None:
        self._session = checked(session)
        self._calls: Dict[UUID, Call] = {}
        if isinstance(store, Recorder) and store.closed and not is_off():
            raise ValueError("the recorder is closed")
        #: Records nothing where recording is turned off.
        self.recorder = store if isinstance(store, Recorder) else Recorder(store, redact=redact)

    def on_chat_model_start(
        self,
        serialized: Optional[Dict[str, Any]],
        messages: List[List[BaseMessage]],
        *,
        run_id: UUID,
        metadata: Optional[Dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        """Notes a call: copies of the messages, which the program may change later. They are converted when the call is
        written."""
        if self.recorder.closed:
            return
        try:
            session = self._session() if callable(self._session) else self._session
            if session is None:
                session = (metadata or {}).get("thread_id", "recording")
            sent, size = _kept(messages[0] if messages else ())
            parameters, more = _copied(dict(kwargs.get("invocation_params") or {}))
            call = Call(
                self.recorder, "openai", str(session), lambda: _request(_restored(sent), parameters)
            )
            call.size = size + more
            self._calls[run_id] = call
            around.set(call)
        except Exception as error:  # noqa: BLE001 - nothing may reach the caller
            self.recorder._failed(f"{type(error).__name__}: {error}")

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes the reply."""
        call = self._calls.pop(run_id, None)
        if call is not None:
            self._reply(call, response)
            call.finish()

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Notes why there is none, and what came of it."""
        call = self._calls.pop(run_id, None)
        if call is not None:
            response = kwargs.get("response")
            if isinstance(response, LLMResult):
                self._reply(call, response)
            call.fail(error, quotes=True)

    def _reply(self, call: Call, result: LLMResult) -> None:
        """Notes a copy of the first reply."""
        try:
            generations = result.generations[0] if result.generations else []
            if generations and isinstance(generations[0], ChatGeneration):
                kept, size = _kept([generations[0].message])
                call.chunks.append(lambda: _response(_restored(kept)[0]))
                call.size += size
        except Exception as error:  # noqa: BLE001 - nothing may reach the caller
            self.recorder._failed(f"{type(error).__name__}: {error}")


#: A message, and its fields as they were.
_Kept = Tuple[BaseMessage, Dict[str, Any]]


def _kept(messages: Sequence[BaseMessage]) -> Tuple[List[_Kept], int]:
    """Messages as they are now, and roughly the bytes that they hold. Copies what the program may change, and makes no
    messages of it: that takes longer."""
    size = 0
    kept = []
    for message in messages:
        fields = message.__dict__.copy()
        for name, value in fields.items():
            if isinstance(value, str):
                size += len(value)
            elif value and isinstance(value, (list, dict)):
                fields[name], more = _copied(value)
                size += more
        kept.append((message, fields))
    return kept, size


def _restored(kept: Sequence[_Kept]) -> List[BaseMessage]:
    """The messages as they were."""
    messages = []
    for message, fields in kept:
        restored = copy.copy(message)
        restored.__dict__.update(fields)
        messages.append(restored)
    return messages


def _copied(value: Any) -> Tuple[Any, int]:
    """A value whose lists and dictionaries nobody else has, and roughly the bytes of its texts."""
    if isinstance(value, str):
        return value, len(value)
    if isinstance(value, (list, tuple)):
        pairs = [_copied(part) for part in value]
        return [part for part, _ in pairs], sum(size for _, size in pairs)
    if isinstance(value, dict):
        members = {name: _copied(part) for name, part in value.items()}
        return {name: part for name, (part, _) in members.items()}, sum(
            size for _, size in members.values()
        )
    return value, 0


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


def _response(message: BaseMessage) -> str:
    """A reply in the form of Chat Completions."""
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
