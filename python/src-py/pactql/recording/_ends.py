"""The ends of a process, before which something is written.

A program ends by `atexit`. A worker of `multiprocessing` does not: it runs finalizers, and then leaves by `os._exit`; a
pool ends its workers by SIGTERM. What leaves by `os._exit` itself, or by SIGKILL, can be seen by nobody.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
from typing import Any, Callable, List, Optional

#: What is called at the end, with whether calls in progress end, too, and whether the process does.
_ends: List[Callable[[bool, bool], None]] = []
#: The process that is watched, and the one in which all is written.
_watched: Optional[int] = None
_written: Optional[int] = None


def watch(end: Callable[[bool, bool], None]) -> None:
    """Has a function called before a process ends, in each process in which `here` is called."""
    _ends.append(end)
    atexit.register(end, True, True)


def here() -> None:
    """Watches for the end of this process. Called where something is going to be written."""
    global _watched
    if _watched == os.getpid():
        return
    _watched = os.getpid()
    # It is there in a process that it has made; importing it is worth it in one that may fork.
    from multiprocessing import parent_process, util

    # A worker forgets the finalizers of the process that it is a copy of, and then calls this.
    util.register_after_fork(_ANCHOR, _in_worker)
    if parent_process() is not None:
        _in_worker()
    else:
        _on_termination()


class _Anchor:
    """What the registration lives as long as."""


_ANCHOR = _Anchor()


def _in_worker(_: Any = None) -> None:
    from multiprocessing import util

    global _watched
    _watched = os.getpid()
    # After the finalizers of everybody else.
    util.Finalize(None, _end_of_worker, exitpriority=-(1 << 30))
    _on_termination()


def _end_of_worker() -> None:
    # Threads that are waited for after this may have calls in progress.
    main = threading.main_thread()
    is_alone = all(thread is main or thread.daemon for thread in threading.enumerate())
    for end in _ends:
        end(is_alone, True)


def _on_termination() -> None:
    """Has SIGTERM end the process when all is written, if it would end it at once. A program that sets a handler of its
    own later has that one."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and sys.platform != "win32" and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number: int, _: Any) -> None:
    # A handler that was put in front of this one decides about the process.
    is_last = signal.getsignal(number) is _terminated
    if _written != os.getpid():
        try:
            # The thread that was interrupted may hold what writing waits for, so it goes on meanwhile.
            _thread.start_new_thread(_write, (number if is_last else None,))
            return
        except RuntimeError:
            pass
    if is_last:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _write(number: Optional[int]) -> None:
    global _written
    try:
        for end in _ends:
            end(number is not None, number is not None)
    finally:
        if number is not None:
            _written = os.getpid()
            os.kill(os.getpid(), number)
