"""Tables: each consumer takes a selection and a diff as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pactql
import pytest

COLUMNS = [
    "session", "snapshot", "id", "parent_id", "type", "role", "kind", "key", "tags", "depth", "offset", "ttl",
    "priority", "cadence", "cycle", "created_at_ns", "creation_index", "text", "attrs",
]
CHANGES = ["session", "newer", "older", "change", "id", "ord", "fields", "delta", "content_diff"]


def by_pyarrow(source: object) -> dict[str, list[Any]]:
    return pytest.importorskip("pyarrow").table(source).to_pydict()  # type: ignore[no-any-return]


def by_polars(source: object) -> dict[str, list[Any]]:
    return pytest.importorskip("polars").DataFrame(source).to_dict(as_series=False)  # type: ignore[no-any-return]


def by_pandas(source: object) -> dict[str, list[Any]]:
    pandas = pytest.importorskip("pandas")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("pandas reads no Arrow streams before 3.0")
    frame = pandas.DataFrame.from_arrow(source).astype(object)
    frame = frame.where(frame.notna() if not isinstance(frame, str) else frame, None)
    return {name: list(frame[name]) for name in frame.columns}


def by_duckdb(source: object) -> dict[str, list[Any]]:
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql("select * from source")
    columns = list(zip(*found.fetchall())) or [()] * len(found.columns)
    return {name: list(column) for name, column in zip(found.columns, columns)}


CONSUMERS = [by_pyarrow, by_polars, by_duckdb, by_pandas]


@pytest.mark.parametrize("read", CONSUMERS)
def test_a_selection_is_a_table(read: Any, session: pactql.Session) -> None:
    nodes = session.select("@t0 *")
    table = read(nodes)
    assert list(table) == COLUMNS
    assert table["id"] == nodes.ids() and table["text"] == nodes.texts()
    for column in ("parent_id", "type", "role", "kind", "key", "snapshot", "creation_index", "created_at_ns"):
        assert table[column] == [getattr(node, column) for node in nodes], column
    for column in ("depth", "ttl", "cadence", "cycle"):
        found = [None if value is None or value != value else int(value) for value in table[column]]
        assert found == [getattr(node, column) for node in nodes], column
    assert [list(each) for each in table["tags"]] == [list(node.tags) for node in nodes]


@pytest.mark.parametrize("read", CONSUMERS)
def test_a_diff_is_a_table(read: Any, session: pactql.Session) -> None:
    diff = session.range("@t-3..@t0 .cb", content="unified")
    table = read(diff)
    assert list(table) == CHANGES and len(table["id"]) == diff.rows
    expected = []
    for pair in diff:
        expected += [("added", id) for id in pair.added]
        expected += [("removed", id) for id in pair.removed]
        expected += [("changed", change.id) for change in pair.changed]
    assert list(zip(table["change"], table["id"])) == expected
    assert table["ord"] == list(range(1, diff.rows + 1))


@pytest.mark.parametrize("read", CONSUMERS)
def test_nothing_is_a_table_without_rows(read: Any, session: pactql.Session) -> None:
    assert read(session.select("@t0 .cb[kind='nothing']")) == {name: [] for name in COLUMNS}


@pytest.mark.parametrize("read", CONSUMERS[:3])
def test_slices_and_filters_are_tables(read: Any, session: pactql.Session) -> None:
    nodes = session.select("@t0 .cb")[::-2].where("^seq")
    assert read(nodes)["id"] == nodes.ids()


def test_a_store_is_a_table(session: pactql.Session, tmp_path: Path) -> None:
    store = pactql.Store.open(tmp_path / "agents.db")
    for name in ("a", "b", "c"):
        store.add(name, session)
    table = by_pyarrow(store.select("@t0 .cb[role='user']"))
    ids = ["cb:u2", "cb:i1", "cb:u3"]
    assert list(zip(table["session"], table["id"])) == [(name, id) for name in "abc" for id in ids]
    changes = by_pyarrow(store.range("@t-1..@t0 .cb"))
    assert set(changes["session"]) == {"a", "b", "c"}


def test_attributes_keep_every_digit() -> None:
    block = '{"id":"b","offset":1,"data_d":0.10000000000000000555,"data_n":12345678901234567890123,"data_\\u00e9\\"":[1]}'
    document = f'{{"root":{{"id":"r","children":[{{"id":"^ah","children":[{block},{{"id":"c","offset":2}}]}}]}}}}'
    attributes = by_pyarrow(pactql.Session.parse(document).select(".cb"))["attrs"]
    assert attributes == ['{"data_d":0.10000000000000000555,"data_n":12345678901234567890123,"data_é\\"":[1]}', None]


def test_batches_count_all_that_is_in_them() -> None:
    """A batch ends after 32 MiB, wherever they are: in texts, attributes, tags or the names of what changed."""
    pyarrow = pytest.importorskip("pyarrow")
    long = "x" * (1 << 20)

    def sizes(source: object) -> list[int]:
        return [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(source)]

    def document(cycle: int, **fields: Any) -> str:
        blocks = [{"id": f"b{at}", "offset": at + 1, **fields} for at in range(70)]
        return json.dumps({"cycle": cycle, "root": {"id": "r", "children": [{"id": "^ah", "children": blocks}]}})

    for fields in ({"content": long}, {"data_a": long}, {"data_a": [long]}, {"tags": [long]}, {"key": long}, {"data_" + long: 1}):
        found = sizes(pactql.Session.parse(document(1, **fields)).select(".cb"))
        assert sum(found) == 70 and max(found) <= 32, (list(fields)[0][:10], found)
    lines = f'{document(1)}\n{document(2, **{"data_" + long: 1})}'
    found = sizes(pactql.Session.parse(lines).range("@t-1..@t0 .cb"))
    assert sum(found) == 70 and max(found) <= 32, found


def test_batches_of_a_diff_go_on_where_they_ended() -> None:
    """Pairs that end inside a batch, at its end, and without changes."""
    pyarrow = pytest.importorskip("pyarrow")
    lines = []
    for cycle, count in enumerate([0, 8191, 8191, 8192, 3, 0, 0, 9000], start=1):
        blocks = [{"id": f"b{at}", "offset": at + 1, "data_c": cycle // 3} for at in range(count)]
        tree = {"id": "r", "children": [{"id": "^ah", "children": blocks}]}
        lines.append(json.dumps({"cycle": cycle, "root": tree}))
    diff = pactql.Session.parse("\n".join(lines)).range("@history .cb")
    expected = []
    for pair in diff:
        place = (pair.newer.cycle, pair.older.cycle)
        expected += [(*place, "added", id) for id in pair.added]
        expected += [(*place, "removed", id) for id in pair.removed]
        expected += [(*place, "changed", change.id) for change in pair.changed]
    batches = list(pyarrow.RecordBatchReader.from_stream(diff))
    assert len(expected) > 30_000 and all(batch.num_rows == 8192 for batch in batches[:-1])
    table = pyarrow.Table.from_batches(batches).to_pydict()
    assert list(zip(table["newer"], table["older"], table["change"], table["id"])) == expected
    assert table["ord"] == list(range(1, len(expected) + 1))


def test_batches_have_a_limit() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    blocks = ",".join(f'{{"id":"b{number}","offset":{number + 1}}}' for number in range(20_000))
    document = f'{{"root":{{"id":"r","children":[{{"id":"^ah","children":[{blocks}]}}]}}}}'
    nodes = pactql.Session.parse(document).select(".cb")
    reader = pyarrow.RecordBatchReader.from_stream(nodes)
    assert [batch.num_rows for batch in reader] == [8192, 8192, 3616]
