"""One snapshot of a session: what the model was sent, what it answered, and what that used.

Everything is read from the session when it is asked for, by its selectors and reports; a snapshot keeps nothing but
where it is.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._errors import SelectorError

if TYPE_CHECKING:
    from . import Node, Selection, Session, Store
    from ._replay import Change, Replay
    from ._reports import ShownSnapshot

_LISTS = ("messages", "input", "contents")
"""The member of a request that has its messages, in the forms of the providers."""


def _refuse_time(selector: str, address: str, error: SelectorError) -> None:
    """Says of a selector that begins with a time that its snapshot is chosen already."""
    time, _, rest = selector.strip().partition(" ")
    if not time.startswith("@"):
        return
    start = selector.index(time)
    message = f"the snapshot is chosen already, {address}, and a selector of it has no time"
    spans = [(start, start + len(time), "leave this out")]
    help = f"write `{rest.strip()}`" if rest.strip() else "leave the time out"
    raise SelectorError(message, code=error.code, text=selector, spans=spans, help=help) from None


class Snapshot:
    """A committed snapshot of a session: `session[-1]` is the newest.

    >>> newest = session[-1]
    >>> newest.cycle, newest.model, len(newest.nodes)
    (6, None, 31)
    >>> newest.select(".cb[role='user']").ids()
    ['cb:u2', 'cb:i1', 'cb:u3']
    """

    def __init__(self, session: Session, cycle: int) -> None:
        self.session = session
        self.cycle = cycle

    @property
    def address(self) -> str:
        """Its address in selectors: `@c3`."""
        return f"@c{self.cycle}"

    def select(self, selector: str, /, **params: Any) -> Selection:
        """What a selector without a time finds in it."""
        try:
            return self.session.select(f"{self.address} {selector}", params)
        except SelectorError as error:
            _refuse_time(selector, self.address, error)
            # The same mistake in what was written, which has no address.
            self.session.select(selector, params)
            raise

    @property
    def nodes(self) -> Selection:
        """All of its nodes, in document order."""
        return self.select("*")

    @cached_property
    def _shown(self) -> ShownSnapshot:
        return self.session.show(self.address)["snapshots"][0]

    @property
    def request(self) -> Any:
        """What was sent, as the provider's form has it."""
        return json.loads(self.session.render(None, self.address))

    def messages(self, provider: Any = None) -> list[Any]:
        """The messages of the request, in the form of a provider."""
        request = json.loads(self.session.render(provider, self.address))
        if isinstance(request, list):
            return request
        found: list[Any] = next((request[name] for name in _LISTS if name in request), [])
        return found

    @property
    def reply(self) -> list[Node]:
        """The blocks that the model answered with."""
        ids = [block["id"] for block in self._shown["blocks"] if block["reply"]]
        return list(self.select(".cb[id=$ids]", ids=ids)) if ids else []

    def send(
        self,
        client: Any,
        /,
        *,
        change: Change = None,
        store: str | os.PathLike[str] | Store | None = None,
        name: str | None = None,
        dry_run: bool = False,
    ) -> Replay:
        """Sends the request again, or with `change`, and records it: `pactql.replay` of this snapshot."""
        from ._replay import replay

        return replay(
            self.session, client, from_=self, to=self, change=change, store=store, name=name, dry_run=dry_run
        )

    @property
    def model(self) -> str | None:
        """The model that was called."""
        return self._shown["call"].get("model")

    @property
    def usage(self) -> dict[str, int]:
        """The provider's counts of tokens, as far as it gave them."""
        call = self._shown["call"]
        return {name: count for name, count in call.items() if name.endswith("_tokens") and isinstance(count, int)}

    @property
    def stop_reason(self) -> str | None:
        """Why the model stopped."""
        return self._shown["call"].get("stop_reason")

    @property
    def request_id(self) -> str | None:
        """The provider's id of the call, if the log or the recorder has it."""
        used = json.loads(self.session._usage(self.cycle) or "{}")
        found = used.get("request_id")
        return found if isinstance(found, str) else None

    @property
    def latency(self) -> timedelta | None:
        """How long the call took, if the session says it."""
        took = self._shown["call"].get("latency_ms")
        return None if took is None else timedelta(milliseconds=took)

    @property
    def time(self) -> datetime | None:
        """When it was made, if the session says it."""
        time = self._shown.get("time")
        return datetime.fromisoformat(time.replace("Z", "+00:00")) if time else None

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, Snapshot):
            return NotImplemented
        return self.session is other.session and self.cycle == other.cycle

    def __hash__(self) -> int:
        return hash((id(self.session), self.cycle))

    def __repr__(self) -> str:
        return f"<Snapshot {self.address} of {self.session!r}>"
