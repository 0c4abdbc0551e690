"""Sending again what was sent: `snapshot.send(client)` and `pactql.replay(session, client)`."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._pactql import Session, Store
from .recording._call import session as named
from .recording._clients import paths_of, record
from .recording._recorder import Recorder, url_of

if TYPE_CHECKING:
    from ._reports import Parted
    from ._snapshot import Snapshot

#: What is changed of a request: members to set (`None` takes one away), or a function of the request.
Change = Mapping[str, Any] | Callable[[dict[str, Any]], dict[str, Any] | None] | None


@dataclass(frozen=True)
class Sent:
    """A call that was, or would be, sent again."""

    snapshot: Snapshot
    """The snapshot of the call as it was."""
    request: dict[str, Any]
    """What is sent."""
    response: dict[str, Any] | None
    """What came back; `None` where nothing was sent."""


@dataclass(frozen=True)
class Replay:
    """What was sent again, and what came of it."""

    calls: list[Sent]
    """The calls, in order."""
    input_tokens: int
    """How many tokens the requests have, as the session counts them."""
    output_tokens: int
    """How many tokens the answers had before, as far as the provider said it."""
    session: Session | None
    """The calls as they were recorded; `None` where nothing was sent."""
    original: Session | None = field(repr=False)
    """The calls of before."""

    def diff(self) -> Parted:
        """Where the calls of before and these part."""
        if self.session is None or self.original is None:
            raise ValueError("nothing was sent, so there is nothing to compare")
        return self.original.diff(self.session)


def replay(
    session: Session,
    client: Any,
    *,
    from_: int | str | Snapshot = -1,
    to: int | str | Snapshot = -1,
    change: Change = None,
    store: str | os.PathLike[str] | Store | None = None,
    name: str | None = None,
    dry_run: bool = False,
) -> Replay:
    """Sends the calls of a session again, from one to another (the newest, if nothing is said), and records them. Each
    is an address (`@c2`), a snapshot, or its place in the session: 0 is the oldest call, -1 the newest, as in `session[0]`.

    Each request is what was sent then, in the form of the client's API, with `change`: members to set, such as
    ``{"model": "example-2"}``, or a function that is given the request. Earlier answers in it are those of before. The calls
    are a fork of the session before the first of them, in `store` under `name` (``…/replay``), so that `diff` and `blame` know
    what both begin with. A store that does not have the session gets it, too; without a store it is in memory. A session
    that was not made of calls cannot be gone on with: then the calls are a session of their own. `diff()` of what is
    returned says where the answers part.

    It costs what the calls cost: with `dry_run` nothing is sent, and the requests and their tokens are returned.

    Raises `TypeError` without a client that can send, and `ValueError` for a request without a model.
    """
    form = _form(session, client)
    first, last = _index(session, from_, "from_"), _index(session, to, "to")
    if first > last:
        raise ValueError(f"`from_` is call {first}, after `to`, which is call {last}")
    calls = [Sent(snapshot, _request(snapshot, form, change), None) for snapshot in session[first : last + 1]]
    sent = sum(int(call.snapshot.session.tokens(call.snapshot.address).snapshots[0]["tokens"]) for call in calls)
    said = sum(call.snapshot.usage.get("output_tokens", 0) for call in calls)
    if dry_run:
        return Replay(calls, sent, said, None, None)
    name = name or f"{session.name or 'session'}/replay"
    with tempfile.TemporaryDirectory() as folder:
        place: Any = Path(folder) / "replay.db" if store is None else store
        url = url_of(place)
        is_fork = first > 0 and _fork(url, session, first, name)
        with Recorder(place) as recorder:
            recorded: Any = record(client, recorder)
            with named(name):
                calls = [
                    Sent(call.snapshot, call.request, _send(recorded, form, call.request)) for call in calls
                ]
            if not recorder.flush(60) or recorder.failures:
                raise RuntimeError(f"the calls were sent, and not recorded: {recorder.last_error}")
        if is_fork:
            is_fork = _went_on(url, first, name)
        with Store.open(url, read_only=True) as opened:
            made = Session.parse(opened[name].dumps(full=True), name=name)
    lines = session.dumps(full=True).splitlines()
    before = Session.parse("\n".join(lines[0 if is_fork else first : last + 1]), name=session.name)
    return Replay(calls, sent, said, made, before)


def _fork(url: str | os.PathLike[str], session: Session, first: int, name: str) -> bool:
    """Forks a session before one of its calls. Returns whether that was possible."""
    original = session.name or "session"
    with Store.open(url) as store:
        if name in store or name == original:
            return False
        if original not in store:
            store.add(original, session)
        elif _lines(store[original], first) != _lines(session, first):
            return False
        store.fork(original, session[first - 1].address, name)
    return True


def _lines(session: Session, count: int) -> list[str]:
    return session.dumps(full=True).splitlines()[:count]


def _went_on(url: str | os.PathLike[str], first: int, name: str) -> bool:
    """Whether the calls went on with the fork. If it was not made of calls, they are a session of their own, which gets the name."""
    with Store.open(url) as store:
        if len(store[name]) > first:
            return True
        del store[name]
        store.rename(f"{name}/2", name)
    return False


def _index(session: Session, place: int | str | Snapshot, name: str) -> int:
    """Where a call is in its session, counted from 0."""
    count = len(session)
    if isinstance(place, int):
        if -count <= place < count:
            return place % count
        raise IndexError(f"`{name}` is {place}, and the session has {count} snapshots: 0 is the oldest, -1 the newest")
    found = session.select(f"{place} *").cycles if isinstance(place, str) else [getattr(place, "cycle", None)]
    if len(found) != 1 or found[0] not in session.cycles:
        message = f"`{name}` is a number, an address such as '@c2', or a snapshot of the session, and not {place!r}"
        raise ValueError(message)
    return session.cycles.index(found[0])


def _form(session: Session, client: Any) -> str:
    """The API that the requests are sent to."""
    apis = [api for _, api in paths_of(client)]
    if hasattr(getattr(client, "_client", None), "aclose"):
        raise TypeError(f"expected a client that waits, found `{type(client).__qualname__}`, which is asynchronous")
    if "openai-responses" in apis and len(session):
        request = session[-1].request
        return "openai-responses" if isinstance(request, dict) and "input" in request else "openai"
    return apis[0]


def _request(snapshot: Snapshot, form: Any, change: Change) -> dict[str, Any]:
    """What is sent of a snapshot."""
    found = json.loads(snapshot.session.render(form, snapshot.address))
    request: dict[str, Any] = found if isinstance(found, dict) else {"messages": found}
    # The whole answer is waited for.
    if request.get("stream"):
        for part in ("stream", "stream_options"):
            request.pop(part, None)
    if callable(change):
        changed = change(copy.deepcopy(request))
        if not isinstance(changed, dict):
            raise TypeError("the function `change` returns the request")
        request = changed
    elif change is not None:
        request.update(change)
        request = {name: value for name, value in request.items() if value is not None or name not in change}
    if not request.get("modelId" if form == "bedrock" else "model"):
        name = "modelId" if form == "bedrock" else "model"
        raise ValueError(f"the snapshot does not say which model was called: `change={{{name!r}: …}}` does")
    return request


def _send(client: Any, form: str, request: dict[str, Any]) -> dict[str, Any]:
    """Sends a request, and gives the answer as the API does."""
    rest = dict(request)
    if form == "bedrock":
        answer: dict[str, Any] = client.converse(**rest)
        return answer
    model = rest.pop("model")
    if form == "openai":
        made = client.chat.completions.create(model=model, messages=rest.pop("messages"), extra_body=rest)
    elif form == "openai-responses":
        made = client.responses.create(model=model, input=rest.pop("input", []), extra_body=rest)
    elif form == "anthropic":
        rest.setdefault("max_tokens", 4096)
        made = client.messages.create(
            model=model, messages=rest.pop("messages"), max_tokens=rest.pop("max_tokens"), extra_body=rest
        )
    else:
        contents = rest.pop("contents")
        config = {**rest.pop("generationConfig", {}), **rest}
        made = client.models.generate_content(model=model, contents=contents, config=config or None)
    whole: dict[str, Any] = made.model_dump(mode="json", exclude_unset=True)
    return whole
