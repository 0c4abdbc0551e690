"""Checkpoints of LangGraph in a store: `PactSaver`.

    from pactql.langgraph import PactSaver
    graph = builder.compile(checkpointer=PactSaver("agent.db"))

The messages of a checkpoint become a snapshot of the session that is named as the thread, so the history of a thread answers
selectors. One that ends with a reply is a call of the model; the others are none, and no report counts them. All of the checkpoint is kept beside it as LangGraph serializes it, in tables of its own of the same SQLite file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, List, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from langgraph.checkpoint.serde.base import SerializerProtocol

from ._errors import SessionExists, SessionNotFound, StoreError
from ._pactql import Store, _Recorder
from .langchain import _request, _response
from .recording._recorder import url_of

__all__ = ["PactSaver"]

_TABLES = """
create table if not exists langgraph_checkpoints (
    thread text, ns text, id text, parent text, run text, kind text, value blob, about_kind text, about blob,
    primary key (thread, ns, id));
create table if not exists langgraph_values (
    thread text, ns text, channel text, version text, kind text, value blob,
    primary key (thread, ns, channel, version));
create table if not exists langgraph_writes (
    thread text, ns text, id text, task text, at integer, path text, channel text, kind text, value blob,
    primary key (thread, ns, id, task, at));
"""
_ALL = ("langgraph_checkpoints", "langgraph_values", "langgraph_writes")
_BUSY_SECONDS = 30.0


class PactSaver(BaseCheckpointSaver[str]):
    """A checkpointer over a store: a path to a SQLite file, or a `Store` that is one.

    `messages` is the channel that has the messages of a graph. Threads and processes may share a store.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | Store,
        *,
        messages: str = "messages",
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._path = url_of(store)
        if "://" in self._path:
            raise ValueError("`PactSaver` keeps checkpoints in a SQLite file, and this store is a server")
        self._path = self._path.removeprefix("sqlite:")
        self._messages = messages
        self._lock = threading.RLock()
        #: Makes the file a store, if it is none yet.
        self._recorder = _Recorder(self._path)
        self._database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        with self._lock:
            self._database.executescript(_TABLES)

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> PactSaver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def store(self) -> Store:
        """The store with the sessions of the threads, opened once more."""
        return Store.open(self._path)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("begin immediate")
            try:
                yield self._database
            except BaseException:
                self._database.execute("rollback")
                raise
            self._database.execute("commit")

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._database.execute(statement, values).fetchall()

    # Writing.

    def put(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """Keeps a checkpoint, and its messages as a snapshot if they are new."""
        thread, ns, parent = _place(config)
        rest: dict[str, Any] = dict(checkpoint)
        values = rest.pop("channel_values")
        about = get_checkpoint_metadata(config, metadata)
        run: Any = about.get("run_id")
        with self._transaction() as database:
            for channel, version in new_versions.items():
                kind, value = self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
                database.execute(
                    "insert or replace into langgraph_values values (?,?,?,?,?,?)",
                    (thread, ns, channel, str(version), kind, value),
                )
            database.execute(
                "insert or replace into langgraph_checkpoints values (?,?,?,?,?,?,?,?,?)",
                (thread, ns, checkpoint["id"], parent, run, *self.serde.dumps_typed(rest), *self.serde.dumps_typed(about)),
            )
        messages = values.get(self._messages)
        if self._messages in new_versions and isinstance(messages, list):
            self._record(thread if not ns else f"{thread}/{ns}", messages, checkpoint["id"])
        return _config(thread, ns, checkpoint["id"])

    def _record(self, session: str, messages: list[Any], checkpoint: str) -> None:
        """Makes messages a snapshot of a session."""
        if not messages or not all(isinstance(message, BaseMessage) for message in messages):
            return
        *sent, last = messages
        is_reply = last.type in ("ai", "AIMessageChunk")
        request = _request(sent if is_reply else messages, {})
        response = _response(last) if is_reply else None
        now = time.time_ns()
        # A checkpoint without a reply is no call, and has nothing of one.
        id = checkpoint if is_reply else None
        row = ("openai", session, request, response, None, False, (now, now), None, id, (), True, is_reply)
        with self._lock:
            [why] = self._recorder.record([row])
        if why is not None:
            raise StoreError(why)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keeps what a task has written since a checkpoint."""
        thread, ns, id = _place(config)
        with self._transaction() as database:
            for at, (channel, value) in enumerate(writes):
                number = WRITES_IDX_MAP.get(channel, at)
                # What a task writes is kept once; its errors and interrupts are the last ones.
                verb = "insert or ignore" if number >= 0 else "insert or replace"
                database.execute(
                    f"{verb} into langgraph_writes values (?,?,?,?,?,?,?,?,?)",
                    (thread, ns, id, task_id, number, task_path, channel, *self.serde.dumps_typed(value)),
                )

    # Reading.

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of a configuration; without an id, the newest of its thread."""
        thread, ns, id = _place(config)
        found = self._rows(
            "select * from langgraph_checkpoints where thread = ? and ns = ? and (? is null or id = ?) order by id desc limit 1",
            (thread, ns, id, id),
        )
        return self._tuple(found[0]) if found else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, newest first; `filter` compares metadata."""
        place = (config or {}).get("configurable", {})
        asked = {"thread": place.get("thread_id"), "ns": place.get("checkpoint_ns"), "id": place.get("checkpoint_id")}
        words = [f"{name} = ?" for name, value in asked.items() if value is not None]
        values = [value for value in asked.values() if value is not None]
        if before is not None and (last := get_checkpoint_id(before)):
            words.append("id < ?")
            values.append(last)
        where = f"where {' and '.join(words)}" if words else ""
        left = limit
        for row in self._rows(f"select * from langgraph_checkpoints {where} order by id desc", values):
            if left is not None and left <= 0:
                return
            about = self.serde.loads_typed((row[7], row[8]))
            if filter and any(about.get(name) != value for name, value in filter.items()):
                continue
            left = None if left is None else left - 1
            yield self._tuple(row)

    def _tuple(self, row: Any) -> CheckpointTuple:
        thread, ns, id, parent, _, kind, value, about_kind, about = row
        checkpoint = self.serde.loads_typed((kind, value))
        values = {}
        for channel, version in checkpoint["channel_versions"].items():
            # One look-up each: the values of a thread grow with its checkpoints.
            for kind, value in self._rows(
                "select kind, value from langgraph_values where thread = ? and ns = ? and channel = ? and version = ?",
                (thread, ns, channel, str(version)),
            ):
                if kind != "empty":
                    values[channel] = self.serde.loads_typed((kind, value))
        writes = self._rows(
            "select task, channel, kind, value from langgraph_writes where thread = ? and ns = ? and id = ? "
            "order by path, task, at",
            (thread, ns, id),
        )
        return CheckpointTuple(
            config=_config(thread, ns, id),
            checkpoint=cast(Checkpoint, {**checkpoint, "channel_values": values}),
            metadata=self.serde.loads_typed((about_kind, about)),
            parent_config=_config(thread, ns, parent) if parent else None,
            pending_writes=[(task, channel, self.serde.loads_typed((kind, value))) for task, channel, kind, value in writes],
        )

    # Threads.

    def delete_thread(self, thread_id: str) -> None:
        """Deletes the checkpoints of a thread and its sessions."""
        names = {thread_id, *self._sessions(thread_id)}
        with self._transaction() as database:
            for table in _ALL:
                database.execute(f"delete from {table} where thread = ?", (thread_id,))
        with self.store as store:
            for name in names:
                try:
                    store.delete(name)
                except SessionNotFound:
                    continue

    def _sessions(self, thread: str) -> List[str]:
        found = self._rows("select distinct ns from langgraph_checkpoints where thread = ?", (thread,))
        return [f"{thread}/{ns}" if ns else thread for (ns,) in found]

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs. What their messages were stays in the sessions."""
        for run in run_ids:
            for thread, ns, id in self._rows("select thread, ns, id from langgraph_checkpoints where run = ?", (run,)):
                self._delete(thread, ns, [id])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, and its sessions."""
        with self._transaction() as database:
            for table in _ALL:
                columns = [row[1] for row in database.execute(f"pragma table_info({table})")]
                rest = ", ".join(columns[1:])
                database.execute(
                    f"insert or replace into {table} (thread, {rest}) select ?, {rest} from {table} where thread = ?",
                    (target_thread_id, source_thread_id),
                )
        with self.store as store:
            for name in self._sessions(source_thread_id):
                try:
                    store.fork(name, "@t0", target_thread_id + name.removeprefix(source_thread_id))
                except (SessionNotFound, SessionExists):
                    continue

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keeps the newest checkpoint of each thread and namespace (`keep_latest`), with those before it that the values of its
        channels are made of; or nothing (`delete`)."""
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"a strategy is 'keep_latest' or 'delete', and not {strategy!r}")
        for thread in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread)
                continue
            newest = self._rows("select ns, max(id) from langgraph_checkpoints where thread = ? group by ns", (thread,))
            for ns, id in newest:
                kept = self._needed(thread, ns, id)
                every = self._rows("select id from langgraph_checkpoints where thread = ? and ns = ?", (thread, ns))
                self._delete(thread, ns, [id for (id,) in every if id not in kept])

    def _needed(self, thread: str, ns: str, id: str) -> set[str]:
        """A checkpoint, and those before it back to one that has a value of each channel of which it has none itself and to
        which they have written."""
        kept = {id}
        found = self.get_tuple(_config(thread, ns, id))
        missing = set(found.checkpoint["channel_versions"]) - set(found.checkpoint["channel_values"]) if found else set()
        before: List[str] = []
        while found is not None and found.parent_config is not None and missing:
            found = self.get_tuple(found.parent_config)
            if found is None:
                break
            before.append(found.checkpoint["id"])
            if missing & {channel for _, channel, _ in found.pending_writes or ()}:
                kept.update(before)
            missing -= set(found.checkpoint["channel_values"])
        return kept

    def _delete(self, thread: str, ns: str, ids: List[str]) -> None:
        with self._transaction() as database:
            for id in ids:
                for table in ("langgraph_checkpoints", "langgraph_writes"):
                    database.execute(f"delete from {table} where thread = ? and ns = ? and id = ?", (thread, ns, id))

    # For asynchronous graphs: the same in a thread.

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> RunnableConfig:
        """As `put`."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """As `put_writes`."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The version after one, which sorts after it as a text."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{os.urandom(4).hex()}"


def _place(config: RunnableConfig) -> tuple[str, str, Any]:
    """The thread, the namespace, and the id of a checkpoint, if there is one."""
    place = config["configurable"]
    return str(place["thread_id"]), place.get("checkpoint_ns", ""), place.get("checkpoint_id")


def _config(thread: str, ns: str, id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": id}}
