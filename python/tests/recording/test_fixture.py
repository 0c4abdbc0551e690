"""Recording into the store of a test: what `docs/python.md` shows of `pactql_store`."""

from __future__ import annotations

from typing import Any

import pactql
import pytest
from pactql.testing import assert_context, assert_prefix_stable

from .conftest import Server
from .test_clients import openai_client


def test_a_call_is_in_the_store_when_it_has_ended(server: Server, pactql_store: pactql.Store) -> None:
    client = pactql.record(openai_client(server), pactql_store, session="talk")
    messages: list[Any] = [{"role": "system", "content": "Be brief."}]
    for number in range(1, 4):
        messages.append({"role": "user", "content": f"Where is order {number}?"})
        client.chat.completions.create(model="m", messages=messages)
        assert_context(pactql_store["talk"], "@t0 ^seq .cb[role='user']", count=number)
    assert_prefix_stable(pactql_store["talk"])


def test_a_store_that_is_read_only_is_not_recorded_into(server: Server, pactql_store: pactql.Store) -> None:
    client = openai_client(server)
    with pactql.Store.open(pactql_store.url, read_only=True) as store:
        session = pactql.Session.parse('{"cycle": 1, "root": {"id": "r", "children": [{"id": "^ah"}]}}')
        for write in (lambda: pactql.record(client, store), lambda: pactql.replay(session, client, store=store, change={"model": "m"})):
            with pytest.raises(pactql.StoreError, match="was opened to be read only; open it to be written"):
                write()


@pytest.mark.parametrize("session", [3, b"a"])
def test_a_session_is_named_by_a_text(server: Server, pactql_store: pactql.Store, session: Any) -> None:
    with pytest.raises(TypeError, match="`session` is a name, or a function that gives one, and not"):
        pactql.record(openai_client(server), pactql_store, session)
    with pytest.raises(TypeError, match="`session` takes a name"), pactql.session(session):
        pass
