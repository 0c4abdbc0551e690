"""Recording what a program sends to language models, in one line.

    import openai, pactql
    client = pactql.record(openai.OpenAI(), "agent.db", session="support-42")

Every call of the client is a snapshot of exactly what was sent, with the reply, its usage and how long it took. The
client behaves as before: recording changes no request, raises nothing into the program, and writes behind its back.
"""

from __future__ import annotations

from ._call import session
from ._clients import record, record_all, recorder
from ._recorder import Recorder, RecordingWarning

__all__ = ["Recorder", "RecordingWarning", "record", "record_all", "recorder", "session"]
