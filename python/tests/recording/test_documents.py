"""The page on recording runs: its Python in one program, its commands between, against the server.

`PACTQL_BLESS=1` writes what the commands print into the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import Server

PAGE = Path(__file__).resolve().parents[3] / "docs" / "recording.md"
BLOCK = re.compile(r"^```(python|shell)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def printed(command: str) -> str:
    """What a command of `pactql` prints."""
    program, *arguments = shlex.split(command)
    assert program == "pactql"
    # Colours and widths are those of no terminal.
    done = subprocess.run(
        [sys.executable, "-m", "pactql", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def test_the_page_on_recording(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.chdir(tmp_path)
    source = PAGE.read_text()
    names: dict[str, Any] = {}

    def run(block: re.Match[str]) -> str:
        kind, text = block.groups()
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            return block.group()
        [command, *_] = text.splitlines()
        output = printed(command.removeprefix("$ "))
        return f"```shell\n{command}\n{output.rstrip()}\n```"

    found = BLOCK.sub(run, source)
    if os.environ.get("PACTQL_BLESS") == "1":
        PAGE.write_text(found)
    assert found.splitlines() == source.splitlines()
