"""Times and durations as the numbers that selectors compare: nanoseconds, as `created_at_ns` has them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def nanoseconds(value: Any) -> int | None:
    """A `datetime` since 1970, or the length of a `timedelta`, in nanoseconds; `None` of anything else. A time without
    a zone is one of this machine, as in Python."""
    if isinstance(value, datetime):
        value = value.astimezone(timezone.utc) - _EPOCH
    if isinstance(value, timedelta):
        return ((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000
    return None
