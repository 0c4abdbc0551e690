"""What the reports of a session have: the types of their members, and the classes of those that people look at.

A report is a dictionary of what the command line prints with `--json`. This is the one definition of its members: for
type checkers, for the documentation, and for tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from . import _html

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Counted(TypedDict):
    """A group of texts, and how much it is."""

    name: str | None
    blocks: int
    bytes: int
    tokens: int
    media: int


class Used(TypedDict):
    """What calls used, and cost in billionths of a dollar."""

    name: NotRequired[str]
    requests: int
    input_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    output_tokens: int
    nano_dollars: int
    uncounted: int
    uncounted_replies: NotRequired[int]
    unanswered: NotRequired[int]
    unpriced: int


class Call(TypedDict):
    """A call of the provider."""

    made: bool
    reconstructed: bool
    model: NotRequired[str]
    stop_reason: NotRequired[str]
    latency_ms: NotRequired[int]
    input_tokens: NotRequired[int]
    cached_tokens: NotRequired[int]
    cache_write_tokens: NotRequired[int]
    output_tokens: NotRequired[int]
    failed: NotRequired[int]
    canceled: NotRequired[int]
    error: NotRequired[str]


class Difference(TypedDict):
    """Where two requests part, why, and what to do about it."""

    at: int
    place: dict[str, Any]
    block: NotRequired[str]
    cause: str
    count: NotRequired[int]
    mend: NotRequired[str]
    older: NotRequired[str]
    newer: NotRequired[str]


class Step(Call):
    """What happened in a cycle, and the call of the provider."""

    label: str
    cycle: int
    time: NotRequired[str]
    duration_ms: NotRequired[int]
    gap_ms: NotRequired[int]
    tokens: NotRequired[int]
    matches: int
    added: int
    removed: int
    changed: int
    prefix_percent: NotRequired[int]
    broken: NotRequired[Difference]
    events: list[dict[str, Any]]


class PrefixStep(TypedDict):
    """What a prompt cache can reuse of one request in the next."""

    cycle: int
    before: NotRequired[int]
    bytes: int
    bytes_before: int
    shared_bytes: int
    tokens: int
    tokens_before: int
    shared_tokens: int
    call: Call
    difference: NotRequired[Difference]


class SnapshotTokens(TypedDict):
    """The tokens of a request."""

    label: str
    cycle: NotRequired[int]
    blocks: int
    bytes: int
    tokens: int
    media: int
    reply: Counted
    groups: list[Counted]
    call: Call


class ShownBlock(TypedDict):
    """A block as it is shown."""

    id: str
    region: str
    role: NotRequired[str]
    kind: NotRequired[str]
    reply: bool
    error: bool
    news: NotRequired[str]
    bytes: int
    tokens: int
    text: str
    turn: NotRequired[str]
    depth: NotRequired[int]
    tool: NotRequired[str]
    call_id: NotRequired[str]


class ShownSnapshot(TypedDict):
    """A snapshot as it is shown."""

    label: str
    cycle: NotRequired[int]
    time: NotRequired[str]
    call: Call
    tokenizer: str
    tokens: int
    removed: int
    blocks: list[ShownBlock]


class Shown(TypedDict):
    """What `Session.show` gives."""

    snapshots: list[ShownSnapshot]
    notes: NotRequired[list[str]]


class FoundLine(TypedDict):
    """A line that a search matches, and where."""

    number: int
    text: str
    ranges: list[dict[str, int]]


class FoundBlock(TypedDict):
    """A block that a search matches, and the snapshots that have it."""

    id: str
    role: NotRequired[str]
    kind: NotRequired[str]
    first: str
    last: str
    lines: list[FoundLine]


class Found(TypedDict):
    """What `Session.grep` gives."""

    lines: int
    blocks: list[FoundBlock]
    notes: NotRequired[list[str]]


class Top(TypedDict):
    """What `Session.top` gives."""

    tokenizer: str
    by: str | None
    sessions: int
    groups: list[Counted]
    notes: NotRequired[list[str]]


class Unused(TypedDict):
    """What `Session.unused` gives."""

    tokenizer: str
    snapshots: int
    defined: int
    tools: list[dict[str, Any]]
    prices: str


class Duplicates(TypedDict):
    """What `Session.duplicates` gives."""

    tokenizer: str
    snapshots: list[dict[str, Any]]
    notes: NotRequired[list[str]]


class ConditionResult(TypedDict):
    """Whether a condition holds."""

    line: int
    condition: str
    holds: bool
    failures: int
    first: list[dict[str, Any]]
    notes: NotRequired[list[str]]


class FieldsFound(TypedDict):
    """What `Session.fields` gives."""

    sessions: int
    nodes: int
    fields: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    headers: list[str]


class Parted(TypedDict):
    """What `Session.diff` gives."""

    equal: int
    parted: NotRequired[dict[str, Any] | None]
    a: dict[str, Any]
    b: dict[str, Any]


class Blamed(TypedDict):
    """What `Session.blame` gives."""

    id: str
    events: list[dict[str, Any]]


class Attempt(TypedDict):
    """A recorded call of the provider."""

    attempt_id: str
    cycle_id: int
    status: str
    started_at: str
    ended_at: NotRequired[str | None]
    provider: str
    model: NotRequired[str | None]
    token_in: NotRequired[int | None]
    token_out: NotRequired[int | None]
    error: NotRequired[str | None]


class Report(dict[str, Any]):
    """A report that is a table, too: `rows()` for a data frame, HTML for a notebook.

    >>> report = session.tokens("@t0", by="role")
    >>> [(row["name"], row["tokens"] > 0) for row in report.rows()][:2]
    [('tool', True), ('assistant', True)]
    """

    _title = ""

    @property
    def notes(self) -> list[str]:
        """Why its selector finds nothing, in words; empty if it finds something, and without one."""
        found: list[str] = self.get("notes", [])
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Its table: flat dictionaries with the same names, for `pandas.DataFrame` and `polars.DataFrame`."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return _html.rows(self._title, self.rows(), self.notes)


def _flat(row: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: row.get(name) for name in names}


class Checked(Report):
    """What `Session.check` gives: whether conditions hold. It is false where one does not, so a test asserts it. The `notes` of a
    condition say which names and values of its selectors no node has, each with what may have been meant.

    >>> assert session.check("some @t0 ^sys .cb")
    >>> bool(session.check("count @t0 .cb <= 3"))
    False
    """

    _title = "check"

    @property
    def holds(self) -> bool:
        """Whether all conditions hold."""
        return bool(self["holds"])

    @property
    def conditions(self) -> list[ConditionResult]:
        """The conditions, in order."""
        found: list[ConditionResult] = self["conditions"]
        return found

    def __bool__(self) -> bool:
        return self.holds

    def rows(self) -> list[dict[str, Any]]:
        """A row for each condition."""
        return [
            {**_flat(dict(each), ("line", "condition", "holds", "failures")), "notes": "; ".join(each.get("notes", []))}
            for each in self.conditions
        ]


class TokenReport(Report):
    """What `Session.tokens` gives: the tokens of each group of each snapshot."""

    _title = "tokens"

    @property
    def snapshots(self) -> list[SnapshotTokens]:
        """The snapshots, with the groups of each."""
        found: list[SnapshotTokens] = self["snapshots"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """A row for each group of each snapshot."""
        names = ("name", "blocks", "bytes", "tokens", "media")
        return [
            {"snapshot": snapshot["label"], "cycle": snapshot.get("cycle"), **_flat(dict(group), names)}
            for snapshot in self.snapshots
            for group in snapshot["groups"]
        ]


class WithoutReport(Report):
    """What `Session.tokens` gives with `without`: what the calls used, and what they would have used."""

    _title = "tokens without"

    @property
    def now(self) -> Used:
        """What they used."""
        found: Used = self["now"]
        return found

    @property
    def then(self) -> Used:
        """What they would have used."""
        found: Used = self["then"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """Two rows: `now` and `then`."""
        return [{"name": name, **self[name]} for name in ("now", "then")]


class PrefixReport(Report):
    """What `Session.prefix` gives: what a prompt cache can reuse from request to request."""

    _title = "prefix"

    @property
    def steps(self) -> list[PrefixStep]:
        """The pairs of requests."""
        found: list[PrefixStep] = self["steps"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """A row for each pair of requests."""
        names = ("cycle", "before", "bytes", "bytes_before", "shared_bytes", "tokens", "tokens_before", "shared_tokens")
        rows = []
        for step in self.steps:
            broken: dict[str, Any] = dict(step["difference"]) if "difference" in step else {}
            rows.append(
                {**_flat(dict(step), names), "cause": broken.get("cause"), "block": broken.get("block"), "mend": broken.get("mend")}
            )
        return rows


class StepReport(Report):
    """What `Session.steps` gives: what happened in each cycle."""

    _title = "steps"

    @property
    def steps(self) -> list[Step]:
        """The cycles."""
        found: list[Step] = self["steps"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """A row for each cycle. `events` are the names of what happened; `steps` has all of each."""
        names = (
            "label", "cycle", "time", "model", "made", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens",
            "stop_reason", "duration_ms", "gap_ms", "tokens", "added", "removed", "changed", "prefix_percent",
        )  # fmt: skip
        return [
            {
                **_flat(dict(step), names),
                "broken": step["broken"]["cause"] if "broken" in step else None,
                "events": ", ".join(each["event"] for each in step["events"]),
            }
            for step in self.steps
        ]


class UsageReport(Report):
    """What `Session.usage` gives: what the calls used and cost, in groups."""

    _title = "usage"

    @property
    def groups(self) -> list[Used]:
        """The groups."""
        found: list[Used] = self["groups"]
        return found

    @property
    def total(self) -> Used:
        """All of them."""
        found: Used = self["total"]
        return found

    def rows(self) -> list[dict[str, Any]]:
        """A row for each group."""
        names = (
            "name", "requests", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens",
            "nano_dollars", "uncounted", "unpriced",
        )  # fmt: skip
        return [_flat(dict(group), names) for group in self.groups]
