"""What a context of a store loses that is closed without `commit`."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from ._errors import SnapshotNotFound, UnsavedWarning

if TYPE_CHECKING:
    from ._pactql import Context

_SHOWN = 5


def lost(context: Context) -> str | None:
    """What closing the context loses, in words; `None` if that is nothing."""
    if not context._is_unsaved():
        return None
    try:
        kept = set(context.select("@t0 .cb").ids())
    except SnapshotNotFound:
        kept = set()
    new = [id for id in context.select(".cb").ids() if id not in kept]
    shown = ", ".join(new[:_SHOWN]) + (", …" if len(new) > _SHOWN else "")
    blocks = "1 block" if len(new) == 1 else f"{len(new)} blocks"
    what = f"{blocks} ({shown})" if new else "its changes"
    return (
        f"the session {context.name!r} was left without `commit()`, which loses {what} of cycle {context.cycle}; "
        "`save()` keeps a state to go on with, and `discard()` drops one without this warning"
    )


def warn(words: str) -> None:
    """Warns at the end of the `with` statement."""
    warnings.warn(words, UnsavedWarning, stacklevel=2)
