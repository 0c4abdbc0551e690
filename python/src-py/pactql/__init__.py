"""Query, record and write LLM context trees.

>>> import pactql
>>> session = pactql.open("fixtures/support-agent.jsonl")
>>> session.select("@t0 .cb[role=$role][kind='text']", role="user").texts()
['Here it is. It wobbles by more than a centimetre.', 'Great. Can you send me that in writing, please?']

A `Session` is the history of one conversation: a snapshot of the context for each call of the model. A `Store` has many of
them. `select` takes a selector and gives a `Selection`, a sequence of `Node`s; `range` gives what changed, a `RangeDiff`. A
`Context` writes. `record`, `record_all` and `session` record what a program sends to models.

The tree
--------
Every snapshot has three regions: `^sys`, the system prompt and the tools; `^seq`, the finished turns, oldest first; `^ah`, what comes
after the last reply. In a turn (`.mt`) are messages (`.mc`), and in them blocks (`.cb`): a text, a call of a tool, its result.

A selector: when, where, which
------------------------------
>>> session.select("@t0 ^seq .cb[kind='call']").ids()
['cb:c2', 'cb:c3', 'cb:c4', 'cb:c5']

When: `@t0` is the newest snapshot, `@t-1` the one before, `@c3` that of cycle 3, `@*` all of them (an id once, as it was last).
Without a time it is the working state, or the newest snapshot. `@t-1..@t0` is a range, which `range` takes.

>>> [(pair.newer.label, pair.added) for pair in session.range("@t-1..@t0 .cb[kind='call']")]
[('@t0', ['cb:c5'])]

Where: steps from the root down, a space for anywhere below, `>` for a child: `^sys .cb`, `^seq > .mt`. `:depth(1)` is the newest turn,
`:depth(1..3)` the newest three; `:first`, `:last` and `:nth(2)` count.

>>> session.select("@t0 ^seq .mt:depth(1) .cb").first().id
'cb:doc3'

Which: tests in brackets. `=`, `!=`, `<`, `>=`, `~` for a pattern, a name alone for "is there": `[role='user']`, `[tokens>500]`, `[content~'refund']`,
`[data_call_name=look_up]`, `[key=policy]`, `[tags=safety]`. A list is any of its elements. Values come as parameters: `[role=$role]`.

>>> session.select("@t0 .cb[content~$words]", words="RT-[0-9]+").first().id
'cb:r2'

Conditions on others: `:has(…)` for what is inside, `:not(…)`, `:is(…)`, `:has-result`, `:after(…)`, `:before(…)`.

>>> session.select("@t0 .cb[kind='call']:not(:has-result)").ids()
['cb:c5']

What is wrong is an `Error` that shows the place and what to write; an empty selection says why (`why_empty`); `session.fields()`
has the names and values that can be asked for. The whole language and the other pages are beside this file, in `docs`.
"""

import os as _os

from . import _copies as _copies_of
from ._errors import (
    CacheError,
    Cancelled,
    Error,
    InputError,
    InputMissing,
    LeaseLost,
    MutationError,
    SelectorError,
    SelectorWarning,
    SessionBusy,
    SessionExists,
    SessionNotFound,
    SnapshotNotFound,
    SqlError,
    StoreError,
    UnsavedWarning,
)
from ._open import open
from ._pactql import (
    VERSION as __version__,
)
from ._pactql import (
    Change,
    Check,
    Context,
    Engine,
    Explain,
    Fit,
    Imported,
    Node,
    NodeIterator,
    PairDiff,
    Prepared,
    RangeDiff,
    Request,
    Selection,
    Session,
    SessionInfo,
    SnapshotRef,
    Store,
    StoreAnswers,
    after_fork,
    build_cache,
    count_tokens,
    import_log,
    resolve,
)
from ._replay import Replay, Sent, replay
from ._snapshot import Snapshot
from .recording import Recorder, record, record_all, recorder, session

_copies_of.install()
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=after_fork)

__all__ = [
    "CacheError",
    "Cancelled",
    "Change",
    "Check",
    "Context",
    "Engine",
    "Error",
    "Explain",
    "Fit",
    "Imported",
    "InputError",
    "InputMissing",
    "LeaseLost",
    "MutationError",
    "Node",
    "NodeIterator",
    "PairDiff",
    "Prepared",
    "RangeDiff",
    "Recorder",
    "Replay",
    "Request",
    "Selection",
    "Sent",
    "SelectorError",
    "SelectorWarning",
    "Session",
    "SessionBusy",
    "SessionExists",
    "SessionInfo",
    "SessionNotFound",
    "Snapshot",
    "SnapshotNotFound",
    "SnapshotRef",
    "SqlError",
    "Store",
    "StoreAnswers",
    "StoreError",
    "UnsavedWarning",
    "__version__",
    "build_cache",
    "count_tokens",
    "import_log",
    "open",
    "record",
    "record_all",
    "recorder",
    "replay",
    "resolve",
    "session",
]
