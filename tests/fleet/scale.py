"""Measures the statements of `pactql sql` beside queries by hand, over stores and exports of several sizes.

    cargo run --release --example fleet -- scale/1000.db 1000
    pactql store parquet scale/1000.db scale/1000 --buckets 16
    python tests/fleet/scale.py pactql scale --sizes 1000,10000 --engines sqlite,duckdb,spark

The first argument is the program, built with the features `store` and `parquet`; the second a directory that has for
each size N a store `N.db` (for SQLite) and an export `N` (for the others). Python needs `duckdb` and `pyspark`, as
`.ci/fleet` installs them. Settings are those an engine has by itself: all cores, and in Spark 200 shuffle partitions,
adaptive execution and code generation.

A line is an engine, a size, a selector, the seconds of ours and of the query by hand, their ratio, the rows, which must
be equal in every column, and what was read. Both are run in turns; the first run of each does not count, and the least
of the others does. What was read is counted by the engine: DuckDB by `explain analyze`, in bytes that it asked its file
system for; Spark by the tasks of a run. Of SQLite it is what the process read from files, by a new connection. Caches of the
system are warm.
"""

import argparse
import json
import pathlib
import sqlite3
import subprocess
import time

RARE = "@t0 .cb[content~'over the refund limit']"
BROAD = "@t0 .cb[kind='call']"
LAST = "@t0 ^seq .mt:depth(1-3) .cb[kind='call']"

# What a person writes who knows the layout: the newest commits, what is in force in them, its nodes.
BY_HAND = """
with newest as (select session_id, max(seq) as seq from snapshot where not working group by session_id)
select s.name as session, t.seq, c.cycle as snapshot, n.id, row_number() over (partition by t.session_id
         order by p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id, n.pre) as ord
from newest t
  join snapshot c on c.session_id = t.session_id and c.seq = t.seq
  join placement p on p.session_id = t.session_id and t.seq between p.first_seq and p.last_seq
  join node n on n.unit_id = p.unit_id
  join session s on s.session_id = t.session_id{body}
where n.class = 'cb' and {condition}
order by session, ord"""

# The calls of the last three turns, with windows over turns alone.
BY_HAND_LAST = """
with s as (select session_id, max(seq) as seq from snapshot where not working group by session_id),
t as (select s.session_id, s.seq, p.unit_id, p.rank, p.sibling_offset, p.created_at_ns, p.creation_index, p.id as top,
        case when u.kind = 'turn' then row_number() over (partition by s.session_id, u.kind
          order by p.sibling_offset desc, p.created_at_ns desc, p.creation_index desc, p.id desc) end as depth
      from s join placement p on p.session_id = s.session_id and s.seq between p.first_seq and p.last_seq
        join unit u on u.unit_id = p.unit_id),
turns as (select t.*, n.pre, n.pre_end from t join node n on n.unit_id = t.unit_id
          where t.rank = 1 and t.depth between 1 and 3 and n.class = 'mt'),
calls as (select distinct q.session_id, q.seq, q.rank, q.sibling_offset, q.created_at_ns, q.creation_index, q.top,
            n.pre, n.id
          from turns q join node n on n.unit_id = q.unit_id and n.pre > q.pre and n.pre < q.pre_end
          where n.class = 'cb' and coalesce(n.kind, n.type_sub) = 'call')
select z.name as session, c.seq, c.cycle as snapshot, m.id, row_number() over (partition by m.session_id
         order by m.rank, m.sibling_offset, m.created_at_ns, m.creation_index, m.top, m.pre) as ord
from calls m join session z on z.session_id = m.session_id
  join snapshot c on c.session_id = m.session_id and c.seq = m.seq
order by session, ord"""


def by_hand(selector, engine):
    """The query that a person would write."""
    if selector == LAST:
        return BY_HAND_LAST
    if selector == BROAD:
        return BY_HAND.format(body="", condition="coalesce(n.kind, n.type_sub) = 'call'")
    if engine == "sqlite":
        body, text = "\n  join body b on b.body_id = n.body_id", "b.text"
    else:
        body, text = "", "n.content"
    return BY_HAND.format(body=body, condition=f"{text} like '%over the refund limit%'")


class Sqlite:
    def __init__(self, program, directory, size):
        self.path = directory / f"{size}.db"
        self.connection = self.open()

    def open(self):
        connection = sqlite3.connect(self.path)
        # What `pactql select --via sql` brings; the pattern here is a plain text.
        connection.create_function(
            "pactql_search", 2, lambda text, part: text is not None and part in text, deterministic=True
        )
        return connection

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def bytes_read(self, sql):
        connection = self.open()
        before = read_by_process()
        connection.execute(sql).fetchall()
        return read_by_process() - before


def read_by_process():
    for line in open("/proc/self/io"):
        if line.startswith("rchar:"):
            return int(line.split()[1])
    return 0


class DuckDb:
    def __init__(self, program, directory, size):
        import duckdb

        self.connection = duckdb.connect()
        for sql in views(program, directory / size, "duckdb"):
            self.connection.execute(sql)

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def bytes_read(self, sql):
        plan = self.connection.execute(f"explain (analyze, format json) {sql}").fetchall()[-1][1]
        return json.loads(plan)["io"]["total_bytes_read"]


class Spark:
    session = None

    def __init__(self, program, directory, size):
        from pyspark.sql import SparkSession

        if Spark.session is None:
            builder = SparkSession.builder.master("local[*]").appName("scale")
            # Nothing but where it listens, and what it prints.
            for name, value in {
                "spark.ui.enabled": "false",
                "spark.ui.showConsoleProgress": "false",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
            }.items():
                builder = builder.config(name, value)
            Spark.session = builder.getOrCreate()
            Spark.session.sparkContext.setLogLevel("ERROR")
        for sql in views(program, directory / size, "spark"):
            self.session.sql(sql)

    def run(self, sql):
        return [tuple(row) for row in self.session.sql(sql).collect()]

    def bytes_read(self, sql):
        before = self.input_bytes()
        self.run(sql)
        return self.input_bytes() - before

    def input_bytes(self):
        """What the tasks of this session have read so far. Waits until all have been counted."""
        context = self.session.sparkContext._jsc.sc()
        context.listenerBus().waitUntilEmpty()
        return context.statusStore().executorSummary("driver").totalInputBytes()


ENGINES = {"sqlite": Sqlite, "duckdb": DuckDb, "spark": Spark}


def printed(program, *arguments):
    ran = subprocess.run([program, "sql", *arguments], capture_output=True, text=True, check=True)
    return ran.stdout


def views(program, directory, dialect):
    text = printed(program, "--create-views", str(directory), "--dialect", dialect)
    return [sql for sql in text.split(";\n") if sql.strip()]


def measured(engine, ours, hand, runs):
    """The least seconds of each, and the rows, which are the same."""
    seconds = [[], []]
    for _ in range(runs + 1):
        rows = []
        for sql, taken in zip((ours, hand), seconds):
            begun = time.perf_counter()
            rows.append([tuple(row) for row in engine.run(sql)])
            taken.append(time.perf_counter() - begun)
        if rows[0] != rows[1]:
            raise SystemExit(f"the rows differ: {len(rows[0])} of ours, {len(rows[1])} by hand\n{ours}\n{hand}")
    return [min(taken[1:]) for taken in seconds], len(rows[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--engines", default="sqlite,duckdb,spark")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    print("engine sessions ours hand ratio rows MB-ours MB-hand selector")
    for name in asked.engines.split(","):
        for size in asked.sizes.split(","):
            engine = ENGINES[name](asked.program, asked.directory, size)
            for selector in (RARE, BROAD, LAST):
                ours = printed(asked.program, selector, "--dialect", name).strip().rstrip(";")
                hand = by_hand(selector, name)
                (fast, beside), rows = measured(engine, ours, hand, asked.runs)
                read = [engine.bytes_read(sql) / 1e6 for sql in (ours, hand)]
                print(
                    f"{name} {size} {fast:.3f} {beside:.3f} {fast / beside:.2f} {rows} "
                    f"{read[0]:.1f} {read[1]:.1f} {selector}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
