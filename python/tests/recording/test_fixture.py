"""Recording into the store of a test: what `docs/python.md` shows of `pactql_store`."""

from __future__ import annotations

from typing import Any

import pactql
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
