"""What any program could ask about edits, right, nearly right and absurd: one answer each, and never a fault of ours.

Through the real connection, to a real session with a proposal that is open.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from amanu.frontends.lsp.connection import connect_in_process
from amanu.frontends.lsp.plain.client import PlainClient
from amanu.permissions import approvals as approval
from amanu_protocol.methods import BY_NAME
from amanu_protocol.requests import SessionAttachParams
from support.raw_client import AMANU, RawClient
from support.scripted_session import TWO_HUNKS, ScriptedSession, call, scripted_session, step
from support.sweeps import examples

INTERNAL = -32603
METHODS = sorted(name for name in BY_NAME if name.startswith(("amanu/proposal/", "amanu/checkpoint/")))
NAMES = (
    *("sessionId", "proposalId", "version", "hunkId", "newText", "review", "turnId", "dryRun", "files"),
    *("scope", "decision", "seen", "hunks", "conversation"),
)
"""Of parameters. What they hold may be anything, their own kind of value most of all."""

KNOWN = "\ue000"
"""Before the name of something the session has: put in when it is asked."""
ids = st.sampled_from(
    [f"{KNOWN}{each}" for each in ("session", "proposal", "hunk", "turn", "path")] + ["", "x", "..", "\0"]
)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | ids,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def mostly(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, junk)


versions = st.sampled_from([f"{KNOWN}version", 0, -1, 2**53])
words = st.sampled_from(["accept", "reject", "keep", "redo", "undo", "before", "after", "ACCEPT", ""])
scopes = st.fixed_dictionaries(
    {},
    optional={
        "proposalId": mostly(ids),
        "hunkIds": mostly(st.lists(mostly(ids), max_size=4)),
        "turnId": mostly(ids),
        "path": mostly(ids),
        "more": junk,
    },
)
decisions = st.fixed_dictionaries(
    {"hunkId": mostly(ids), "decision": mostly(words)},
    optional={"newText": mostly(st.text()), "reason": mostly(st.text())},
)
params = st.fixed_dictionaries(
    {"sessionId": mostly(st.just(f"{KNOWN}session"))},
    optional={
        "proposalId": mostly(ids),
        "version": mostly(versions),
        "hunkId": mostly(ids),
        "newText": mostly(st.text()),
        "review": mostly(words),
        "turnId": mostly(ids),
        "dryRun": mostly(st.booleans()),
        "files": mostly(st.booleans()),
        "conversation": mostly(st.booleans()),
        "scope": mostly(scopes),
        "decision": mostly(words),
        "seen": mostly(
            st.lists(st.fixed_dictionaries({"proposalId": mostly(ids), "version": mostly(versions)}), max_size=3)
        ),
        "hunks": mostly(st.lists(decisions, max_size=4)),
        "unknown": junk,
    },
)
orders = st.fixed_dictionaries(
    {},
    optional={
        "session": mostly(st.just(f"{KNOWN}session")),
        "proposals": mostly(st.dictionaries(ids, mostly(st.dictionaries(ids, mostly(ids), max_size=2)), max_size=2)),
        "proposal": mostly(ids),
        "turn": mostly(ids),
        "call": mostly(ids),
        "decision": mostly(words),
        "scope": mostly(st.sampled_from(["once", "session", "user"])),
        "path": mostly(st.sampled_from([f"{KNOWN}path", f"{KNOWN}patch", f"{KNOWN}outside", "a.patch"])),
        "text": mostly(st.sampled_from(["", "ask", "plan"])),
        "lines": mostly(
            st.fixed_dictionaries({}, optional={"start": mostly(st.integers()), "end": mostly(st.integers())})
        ),
        "findings": mostly(st.just([])),
    },
)


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    match value:
        case str() if value.startswith(KNOWN):
            return known.get(value[1:], value)
        case list():
            return [filled(each, known) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {filled(key, known): filled(each, known) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def of(d: ScriptedSession) -> dict[str, Any]:
    """What the session has now."""
    proposals, documents = d.session.state.proposals, d.sessions.documents / "s-s"
    found: dict[str, Any] = {"session": "s", "path": str(d.file), "turn": "turn-p1"}
    found |= {"patch": str(documents / "\0.patch"), "outside": str(documents / ".." / ".." / "x.patch")}
    if proposals:
        proposal = proposals[-1]
        found |= {"proposal": proposal.proposal_id, "version": proposal.version}
        found["hunk"] = proposal.files[0].hunks[0].hunk_id
    return found


async def asked(asking: Sequence[tuple[str, Any]], capabilities: Any) -> tuple[list[dict[str, Any]], RawClient]:
    """The answers, and the client with all else it heard."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(approval, "GUARD_SECONDS", 0),
        patch.dict(os.environ, AMANU_HOME=f"{folder}/home"),
    ):
        script = [step("I will.", call("write_file", path="notes.txt", content=TWO_HUNKS)), step("Done.")]
        async with scripted_session(Path(folder), *script) as d:
            await d.prompt("do it")
            await d.until(lambda state: state.approvals)
            client = RawClient(*await connect_in_process(d.sessions, {}))
            root = {"uri": d.root.resolve().as_uri(), "name": "work"}
            await client.initialize(capabilities, workspaceFolders=[root])
            if capabilities:
                await client.request(
                    "amanu/session/attach", SessionAttachParams(session_id="s").model_dump(by_alias=True)
                )
            answers: list[dict[str, Any]] = []
            for method, given in asking:
                try:
                    answers.append(await client.request(method, filled(given, of(d))))
                except TimeoutError:
                    raise AssertionError(f"never answered: {method} {filled(given, of(d))}") from None
            await asyncio.sleep(0.02)
            await client.request("amanu/none")  # what was still to be said comes before its answer
            client.writer.close()
            await client.writer.wait_closed()
    return answers, client


def check(answers: Sequence[Mapping[str, Any]], client: RawClient) -> None:
    for answer in answers:
        error = answer.get("error")
        assert ("result" in answer) != (error is not None), answer
        if error is not None:
            assert error["code"] != INTERNAL, error
            assert error["code"] != -32602 or "path" in error["data"], error
    assert [each for each in client.heard if "method" not in each] == [], "answered once"
    assert "internal error" not in json.dumps(client.heard)


FUZZ = settings(
    max_examples=examples(12, 4),
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@FUZZ
@given(
    st.lists(
        st.tuples(st.sampled_from(METHODS), params | params | st.lists(junk, max_size=2)), min_size=10, max_size=30
    )
)
def test_requests_about_edits(asking: list[tuple[str, Any]]) -> None:
    check(*asyncio.run(asked(asking, AMANU)))


@FUZZ
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(PlainClient.COMMANDS)), st.lists(mostly(orders), max_size=2) | junk),
        min_size=10,
        max_size=20,
    )
)
def test_commands_of_editors_without_a_plugin(asking: list[tuple[str, Any]]) -> None:
    commands = [("workspace/executeCommand", {"command": name, "arguments": given}) for name, given in asking]
    check(*asyncio.run(asked(commands, {})))


MANY = examples(100_000, 20_000)


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        ("amanu/proposal/undo", {"scope": {"hunkIds": ["x"] * MANY}}, "result"),
        ("amanu/proposal/diff", {"scope": {"hunkIds": [f"{KNOWN}hunk"] * MANY}}, "result"),
        (
            "amanu/proposal/decide",
            {"scope": {}, "decision": "keep", "seen": [{"proposalId": "x", "version": 1}] * MANY},
            "result",
        ),
        (
            "amanu/proposal/resolve",
            {
                "proposalId": f"{KNOWN}proposal",
                "version": f"{KNOWN}version",
                "hunks": [{"hunkId": f"{KNOWN}hunk", "decision": "reject"}] * MANY,
            },
            "result",
        ),
        (
            "amanu/proposal/resolve",
            {"proposalId": "x", "version": 1, "hunks": [{"hunkId": "x", "decision": "accept"}] * MANY},
            "error",
        ),
    ],
)
async def test_many_of_anything_is_answered(method: str, given: dict[str, Any], expected: str) -> None:
    answers, client = await asked([(method, {"sessionId": "s", **given})], AMANU)
    check(answers, client)
    assert expected in answers[0], answers[0]
