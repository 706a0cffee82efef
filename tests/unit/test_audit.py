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
from amanu.proposals import apply
from amanu.session.sessions import open_sessions
from amanu.storage import audit_chain as chain
from amanu.storage.audit_chain import Chain, Head, read, verify
from amanu.storage.audit_log import Audit
from amanu.text.redaction import MASK, Secrets
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import AuditQueryParams, EditScope, ProposalUndoParams
from full_disk import full_from
from session_desk import call, desk, step

LINES = 12


def entry(number: int, size: int = 20) -> dict[str, Any]:
    return {"at": number, "kind": "decided", "text": f"number {number}", "data": {"x": "y" * size}}


def grown(folder: Path, count: int = LINES) -> Chain:
    log = Chain(folder)
    for number in range(count):
        log.append([entry(number)])
    return log


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in three files."""
    folder = tmp_path_factory.mktemp("whole") / "audit"
    before, chain.FILE_BYTES = chain.FILE_BYTES, 1000
    try:
        grown(folder).close()
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
    assert verdict.head == Head(LINES + len(list(whole.glob("*.jsonl"))), told[-1].hash)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 10**6), bit=st.integers(0, 7))
def test_any_bit_that_is_flipped_is_noticed(whole: Path, place: int, bit: int) -> None:
    files = [*sorted(whole.glob("*.jsonl")), whole / "head"]
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
        assert verify(whole).fault
    finally:
        files[at].write_bytes(before)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines.pop(2), "should be there"),
        (lambda lines: lines.pop(), "missing"),
        (lambda lines: lines.insert(2, lines.pop(3)), "should be there"),
        (lambda lines: lines.insert(2, lines[1]), "should be there"),
        (lambda lines: lines.clear(), "gone|missing"),
        (lambda lines: lines.append(lines.pop()[:-1]), "within a line"),
        (lambda lines: lines.append(b"{}\n"), "no entry"),
    ],
    ids=["deleted", "last deleted", "reordered", "repeated", "emptied", "torn inside", "added"],
)
@pytest.mark.parametrize("which", [0, 1])
def test_lines_that_are_touched_are_noticed(
    copied: Path, change: Callable[[Any], object], told: str, which: int
) -> None:
    path = sorted(copied.glob("*.jsonl"))[which]
    rewritten(path, change)
    assert re.search(told, verify(copied).fault)


@pytest.mark.parametrize("gone", ["first", "middle", "last", "all", "head"])
def test_files_that_are_gone_are_noticed(copied: Path, gone: str) -> None:
    files = sorted(copied.glob("*.jsonl"))
    for path in {"first": files[:1], "middle": files[1:2], "last": files[-1:], "all": files}.get(
        gone, [copied / "head"]
    ):
        path.unlink()
    assert verify(copied).fault


def test_an_end_that_was_cut_off_stays_noticed(copied: Path) -> None:
    last = sorted(copied.glob("*.jsonl"))[-1]
    rewritten(last, lambda lines: lines.pop())
    assert "the end was cut off" in verify(copied).fault
    log = Chain(copied)
    log.append([entry(99)])
    log.close()
    assert "should be there" in verify(copied).fault
    assert any(each.fields["data"].get("event") == "cut" for each in read(copied))


@pytest.mark.parametrize("lost", ["nothing", "the last"])
def test_a_head_that_was_taken_away_stays_noticed(copied: Path, lost: str) -> None:
    """Else the next entry would make it anew, to fit whatever is left."""
    (copied / "head").unlink()
    if lost == "the last":
        rewritten(sorted(copied.glob("*.jsonl"))[-1], lambda lines: lines.pop())
    for _ in range(2):
        log = Chain(copied)
        log.append([entry(99)])
        log.close()
        assert "should be there" in verify(copied).fault
    assert [each.fields["data"].get("event") for each in read(copied)].count("cut") == 1


@pytest.mark.parametrize("how", ["cut", "anew"])
def test_who_writes_remembers_the_end_it_wrote(tmp_path: Path, how: str) -> None:
    """A head that was made to fit does not deceive the daemon that runs."""
    log = grown(tmp_path / "audit")
    forged = tmp_path / "forged"
    grown(forged, LINES - 2 if how == "cut" else LINES).close()
    for each in (*forged.glob("*.jsonl"), forged / "head"):
        changed = each.read_bytes()
        (tmp_path / "audit" / each.name).write_bytes(changed)
    if how == "anew":  # of the same length: seen when the next daemon, or another, wrote meanwhile
        other = Chain(tmp_path / "audit")
        other.append([entry(98)])
        other.close()
    log.append([entry(99)])
    log.close()
    assert "should be there" in verify(tmp_path / "audit").fault


def test_an_entry_of_any_size_is_found_again(tmp_path: Path) -> None:
    """A change of a thousand files is one."""
    log = grown(tmp_path)
    log.append([entry(99, size=600_000)])
    log.close()
    grown(tmp_path, 1).close()
    assert verify(tmp_path).fault == ""


def test_the_end_of_a_log_that_was_not_noted_long_enough_ago_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went with the oldest entries, or all was made anew from a later number on."""
    monkeypatch.setattr(chain, "FILE_BYTES", 1000)
    log = Chain(tmp_path, 3000)
    heads: list[chain.Head] = []
    for number in range(40):
        log.append([entry(number)])
        heads.append(verify(tmp_path).head)
    log.close()
    first = verify(tmp_path).first
    assert first > heads[0].number and verify(tmp_path).fault == ""
    for head in heads:
        found = verify(tmp_path, head).fault
        assert ("not there any more" in found) if head.number < first - 1 else found == ""


def test_a_log_made_anew_is_told_by_a_head_that_was_noted(copied: Path, tmp_path: Path) -> None:
    noted = verify(copied).head
    forged = tmp_path / "forged"
    grown(forged, LINES + 9).close()
    assert verify(forged).fault == ""  # that is what the files alone cannot tell
    assert "noted" in verify(forged, noted).fault
    assert verify(copied, noted).fault == ""


@pytest.mark.parametrize("rest", [b"\0\n\0\0\n\0", b"x\n\n\n", b"\0" * 400_000], ids=["lines", "empty lines", "much"])
def test_whatever_a_power_failure_left_at_the_end_is_closed(copied: Path, rest: bytes) -> None:
    """Blocks of a batch that did not reach the disk are zeros, with the newlines of others between them."""
    with sorted(copied.glob("*.jsonl"))[-1].open("ab") as file:
        file.write(rest)
    for _ in range(2):
        log = Chain(copied)
        log.append([entry(99)])
        log.close()
    assert verify(copied).fault == ""
    assert [each.fields["data"].get("event") for each in read(copied)].count("torn") == 1


@pytest.mark.parametrize("left", [1, 40, 100])
def test_a_line_a_crash_broke_off_is_closed(copied: Path, left: int) -> None:
    last = sorted(copied.glob("*.jsonl"))[-1]
    whole = last.read_bytes()
    with last.open("ab") as file:
        file.write(whole.splitlines(keepends=True)[-1][:left])
    assert (verify(copied).fault, verify(copied).unfinished) == ("", left)
    log = Chain(copied)
    log.append([entry(99)])
    log.close()
    assert verify(copied).fault == ""
    assert [each.fields["data"]["bytes"] for each in read(copied) if each.fields["data"].get("event") == "torn"] == [
        left
    ]
    data = last.read_bytes()
    last.write_bytes(data.replace(whole[-30:] + data[len(whole) : len(whole) + left], whole[-30:] + b"#" * left, 1))
    assert "no entry" in verify(copied).fault


def test_what_is_too_much_goes_and_the_log_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "FILE_BYTES", 1000)
    log = Chain(tmp_path, keep_bytes=3000)
    for number in range(60):
        log.append([entry(number)])
    log.close()
    files = sorted(tmp_path.glob("*.jsonl"))
    verdict = verify(tmp_path)
    assert verdict.fault == "" and verdict.first == int(files[0].stem) > 1
    assert sum(path.stat().st_size for path in files) < 5000
    files[0].unlink()
    assert "are gone" in verify(tmp_path).fault


WRITER = """
import sys
from pathlib import Path
from amanu.storage import audit_chain as chain
chain.FILE_BYTES = 20_000
log = chain.Chain(Path(sys.argv[1]))
number = 0
while number < int(sys.argv[3]):
    log.append([{"at": 0, "kind": "decided", "text": f"{sys.argv[2]}.{number}", "data": {}}])
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
    log = Chain(tmp_path)
    log.append([entry(0)])
    log.close()
    assert verify(tmp_path).fault == ""


# On a disk that is full -------------------------------------------------------------------------------


async def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit", Secrets())
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
    def full(self: Chain, entries: object) -> None:
        raise OSError(28, "No space left on device")

    acting = call("run_shell_command", command="touch done")
    async with desk(tmp_path, step("", acting), step("Well.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
        await asyncio.sleep(0.5)
        with monkeypatch.context() as broken:
            broken.setattr(Chain, "append", full)
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


async def test_a_command_that_was_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key-0123456789")
    acting = call("run_shell_command", command="touch -c it; echo canary-key-0123456789; exit 3")
    async with desk(tmp_path, step("", acting), step("Well.")) as d:
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
        assert (decided["by"], decided["client"], decided["scope"]) == ("person", "one", "once")
        assert (
            started["arguments"] == {"command": f"touch -c it; echo {MASK}; exit 3"}
            and started["tool"] == "run_shell_command"
        )
        assert (ended["exit"], ended["state"]) == ("3", "failed")
        item = next(each for each in d.session.state.items if each.kind == "toolCall")
        assert item.kind == "toolCall" and ended["sha256"] == sha256(item.output.encode()).hexdigest()
        assert ended["ms"] >= 0 and ended["bytes"] == len(item.output.encode())
        begun = await told(d, limit=2)
        assert begun[-1].number == found[-1].number
        assert [each.kind for each in await told(d, before=found[0].number)] == ["mode", "trust"]
    sessions = open_sessions()
    await sessions.delete("s")
    again = await sessions.audit_query(AuditQueryParams(session_id="s", tool_call_id=call_id))
    assert [each.hash for each in again.entries] == [each.hash for each in found]
    await sessions.shutdown()
    assert not any(b"canary-key" in path.read_bytes() for path in find_home().audit.iterdir())


async def test_a_change_names_both_texts_and_who_decided(tmp_path: Path) -> None:
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with desk(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
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
    write = apply._write  # pyright: ignore[reportPrivateUsage]

    async def broken_off(*args: Any) -> None:
        if stands == "written":
            await write(*args)
        shutil.copytree(home.state, crashed)
        if stands == "fails":
            raise OSError("no such luck")
        if stands == "as it was":
            await write(*args)

    monkeypatch.setattr(apply, "_write", broken_off)
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with desk(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
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
    if stands == "as it was":  # a recovery would finish it, but the person was faster
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
    acting = call("run_shell_command", command="touch -c it")
    async with desk(tmp_path, step("", acting), step("Well.")) as d:
        await d.prompt("go")
        await d.until(lambda state: state.approvals)
    entries = [each.fields for each in read(find_home().audit, lambda line: True)]
    assert [each["kind"] for each in entries][-2:] == ["decided", "ended"]
    assert "Cancelled" in entries[-1]["text"]


async def test_an_undo_is_on_record_before_it_is_made(tmp_path: Path) -> None:
    acting = call("edit_file", path="notes.txt", old_text="line 2\n", new_text="line two\n")
    async with desk(tmp_path, step("", acting), step("Well."), mode="acceptEdits") as d:
        await d.prompt("go")
        await d.ended()
        await d.session.edits.undo(ProposalUndoParams(session_id="s", scope=EditScope(), dry_run=False))
        found = [each for each in await told(d) if each.kind.startswith("chang")]
        assert [each.text.split(" /")[0] for each in found] == ["Will change", "Changed", "Will undo in", "Undone in"]
        hunks = found[0].data["hunks"]
        assert [each.data["hunks"] or each.data["undone"] for each in found] == [hunks] * 4
        assert found[2].data["result_sha256"] == found[3].data["result_sha256"] == found[0].data["base_sha256"]


async def test_the_log_of_all_sessions_is_shown_and_verified_without_a_daemon(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with desk(tmp_path, step("Hello.")) as d:
        await d.prompt("go")
        await d.ended()

    def amanu(*arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        said = capsys.readouterr()
        return code, said.out + said.err

    lines = amanu("show", "--session", "s", "--json")[1].splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["mode", "trust"]
    assert "A session begins" in amanu("show", "--since", "1h")[1]
    assert amanu("show", "--session", "t")[1] == "There is no such entry.\n"
    code, said = amanu("verify")
    assert code == 0 and "3 entries" in said
    assert amanu("verify", "--noted", said.split("Its head is ")[1].split()[0])[0] == 0
    path = next(find_home().audit.glob("*.jsonl"))
    path.write_bytes(path.read_bytes().replace(b'"ask"', b'"bad"', 1))
    code, said = amanu("verify")
    assert code == 1 and "was changed" in said and "line 2" in said


async def test_an_entry_costs_little(tmp_path: Path) -> None:
    audit = Audit(tmp_path / "audit", Secrets())
    started = time.perf_counter()
    for number in range(300):
        audit.add("started", "Started: Run make", session_id="s", arguments={"command": f"make {number}"})
    added = time.perf_counter() - started
    await audit.durable()
    assert added < 0.3, "a millisecond each, on the event loop"
    await audit.close()
    assert verify(tmp_path / "audit").head.number == 301
