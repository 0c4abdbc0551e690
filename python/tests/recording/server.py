"""A server process that speaks Chat Completions, Responses and Messages on the loopback.

What it does is in the text of the last message: words such as `stream-cut`, `status-500`, `slow`, `tools`. It keeps the
bodies of all requests, and gives them back at `GET /requests`.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Dict, Iterator, List, Tuple


class State:
    """What the server has seen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests: List[Dict[str, Any]] = []
        self.failed: Dict[str, int] = {}

    def note(self, path: str, body: Any) -> int:
        with self.lock:
            self.requests.append({"path": path, "body": body})
            return len(self.requests)

    def count(self, key: str) -> int:
        """How often a request of this key was made before."""
        with self.lock:
            before = self.failed.get(key, 0)
            self.failed[key] = before + 1
            return before


STATE = State()

#: What the page on recording asks.
REPLIES = (
    ("Where is my refund?", "On its way."),
    ("how long does it take?", "Five working days."),
    ("Where is order 7?", "At your door."),
    ("ada@example.org", "Hello, Ada."),
    ("Summarize the first", "A refund."),
    ("Summarize the second", "A delay."),
)


def said(body: Any) -> str:
    """All that the last message says, as text."""
    messages = body.get("messages", body.get("input", body.get("contents", "")))
    return json.dumps(messages[-1] if isinstance(messages, list) and messages else messages)


def pieces(text: str) -> List[str]:
    """A text in pieces of a few letters."""
    return [text[at : at + 5] for at in range(0, len(text), 5)]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        with STATE.lock:
            body = json.dumps(STATE.requests).encode()
        self.reply(200, body, {"content-type": "application/json"})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        number = STATE.note(self.path, body)
        try:
            self.answer(body, said(body), number)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, body: Any, text: str, number: int) -> None:
        for word in text.replace('"', " ").split():
            if word.startswith("status-"):
                return self.error(int(word.removeprefix("status-")))
            if word == "once-529" and STATE.count(json.dumps(body)) == 0:
                return self.error(529)
        if "hang-up" in text:
            self.connection.shutdown(2)
            return None
        if "slow" in text:
            time.sleep(3)
        reply = next((reply for asked, reply in REPLIES if asked in text), None)
        reply = reply or f"Reply {number} to “{text[:20]}”."
        if self.path.endswith("/chat/completions"):
            whole, events = chat(body, text, reply, number)
        elif self.path.endswith("/responses"):
            whole, events = responses(body, text, reply, number)
        elif "enerateContent" in self.path:
            whole, events = gemini(reply)
            if ":stream" in self.path:
                return self.stream(events, text)
        elif self.path.endswith("/converse"):
            whole, events = converse(reply), iter(())
        elif self.path.endswith("/tickets/messages"):
            # Of an API that has nothing to do with models.
            whole, events = {"ok": True}, iter(())
        else:
            whole, events = messages(body, text, reply, number)
        if body.get("stream"):
            return self.stream(events, text)
        data = json.dumps(whole).encode()
        headers = {"content-type": "application/json", "x-request-id": f"req-{number}"}
        if "gzip" in text:
            data = gzip.compress(data)
            headers["content-encoding"] = "gzip"
        return self.reply(200, data, headers)

    def error(self, status: int) -> None:
        error = {"type": "error", "error": {"type": "server_error", "message": f"No, {status}."}}
        headers = {"content-type": "application/json", "retry-after-ms": "1"}
        self.reply(status, json.dumps(error).encode(), headers)

    def reply(self, status: int, data: bytes, headers: Dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events: Iterator[str], text: str) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("request-id", "req-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at, event in enumerate(events):
            if "stream-cut" in text and at == 4:
                self.connection.shutdown(2)
                return
            if "stream-slow" in text:
                time.sleep(0.05)
            data = event.encode()
            # In pieces that end in the middle of lines and letters.
            for part in (data[: len(data) // 2], data[len(data) // 2 :]):
                if part:
                    self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                    self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def event(data: Any) -> str:
    kind = data.get("type") if isinstance(data, dict) else None
    head = f"event: {kind}\n" if kind else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def chat(body: Any, text: str, reply: str, number: int) -> Tuple[Any, Iterator[str]]:
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": "look_up", "arguments": '{"order": 42, "deep": {"b": 1, "a": 2}}'},
    }
    message: Dict[str, Any] = {"role": "assistant", "content": reply, "refusal": None}
    stop = "stop"
    if "tools" in text:
        message, stop = {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 7,
        "total_tokens": 27,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    around = {"id": f"chatcmpl-{number}", "created": 1_700_000_000, "model": body.get("model", "m")}
    whole = {
        **around,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": stop, "logprobs": None}],
        "usage": usage,
    }

    def events() -> Iterator[str]:
        def chunk(delta: Any, finish: Any = None) -> str:
            choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
            return event({**around, "object": "chat.completion.chunk", "choices": [choice]})

        yield chunk({"role": "assistant", "content": None if "tools" in text else ""})
        if "tools" in text:
            head = {**call, "index": 0, "function": {"name": "look_up", "arguments": ""}}
            yield chunk({"tool_calls": [head]})
            for piece in pieces(call["function"]["arguments"]):  # type: ignore[index]
                yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
        else:
            for piece in pieces(reply):
                yield chunk({"content": piece})
        yield chunk({}, stop)
        if (body.get("stream_options") or {}).get("include_usage"):
            last = {**around, "object": "chat.completion.chunk", "choices": [], "usage": usage}
            yield event(last)
        yield "data: [DONE]\n\n"

    return whole, events()


def responses(body: Any, text: str, reply: str, number: int) -> Tuple[Any, Iterator[str]]:
    item: Dict[str, Any] = {
        "type": "message",
        "id": f"msg_{number}",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": reply, "annotations": []}],
    }
    if "tools" in text:
        item = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": "look_up",
            "arguments": '{"order": 42}',
            "status": "completed",
        }
    whole: Dict[str, Any] = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": body.get("model", "m"),
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 20,
            "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
            "output_tokens": 7,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 27,
        },
    }

    def events() -> Iterator[str]:
        numbers = iter(range(1_000))

        def of(kind: str, **more: Any) -> str:
            return event({"type": kind, "sequence_number": next(numbers), **more})

        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield of("response.created", response=begun)
        where = {"output_index": 0, "item_id": item["id"]}
        if item["type"] == "message":
            empty = {**item, "status": "in_progress", "content": []}
            yield of("response.output_item.added", output_index=0, item=empty)
            part = {"type": "output_text", "text": "", "annotations": []}
            yield of("response.content_part.added", **where, content_index=0, part=part)
            for piece in pieces(reply):
                more = {**where, "content_index": 0, "delta": piece, "logprobs": []}
                yield of("response.output_text.delta", **more)
            done = {**where, "content_index": 0, "text": reply, "logprobs": []}
            yield of("response.output_text.done", **done)
            part = item["content"][0]
            yield of("response.content_part.done", **where, content_index=0, part=part)
        else:
            empty = {**item, "status": "in_progress", "arguments": ""}
            yield of("response.output_item.added", output_index=0, item=empty)
            for piece in pieces(item["arguments"]):
                yield of("response.function_call_arguments.delta", **where, delta=piece)
        yield of("response.output_item.done", output_index=0, item=item)
        yield of("response.completed", response=whole)

    return whole, events()


def messages(body: Any, text: str, reply: str, number: int) -> Tuple[Any, Iterator[str]]:
    blocks: List[Dict[str, Any]] = [{"type": "text", "text": reply}]
    stop = "end_turn"
    if "tools" in text:
        thinking = {"type": "thinking", "thinking": "An order.", "signature": "c2ln"}
        use = {
            "type": "tool_use",
            "id": f"toolu_{number}",
            "name": "look_up",
            "input": {"order": 42, "deep": {"b": 1, "a": 2}},
        }
        blocks, stop = [thinking, *blocks, use], "tool_use"
    usage = {"input_tokens": 16, "cache_read_input_tokens": 4, "output_tokens": 7}
    whole: Dict[str, Any] = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "m"),
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
    }

    def events() -> Iterator[str]:
        begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
        yield event({"type": "message_start", "message": begun})
        for at, block in enumerate(blocks):
            kind = block["type"]
            empty = {"text": "", "thinking": "", "signature": "", "input": {}}
            start = {name: empty.get(name, value) for name, value in block.items()}
            yield event({"type": "content_block_start", "index": at, "content_block": start})

            def delta(at: int = at, **more: Any) -> str:
                return event({"type": "content_block_delta", "index": at, "delta": more})

            if kind == "text":
                for piece in pieces(block["text"]):
                    yield delta(type="text_delta", text=piece)
            elif kind == "thinking":
                yield delta(type="thinking_delta", thinking=block["thinking"])
                yield delta(type="signature_delta", signature=block["signature"])
            else:
                for piece in pieces(json.dumps(block["input"])):
                    yield delta(type="input_json_delta", partial_json=piece)
            yield event({"type": "content_block_stop", "index": at})
            yield event({"type": "ping"})
        last = {"stop_reason": stop, "stop_sequence": None}
        yield event({"type": "message_delta", "delta": last, "usage": {"output_tokens": 7}})
        yield event({"type": "message_stop"})

    return whole, events()


def gemini(reply: str) -> Tuple[Any, Iterator[str]]:
    usage = {"promptTokenCount": 20, "candidatesTokenCount": 7, "totalTokenCount": 27}

    def piece(text: str, **more: Any) -> Any:
        content = {"role": "model", "parts": [{"text": text}]}
        return {"candidates": [{"index": 0, "content": content, **more}], "modelVersion": "g-001"}

    whole = {**piece(reply, finishReason="STOP"), "usageMetadata": usage}

    def events() -> Iterator[str]:
        *first, last = pieces(reply)
        for text in first:
            yield event(piece(text))
        yield event({**piece(last, finishReason="STOP"), "usageMetadata": usage})

    return whole, events()


def converse(reply: str) -> Any:
    return {
        "output": {"message": {"role": "assistant", "content": [{"text": reply}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 20, "outputTokens": 7, "totalTokens": 27},
        "metrics": {"latencyMs": 3},
    }


class Quiet(ThreadingHTTPServer):
    """One that says nothing of clients that hang up."""

    def handle_error(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    # It ends with whoever started it.
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
