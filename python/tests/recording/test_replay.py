"""Sending again what was sent."""

from __future__ import annotations

import json
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


def test_calls_are_named_by_place_and_by_address(server: Server, talk: pactql.Session) -> None:
    client = openai_client(server)
    for first in (0, -2, "@c1", "@t-1", talk[0]):
        assert len(pactql.replay(talk, client, from_=first, dry_run=True).calls) == 2
    with pytest.raises(IndexError, match="`from_` is 99, and the session has 2 snapshots: 0 is the oldest, -1 the newest"):
        pactql.replay(talk, client, from_=99, dry_run=True)
    with pytest.raises(pactql.SnapshotNotFound, match="@c9"):
        pactql.replay(talk, client, to="@c9", dry_run=True)
    with pytest.raises(ValueError, match="`to` is a number, an address such as '@c2', or a snapshot of the session"):
        pactql.replay(talk, client, to="@*", dry_run=True)


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


def test_it_is_a_fork(server: Server, path: str, talk: pactql.Session) -> None:
    made = talk[-1].send(openai_client(server), change={"model": "other"}, store=path)
    assert made.session is not None and len(made.session) == 2 and len(made.calls) == 1
    with pactql.Store.open(path, read_only=True) as store:
        [info] = store.sessions("talk/replay")
        assert info.parent == "talk" and sorted(store) == ["talk", "talk/replay"]
        fork = store["talk/replay"]
        # What both begin with is the same nodes, and came when it came.
        assert fork.select("@c1 *").ids() == talk.select("@c1 *").ids()
        first = talk.select("@c1 .cb[role='user']").ids()[0]
        assert fork.blame(first)["events"] == talk.blame(first)["events"]
        assert fork[-1].request["model"] == "other" and fork[0].request == talk[0].request
    diff = made.diff()
    assert diff["equal"] == 1 and diff.get("parted") is not None
    # So it is without a store.
    made = talk[-1].send(openai_client(server), change={"model": "other"})
    assert made.session is not None and made.diff()["equal"] == 1
    # What was not made of calls cannot be gone on with.
    with pactql.Store.open(path) as store:
        with store.write("written") as context:
            for text in ("Hello", "Hello again"):
                context.append("user", text)
                context.reply("Hi")
                context.commit()
        written = store["written"]
    made = written[-1].send(openai_client(server), change={"model": "m"}, store=path)
    assert made.session is not None and made.session.name == "written/replay" and len(made.session) == 1


def test_the_providers_id_of_a_call(talk: pactql.Session) -> None:
    ids = [snapshot.request_id for snapshot in talk]
    assert len(ids) == 2 and all(id is None or id for id in ids)
    line = {"type": "assistant", "uuid": "u1", "parentUuid": None, "sessionId": "s", "isSidechain": False, "requestId": "req_1",
            "timestamp": "2026-03-02T09:00:00Z", "message": {"id": "m1", "role": "assistant", "content": [{"type": "text", "text": "Hi"}]}}
    [logged] = pactql.import_log(json.dumps(line).encode()).sessions
    assert [snapshot.request_id for snapshot in logged] == ["req_1"]
