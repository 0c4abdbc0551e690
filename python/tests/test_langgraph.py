"""The checkpointer of LangGraph, held to the conformance tests of the project, and its threads as sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pactql
import pytest

pytest.importorskip("langgraph.checkpoint.base", reason="the package `langgraph-checkpoint` is not installed")
pytest.importorskip("langchain_core", reason="the package `langchain-core` is not installed")

from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import empty_checkpoint
from pactql.langgraph import PactSaver


def test_conformance(tmp_path: Path) -> None:
    conformance = pytest.importorskip(
        "langgraph.checkpoint.conformance", reason="the package `langgraph-checkpoint-conformance` is not installed"
    )
    numbers = iter(range(10_000))

    @conformance.checkpointer_test(name="PactSaver")  # type: ignore[untyped-decorator]
    async def saver() -> AsyncIterator[PactSaver]:
        with PactSaver(tmp_path / f"{next(numbers)}.db") as made:
            yield made

    report = asyncio.run(conformance.validate(saver))
    report.print_report()
    # None is skipped: all capabilities are there.
    assert {name: (result.passed, result.failures) for name, result in report.results.items()} == {
        name: (True, []) for name in (
            "put", "put_writes", "get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune",
        )
    }  # fmt: skip
    assert report.passed_all()


def put(saver: PactSaver, messages: list[Any], version: int, thread: str = "talk", parent: Any = None) -> Any:
    checkpoint = empty_checkpoint()
    versions: Any = {"messages": f"{version:032}.0"}
    checkpoint["channel_versions"] = versions
    checkpoint["channel_values"] = {"messages": messages}
    config: Any = parent or {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    return saver.put(config, checkpoint, {"source": "loop", "step": version}, versions)


def test_a_thread_is_a_session(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with PactSaver(path) as saver:
        asked, said = HumanMessage("Where is it?", id="1"), AIMessage("On its way.", id="2")
        first = put(saver, [asked], 1)
        second = put(saver, [asked, said], 2, parent=first)
        put(saver, [asked, said, HumanMessage("Thanks.", id="3")], 3, parent=second)
        found = saver.get_tuple({"configurable": {"thread_id": "talk"}})
        assert found is not None and [each.content for each in found.checkpoint["channel_values"]["messages"]] == [
            "Where is it?", "On its way.", "Thanks.",
        ]  # fmt: skip
        assert found.parent_config == second
        with saver.store as store:
            talk = store["talk"]
            assert len(talk) == 3
            assert talk.select("@c1 .cb").texts() == ["Where is it?"]
            assert [node.text for node in talk[1].reply] == ["On its way."]
            assert talk.select("@t0 .cb[role='user']").texts() == ["Where is it?", "Thanks."]
            # Of three checkpoints one has a reply: one call was made.
            assert [step["made"] for step in talk.steps().rows()] == [False, True, False]
            assert talk.usage().total["requests"] == 1
            assert store.verify() == []
        saver.copy_thread("talk", "other")
        with saver.store as store:
            assert store["other"].select("@t0 .cb").texts() == talk.select("@t0 .cb").texts()
        saver.delete_thread("talk")
        assert saver.get_tuple({"configurable": {"thread_id": "talk"}}) is None
        with saver.store as store:
            assert list(store) == ["other"]
        with pytest.raises(ValueError, match="a strategy is"):
            saver.prune(["other"], strategy="some")
    # Another process goes on with it.
    with PactSaver(pactql.Store.open(path)) as saver:
        assert len(list(saver.list({"configurable": {"thread_id": "other"}}))) == 3


def test_a_graph(tmp_path: Path) -> None:
    graphs = pytest.importorskip("langgraph.graph", reason="the package `langgraph` is not installed")

    def answer(state: Any) -> Any:
        return {"messages": [AIMessage(f"Answer {len(state['messages'])}.")]}

    def forget(state: Any) -> Any:
        return {"messages": [RemoveMessage(id=state["messages"][0].id)]} if len(state["messages"]) > 3 else {}

    builder = graphs.StateGraph(graphs.MessagesState)
    builder.add_node("answer", answer)
    builder.add_node("forget", forget)
    builder.add_edge(graphs.START, "answer")
    builder.add_edge("answer", "forget")
    with PactSaver(tmp_path / "agent.db") as saver:
        graph = builder.compile(checkpointer=saver)
        config = {"configurable": {"thread_id": "talk"}}
        graph.invoke({"messages": [HumanMessage("One?")]}, config)
        asyncio.run(graph.ainvoke({"messages": [HumanMessage("Two?")]}, config))
        assert [message.content for message in graph.get_state(config).values["messages"]] == [
            "Answer 1.", "Two?", "Answer 3.",
        ]  # fmt: skip
        assert len(list(graph.get_state_history(config))) > 5
        with saver.store as store:
            assert store["talk"].select("@t0 .cb").texts() == ["Answer 1.", "Two?", "Answer 3."]
            assert store["talk"].select("@t-1 .cb").texts() == ["One?", "Answer 1.", "Two?", "Answer 3."]
            assert store.verify() == []


def test_stores_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in a SQLite file"):
        PactSaver("postgres://nowhere/x")
    with pytest.raises(pactql.InputMissing, match="there is no directory"):
        PactSaver(tmp_path / "missing" / "agent.db")
    pactql.Store.open(tmp_path / "agent.db").close()
    with pactql.Store.open(tmp_path / "agent.db", read_only=True) as store:
        with pytest.raises(pactql.StoreError, match="read only"):
            PactSaver(store)
