"""The chat with a real core in this process and a person made of keystrokes."""

import asyncio
import base64
import functools
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import application
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.key_binding.defaults import load_key_bindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from amanu.cli.chat import Chat, ChatOptions
from amanu.cli.console import PlainConsole
from amanu.cli.ui import conversation
from amanu.cli.ui.dialog import OpenDialog
from amanu.cli.ui.terminal import LOOK_SECONDS, Terminal
from amanu.client import session_view
from amanu.client.connect import connect
from amanu.client.daemon_client import DaemonClient, Disconnected
from amanu.client.session_view import SessionView
from amanu.config import load_settings
from amanu.home import find_home
from amanu.permissions import approvals
from amanu.proposals import tracking
from amanu_protocol import requests as r
from amanu_protocol.base import Wire
from amanu_protocol.errors import AmanuError
from amanu_protocol.events import EventMessage, TurnEnded
from amanu_protocol.items import Hunk, ImageAttachment, UserMessage
from amanu_protocol.requests import PromptBeginParams
from support.required_programs import needs
from support.sample_images import png

GUARD = 0.1
"""Seconds in which an answer does not count. Half a second for people."""
ENTER, CTRL_C, CTRL_D, ALT_ENTER = "\r", "\x03", "\x04", "\x1b\r"


# Each chat binds the same hundreds of keys anew; to do it once halves what these tests take.
_keys = functools.cache(load_key_bindings)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setattr(approvals, "GUARD_SECONDS", GUARD)
    monkeypatch.setattr(session_view, "GUARD_SECONDS", GUARD)
    monkeypatch.setattr(application, "load_key_bindings", _keys)


class Desk:
    """One chat; `types` as soon as the screen shows what it waits for."""

    def __init__(self, keyboard: PipeInput, root: Path) -> None:
        self.keyboard = keyboard
        self.root = root
        self.out = io.StringIO()
        self.client: DaemonClient | None = None
        self._seen = 0
        self._typing: asyncio.Task[None] | None = None
        self._answered: OpenDialog | None = None

    def start(self, **wanted: Any) -> None:
        self.chat = Chat(ChatOptions([str(self.root)], **wanted), self._connect, PlainConsole(self.out), alone=True)
        self.terminal = Terminal(self.chat, keyboard=self.keyboard, screen=DummyOutput())
        self.task = asyncio.create_task(self.chat.run(self.terminal))

    async def sees(self, text: str) -> None:
        """Wait until the text stands on the screen, after what was seen before."""
        async with asyncio.timeout(50):
            while (at := self.out.getvalue().find(text, self._seen)) < 0:
                assert not self.task.done(), f"the chat ended: {self.out.getvalue()}"
                await asyncio.sleep(0.01)
        self._seen = at + len(text)

    def types(self, text: str) -> None:
        """As soon as the chat waits for the user: what is printed stands there a moment before."""
        self._typing = asyncio.create_task(self._type(self._typing, text))

    async def _type(self, earlier: asyncio.Task[None] | None, text: str) -> None:
        if earlier is not None:
            await asyncio.wait({earlier})
        async with asyncio.timeout(50):
            while not self.terminal.waits and not self.task.done():
                await asyncio.sleep(0.01)
        self.keyboard.send_text(text)

    async def answers(self, text: str) -> None:
        """Answer the question that is open, or opens next. One that is drawn anew is another."""
        answered, found = self._answered, None
        async with asyncio.timeout(50):
            while found is None or found is answered or found is not self.terminal.dialog:
                found = self.terminal.dialog
                await asyncio.sleep(max(GUARD, 2 * LOOK_SECONDS))
        self._answered = found
        self.keyboard.send_text(text + ENTER)

    async def left(self) -> int:
        async with asyncio.timeout(50):
            return await self.task

    async def _connect(self) -> DaemonClient:
        self.client = await connect(roots=[str(self.root)], alone=True)
        return self.client


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    (tmp_path / "shop").mkdir()
    with create_pipe_input() as keyboard:
        desk = Desk(keyboard, tmp_path / "shop")
        yield desk
        desk.task.cancel()
        await asyncio.gather(desk.task, return_exceptions=True)
        await desk.terminal.close()


def script(tmp_path: Path, *steps: dict[str, Any]) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(steps))
    return f"scripted:{path}"


EDIT = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\n"}}
Write = Callable[[str], None]


async def test_from_trust_to_an_applied_edit(desk: Desk, tmp_path: Path) -> None:
    desk.start(model_id=script(tmp_path, {"text": "So.", "calls": [EDIT]}, {"expect": "a.txt", "text": "Done."}))
    await desk.sees("plays a script, no real model")
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("write" + ALT_ENTER + "it" + ENTER)
    await desk.sees("› write\nit\n")
    await desk.sees("+one\n")
    await asyncio.sleep(GUARD)
    desk.types("a" + ENTER)
    await desk.sees("1 hunk: 1 applied")
    await desk.sees("Done.")
    assert (desk.root / "a.txt").read_text() == "one\n"
    desk.types("/quit" + ENTER)
    assert await desk.left() == 0


async def test_trust_is_asked_for_once(desk: Desk, tmp_path: Path) -> None:
    desk.start(model_id=script(tmp_path))
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types(CTRL_D)
    assert await desk.left() == 0
    desk.out.truncate(0)
    desk.start(model_id=script(tmp_path))
    desk.types("/quit" + ENTER)
    assert await desk.left() == 0
    assert "not trusted" not in desk.out.getvalue()


async def test_a_prompt_typed_at_the_question_of_trust_is_kept(desk: Desk, tmp_path: Path) -> None:
    desk.start(model_id=script(tmp_path))
    await desk.sees("Trust this folder?")
    desk.types("fix the tests" + ENTER)
    await desk.sees("What you typed is kept, as the draft of your prompt.")
    await desk.sees("Trust this folder?")
    await desk.answers("y")
    await desk.sees("trusted\n")
    assert desk.terminal.typed == "fix the tests"


async def test_the_daemon_is_told_once_that_the_user_types(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path)
    assert desk.client is not None
    told: list[Wire] = []
    desk.client.notify = lambda method, params: told.append(params) if method == "amanu/prompt/begin" else None
    desk.types("half a")
    await until_written(desk, "half a")
    desk.types(" sentence")
    await until_written(desk, "half a sentence")
    assert told == [PromptBeginParams(session_id=desk.chat._view.session_id)]  # pyright: ignore[reportPrivateUsage]


async def until_written(desk: Desk, text: str) -> None:
    async with asyncio.timeout(50):
        while desk.terminal.app.current_buffer.text != text:
            await asyncio.sleep(0.01)


async def rows_shown(desk: Desk, *parts: str) -> OpenDialog:
    """The picker that is open, once it has a row for each of these, with these words in it."""
    async with asyncio.timeout(50):
        while True:
            dialog = desk.terminal.dialog
            rows = [] if dialog is None else [f"{each.label} {each.about}" for each in dialog.rows("")]
            if dialog is not None and all(any(part in row for row in rows) for part in parts):
                return dialog
            await asyncio.sleep(0.01)


async def started(desk: Desk, tmp_path: Path, *steps: dict[str, Any]) -> None:
    desk.start(model_id=script(tmp_path, *steps))
    await desk.sees("This folder is not trusted")
    desk.types("n" + ENTER)
    await desk.sees("/trust changes that")


ESC = "\x1b"
SLOW = {"text": "slow " * 400, "chunk": 4, "delay_ms": 20}


async def test_esc_stops_the_turn_and_never_leaves(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, SLOW, {"calls": [EDIT]}, {"text": "Done."})
    desk.types("go" + ENTER)
    await desk.sees("› go")
    assert "Esc stops" in desk.chat.toolbar()
    desk.types("half a sen" + ESC)
    await desk.sees("Stopped.")
    assert "Esc stops" not in desk.chat.toolbar()
    desk.types("tence" + ENTER)
    await desk.sees("› half a sentence")
    await desk.sees("+one")
    desk.types(ESC)
    await desk.sees("Stopped.")
    assert not (desk.root / "a.txt").exists() and not desk.task.done()
    desk.types(CTRL_D)
    assert await desk.left() == 0


SAID = {"enter", "c-m", "c-j", "c-c", "c-d", "c-z", "<sigint>"}
NO_KEYS = {"<any>", "<ignore>", "<cursor-position-response>", "<vt100-mouse-event>", "<windows-mouse-event>"}


def every_key() -> list[tuple[Keys | str, ...]]:
    """All that prompt_toolkit binds, in Emacs' way and in vi's, and each key by itself and with Alt. Not those that do
    what they say, which other tests press: sending, stopping, leaving."""
    bound = {tuple(each.keys) for each in load_key_bindings().bindings}
    alone = {(key,) for key in Keys} | {(Keys.Escape, key) for key in Keys}
    names = {keys: tuple(str(getattr(key, "value", key)) for key in keys) for keys in bound | alone}
    kept = [keys for keys, name in names.items() if name != ("escape",) and not (SAID | NO_KEYS) & {*name}]
    return sorted(kept, key=lambda keys: names[keys])


@pytest.mark.parametrize("where", ["idle", "running", "asked"])
async def test_no_other_key_ends_the_chat_or_sends_or_stops_anything(
    desk: Desk, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("EDITOR", "VISUAL", "PAGER"):  # a real one would read the input of the process that runs the tests
        monkeypatch.setenv(name, "true")
    steps = {"idle": [], "running": [SLOW], "asked": [{"calls": [EDIT]}]}[where]
    await started(desk, tmp_path, *steps, {"text": "Done."})
    if steps:
        desk.types("go" + ENTER)
        await desk.sees("› go" if where == "running" else "+one")
    async with asyncio.timeout(50):
        while not (app := desk.terminal.app).is_running:
            await asyncio.sleep(0.01)
    for keys in every_key():
        for key in ("x", *keys):
            app.key_processor.feed(KeyPress(key))
        app.key_processor.process_keys()
        assert app.is_running and app.future is not None and not app.future.done(), f"{keys} ended the prompt"
    before = desk.out.getvalue()
    await asyncio.sleep(0)
    assert not desk.task.done() and "Stopped." not in before and before.count("› go") == bool(steps)


async def test_a_prompt_on_its_way_is_seen_and_holds_nothing_up(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(desk, tmp_path, {"expect": "one", "text": "First."}, {"expect": "two", "text": "Second."})
    found = asyncio.Event()
    prompt = SessionView.prompt

    async def slow(self: SessionView, *given: Any) -> Any:
        await found.wait()
        return await prompt(self, *given)

    monkeypatch.setattr(SessionView, "prompt", slow)
    desk.types("one" + ENTER)
    desk.types("/queue two" + ENTER)
    desk.types("/todos" + ENTER)
    await desk.sees("No to-dos.")
    assert [text for _, text in desk.chat.above()] == ["› one", "› two"]
    assert "sending" in desk.chat.toolbar()
    found.set()
    await desk.sees("First.")
    await desk.sees("Second.")
    async with asyncio.timeout(50):
        while desk.chat.above():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("failure", "shown"),
    [
        (KeyError("one"), "Internal error; the session is intact (KeyError: 'one'). `amanu logs` shows more."),
        (AmanuError("internalError", "The disk is full.", hint="Make room."), "✗ The disk is full. Make room."),
        (Disconnected(), "Not sent"),
    ],
)
@pytest.mark.parametrize(("typed", "draft"), [("one", "one"), ("/queue one", "/queue one"), ("/plan one", "one")])
async def test_what_could_not_be_sent_is_the_draft_again_and_ends_no_chat(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, shown: str, typed: str, draft: str
) -> None:
    await started(desk, tmp_path, {"text": "Done."})
    sent: list[str] = []

    async def broken(self: SessionView, text: str, *given: Any) -> Any:
        sent.append(text)
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(SessionView, "prompt", broken)
        desk.types(typed + ENTER)
        await desk.sees(shown)
        await until_written(desk, draft)
    assert sent == ["one"]
    desk.types(ENTER)
    await desk.sees("Done.")
    desk.types(CTRL_D)
    assert await desk.left() == 0


async def test_what_cannot_be_sent_any_more_is_shown_to_who_leaves(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(desk, tmp_path)
    leaving = asyncio.Event()

    async def broken(self: SessionView, text: str, *given: Any) -> Any:
        await leaving.wait()
        raise Disconnected

    monkeypatch.setattr(SessionView, "prompt", broken)
    desk.types("one" + ALT_ENTER + "two" + ENTER)
    desk.types("/quit" + ENTER)
    async with asyncio.timeout(50):
        while not desk.chat._leaving:  # pyright: ignore[reportPrivateUsage]
            await asyncio.sleep(0.01)
    leaving.set()
    await desk.sees("Not sent: one\ntwo\n")
    assert await desk.left() == 0


async def test_ctrl_c_as_a_signal_ends_what_the_chat_does_and_then_the_chat(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(desk, tmp_path)
    at_work = asyncio.Event()

    async def hangs(self: Chat, words: str) -> None:
        at_work.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Chat, "_go_back", hangs)
    desk.types("/restore" + ENTER)
    await at_work.wait()
    desk.chat.interrupt()
    await desk.sees("Press Ctrl-C again to quit.")
    await until_written(desk, "")
    desk.chat.interrupt()
    assert await desk.left() == 0


@pytest.mark.parametrize("when", ["start", "end"])
async def test_ctrl_c_as_a_signal_cuts_start_and_end_short(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    at_work = asyncio.Event()

    async def hangs(self: Any) -> Any:
        at_work.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(*((Desk, "_connect", hangs) if when == "start" else (Chat, "_put_away", hangs)))
    if when == "start":
        desk.start()
    else:
        await started(desk, tmp_path)
        desk.types(CTRL_D)
    await at_work.wait()
    desk.chat.interrupt()
    with pytest.raises(asyncio.CancelledError):
        await desk.left()


async def test_ctrl_c_stops_the_turn_and_twice_leaves(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, SLOW)
    desk.types("go" + ENTER)
    await desk.sees("› go")
    desk.types(CTRL_C)
    await desk.sees("Press Ctrl-C again to quit.")
    assert not desk.task.done() and "Stopped." in desk.out.getvalue()
    desk.types(CTRL_C)
    assert await desk.left() == 0


async def test_a_command_at_a_question_is_no_answer_to_it(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"calls": [EDIT]}, {"expect": "a.txt", "text": "Done."})
    desk.types("go" + ENTER)
    await desk.sees("+one\n")
    for typed, shown in (("/todos", "No to-dos."), ("/undo", "/undo must wait"), ("?", "? Create a.txt")):
        desk.types(typed + ENTER)
        await desk.sees(shown)
    await asyncio.sleep(GUARD)
    desk.types("a" + ENTER)
    await desk.sees("Done.")


@pytest.mark.parametrize("leaves", [CTRL_D, "/quit" + ENTER])
async def test_a_question_can_be_left(desk: Desk, tmp_path: Path, leaves: str) -> None:
    await started(desk, tmp_path, {"calls": [EDIT]})
    desk.types("go" + ENTER)
    await desk.sees("+one\n")
    desk.types(leaves)
    assert await desk.left() == 0
    assert not (desk.root / "a.txt").exists()


async def test_ctrl_c_at_a_question_stops_the_turn(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"calls": [EDIT]})
    desk.types("go" + ENTER)
    await desk.sees("+one\n")
    desk.types(CTRL_C)
    await desk.sees("Stopped.")
    assert not (desk.root / "a.txt").exists()


async def test_typing_into_a_running_turn_steers_and_queue_waits(desk: Desk, tmp_path: Path) -> None:
    slow = {"text": "slow " * 10, "chunk": 4, "delay_ms": 20}
    await started(
        desk, tmp_path, slow, {"expect": "faster", "text": "As you say."}, {"expect": "later", "text": "Last."}
    )
    desk.types("go" + ENTER)
    await desk.sees("› go")
    desk.types("faster" + ENTER)
    await desk.sees("sent into the running turn")
    desk.types("/queue later" + ENTER)
    await desk.sees("queued: later")
    desk.types("! echo hi" + ENTER)
    await desk.sees("queued: ! echo hi")
    await desk.sees("As you say.")
    assert desk.out.getvalue().count("sent into the running turn") == 1
    await desk.sees("› later")
    await desk.sees("Last.")


async def test_continuing_where_there_is_nothing_yet_says_so(desk: Desk) -> None:
    desk.start(latest=True, model_id="scripted:tour")
    await desk.sees("There is no session of this folder yet, so this is a new one.")


async def test_a_slash_command_at_a_question_is_printed_above_its_answer(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"calls": [EDIT]})
    desk.types("go" + ENTER)
    await desk.sees("+one")
    await desk.answers("/jobs")
    await desk.sees("› /jobs\nNo background commands")


async def test_a_half_typed_prompt_survives_a_question(desk: Desk, tmp_path: Path) -> None:
    slow = {"text": "slow " * 10, "chunk": 4, "delay_ms": 20, "calls": [EDIT]}
    await started(desk, tmp_path, slow, {"text": "Second."}, {"expect": "half typed", "text": "Third."})
    desk.types("go" + ENTER)
    await desk.sees("› go")
    desk.types("half ")
    await desk.sees("+one\n")
    await asyncio.sleep(GUARD)
    desk.types("r no" + ENTER)
    await desk.sees("rejected by you: “no”")
    await desk.sees("Second.")
    desk.types("typed" + ENTER)
    await desk.sees("› half typed")
    await desk.sees("Third.")


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("/mode plan", "mode: plan"),
        ("/mode pl", "mode: plan"),
        ("/effort max", "has no levels of effort: its thinking cannot be controlled."),
        ("/effort", "has no levels of effort"),
        ("/effort much", "has no levels of effort"),
        ("/model nope:x", "Unknown model 'nope:x'."),
        ("/model claude-opus-5-5", "No key for Anthropic"),
        (f"/sessions {'0' * 32}", f"There is no session {'0' * 32}."),
        ("/sessions nope", "Still in this session."),
        ("/search", "/search needs an argument; /help says which."),
        ('/search "nothing like it', 'No session has “"nothing like it” in it.'),
        ("/serach", "Did you mean /search?"),
        ("/new", "session "),
        ("/record ~/r.ndjson", "being recorded to"),
        ("/record /nowhere/r.ndjson", "The folder /nowhere does not exist"),
        ("/cancel", "nothing is running"),
        ("/help", "/unqueue"),
        ("/help", "replace the older part of this conversation"),
        ("/context", "Nothing has been sent to a model yet."),
        ("/notes", "No notices with details."),
        ("/compact keep the names", "There is nothing to compact yet"),
        ("/memory", "Nothing is remembered yet"),
        ("/trust", "trusted"),
        ("/nonsense", "There is no command /nonsense. /help lists them. It is your draft again."),
        ("/nonsense is broken", "There is no command /nonsense. /help lists them. It is your draft again."),
        ("/status", "There is no command /status: /context, /cost and /running show how things stand."),
        ("/tmp", "the script ends here"),
        ("/no/such/file.py is broken", "the script ends here"),
        ("/helpp", "There is no command /helpp. Did you mean /help?"),
        ("/queue", "/queue needs an argument; /help says which."),
        ("/plan", "mode: plan"),
        ("/clear", "session "),
    ],
)
async def test_commands(desk: Desk, tmp_path: Path, typed: str, shown: str) -> None:
    await started(desk, tmp_path)
    desk.types(typed + ENTER)
    await desk.sees(shown)


async def test_a_pasted_picture_goes_with_the_prompt_that_has_its_word(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    await started(desk, tmp_path, {"text": "Seen."}, {"text": "Gone."})
    desk.types(f"\x1b[200~{tmp_path / 'a.png'}\x1b[201~")
    await until_written(desk, "[picture 1]")
    desk.types(" what?" + ENTER)
    await desk.sees("Seen.")
    desk.types("nothing" + ENTER)
    await desk.sees("Gone.")
    messages = [each for each in desk.chat._view.state.items if isinstance(each, UserMessage)]  # pyright: ignore[reportPrivateUsage]
    named = [[each.name for each in message.attachments if isinstance(each, ImageAttachment)] for message in messages]
    assert ([each.text for each in messages], named) == (["[picture 1] what?", "nothing"], [["a.png"], []])


@pytest.mark.parametrize(
    ("typed", "rows"),
    [
        ("/model zebra", set[str]()),
        ("/model opus", {"Claude Opus"}),
        ("/mode edits", {"acceptEdits", "ask"}),
        ("/mode bogus", set[str]()),
        ("/mode", {"ask", "plan", "acceptEdits", "draft", "auto"}),
    ],
)
async def test_words_that_one_row_alone_has_not_narrow_the_list(
    desk: Desk, tmp_path: Path, typed: str, rows: set[str]
) -> None:
    await started(desk, tmp_path)
    desk.types(typed + ENTER)
    async with asyncio.timeout(50):
        while (dialog := desk.terminal.dialog) is None:
            await asyncio.sleep(0.01)
    words = typed.partition(" ")[2]
    assert dialog.asked.default == words
    assert {" ".join(each.label.split()[:2]) for each in dialog.rows(words)} == rows


@pytest.mark.parametrize(
    ("typed", "shown", "kept"),
    [
        ("/theme light" + ENTER, "theme light, in later chats as well", "light"),
        ("/theme" + ENTER + "plain" + ENTER, "theme plain, in later chats as well", "plain"),
    ],
)
async def test_a_theme_is_kept_for_later_chats(desk: Desk, tmp_path: Path, typed: str, shown: str, kept: str) -> None:
    await started(desk, tmp_path)
    first, *further = typed.split(ENTER)[:-1]
    desk.types(first + ENTER)
    for answer in further:
        await desk.answers(answer)
    await desk.sees(shown)
    assert load_settings(find_home(), {}).terminal.theme == kept


async def test_shift_tab_takes_the_next_mode(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path)
    for mode in ("acceptEdits", "draft", "plan", "ask"):
        desk.types("\x1b[Z")
        await in_mode(desk, mode)
    assert "mode: " not in desk.out.getvalue(), "the status line says it"


async def test_each_shift_tab_is_a_step_and_the_prompt_comes_after_it(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"text": "Done."})
    desk.types("\x1b[Z" * 3 + "go" + ENTER)
    for shown in ("› go", "Done."):
        await desk.sees(shown)
    await in_mode(desk, "plan")
    desk.types("/mode draft" + ENTER)
    await desk.sees("mode: draft")
    desk.types("\x1b[Z")
    await in_mode(desk, "plan")


async def in_mode(desk: Desk, mode: str) -> None:
    async with asyncio.timeout(50):
        while mode not in desk.chat.toolbar().split():
            await asyncio.sleep(0.01)


async def test_room_by_hand(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "notes.txt").write_text("".join(f"line {at} of the notes\n" for at in range(400)))
    reads = [{"tool": "read_file", "arguments": {"path": "notes.txt", "start_line": at}} for at in range(1, 7)]
    await started(desk, tmp_path, *({"text": "Reading.", "calls": [read]} for read in reads), {"text": "Read."})
    assert "/compact" in [row.label for row in desk.chat.rows("/co")]  # for completion
    desk.types("read the notes" + ENTER)
    await desk.sees("Read.\n\n")
    desk.types("/context" + ENTER)
    await desk.sees("Tool output")
    desk.types("/compact the colour is blue" + ENTER)
    await desk.sees("› /compact the colour is blue")
    await desk.sees("· Compacted: ")
    await desk.sees("(/notes)")
    desk.types("/notes" + ENTER)
    await desk.sees("Compacted: ")
    await desk.sees("## Goal")
    await desk.sees("1. read the notes")
    assert "context" in desk.chat.toolbar()


async def test_a_command_of_ones_own_is_said(desk: Desk, tmp_path: Path) -> None:
    folder = find_home(os.environ).config / "commands"
    folder.mkdir(parents=True)
    (folder / "tidy.md").write_text("Sweep $ARGUMENTS.")
    await started(desk, tmp_path, {"expect": "Sweep the floor.", "text": "Swept."})
    desk.types("/help" + ENTER)
    await desk.sees("/tidy")
    desk.types("/tidy the floor" + ENTER)
    await desk.sees("Swept.")


async def test_going_on_with_the_latest_session(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"text": "First answer."})
    desk.types("first" + ENTER)
    await desk.sees("First answer.")
    desk.types("/quit" + ENTER)
    await desk.left()
    desk.out.truncate(0)
    desk.out.seek(0)
    desk._seen = 0  # pyright: ignore[reportPrivateUsage]
    desk.start(latest=True, mode="plan")
    await desk.sees("mode plan")
    await desk.sees("› first\nFirst answer.")


@pytest.mark.parametrize("leaves", ["/quit" + ENTER, "/new" + ENTER + "/quit" + ENTER])
async def test_a_session_nobody_spoke_in_is_not_kept(desk: Desk, tmp_path: Path, leaves: str) -> None:
    desk.start(model_id=script(tmp_path, {"text": "First answer."}))
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("first" + ENTER)
    await desk.sees("First answer.")
    desk.types("/quit" + ENTER)
    await desk.left()
    desk.start(model_id=script(tmp_path))
    await desk.sees("session ")
    desk.types(leaves)
    await desk.left()
    desk.start(latest=True)
    await desk.sees("› first\nFirst answer.")
    assert "Untitled" not in desk.out.getvalue()


async def test_a_lost_connection_is_made_again(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"text": "Answer."})
    assert desk.client is not None
    await desk.client.close()
    await desk.sees("reconnected")
    desk.types("go" + ENTER)
    await desk.sees("Answer.")


QUESTION = {"question": "Which?", "header": "H", "options": [{"label": name, "description": ""} for name in "AB"]}
ASKS = {"tool": "ask_user", "arguments": {"questions": [QUESTION]}}
RUNS = {"tool": "run_shell_command", "arguments": {"command": "pip install x", "network": True}}


@pytest.mark.parametrize(("calls", "seen"), [([EDIT], "+one"), ([ASKS], "asks:"), ([RUNS], "? Run")])
async def test_a_question_ends_with_the_daemon_that_asks_it(
    desk: Desk, tmp_path: Path, calls: list[dict[str, Any]], seen: str
) -> None:
    if calls == [RUNS]:
        needs("bwrap")
    await started(desk, tmp_path, {"calls": calls}, {"text": "Done."})
    desk.types("go" + ENTER)
    await desk.sees(seen)
    await until_open(desk)
    desk.types("not this")
    await until_written(desk, "not this")
    assert desk.client is not None
    await desk.client.close()
    await desk.sees("Lost the connection to the daemon; reconnecting …")
    assert desk.terminal.typed == "not this"
    await desk.sees("reconnected")
    assert not (desk.root / "a.txt").exists()


async def until_open(desk: Desk) -> None:
    """A question has the keys."""
    async with asyncio.timeout(50):
        while desk.terminal.dialog is None:
            await asyncio.sleep(0.01)


def edit(old: str, new: str) -> dict[str, Any]:
    return {"tool": "edit_file", "arguments": {"path": "a.txt", "old_text": old, "new_text": new}}


FOUR = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"


async def edited(desk: Desk, tmp_path: Path) -> None:
    """Two turns, a hunk each, applied by the mode's rule."""
    (desk.root / "a.txt").write_text(FOUR)
    desk.start(
        model_id=script(
            tmp_path,
            {"calls": [edit("two\n", "TWO\n")]},
            {"text": "First done."},
            {
                "calls": [
                    edit("eight\n", "EIGHT\n"),
                    {"tool": "write_file", "arguments": {"path": "b.txt", "content": "b\n"}},
                ]
            },
            {"text": "Second done."},
        ),
        mode="acceptEdits",
    )
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    for said in ("first", "second"):
        desk.types(said + ENTER)
        await desk.sees(f"{said.title()} done.")
    assert (desk.root / "a.txt").read_text() == FOUR.replace("two", "TWO").replace("eight", "EIGHT")


async def test_undo_is_shown_first_and_can_be_undone(desk: Desk, tmp_path: Path) -> None:
    await edited(desk, tmp_path)
    both = (desk.root / "a.txt").read_text()
    mine = both.replace("five", "mine")
    (desk.root / "a.txt").write_text(mine)
    desk.types("/undo" + ENTER)  # the last turn
    await desk.sees("-EIGHT\n")
    await desk.sees("b.txt: will be deleted, since Amanu created it")
    assert (desk.root / "a.txt").read_text() == mine
    await asyncio.sleep(0.1)
    desk.types("n" + ENTER)
    await asyncio.sleep(0.1)
    desk.types("/undo turn" + ENTER)
    await desk.sees("+eight\n")
    await asyncio.sleep(0.1)
    assert (desk.root / "a.txt").read_text() == mine
    desk.types("y" + ENTER)
    await desk.sees("undid 2 changes in 2 files")
    assert (desk.root / "a.txt").read_text() == mine.replace("EIGHT", "eight")
    assert not (desk.root / "b.txt").exists()
    desk.types("/redo" + ENTER)
    await desk.sees("applied 2 changes in 2 files again")
    assert (desk.root / "a.txt").read_text() == mine
    desk.types("/undo file a.txt" + ENTER)
    await desk.sees("a.txt: 2 changes will be undone")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("undid 2 changes in 1 file")
    assert (desk.root / "a.txt").read_text() == FOUR.replace("five", "mine")
    assert (desk.root / "b.txt").exists()
    desk.types("/keep session" + ENTER)
    await desk.sees("There is nothing to keep.")  # what was brought again is kept


async def test_what_a_review_left_open_can_still_be_decided(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "a.txt").write_text(FOUR)
    louder = {
        "path": "a.txt",
        "content": FOUR.replace("two", "TWO").replace("eight", "EIGHT"),
        "explanation": "Louder.",
    }
    desk.start(model_id=script(tmp_path, {"calls": [{"tool": "write_file", "arguments": louder}]}, {"text": "Done."}))
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("go" + ENTER)
    await desk.sees("  Louder.\n@@")  # what it is for
    await desk.sees("+EIGHT\n")  # the choices are a prompt, which is not on this paper
    await asyncio.sleep(GUARD)
    desk.types("f" + ENTER)
    await desk.sees("Done.")
    desk.types("/accept" + ENTER)
    await desk.sees("+TWO\n")
    await desk.sees("+EIGHT\n")
    await asyncio.sleep(0.1)
    desk.types("n" + ENTER)
    await asyncio.sleep(0.1)
    assert (desk.root / "a.txt").read_text() == FOUR
    desk.types("/accept" + ENTER)
    await desk.sees("+EIGHT\n")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("accepted ")
    assert (desk.root / "a.txt").read_text() == louder["content"]


def hunks_of(desk: Desk) -> list[Hunk]:
    proposals = desk.chat._view.state.proposals  # pyright: ignore[reportPrivateUsage]
    return [hunk for proposal in proposals for file in proposal.files for hunk in file.hunks]


async def test_what_is_in_conflict_the_model_makes_again(desk: Desk, tmp_path: Path) -> None:
    (desk.root / "a.txt").write_text(FOUR)
    louder = {"path": "a.txt", "content": FOUR.replace("two", "TWO").replace("eight", "EIGHT")}
    desk.start(
        model_id=script(
            tmp_path,
            {"calls": [{"tool": "write_file", "arguments": louder}]},
            {"text": "Done."},
            {"calls": [edit("mine\n", "MINE\n")]},
            {"text": "Redone."},
        )
    )
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("go" + ENTER)
    await desk.sees("? Edit a.txt")
    await desk.sees("+EIGHT\n")
    await asyncio.sleep(GUARD)
    desk.types("f" + ENTER)
    await desk.sees("Done.")
    (desk.root / "a.txt").write_text(FOUR.replace("two", "mine"))
    async with asyncio.timeout(50):
        while not any(hunk.state == "conflicted" for hunk in hunks_of(desk)):
            await asyncio.sleep(0.01)
    desk.types("/accept" + ENTER)
    await desk.sees("+EIGHT\n")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("or /retry: the model makes them again.")
    desk.types("/retry file a.txt" + ENTER)
    await desk.sees("› Redo the change to a.txt on the present text.")
    await desk.sees("+MINE\n")
    await asyncio.sleep(GUARD)
    desk.types("a" + ENTER)
    await desk.sees("Redone.")
    assert (desk.root / "a.txt").read_text() == FOUR.replace("two", "MINE").replace("eight", "EIGHT")


@pytest.mark.parametrize(
    ("typed", "shown", "content"),
    [
        ("now the other file", "› now the other file", None),  # the next prompt
        ("a file more, please", "› a file more, please", None),  # begins like an answer
        ("why?", "› why?", None),
        ("ok", "Unknown answer 'ok'", None),  # a slip of the finger
        ("/jobs", "No background commands", None),
        ("later", "Left the draft for later", None),
        ("f", "Left the draft for later", None),
        ("r not so", "rejected by you: “not so”", None),
        ("a", "1 hunk: 1 applied", "one\n"),
    ],
)
async def test_what_is_typed_at_the_review_of_a_draft(
    desk: Desk, tmp_path: Path, typed: str, shown: str, content: str | None
) -> None:
    """What is no answer is the next prompt, and leaves the draft as it is."""
    steps: list[dict[str, Any]] = [{"calls": [EDIT]}, {"text": "Done."}, {"text": "Next."}]
    desk.start(model_id=script(tmp_path, *steps), mode="draft")
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("go" + ENTER)
    await desk.sees("? Apply the draft")
    await asyncio.sleep(GUARD)
    desk.types(typed + ENTER)
    await desk.sees(shown)
    if shown.startswith("›"):
        await desk.sees("Next.")
    assert (content is not None) == (desk.root / "a.txt").exists()


@pytest.mark.parametrize(
    ("mine", "count"),
    [
        ("mine", "Applied 1 of 2 changes. Not applied:"),
        (None, "Applied 0 of 2 changes. Not applied:"),  # deleted
    ],
)
async def test_what_cannot_be_accepted_says_why(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: str | None, count: str
) -> None:
    monkeypatch.setattr(tracking, "QUIET", 1000)  # else a change whose file is gone may be withdrawn before
    (desk.root / "a.txt").write_text(FOUR)
    louder = {"path": "a.txt", "content": FOUR.replace("two", "TWO").replace("eight", "EIGHT")}
    desk.start(
        model_id=script(tmp_path, {"calls": [{"tool": "write_file", "arguments": louder}]}, {"text": "Done."}),
        mode="draft",
    )
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("go" + ENTER)
    await desk.sees("? Apply the draft")
    await asyncio.sleep(GUARD)
    desk.types("f" + ENTER)
    await desk.sees("The draft has not been applied")
    if mine is None:
        (desk.root / "a.txt").unlink()
    else:
        (desk.root / "a.txt").write_text(FOUR.replace("two", mine))
    await asyncio.sleep(0.1)
    desk.types("/accept" + ENTER)
    await desk.sees("+EIGHT\n")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees(count)
    await desk.sees("  a.txt, line 2: The file")
    await desk.sees("/reject them")


@pytest.mark.layers
async def test_what_no_hunk_shows_is_shown_and_decided_like_hunks(desk: Desk, tmp_path: Path) -> None:
    needs("bwrap")
    (desk.root / "a.txt").write_text(FOUR)
    (desk.root / "b.txt").write_text(FOUR)
    louder = {"path": "a.txt", "content": FOUR.replace("two", "TWO")}
    binary = {"command": "printf 'a\\0b' > pic.bin; chmod +x b.txt"}
    calls = [{"tool": "write_file", "arguments": louder}, {"tool": "run_shell_command", "arguments": binary}]
    desk.start(model_id=script(tmp_path, {"calls": calls}, {"text": "Done."}), mode="draft")
    await desk.sees("This folder is not trusted")
    desk.types("y" + ENTER)
    await desk.sees("trusted\n")
    desk.types("go" + ENTER)
    await desk.sees("? Apply the draft: 3 files")
    await desk.sees("── pic.bin (new binary file, 3 bytes)")
    await desk.sees("── b.txt (becomes executable)")
    await asyncio.sleep(GUARD)
    desk.types("h" + ENTER)
    await desk.sees("1 of 3")
    desk.types("y" + ENTER)
    await desk.sees("── pic.bin (new binary file, 3 bytes) · 2 of 3")
    desk.types("n it is not needed" + ENTER)
    await desk.sees("── b.txt (becomes executable) · 3 of 3")
    desk.types("q" + ENTER)
    await asyncio.sleep(0.1)
    desk.types("f" + ENTER)
    await desk.sees("/reject session discards it.")
    desk.types("/accept" + ENTER)
    await desk.sees("── b.txt (becomes executable)")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("accepted ")
    assert (desk.root / "b.txt").stat().st_mode & 0o100 and not (desk.root / "pic.bin").exists()
    desk.types("/undo session" + ENTER)
    await desk.sees("b.txt: ")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("undid 2 changes in 2 files")
    assert not (desk.root / "b.txt").stat().st_mode & 0o100


@pytest.mark.parametrize(
    ("typed", "row", "keys", "then"),
    [
        ("/model" + ENTER, "Claude Opus", ["opus" + ENTER], "No key for Anthropic"),
        ("/model" + ENTER, "Claude Opus", [ESC], ""),
        (ESC + ESC, "second", ["2 files" + ENTER, ENTER], "Undo the changes above?"),
        (ESC + ESC, "second", ["2 files" + ENTER, "\x1b[B" + ENTER], "above, and 1 turn of the conversation?"),
        ("/restore" + ENTER, "second", ["2 files" + ENTER, ESC], ""),
    ],
)
async def test_what_there_is_to_choose_from_is_picked(
    desk: Desk, tmp_path: Path, typed: str, row: str, keys: list[str], then: str
) -> None:
    await edited(desk, tmp_path)
    desk.types(typed)
    asked: OpenDialog | None = None
    for key in keys:
        async with asyncio.timeout(50):
            while (dialog := desk.terminal.dialog) is None or dialog is asked:
                await asyncio.sleep(0.01)
        assert asked is not None or any(row in each.label for each in dialog.asked.choices)
        asked = dialog
        desk.types(key)
    if then:
        await desk.sees(then)
    else:
        while desk.terminal.dialog is asked:  # Esc may begin a sequence
            await asyncio.sleep(0.01)
        desk.types("/todos" + ENTER)
        await desk.sees("No to-dos.")


async def test_back_to_before_a_turn(desk: Desk, tmp_path: Path) -> None:
    await edited(desk, tmp_path)
    desk.types("/diff session" + ENTER)
    await desk.sees("+TWO\n")
    await desk.sees("create b.txt +1 −0")
    desk.types("/checkpoints" + ENTER)
    await desk.sees("1 ")
    await desk.sees("second 2 files")
    await desk.sees("first 1 file")
    desk.types("/restore 9" + ENTER)
    await desk.sees("with a number from /checkpoints")
    desk.types("/restore 2 all" + ENTER)
    await desk.sees("-TWO\n")
    await desk.sees("a.txt: ")
    await asyncio.sleep(0.1)
    desk.types("y" + ENTER)
    await desk.sees("continues from before the last 2 turns")
    await desk.sees("undid 3 changes in 2 files")
    assert (desk.root / "a.txt").read_text() == FOUR
    await asyncio.sleep(0.3)
    desk.types(" again" + ENTER)  # the prompt is there again, to be changed
    await desk.sees("› first again")
    await desk.sees("First done.")


async def test_the_conversation_is_taken_elsewhere(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = list[str]()
    monkeypatch.setattr(conversation, "write_now", written.append)
    used = {"input": 1200, "output": 5}
    await started(desk, tmp_path, {"text": "**Wort** für Wort.", "usage": used}, {"text": "Again."})
    monkeypatch.chdir(desk.root)
    for typed, shown in (
        ("/copy", "There is no answer to copy yet."),
        ("/edit", "There is no prompt to edit yet."),
        ("/cost", "Nothing has been sent to a model yet."),
        ("Say it", "**Wort** für Wort."),
        ("/copy", "copied: the last answer, 18 characters"),
        ("/cost", "session   $0.0000 · 1.2k in · 5 out"),
        ("/search wort fü", "  answer   **Wort** für Wort."),
        ("/export", f"written: {desk.root / 'say-it.md'}"),
        ("/export", f"written: {desk.root / 'say-it-2.md'}"),
        ("/fork 1", "It has 1 turn; /new begins without any."),
        ("/fork x", "Usage: /fork [N]"),
        ("/export json", f"written: {desk.root / 'say-it.json'}"),
        ("/export md told.txt", f"written: {desk.root / 'told.txt'}"),
        ("/export said.json", f"written: {desk.root / 'said.json'}"),
        ("/export said.json", "said.json exists. Nothing was written; choose another name."),
        ("/export nowhere/a.md", "cannot be written: No such file or directory."),
    ):
        desk.types(typed + ENTER)
        await desk.sees(f"› {typed}\n")
        await desk.sees(shown)
    (sequence,) = written
    assert base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\x07")).decode() == "**Wort** für Wort."
    assert (desk.root / "say-it.md").read_text().endswith("\n\n## › Say it\n\n**Wort** für Wort.\n")
    assert [item["kind"] for item in json.loads((desk.root / "said.json").read_text())["items"]] == [
        "userMessage",
        "answer",
    ]
    desk.types("/fork" + ENTER)
    await desk.sees("Forked from “Say it”.")
    desk.types("/edit" + ENTER)
    await desk.sees("› /edit")
    await asyncio.sleep(0.3)
    desk.types(" again" + ENTER)
    await desk.sees("› Say it again\n")


async def test_back_to_before_a_turn_that_changed_nothing(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"calls": [EDIT]}, {"text": "A pity."})
    desk.types("write it" + ENTER)
    await desk.sees("+one\n")
    await asyncio.sleep(GUARD)
    desk.types("not now please" + ENTER)
    await desk.sees("A pity.")
    desk.types("/checkpoints" + ENTER)
    await desk.sees("write it 1 file rejected\n")
    desk.types("/restore 1" + ENTER)
    await desk.sees("Nothing to undo: no change of that turn or a later one is applied.")
    await desk.sees("/restore 1 all goes back 1 turn of the conversation.")
    desk.types("/restore 1 all" + ENTER)
    await asyncio.sleep(0.3)
    desk.types("y" + ENTER)
    await desk.sees("continues from before the last turn")
    assert "undid" not in desk.out.getvalue()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("/undo", "There is nothing to undo."),
        ("/redo turn", "There is nothing to redo."),
        ("/keep file a.txt", "There is nothing to keep in a.txt."),
        ("/retry session", "There is nothing to retry."),
        ("/retry all", "Usage: /retry [turn | session | file PATH]"),
        ("/undo everything", "Usage: /undo [turn | session | file PATH]"),
        ("/diff turn", "There is nothing to show."),
        ("/checkpoints", "No checkpoints"),
        ("/restore 1", "with a number from /checkpoints"),
    ],
)
async def test_without_edits_they_say_so(desk: Desk, tmp_path: Path, typed: str, shown: str) -> None:
    await started(desk, tmp_path)
    desk.types(typed + ENTER)
    await desk.sees(shown)


async def test_background_commands_are_listed_read_and_stopped(desk: Desk, tmp_path: Path) -> None:
    start = {"command": "echo ready; sleep 300", "background": True, "until": "ready"}
    steps = ({"text": "", "calls": [{"tool": "run_shell_command", "arguments": start}]}, {"text": "Started."})
    desk.start(model_id=script(tmp_path, *steps), mode="auto")
    await desk.sees("This folder is not trusted")
    desk.types("n" + ENTER)
    desk.types("/jobs" + ENTER)
    await desk.sees("No background commands.")
    desk.types("go" + ENTER)
    await desk.sees("Started.")
    assert "1 in the background" in desk.chat.toolbar()
    desk.types("/jobs" + ENTER)
    await rows_shown(desk, "▸ job-1  echo ready; sleep 300 Running")
    desk.types(ENTER)
    await rows_shown(desk, "Show its output ready", "Stop it")
    desk.types(ENTER)
    await desk.sees("ready\n")
    for typed, seen in (
        ("/jobs output 1", "ready\n"),
        ("/jobs stop", "Usage: /jobs [stop ID | output ID]"),
        ("/jobs stop job-9", "This session has no background command job-9."),
        ("/jobs stop 1", "Stopped by the user, after "),
    ):
        desk.types(typed + ENTER)
        await desk.sees(seen)
    assert "in the background" not in desk.chat.toolbar()
    desk.types(CTRL_D)
    assert await desk.left() == 0


async def test_a_running_command_is_put_in_the_background(desk: Desk, tmp_path: Path) -> None:
    waits = "echo up; until [ -e go ]; do sleep 0.02; done"
    shell = {"tool": "run_shell_command", "arguments": {"command": waits}}
    desk.start(model_id=script(tmp_path, {"text": "", "calls": [shell]}, {"text": "I go on."}), mode="auto")
    await desk.sees("This folder is not trusted")
    desk.types("n" + ENTER)
    desk.types("go" + ENTER)
    async with asyncio.timeout(50):
        while not any("up" in text for _, text in desk.chat.above()):
            await asyncio.sleep(0.01)
    desk.keyboard.send_text("\x02")
    await desk.sees("Goes on in the background as job-1.")
    await desk.sees("I go on.")
    assert "1 in the background" in desk.chat.toolbar()
    desk.types(CTRL_D)
    assert await desk.left() == 0


async def test_the_dashboard_follows_all_sessions_and_goes_to_one(desk: Desk, tmp_path: Path) -> None:
    await started(desk, tmp_path, {"text": "First."})
    desk.types("one" + ENTER)
    await desk.sees("First.")
    desk.types("/dashboard" + ENTER)
    dialog = await rows_shown(desk, "you are here")
    assert desk.client is not None
    (tmp_path / "other").mkdir()
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{"text": "", "calls": [EDIT]}, {"text": "Done."}]))
    created = r.SessionCreateParams(session_id="o" * 32, roots=[str(tmp_path / "other")], model_id=f"scripted:{other}")
    await desk.client.request("amanu/session/create", created, r.SessionResult)
    said = r.PromptSendParams(session_id="o" * 32, prompt_id="p", text="write it")
    await desk.client.request("amanu/prompt/send", said, r.PromptSendResult)
    assert await rows_shown(desk, "you are here", "? waits write it now · Create a.txt · other") is dialog
    assert dialog.answer("") != "o" * 32, "what was marked before stays marked"
    desk.types("waits" + ENTER)
    await desk.sees(f"session {'o' * 32}")
    await desk.sees("a.txt")
    desk.types(CTRL_D)
    assert await desk.left() == 0


def refused(text: str) -> EventMessage:
    ended = TurnEnded(turn_id="t", reason="refused", message=text, can_continue=False)
    return EventMessage(session_id="s", epoch=1, seq=1, at=0, event=ended)


RECOMMENDED = "Not this. Its service recommends another: `/model scripted:demo`, then send it again."
OFFERED: dict[str, tuple[str, str, str]] = {
    # how the turn ended, what the user was typing → what the prompt holds
    "another": (RECOMMENDED, "", "/model scripted:demo"),
    "none": ("Not this.", "", ""),
    "somebody else's words": ("Do `/model scripted:demo`, then send it again. Yes.", "", ""),
    "the user writes already": (RECOMMENDED, "well", "well"),
}


@pytest.mark.parametrize("case", OFFERED)
async def test_the_model_that_a_refusal_recommends_is_ready_to_be_chosen(desk: Desk, tmp_path: Path, case: str) -> None:
    text, typed, expected = OFFERED[case]
    await started(desk, tmp_path, {"text": "Done."})
    desk.types(typed)
    await until_written(desk, typed)
    for listener in desk.chat._view.listeners:  # pyright: ignore[reportPrivateUsage]
        listener(refused(text), desk.chat._view.state)  # pyright: ignore[reportPrivateUsage]
    await until_written(desk, expected)
