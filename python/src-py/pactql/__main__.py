"""The command line: `pactql …` and `python -m pactql …` are the same program."""

import signal
import sys

from ._pactql import run_program


def main() -> int:
    """Runs the command line with the arguments of this process. Returns the exit code."""
    # Python answers Ctrl-C when it runs again, and that is after the program; so the program answers it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return run_program(["pactql", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
