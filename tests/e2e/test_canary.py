"""Canary keys on every way a key can take: none is found in anything Amanu keeps, sends to a model or shows."""

import asyncio
import json
import re
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.cli.problem_report import ReportSource, problem_report
from amanu.home import find_home
from amanu_protocol.state import SessionState
from e2e.test_prompt_to_edit import VENDORS, Editor, editor, service
from support.running_daemon import signal_daemon
from support.strict_services.http import Fault, Say, ToolUse

FILE_KEY = "canary-in-auth-json-0123456789"
"""Of no known form: only its source tells that it is one."""
CANARIES = {
    # Where it is → the key.
    "environment": "canary-in-environment-0123456789",
    "endpoint": "canary-of-endpoint-0123456789",
    "auth.json": FILE_KEY,
    "other service": "ghp_canary0123456789canary0123456789abcd",
    "database": "canary-pass-0123456789ab",
    "file": "AKIACANARY0123456789",
    "private key": "MIIEcanary0123456789canary0123456789canary0123456789canary01234567",
}
PROBE = (
    "import os; print('probe', sorted(n for n, v in os.environ.items() if '0123456789' in v));"
    "raise RuntimeError('at ?key=' + open('notes.env').read())"
)


def hits(data: bytes) -> list[str]:
    """The canaries in bytes, as they are or in one of the usual forms."""
    lower = data.lower()
    return [where for where, key in CANARIES.items() if key.lower().encode() in lower]


def unpacked(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    if data.startswith(b"SQLite format 3"):  # text may stand across two pages
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
            yield "\n".join(db.iterdump()).encode("utf-8", "replace")
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in db.execute(f"SELECT * FROM {table}"):
                    yield b"\n".join(each if isinstance(each, bytes) else str(each).encode() for each in row)
        db.close()
    for found in re.finditer(rb"\x1f\x8b\x08|\x78[\x01\x9c\xda]", data):  # gzip, zlib
        try:
            yield zlib.decompressobj(47).decompress(data[found.start() :])
        except zlib.error:
            continue


def everything(*folders: Path) -> dict[str, list[str]]:
    """Files of those folders → the canaries in them; but `auth.json`, where the user keeps theirs."""
    found: dict[str, list[str]] = {}
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and path.name != "auth.json":
                known = [where for data in unpacked(path) for where in hits(data)]
                if known or any(where in path.name for where in CANARIES.values()):
                    found[str(path)] = known
    return found


def workspace(folder: Path) -> Path:
    root = folder / "work"
    root.mkdir()
    pem = f"-----BEGIN PRIVATE KEY-----\n{CANARIES['private key']}\n-----END PRIVATE KEY-----\n"
    (root / "notes.env").write_text(f"id = {CANARIES['file']}\nurl = postgres://me:{CANARIES['database']}@db/x\n")
    (root / "server.pem").write_text(pem + f"{CANARIES['file']}\n")
    return root


def test_the_look_finds_what_is_there(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "x.sqlite")
    db.execute("CREATE TABLE t (x BLOB)")
    db.execute("INSERT INTO t VALUES (?)", (b"-" * 4050 + FILE_KEY.encode() + b"-" * 5000,))
    db.commit()
    db.close()
    (tmp_path / "y.gz").write_bytes(zlib.compress(CANARIES["other service"].encode()))
    assert everything(tmp_path) == {
        str(tmp_path / "x.sqlite"): ["auth.json"] * len(everything(tmp_path)[str(tmp_path / "x.sqlite")]),
        str(tmp_path / "y.gz"): ["other service"],
    }


async def answered(client: Editor, prompt_id: str, text: str) -> Any:
    """Say it, say yes to whatever is asked, and wait for the end of the turn."""
    await client.ask("prompt/send", sessionId="s1", promptId=prompt_id, text=text)
    while True:
        state = await client.until(
            lambda state: state.approvals or (state.last_turn and state.last_turn.turn_id == f"turn-{prompt_id}"), 30
        )
        if not state.approvals:
            return state
        await asyncio.sleep(0.55)
        call_id = state.approvals[0].tool_call_id
        more = {"digest": state.approvals[0].digest} if state.approvals[0].digest else {}
        await client.ask("approval/resolve", sessionId="s1", toolCallId=call_id, decision="allow", scope="once", **more)
        await client.until(lambda state, call_id=call_id: all(each.tool_call_id != call_id for each in state.approvals))


async def nothing_found() -> str:
    return ""


async def gone(pid: int) -> None:
    while Path(f"/proc/{pid}").exists():
        await asyncio.sleep(0.05)


@pytest.mark.parametrize(
    ("vendor", "options"), [*((each, ["--alone"]) for each in VENDORS), *((each, []) for each in [*VENDORS][:1])]
)
async def test_no_key_is_found_anywhere(vendor: str, options: list[str], tmp_path: Path) -> None:
    root = workspace(tmp_path)
    home = find_home().make()
    key_variable = next(name for name in VENDORS[vendor][2] if name.endswith("KEY"))
    leaks = " ".join(CANARIES[each] for each in ("environment", "auth.json", "endpoint"))
    in_the_file = "openrouter"
    (home.config / "auth.json").touch(0o600)
    (home.config / "auth.json").write_text(json.dumps({"keys": {in_the_file: FILE_KEY}}))
    (home.config / "config.toml").write_text(
        'log_level = "debug"\n[endpoints.mine]\nbase_url = "http://127.0.0.1:9"\nkey_variable = "MY_MODELS"\n'
    )
    environment = {
        "MY_MODELS": CANARIES["endpoint"],
        "GITHUB_TOKEN": CANARIES["other service"],
        "DB_PASSWORD": CANARIES["database"],
    }
    shell = [
        f'printenv; python3 -c "{PROBE}"',
        f"cat notes.env server.pem {home.config}/auth.json",
        f"yes server.pem | head -n 3000 | xargs cat; cat {home.config}/auth.json",
    ]
    said = [ToolUse("run_shell_command", {"command": each}) for each in shell]
    reads = [ToolUse("read_file", {"path": "server.pem"}), ToolUse("grep", {"pattern": "AKIA"})]
    script = [
        Say(fault=Fault("status", status=400, message=f"the key {leaks} is bad: https://x/v1?key={FILE_KEY}")),
        *(Say(text="I try.", calls=[each]) for each in (*said, *reads)),
        Say(text="Done."),
        Say(fault=Fault("status", status=307, headers={"location": f"http://127.0.0.1:9/?key={FILE_KEY}"})),
        Say(text="Half", fault=Fault("errorEvent", after=1, message=f"odd: {leaks}")),
    ]
    recording = tmp_path / "recording.ndjson"
    async with service(vendor, script) as (served, model_id, keys):
        keys[key_variable] = CANARIES["environment"]
        async with editor({**environment, **keys}, *options) as client:
            made = await client.ask("session/create", sessionId="s1", roots=[str(root)], modelId=model_id)
            client.state = SessionState.model_validate(made["state"])
            client.epoch, client.seq = made["epoch"], made["fromSeq"] - 1
            await client.ask("session/record", sessionId="s1", path=str(recording))
            state = client.state
            for number in range(4):
                state = await answered(client, f"p{number}", "Do it.")
            shown = state.model_dump_json()
            probe = [each for each in state.items if each.kind == "toolCall" and "probe" in each.output]
            audit = await client.ask("audit/query", sessionId="s1")
            blobs = [each.blob for each in state.items if each.kind == "toolCall" and each.blob is not None]
        if not options:
            pid = signal_daemon()  # after what it may have to say at its end
            assert pid is not None
            await gone(pid)
        sent = [request.body for request in served.requests]
        heads = ["\n".join(f"{name}: {value}" for name, value in each.headers.items()) for each in served.requests]
    assert [each.tool for each in probe] == ["run_shell_command"], "the probe ran"
    assert "probe []" in probe[0].output, "a command's environment holds no key"
    assert len(blobs) == 1 and blobs[0].size > 100_000
    assert audit["intact"] and len([each for each in audit["entries"] if each["kind"] == "ended"]) == 5
    assert len(sent) >= 7 and [hits(body) for body in sent] == [[]] * len(sent)
    assert [hits(head.encode()) for head in heads] == [["environment"]] * len(sent), "the service's own key, no other"
    whole = await problem_report(ReportSource(home, {**environment, **keys}, "s1"), nothing_found)
    assert len(whole) > 10_000 and hits(whole.encode()) == [], "what a user sends with a report"
    assert hits(shown.encode()) == [] and hits(json.dumps(audit).encode()) == []
    assert recording.stat().st_size > 10_000
    places = [folder for folder in (home.config, home.state, home.logs, home.runtime, tmp_path) if folder.exists()]
    found = everything(*places)
    assert {path: each for path, each in found.items() if not path.startswith(str(root))} == {}
