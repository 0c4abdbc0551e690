"""Query, record and write LLM context trees.

>>> import pactql
>>> session = pactql.Session.open("fixtures/support-agent.jsonl")
>>> session.select("@t0 .cb[role=$role][kind='text']", role="user").texts()
['Here it is. It wobbles by more than a centimetre.', 'Great. Can you send me that in writing, please?']

A `Session` is the history of one conversation; a `Store` has many of them. `select` takes a selector and gives a
`Selection`, a sequence of `Node`s; `range` gives what changed, a `RangeDiff`. A `Context` writes.
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
    "Request",
    "Selection",
    "SelectorError",
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
    "resolve",
    "session",
]
