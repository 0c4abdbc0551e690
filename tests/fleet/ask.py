"""Runs statements on DuckDB and Spark for the tests: one process for many statements.

Standard input has a JSON object a line, and standard output an answer a line, in the same order:

    {"dialect": "duckdb" | "spark", "setup": ["...", ...], "sql": "...", "reset": true}
    {"columns": ["...", ...], "rows": [[...], ...], "seconds": 0.01}
    {"error": "..."}

`setup` has statements that are run before `sql`, such as those that make views; their rows are dropped. A list that
was run before on the engine and has not been followed by another is not run again; `"again": true` runs it all the
same. `sql` may be left out. `{"dialect": "duckdb", "reset": true}` begins with an empty database. With `"scans": true`
the rows are what the statement read, a row for each scan of its plan in the order of tables, then columns: the table,
the columns, the conditions that the scan checks itself, and the number of files.

Values are those of JSON. Bytes are text in hexadecimal digits, and numbers that JSON cannot say are texts. Only Spark's
own messages go to standard error. An engine is loaded when it is asked for first.
"""

import json
import math
import re
import sys
import tempfile
import time
from decimal import Decimal


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return str(value)


SCAN = ["table", "columns", "filters", "files"]


def listed(values):
    """Names or conditions in one text. DuckDB gives one alone without a list."""
    return ", ".join(sorted(values) if isinstance(values, list) else [values])


class DuckDb:
    """DuckDB in memory. Texts are compared by their bytes, which is its default."""

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect(config={"threads": 2})
        self.done = None

    def run(self, sql):
        cursor = self.connection.execute(sql)
        columns = [column[0] for column in cursor.description or []]
        return columns, cursor.fetchall() if columns else []

    def scans(self, sql):
        cursor = self.connection.execute("explain (analyze, format json) " + sql)
        found = []

        def walk(step):
            info = step.get("extra_info", {})
            if "Total Files Read" in info:
                table = re.search(r"/(\w+)/((\*|bucket=\d+)/)?[^/]*\.parquet", info["Filename(s)"])[1]
                columns, filters = info.get("Projections", []), info.get("Filters", [])
                found.append((table, listed(columns), listed(filters), int(info["Total Files Read"])))
            for child in step.get("children", []):
                walk(child)

        for step in json.loads(cursor.fetchall()[-1][1])["operator"]:
            walk(step)
        return SCAN, sorted(found)

    def close(self):
        self.connection.close()


class Spark:
    """Spark in this process. Texts are compared by their bytes, which is its default (`UTF8_BINARY`)."""

    def __init__(self):
        from pyspark.sql import SparkSession

        self.warehouse = tempfile.TemporaryDirectory(prefix="pactql-spark-")
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Errors of arithmetic and casts are errors, and no nulls.
            "spark.sql.ansi.enabled": "true",
            # The tests ask much of little data: what pays for large data costs most of the time here.
            "spark.sql.shuffle.partitions": "1",
            "spark.default.parallelism": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.files.maxPartitionBytes": "1073741824",
            "spark.sql.files.openCostInBytes": "0",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.driver.memory": "3g",
            "spark.sql.session.timeZone": "UTC",
            # Spark makes the directory when it starts.
            "spark.sql.warehouse.dir": self.warehouse.name,
            # As by default: a backslash in a literal begins an escape.
            "spark.sql.parser.escapedStringLiterals": "false",
        }
        builder = SparkSession.builder.master("local[2]").appName("fleet")
        for name, value in settings.items():
            builder = builder.config(name, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.done = None

    def run(self, sql):
        frame = self.session.sql(sql)
        return frame.columns, [tuple(row) for row in frame.collect()] if frame.columns else []

    def scans(self, sql):
        # As by default: the tables that choose sessions are small enough to be sent to each scan.
        self.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "10485760")
        try:
            frame = self.session.sql(sql)
            frame.collect()
        finally:
            self.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
        found = []
        for leaf in (leaves.apply(at) for at in range(leaves.size())):
            if not leaf.nodeName().startswith("Scan parquet"):
                continue
            said = leaf.verboseStringWithOperatorId()
            table = re.search(r"^Location: .*/(\w+)\]$", said, re.M)[1]
            columns = re.search(r"^ReadSchema: struct<(.*)>$", said, re.M)[1]
            pushed = re.search(r"^PushedFilters: \[(.*)\]$", said, re.M)
            pruned = re.search(r"^PartitionFilters: \[(.*)\]$", said, re.M)
            filters = re.findall(r"\w+\((?:[^()]|\([^()]*\))*\)", pushed[1]) if pushed else []
            if pruned:
                # The number of a column and of a subquery differ from run to run.
                filters.append(re.sub(r"#\d+L?", "", pruned[1]))
            columns = [column.split(":")[0] for column in columns.split(",")]
            files = int(leaf.metrics().apply("numFiles").value())
            found.append((table, listed(columns), listed(filters), files))
        return SCAN, sorted(found)

    def close(self):
        """Spark has one session a process: what was made is replaced by the next setup."""


ENGINES = {"duckdb": DuckDb, "spark": Spark}


def answer(engines, asked):
    dialect = asked["dialect"]
    if asked.get("reset") and dialect in engines:
        engines.pop(dialect).close()
    if dialect not in engines:
        engines[dialect] = ENGINES[dialect]()
    engine = engines[dialect]
    setup = asked.get("setup", [])
    if setup and (asked.get("again") or setup != engine.done):
        engine.done = None
        for sql in setup:
            engine.run(sql)
        engine.done = setup
    if "sql" not in asked:
        return {"columns": [], "rows": []}
    begun = time.perf_counter()
    columns, rows = (engine.scans if asked.get("scans") else engine.run)(asked["sql"])
    seconds = time.perf_counter() - begun
    return {
        "columns": columns,
        "rows": [[plain(value) for value in row] for row in rows],
        "seconds": round(seconds, 6),
    }


def main():
    engines = {}
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            answered = answer(engines, json.loads(line))
        except Exception as error:  # an answer for each line, whatever an engine raises
            answered = {"error": f"{type(error).__name__}: {error}"}
        sys.stdout.write(json.dumps(answered) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
