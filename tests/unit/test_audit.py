"""The audit log: what is on record of a turn, that it is there before anything is done, and that no change of it goes
unseen."""

import asyncio
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amanu.cli.audit import main
from amanu.home import find_home
from amanu.proposals.transaction import Transactions
from amanu.session.audit_recorder import command_end
from amanu.session.sessions import open_sessions
from amanu.storage import audit_chain as chain
from amanu.storage.audit_chain import ChainLink, append, read, verify
from amanu.storage.audit_log import AuditLog
from amanu.text.redaction import MASK, Secrets
from amanu.tools.shell.report import STOPPED_SWAPPED, CommandEnd
from amanu_protocol.errors import AmanuError
from amanu_protocol.items import ToolCall
from amanu_protocol.requests import AuditQueryParams, EditScope, ProposalUndoParams
from support.full_disk import full_from
from support.scripted_session import call, scripted_session, step

LINES = 12


def entry(number: int, size: int = 20) -> dict[str, Any]:
    return {"at": number, "kind": "decided", "text": f"number {number}", "data": {"x": "y" * size}}


def grown(folder: Path, count: int = LINES) -> None:
    for number in range(count):
        append(folder, [entry(number)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in three files."""
    folder = tmp_path_factory.mktemp("whole") / "audit"
    before, chain.FILE_BYTES = chain.FILE_BYTES, 1000
    try:
        grown(folder)
    finally:
        chain.FILE_BYTES = before
    assert len(list(folder.glob("*.jsonl"))) >= 3
    return folder


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "audit"))


def rewritten(path: Path, change: Callable[[list[bytes]], object]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    path.write_bytes(b"".join(lines))


def test_a_whole_log(whole: Path) -> None:
    verdict = verify(whole)
    assert verdict.fault == "" and verdict.first == 1
    told = [each for each in read(whole) if each.fields["kind"] == "decided"]
    assert [each.fields["text"] for each in told] == [f"number {number}" for number in range(LINES)]
    assert verdict.last == told[-1].link == ChainLink(LINES + len(list(whole.glob("*.jsonl"))), told[-1].link.hash)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_bit_that_is_flipped_is_noticed(whole: Path, place: int, bit: int) -> None:
    files = sorted(whole.glob("*.jsonl"))
    sizes = [path.stat().st_size for path in files]
    place %= sum(sizes)
    at = 0
    while place >= sizes[at]:
        place -= sizes[at]
        at += 1
    data = bytearray(files[at].read_bytes())
    data[place] ^= 1 << bit
    before = files[at].read_bytes()
    files[at].write_bytes(data)
    try:
        verdict = verify(whole)
        assert verdict.fault or verdict.unfinished, "of the last newline, the entry before it is not counted"
    finally:
        files[at].write_bytes(before)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines.pop(2), "entry .* was expected"),
        (lambda lines: lines.insert(2, lines.pop(3)), "entry .* was expected"),
        (lambda lines: lines.insert(2, lines[1]), "entry .* was expected"),
        (lambda lines: lines.pop(0), "entry .* (was changed|was expected)"),
        (lambda lines: lines.insert(1, b"{}\n"), "line 2 of .* is not an entry"),
        (lambda lines: lines.append(b"{}\n"), "is not an entry"),
    ],
    ids=["deleted", "reordered", "repeated", "without its beginning", "put in", "added"],
)
@pytest.mark.parametrize("which", [0, 1])
def test_lines_that_are_touched_are_noticed(
    copied: Path, change: Callable[[Any], object], told: str, which: int
) -> None:
    path = sorted(copied.glob("*.jsonl"))[which]
    rewritten(path, change)
    assert re.search(told, verify(copied).fault)
    append(copied, [entry(99)])
    assert re.search(told, verify(copied).fault)


@pytest.mark.parametrize("change", [list[bytes].pop, list[bytes].clear], ids=["cut short", "emptied"])
def test_a_file_that_lost_its_end_is_noticed_by_the_one_behind_it(
    copied: Path, change: Callable[[Any], object]
) -> None:
    rewritten(sorted(copied.glob("*.jsonl"))[1], change)
    assert "was expected" in verify(copied).fault


def test_a_file_that_is_gone_from_the_middle_is_noticed(copied: Path) -> None:
    sorted(copied.glob("*.jsonl"))[1].unlink()
    assert "was expected" in verify(copied).fault


def test_a_last_file_that_was_emptied_is_not_written_over(copied: Path) -> None:
    last = sorted(copied.glob("*.jsonl"))[-1]
    last.write_bytes(b"")
    append(copied, [entry(99)])
    assert last.read_bytes() == b"" and "was expected" in verify(copied).fault


@pytest.mark.parametrize("forged", [LINES - 3, LINES + 9], ids=["cut off", "made anew"])
def test_a_log_that_was_cut_off_or_made_anew_is_told_by_an_entry_that_was_noted(
    copied: Path, tmp_path: Path, forged: int
) -> None:
    noted = verify(copied).last
    assert verify(copied, noted).fault == ""
    grown(tmp_path / "forged", forged)
    assert verify(tmp_path / "forged").fault == ""  # that is what the files alone cannot tell
    assert "noted" in verify(tmp_path / "forged", noted).fault


def test_an_entry_of_any_size_is_followed_by_the_next(tmp_path: Path) -> None:
    """A change of a thousand files is one."""
    append(tmp_path, [entry(1, size=2 << 20)])
    grown(tmp_path, 2)
    assert verify(tmp_path).fault == "" and len(list(read(tmp_path))) == 5


@pytest.mark.parametrize("left", [1, 40, 100])
def test_a_line_a_crash_broke_off_breaks_nothing(copied: Path, left: int) -> None:
    last = sorted(copied.glob("*.jsonl"))[-1]
    with last.open("ab") as file:
        file.write(last.read_bytes().splitlines()[-1][:left])
    assert (verify(copied).fault, verify(copied).unfinished) == ("", left)
    broken = last.read_bytes()
    append(copied, [entry(99)])
    assert verify(copied).fault == "" and last.read_bytes() == broken
    assert [each.fields["at"] for each in read(copied)][-1] == 99


def test_what_is_too_much_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "FILE_BYTES", 1000)
    noted: list[ChainLink] = []
    for number in range(60):
        append(tmp_path, [entry(number)], keep_bytes=3000)
        noted.append(verify(tmp_path).last)
    files = sorted(tmp_path.glob("*.jsonl"))
    verdict = verify(tmp_path)
    assert verdict.fault == "" and verdict.first == int(files[0].stem) > noted[0].number
    assert sum(path.stat().st_size for path in files) < 5000
    for link in noted:
        fault = verify(tmp_path, link).fault
        assert ("older than the oldest" in fault) if link.number < verdict.first else fault == ""


OLD = (
    "1f9f2f02b8c51e3ef46368d386edb291201dc89a6d8f7fde9cbaab053ffe478e "
    '{"at":0,"data":{"event":"begun","previous":"00000000000000000000000000000000000000000'
    '00000000000000000000000"},"kind":"log","number":1,"text":"A file of the log begins."}\n'
    "6db2e4df2152d51bae62b4a4f0477fea26cc6c65f5fad29a1cc2162c3be4875b "
    '{"at":0,"data":{},"kind":"decide'
    'd","number":2,"text":"number 0"}\n'
    "9f86d0\n"
    "e792e65bb0fe94721dcc8b3097cd0c32c6797e34bd2cad0f2978e33cd10c69b5 "
    '{"at":0,"data":{"bytes":6,"event":"torn","sha256":"73e7f1854f911fae5edaf2268828b2a9da65a6194f2c'
    'b6b28972a609460d2f30"},"kind":"log","number":3,"text":"The end of a line was lost in a crash."}\n'
    "6b999539906eeefa7965678c75b75ed828fe0df8613f9c14a295f1f91f62f713 "
    '{"at":9,"data":{},"kind":"decide'
    'd","number":4,"text":"number 9"}\n'
)
"""What an Amanu up to 2026-11 wrote: a crash broke off a line, and the next entry says so."""


def test_a_log_of_an_earlier_amanu_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "000000000001.jsonl"
    path.write_text(OLD)
    (tmp_path / "head").write_text("000000000004 not looked at\n")
    append(tmp_path, [entry(99)])
    assert verify(tmp_path).fault == "" and [each.fields["at"] for each in read(tmp_path)] == [0, 0, 0, 9, 99]
    path.write_text(OLD.replace("number 9", "number 8"))
    assert re.search("line 5 .*was changed", verify(tmp_path).fault)


WRITER = """
import sys
from pathlib import Path
from amanu.storage import audit_chain as chain
chain.FILE_BYTES = 20_000
number = 0
while number < int(sys.argv[3]):
    entry = {"at": 0, "kind": "decided", "text": f"{sys.argv[2]}.{number}", "data": {}}
    chain.append(Path(sys.argv[1]), [entry])
    number += 1
    print(number, flush=True)
"""


def writer(folder: Path, name: str, count: int) -> "subprocess.Popen[bytes]":
    program = [sys.executable, "-P", "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(program, stdout=subprocess.PIPE)


def test_processes_append_at_once(tmp_path: Path) -> None:
    running = [writer(tmp_path, name, 200) for name in "ab"]
    assert [(process.communicate()[0][-4:], process.returncode) for process in running] == [(b"200\n", 0)] * 2
    assert verify(tmp_path).fault == ""
    told = [each.fields["text"] for each in read(tmp_path) if each.fields["kind"] == "decided"]
    for name in "ab":
        assert [each for each in told if each.startswith(name)] == [f"{name}.{number}" for number in range(200)]


def test_whatever_was_acknowledged_before_a_kill_is_there(tmp_path: Path) -> None:
    for round in range(4):
        process = writer(tmp_path, f"k{round}", 10**9)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(7 + 11 * round)]
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        acknowledged = max(int(each) for each in said if each.strip())
        told = [each.fields["text"] for each in read(tmp_path) if each.fields["text"].startswith(f"k{round}.")]
        assert told[:acknowledged] == [f"k{round}.{number}" for number in range(acknowledged)]
    append(tmp_path, [entry(0)])
    assert verify(tmp_path).fault == ""


# On a disk that is full -------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit", Secrets())
    audit.add("decided", "one")
    await audit.durable()
    with full_from(700):
        audit.add("decided", "two", more="x" * 2000)
        for _ in range(2):
            with pytest.raises(AmanuError, match="disk is full") as caught:
                await audit.durable()
            assert caught.value.kind == "storageError"
        assert verify(tmp_path / "audit").fault == ""
    await audit.durable()
    await audit.close()
    told = [each.fields["text"] for each in read(tmp_path / "audit") if each.fields["kind"] == "decided"]
    assert told == ["one", "two"] and verify(tmp_path / "audit").fault == ""


async def test_nothing_is_done_that_is_not_on_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    acting = call("run_shell_command", command="touch done", network=True)
    async with scripted_session(tmp_path, step("", acting), step("Well.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await asyncio.sleep(0.5)
        with monkeypatch.context() as broken:
            broken.setattr(chain, "append", full)
            with pytest.raises(AmanuError, match="disk is full"):
                await d.answer("allow", scope="once")
            state = await d.ended()
        assert not (d.root / "done").exists()
        assert "disk is full" in next(each for each in state.items if each.kind == "toolCall").error  # pyright: ignore


# What is on record ------------------------------------------------------------------------------------


async def told(d: Any, **more: Any) -> list[Any]:
    result = await d.sessions.audit_query(AuditQueryParams(session_id="s", **more))
    assert result.intact, result.message
    return result.entries


@pytest.mark.parametrize(
    ("end", "exit"),
    [
        (CommandEnd(code=3), "3"),
        (CommandEnd(code=-signal.SIGKILL), "SIGKILL"),
        (CommandEnd(stop_reason="The command was ended after 5 s, its time limit."), None),
        (CommandEnd(stop_reason=STOPPED_SWAPPED), None),
    ],
    ids=["code", "signal", "limit", "swapped"],
)
def test_how_a_command_ended_is_read_from_our_note_not_from_its_output(end: CommandEnd, exit: str | None) -> None:
    output = f"Exit code: 7\n\n{end.exit_note()}\nFull output: elsewhere"
    item = ToolCall(
        item_id="c", turn_id="t", tool="x", title="", effect="run", arguments={}, state="failed", output=output
    )
    assert command_end(item)[0] == (exit or end.stop_reason)


async def test_a_command_that_was_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key-0123456789")
    acting = call("run_shell_command", command="touch -c it; echo canary-key-0123456789; exit 3", network=True)
    async with scripted_session(tmp_path, step("", acting), step("Well.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await asyncio.sleep(0.5)
        await d.answer("allow", scope="once")
        await d.ended()
        call_id = next(each.item_id for each in d.session.state.items if each.kind == "toolCall")
        found = await told(d, tool_call_id=call_id)
        assert [each.kind for each in found] == ["asked", "decided", "started", "ended"]
        asked, decided, started, ended = (each.data for each in found)
        assert asked["title"] == f"Run touch -c it; echo {MASK}; exit 3" and asked["effect"] == "run" and asked["rule"]
        assert (decided["by"], decided["client"], decided["scope"]) == ("user", "one", "once")
        assert (
            started["arguments"] == {"command": f"touch -c it; echo {MASK}; exit 3", "network": True}
            and started["tool"] == "run_shell_command"
        )
        assert (ended["exit"], ended["state"]) == ("3", "failed")
        item = next(each for each in d.session.state.items if each.kind == "toolCall")
        assert item.kind == "toolCall" and ended["sha256"] == sha256(item.output.encode()).hexdigest()
        assert ended["ms"] >= 0 and ended["bytes"] == len(item.output.encode())
        begun = await told(d, limit=2)
        assert begun[-1].number == found[-1].number
        assert [each.kind for each in await told(d, before=found[0].number)][:2] == ["mode", "trust"]
    sessions = open_sessions()
    await sessions.delete("s")
    again = await sessions.audit_query(AuditQueryParams(session_id="s", tool_call_id=call_id))
    assert [each.hash for each in again.entries] == [each.hash for each in found]
    await sessions.shutdown()
    assert not any(b"canary-key" in path.read_bytes() for path in find_home().audit.iterdir())


async def test_a_change_names_both_texts_and_who_decided(tmp_path: Path) -> None:
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with scripted_session(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
        before = sha256(d.file.read_bytes()).hexdigest()
        await d.prompt("go")
        await d.ended()
        kinds = [each.kind for each in await told(d)]
        assert (
            kinds.index("decided")
            < kinds.index("started")
            < kinds.index("changing")
            < kinds.index("changed")
            < kinds.index("ended")
        )
        change = next(each.data for each in await told(d) if each.kind == "changed")
        assert change["path"] == str(d.file) and change["decided_by"] == ["rule"]
        assert change["base_sha256"] == before
        assert change["result_sha256"] == sha256(d.file.read_bytes()).hexdigest() != before
        decided = next(each for each in await told(d) if each.kind == "decided")
        assert decided.data["by"] == "rule" and "rule" in decided.text
        await d.session.set_mode("plan")
        assert (await told(d))[-1].data["mode"] == "plan"


@pytest.mark.parametrize(
    ("stands", "then"),
    [
        ("as it was", "Not changed:"),
        ("written", "Changed"),
        ("fails", "Not changed:"),
    ],
)
async def test_a_change_is_on_record_before_it_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands: str, then: str
) -> None:
    """A crash leaves the intention; the next daemon says what came of it."""
    home = find_home()
    crashed = tmp_path / "crashed"
    write = Transactions._change_files  # pyright: ignore[reportPrivateUsage]

    async def broken_off(*args: Any) -> None:
        if stands == "written":
            await write(*args)
        shutil.copytree(home.state, crashed)
        if stands == "fails":
            raise OSError("no such luck")
        if stands == "as it was":
            await write(*args)

    monkeypatch.setattr(Transactions, "_change_files", broken_off)
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with scripted_session(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
        base = d.file.read_bytes()
        await d.prompt("go")
        await d.ended()
        if stands == "fails":
            found = [each for each in await told(d) if each.kind.startswith("chang")]
            assert [each.text for each in found] == [f"Will change {d.file}", f"Not changed: {d.file}"]
            assert found[1].data["failed"] == found[0].data["hunks"] and not found[1].data["hunks"]
        after = base.replace(b"line 2\n", b"line two\n")
        d.file.write_bytes(after if stands == "written" else base)
    shutil.rmtree(home.state)
    crashed.rename(home.state)
    if stands == "as it was":  # a recovery would finish it, but the user was faster
        (tmp_path / "work" / "notes.txt").write_bytes(base.replace(b"line 2", b"line zwei"))
    sessions = open_sessions()
    await sessions.get("s")
    entries = (await sessions.audit_query(AuditQueryParams(session_id="s"))).entries
    will, did = [each for each in entries if each.kind.startswith("chang")]
    assert will.text.startswith("Will change") and did.text.startswith(then)
    assert will.data["result_sha256"] == sha256(after).hexdigest() and will.data["base_sha256"]
    assert will.data["decided_by"] == did.data["decided_by"] == ["rule"]
    assert did.data.get("failed", did.data["hunks"]) == will.data["hunks"]
    await sessions.shutdown()


async def test_what_a_daemon_does_last_is_on_record(tmp_path: Path) -> None:
    """It leaves while a question stands."""
    acting = call("run_shell_command", command="touch -c it", network=True)
    async with scripted_session(tmp_path, step("", acting), step("Well.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
    entries = [each.fields for each in read(find_home().audit, lambda line: True)]
    assert [each["kind"] for each in entries][-2:] == ["decided", "ended"]
    assert "Cancelled" in entries[-1]["text"]


async def test_an_undo_is_on_record_before_it_is_made(tmp_path: Path) -> None:
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with scripted_session(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=False))
        found = [each for each in await told(d) if each.kind.startswith("chang")]
        assert [each.text.split(" /")[0] for each in found] == [
            "Will change",
            "Changed",
            "Will undo changes in",
            "Undid changes in",
        ]
        hunks = found[0].data["hunks"]
        assert [each.data["hunks"] or each.data["undone"] for each in found] == [hunks] * 4
        assert found[2].data["result_sha256"] == found[3].data["result_sha256"] == found[0].data["base_sha256"]


async def test_the_log_of_all_sessions_is_shown_and_verified_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with scripted_session(tmp_path, step("Hello.")) as d:
        await d.prompt("go")
        await d.ended()

    def amanu(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out + said.err

    lines = amanu("show", "--session", "s", "--json")[1].splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["mode", "trust"]
    assert "The session starts" in amanu("show", "--since", "1h")[1]
    assert amanu("show", "--session", "t")[1] == "No matching entries.\n"
    code, said = amanu("verify")
    assert code == 0 and "3 entries" in said
    assert amanu("verify", "--noted", said.split("The last entry is ")[1].split()[0])[0] == 0
    path = next(find_home().audit.glob("*.jsonl"))
    path.write_bytes(path.read_bytes().replace(b'"ask"', b'"bad"', 1))
    code, said = amanu("verify")
    assert code == 1 and "was changed" in said and "line 2" in said


async def test_an_entry_costs_little(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit", Secrets())
    started = time.thread_time()
    for number in range(300):
        audit.add("started", "Started: Run make", session_id="s", arguments={"command": f"make {number}"})
    added = time.thread_time() - started
    await audit.durable()
    assert added < 0.3, "a millisecond each, on the event loop"
    await audit.close()
    assert verify(tmp_path / "audit").last.number == 301
