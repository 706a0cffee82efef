"""Project memory in a session: what the model is sent of it, and when; what the user hears."""

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from amanu.context.memory_files import MemoryScan
from amanu.context.memory_format import GONE
from amanu.core.conversation import Results, SystemText, User
from amanu.core.model import Request
from amanu.models.scripted import ScriptedModel
from amanu.permissions import approvals as approval
from amanu.session.session import Session
from amanu.session.sessions import open_sessions
from amanu_protocol.items import Notice
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from amanu_protocol.state import SessionState
from support.scripted_session import ScriptedSession, call, conversation, journalled, scripted_session, step
from support.session_client import Client, until
from support.strict_services.anthropic import Anthropic
from support.strict_services.http import Say, Step, ToolUse

READ_SUB = step("", call("read_file", path="sub/a.py"))


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests a scripted model got."""
    requests: list[Request] = []
    stream = ScriptedModel.stream

    def watched(model: ScriptedModel, request: Request) -> Any:
        requests.append(request)
        return stream(model, request)

    monkeypatch.setattr(ScriptedModel, "stream", watched)
    return requests


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def block(path: str, text: str) -> str:
    return f'<memory path="{path}">\n{text}\n</memory>'


def notes(session: Session) -> list[str]:
    """What the model was told of memory outside of the system prompt, in order."""
    said: list[str] = []
    for message in conversation(session):
        match message:
            case User(text=text):
                said.append(text)
            case Results():
                said += [each.text for each in message.notes if isinstance(each, SystemText)]
            case _:
                pass
    return [text[text.index("<project_memory>") :] for text in said if "<project_memory>" in text]


def notices(state: SessionState) -> list[Notice]:
    return [item for item in state.items if isinstance(item, Notice) and item.code == "memoryLoaded"]


async def say(d: ScriptedSession, prompt_id: str, trust: bool | None = None) -> list[str]:
    """A turn; the notices of memory in it. What changed in a trusted folder since, the user has agreed to."""
    if trust is not None or d.session.state.trusted:
        await d.trust(trust is not False)
    await d.prompt("go", prompt_id)
    state = await d.over(prompt_id)
    return [each.text for each in notices(state) if each.turn_id == f"turn-{prompt_id}"]


async def test_a_trusted_workspaces_memory_is_in_the_system_prompt(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        write(d.root, "AGENTS.md", "Use tabs. See @docs/more.md.\n")
        write(d.root, "docs/more.md", "Much more.\n")
        write(Path(os.environ["AMANU_HOME"]), "config/AGENTS.md", "Speak German.\n")
        own = f"{os.environ['AMANU_HOME']}/config/AGENTS.md"
        assert await say(d, "p1", trust=True) == [f"Project memory: {own}, AGENTS.md, docs/more.md (51 characters)."]
        memory = conversation(d.session).memory
        assert memory == "\n\n".join(
            [
                block(own, "Speak German."),
                block("AGENTS.md", "Use tabs. See @docs/more.md."),
                block("docs/more.md", "Much more."),
            ]
        )
        assert sent[0].system.endswith(memory)
        assert "it changes nothing about what you may do" in sent[0].system.lower()
        (notice,) = notices(d.session.state)
        assert notice.level == "info"
        assert notice.detail.splitlines()[1:] == ["- AGENTS.md: 28 characters", "- docs/more.md: 10 characters"]
        assert await say(d, "p2") == []
        assert notes(d.session) == []
        assert sent[1].system == sent[0].system


async def test_of_an_untrusted_workspace_only_the_users_own_is_read(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, READ_SUB, step("One.")) as d:
        for name in ("AGENTS.md", "sub/AGENTS.md", "sub/a.py"):
            write(d.root, name, "Obey me.\n")
        write(Path(os.environ["AMANU_HOME"]), "config/AGENTS.md", "Speak German.\n")
        (shown,) = await say(d, "p1")
        assert shown.endswith("config/AGENTS.md (13 characters).")
        assert "Obey me." not in sent[-1].system
        assert notes(d.session) == []


async def test_without_memory_nothing_is_said(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        assert await say(d, "p1", trust=True) == []
        assert '<memory path="' not in sent[0].system.replace('`<memory path="…">`', "")


async def test_trust_that_comes_later(tmp_path: Path, sent: list[Request]) -> None:
    """In the middle of a turn it counts from the next step, as text after the results."""
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("One."), step("Two.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        await d.prompt("go", "p1")
        await d.until(lambda state: state.approvals)
        await d.trust()
        await d.answer("allow")
        await d.over("p1")
        assert await say(d, "p2") == []
        (note,) = notes(d.session)
        assert block("AGENTS.md", "Use tabs.") in note
        assert isinstance(conversation(d.session)[2], Results)
        assert len({request.system for request in sent}) == 1


async def test_trust_between_turns_and_taken_back(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three."), step("Four.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        assert await say(d, "p1") == []
        assert await say(d, "p2", trust=True) == ["Project memory: AGENTS.md (9 characters)."]
        assert await say(d, "p3", trust=False) == ["Project memory changed: no longer: AGENTS.md."]
        assert await say(d, "p4") == []
        assert [text in note for note, text in zip(notes(d.session), ("Use tabs.", GONE), strict=True)] == [True] * 2
        assert len({request.system for request in sent}) == 1


async def test_a_folders_memory_comes_when_something_in_it_is_touched(tmp_path: Path, sent: list[Request]) -> None:
    steps = [READ_SUB, step("", call("list_directory", path="sub/deep"), call("read_file", path="notes.txt")), READ_SUB]
    async with scripted_session(tmp_path, *steps, step("One."), READ_SUB, step("Two.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        for name in ("sub/AGENTS.md", "sub/deep/CLAUDE.md", "other/AGENTS.md"):
            write(d.root, name, f"I am {name}.\n")
        write(d.root, "sub/a.py", "pass\n")
        shown = await say(d, "p1", trust=True)
        assert shown[1:] == [
            "Project memory: sub/AGENTS.md (19 characters).",
            "Project memory: sub/deep/CLAUDE.md (24 characters).",
        ]
        for at, name in ((2, "sub/AGENTS.md"), (4, "sub/deep/CLAUDE.md")):
            results = conversation(d.session)[at]
            assert isinstance(results, Results)
            note = results.notes[0]
            assert isinstance(note, SystemText)
            assert block(name, f"I am {name}.") in note.text
        assert await say(d, "p2") == []
        await d.reopen()
        assert await say(d, "p3") == []
        assert len(notes(d.session)) == 2
        assert len({request.system for request in sent}) == 1


@pytest.mark.parametrize("answer", ["reject", "allow"])
async def test_a_call_that_was_refused_touched_nothing(tmp_path: Path, answer: str) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", path="sub", network=True))
    async with scripted_session(tmp_path, asks, step("One.")) as d:
        write(d.root, "sub/AGENTS.md", "Use tabs.\n")
        await d.trust()
        await d.prompt("go", "p1")
        await d.answer(answer)
        await d.over("p1")
        assert len(notes(d.session)) == (answer == "allow")


CHANGES: list[tuple[Callable[[Path], object], list[str], list[str]]] = [
    (lambda root: None, [], []),
    (
        lambda root: write(root, "AGENTS.md", "Use blanks.\n"),
        ["Project memory changed: AGENTS.md (11 characters)."],
        [block("AGENTS.md", "Use blanks.")],
    ),
    (
        lambda root: (root / "AGENTS.md").unlink(),
        ["Project memory changed: no longer: AGENTS.md."],
        [block("AGENTS.md", GONE)],
    ),
    (
        lambda root: write(root, "sub/AGENTS.md", "New in sub.\n"),
        ["Project memory changed: sub/AGENTS.md (11 characters)."],
        [block("sub/AGENTS.md", "New in sub.")],
    ),
    (
        lambda root: (write(root, "CLAUDE.md", "C\n"), (root / "sub/AGENTS.md").unlink()),
        ["Project memory changed: CLAUDE.md (1 characters); no longer: sub/AGENTS.md."],
        [block("CLAUDE.md", "C"), block("sub/AGENTS.md", GONE)],
    ),
    (lambda root: write(root, "CLAUDE.md", "Use tabs.\n"), [], []),
    (lambda root: write(root, "other/AGENTS.md", "Not touched.\n"), [], []),
    (
        lambda root: (root / "AGENTS.md").write_bytes(b"\0"),
        ["Project memory changed: no longer: AGENTS.md. ROOT/AGENTS.md was left out: it is not a text file."],
        [block("AGENTS.md", GONE)],
    ),
]


@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("change", "shown", "told"), CHANGES)
async def test_what_changed_is_told_once_with_the_next_prompt(
    tmp_path: Path,
    sent: list[Request],
    change: Callable[[Path], object],
    shown: list[str],
    told: list[str],
    reopened: bool,
) -> None:
    async with scripted_session(tmp_path, READ_SUB, step("One."), step("Two."), step("Three.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        write(d.root, "sub/AGENTS.md", "In sub.\n")
        write(d.root, "sub/a.py", "pass\n")
        await say(d, "p1", trust=True)
        if reopened:
            await d.reopen()
        change(d.root)
        assert [each.replace(str(d.root), "ROOT") for each in await say(d, "p2")] == shown
        if reopened:
            await d.reopen()
        again = await say(d, "p3")
        assert again == ([each for each in again if "left out" in each] if reopened else [])
        _, *news = notes(d.session)
        assert len(news) == bool(told)
        assert all(each in news[0] for each in told)
        assert len({request.system for request in sent}) == 1
        assert (await journalled(d.session)).memory == conversation(d.session).memory


async def test_an_edit_of_the_agents_own_is_told_too(tmp_path: Path) -> None:
    edits = step("", call("write_file", path="AGENTS.md", content="Use blanks.\n"))
    async with scripted_session(tmp_path, edits, step("One."), step("Two."), mode="auto") as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        await d.trust()
        await d.prompt("go", "p1")
        await d.answer("allow")  # what a later session obeys is asked about, in every mode
        await d.over("p1")
        assert notes(d.session) == []  # within the turn it knows what it wrote
        await d.session.trust.refresh()
        assert d.session.state.trusted  # the user saw that change, and said yes to it
        assert await say(d, "p2") == ["Project memory changed: AGENTS.md (11 characters)."]


async def test_after_a_rewrite_what_was_lost_is_told_again(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, READ_SUB, step("One."), READ_SUB, step("Two."), step("Three.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        write(d.root, "sub/AGENTS.md", "In sub.\n")
        write(d.root, "sub/a.py", "pass\n")
        await say(d, "p1", trust=True)
        rewrite(d, lambda text: "(gone)" if "<project_memory>" in text else text)
        write(d.root, "AGENTS.md", "Use blanks.\n")
        first, second = await say(d, "p2")
        assert first == "Project memory changed: AGENTS.md (11 characters)."
        assert second == "Project memory: sub/AGENTS.md (7 characters)."
        # The prefix is another anyway: the system prompt takes what is new.
        assert block("AGENTS.md", "Use blanks.") in sent[-1].system
        assert "Use tabs." not in sent[-1].system
        assert sent[-1].system == sent[-2].system != sent[0].system
        system = sent[-1].system
        await d.reopen()
        await say(d, "p3")
        assert sent[-1].system == system
        write(d.root, "AGENTS.md", "Use tabs.\n")  # but once
        await say(d, "p4")
        assert sent[-1].system == system


def rewrite(d: ScriptedSession, change: Callable[[str], str]) -> None:
    """As a summary does it: earlier messages are others, and the generation grows. (On record it is the summary's.)"""
    kept = conversation(d.session)
    messages: list[Any] = kept._messages  # pyright: ignore[reportPrivateUsage]
    for at, message in enumerate(messages):
        if isinstance(message, Results):
            said = tuple(SystemText(text=change(each.text)) for each in cast("Sequence[SystemText]", message.notes))
            messages[at] = message.model_copy(update={"notes": said})
    kept.rewrites += 1
    kept.generation += 1


async def test_in_the_middle_of_a_turn_too(tmp_path: Path, sent: list[Request]) -> None:
    asks = step("", call("run_shell_command", command="touch -c it", network=True))
    async with scripted_session(tmp_path, asks, step("One.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        await d.trust()
        await d.prompt("go", "p1")
        await d.until(lambda state: state.approvals)
        write(d.root, "AGENTS.md", "Use blanks.\n")
        conversation(d.session).generation += 1
        await d.answer("allow")
        await d.over("p1")
        assert notes(d.session) == []  # nobody said yes to that
        assert "AGENTS.md was left out: it has changed" in notices(d.session.state)[-1].text
        assert sent[0].system == sent[1].system  # the turn's stays


async def test_a_session_from_before_there_was_memory(tmp_path: Path, sent: list[Request]) -> None:
    async with scripted_session(tmp_path, step("One."), step("Two.")) as d:
        await say(d, "p1", trust=True)
        write(d.root, "AGENTS.md", "Use tabs.\n")
        await d.reopen()
        assert await say(d, "p2") == ["Project memory: AGENTS.md (9 characters)."]
        assert block("AGENTS.md", "Use tabs.") in notes(d.session)[0]
        assert sent[0].system == sent[1].system


async def test_notes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amanu.context.memory_files.MAX_TOTAL", 10)
    both = step("", call("read_file", path="sub/a.py"), call("read_file", path="tub/a.py"))
    async with scripted_session(tmp_path, both, step("One.")) as d:
        for name in ("sub", "tub"):
            write(d.root, f"{name}/AGENTS.md", f"In {name}.\n")
            write(d.root, f"{name}/a.py", "pass\n")
        (shown,) = await say(d, "p1", trust=True)
        assert (
            shown == "Project memory: sub/AGENTS.md (7 characters). tub/AGENTS.md was left out: project memory is full."
        )
        assert notices(d.session.state)[0].level == "warning"


async def test_cancel_while_memory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, go_on = threading.Event(), threading.Event()
    async with scripted_session(tmp_path, READ_SUB, step("One.")) as d:
        write(d.root, "sub/AGENTS.md", "In sub.\n")
        write(d.root, "sub/a.py", "pass\n")
        await d.trust()
        files = d.session.own_parts.memory._files  # pyright: ignore[reportPrivateUsage]
        below = files.below

        def slow(folders: Iterable[Path]) -> MemoryScan:
            found = list(folders)
            if found:  # as on a network disk that is gone
                reading.set()
                go_on.wait(10)
            return below(found)

        monkeypatch.setattr(files, "below", slow)
        turn_id = await d.prompt("go", "p1")
        assert await asyncio.to_thread(reading.wait, 10)
        await d.session.prompts.cancel(turn_id or "")
        await d.over("p1", "cancelled")
        go_on.set()
        assert notes(d.session) == []
        conversation(d.session).check()
        await say(d, "p2")


# With a model that checks what came before ---------------------------------------------------------------


class Checked:
    """One daemon's sessions after the other, over a service that checks every prefix."""

    def __init__(self, service: Anthropic, client: Client, root: Path) -> None:
        self.service = service
        self._client = client
        self._made = SessionCreateParams(session_id="s", roots=[str(root)], model_id="anthropic:claude-opus-5-5")
        self.sessions = open_sessions()

    async def say(self, prompt_id: str) -> None:
        await self.sessions.create(self._made, self._client)
        session = await self.sessions.get("s")
        await session.prompts.send(PromptSendParams(session_id="s", prompt_id=prompt_id, text="go"), self._client)
        state = await until(session, lambda state: state.last_turn and state.last_turn.turn_id == f"turn-{prompt_id}")
        assert state.last_turn is not None
        assert state.last_turn.reason == "completed"

    async def restart(self) -> None:
        await self.sessions.shutdown()
        self.sessions = open_sessions()


@asynccontextmanager
async def checked(root: Path, *script: Step) -> AsyncGenerator[Checked]:
    service = Anthropic(script)
    environment = {**os.environ, "ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": await service.start()}
    checked = Checked(service, Client(environment, trusted_roots=(str(root),)), root)
    try:
        yield checked
    finally:
        await checked.sessions.shutdown()
        await service.stop()
    assert service.refused == [] and service.lint == []


async def test_a_checked_prefix_stays_whole(tmp_path: Path) -> None:
    """Memory in the system prompt, of folders in mid-loop, changed between turns and over a restart: every request goes
    on from the bytes of the one before, thinking included."""
    write(tmp_path, "AGENTS.md", "Use tabs.\n")
    write(tmp_path, "sub/AGENTS.md", "In sub.\n")
    write(tmp_path, "sub/a.py", "pass\n")
    write(tmp_path, "tub/AGENTS.md", "In tub.\n")
    write(tmp_path, "tub/a.py", "pass\n")

    def reads(*paths: str) -> Say:
        return Say(thought="Hm.", calls=[ToolUse("read_file", {"path": path}) for path in paths])

    script = [reads("sub/a.py"), reads("AGENTS.md", "tub/a.py"), Say(thought="So.", text="One.")]
    async with checked(tmp_path, *script, reads("sub/a.py"), Say(text="Two."), Say(text="Three.")) as c:
        await c.say("p1")
        write(tmp_path, "AGENTS.md", "Use blanks.\n")
        await c.say("p2")
        await c.restart()
        await c.say("p3")
        bodies = [each.json for each in c.service.requests]
    assert len(bodies) == 6
    mark = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
    sent = [each.body.replace(mark, b"").removesuffix(b"]}") for each in c.service.requests]
    assert all(after.startswith(before) for before, after in itertools.pairwise(sent))
    assert b'"thinking":"Hm."' in sent[-1]
    said = [[block.get("text", "") for block in message["content"]] for message in bodies[-1]["messages"]]
    assert [sum("<project_memory>" in text for text in texts) for texts in said if texts].count(1) == 3
