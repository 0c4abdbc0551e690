"""The pytest plugin: the fixture `pactql_store`. pytest finds it by its entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from . import Store


@pytest.fixture
def pactql_store(tmp_path: Any) -> Iterator[Store]:
    """A new store of the test, which is closed after it: `pactql.record(client, pactql_store)` records into it, and each
    call is in it when the call has ended."""
    import pactql

    from .recording._recorder import at_once

    with pactql.Store.open(tmp_path / "pactql.db") as store, at_once(store.url):
        yield store
