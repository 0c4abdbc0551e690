"""Sending again what was sent."""

from __future__ import annotations

from typing import Any

import openai
import pactql
import pytest

from .conftest import Server, sent
from .test_clients import TOOL, anthropic_client, openai_client


@pytest.fixture
def talk(server: Server, path: str) -> pactql.Session:
    """A conversation of two calls."""
    client = pactql.record(openai_client(server), path, session="talk")
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is my refund?"}]
    for more in ("how long does it take?", None):
        reply = client.chat.completions.create(model="m", messages=messages, tools=[TOOL], temperature=0.2, stream=False)
        messages += [{"role": "assistant", "content": reply.choices[0].message.content}, {"role": "user", "content": more}]
    assert pactql.recorder(client).flush(30)
    server.mark()
    return pactql.Store.open(path)["talk"]


def test_what_was_sent_is_sent(server: Server, path: str, talk: pactql.Session) -> None:
    before = [snapshot.request for snapshot in talk]
    made = pactql.replay(talk, openai_client(server), from_=0, store=path)
    assert [call.request for call in made.calls] == before
    assert server.requests() == [call.request for call in made.calls]
    assert made.session is not None and made.session.name == "talk/replay" and len(made.session) == 2
    assert sent(path, "openai")["talk/replay"] == server.requests()
    # The server gives the same answers, so nothing parts.
    assert made.diff().get("parted") is None
    assert made.calls[0].response is not None and made.calls[0].response["choices"][0]["message"]["content"] == "On its way."


def test_one_thing_is_changed(server: Server, path: str, talk: pactql.Session) -> None:
    client = openai_client(server)
    made = talk[-1].send(client, change={"model": "other", "temperature": None})
    [request] = server.requests()
    assert request["model"] == "other" and "temperature" not in request and request["messages"] == talk[-1].messages("openai")

    def ask(request: dict[str, Any]) -> dict[str, Any]:
        request["messages"][-1]["content"] = "Where is order 7?"
        return request

    made = talk[-1].send(client, change=ask)
    assert made.session is not None and made.session[-1].reply[0].text == "At your door."
    assert made.diff().get("parted") is not None
    assert "talk/replay" not in sent(path, "openai")


def test_nothing_is_sent_to_say_what_it_costs(server: Server, talk: pactql.Session) -> None:
    made = pactql.replay(talk, openai_client(server), from_=0, dry_run=True)
    assert server.requests() == [] and made.session is None and len(made.calls) == 2
    assert made.input_tokens > 20 and made.output_tokens == 14
    with pytest.raises(ValueError, match="nothing was sent"):
        made.diff()


def test_another_provider(server: Server, talk: pactql.Session) -> None:
    made = talk[0].send(anthropic_client(server), change={"max_tokens": 9})
    [request] = server.requests()
    assert request["max_tokens"] == 9 and request["system"] and request["messages"][0]["role"] == "user"
    assert made.session is not None and made.session[-1].reply[0].text == "On its way."


def test_what_cannot_be_sent_is_refused(server: Server, talk: pactql.Session, session: pactql.Session) -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match="expected a client of"):
        pactql.replay(talk, nothing)
    with pytest.raises(TypeError, match="asynchronous"):
        pactql.replay(talk, openai.AsyncOpenAI(api_key="k"))
    with pytest.raises(ValueError, match="which model was called: `change="):
        pactql.replay(session, openai_client(server))
    with pytest.raises(ValueError, match="after `to`"):
        pactql.replay(talk, openai_client(server), from_=-1, to=0)
    assert server.requests() == []
