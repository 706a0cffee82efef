"""Which files the model is told to read again, after what happened to them since."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from amanu.context.stale_files import LATEST, OTHERS, StaleFiles
from amanu.core.conversation import Assistant, Call, Compacted, Conversation, Masked, Result, Results, User
from amanu.workspace import shown_files as seen
from support.tool_harness import FakeEditor, ToolHarness

FILES: dict[str, str | bytes] = {
    "a.py": "one\ntwo\n",
    "b.py": "x\n",
    "latin.txt": b"caf\xe9\n",
    "wide.txt": b"\xff\xfea\x00",
    "mixed.txt": b"one\r\ntwo\n",
}
READ_A = ("read_file", {"path": "a.py"})
EDIT_A = ("edit_file", {"path": "a.py", "old_text": "two", "new_text": "2"})
Event = tuple[str, Mapping[str, Any]] | Callable[[ToolHarness], object]


class Talk:
    """What tools return becomes results in a conversation."""

    def __init__(self, root: Path) -> None:
        self.held = ToolHarness(root, FILES)
        self.conversation = Conversation([User(text="Go.")])
        self.outdated = StaleFiles(self.held.workspace, self.conversation)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        call = self.held.context()
        outcome = await self.held.run(tool, arguments, call=call)
        part = Call(call_id=call.call_id, tool=tool, arguments=dict(arguments))
        self.conversation.append(Assistant(parts=(part,)))
        self.conversation.append(Results(results=(Result(call_id=call.call_id, tool=tool, text=outcome.for_model),)))
        return call.call_id

    async def named(self) -> str:
        """The files that are told of, as they are named."""
        news = await self.outdated.collect_note()
        if news is None:
            return ""
        names = news[0].removeprefix("Changed since you read them, not by your edits: ")
        names = names.removesuffix(". Read them again before you edit them.")
        assert names in news[1]
        return names


def put(name: str, data: str | bytes) -> Event:
    return lambda held: held.put(name, data)


def gone(name: str) -> Event:
    return lambda held: (held.root / name).unlink()


def typed(name: str, text: str) -> Event:
    return lambda held: held.editor.put(held.root / name, text)


def saved(held: ToolHarness) -> None:
    for path, buffer in held.editor.open.items():
        path.write_text(buffer.text)


def closed(held: ToolHarness) -> None:
    held.editor.open.clear()


def touched(held: ToolHarness) -> None:
    for name in FILES:
        os.utime(held.root / name)


def formats_on_save(held: ToolHarness) -> None:
    apply = held.editor.apply

    async def formatted(path: Path, *more: Any, **also: Any) -> Any:
        result = await apply(path, *more, **also)
        held.editor.put(path, held.editor.open[path].text + "# formatted\n")
        saved(held)
        return result

    held.editor.apply = formatted


def other_editor(held: ToolHarness) -> None:
    """It shows what is on disk, and connected later."""
    editor = FakeEditor()
    held.overlay.add(editor)
    editor.put(held.root / "a.py", "one\ntwo\n")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([READ_A], ""),
        ([READ_A, put("b.py", "unread\n")], ""),
        ([READ_A, touched], ""),
        ([READ_A, put("a.py", "1\n")], "a.py"),
        ([READ_A, put("a.py", "1\n"), put("a.py", "one\ntwo\n")], ""),
        ([READ_A, gone("a.py")], "a.py (deleted)"),
        ([READ_A, gone("a.py"), put("a.py", "one\ntwo\n")], ""),
        ([READ_A, put("a.py", b"\0\0")], "a.py (no longer readable as text)"),
        ([READ_A, put("a.py", "1\n"), READ_A], ""),
        ([("read_file", {"path": "a.py", "start_line": 2}), put("a.py", "1\n")], "a.py"),
        ([("read_many_files", {"paths": ["*.py"]}), put("b.py", "1\n"), gone("a.py")], "a.py (deleted), b.py"),
        ([("grep", {"pattern": "one"}), put("a.py", "1\n")], ""),
        # In an editor: what it shows counts, saved or not.
        ([READ_A, typed("a.py", "typed\n")], "a.py (unsaved in the editor)"),
        ([READ_A, typed("a.py", "typed\n"), saved], "a.py"),
        ([READ_A, typed("a.py", "typed\n"), typed("a.py", "one\ntwo\n")], ""),
        ([READ_A, typed("a.py", "typed\n"), closed], ""),
        ([typed("a.py", "typed\n"), READ_A, saved, closed], ""),
        ([typed("a.py", "typed\n"), READ_A, closed], "a.py"),
        ([READ_A, other_editor], ""),
        ([("read_many_files", {"paths": ["latin.txt", "wide.txt", "mixed.txt"]}), touched], ""),
        ([("read_file", {"path": "latin.txt"}), typed("latin.txt", "caf\ufffd\n")], ""),
        ([("read_file", {"path": "mixed.txt"}), typed("mixed.txt", "one\ntwo\n")], ""),
        ([("read_file", {"path": "latin.txt"}), put("latin.txt", "café\n")], ""),  # other bytes, the same text
        # Its own edits it knows, on disk and through an editor; not what came with them.
        ([READ_A, EDIT_A], ""),
        ([EDIT_A], ""),
        ([EDIT_A, put("a.py", "1\n")], "a.py"),
        ([READ_A, typed("a.py", "one\ntwo\n"), EDIT_A], ""),
        ([READ_A, EDIT_A, put("a.py", "one\ntwo\n")], "a.py"),
        ([READ_A, put("a.py", "zero\none\ntwo\n"), EDIT_A], "a.py"),
        ([READ_A, typed("a.py", "zero\none\ntwo\n"), EDIT_A], "a.py (unsaved in the editor)"),
        ([READ_A, formats_on_save, typed("a.py", "one\ntwo\n"), EDIT_A], "a.py"),
        ([("write_file", {"path": "new.py", "content": "x\n"})], ""),
        ([("write_file", {"path": "new.py", "content": "x\n"}), gone("new.py")], "new.py (deleted)"),
    ],
)  # fmt: skip
async def test_who_is_told_of(tmp_path: Path, events: list[Event], expected: str) -> None:
    talk = Talk(tmp_path)
    for event in events:
        if callable(event):
            event(talk.held)
        else:
            await talk.call(*event)
    assert await talk.named() == expected
    assert await talk.named() == ""  # once for each change


async def test_each_change_is_told(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.call(*READ_A)
    for at in range(3):
        talk.held.put("a.py", f"{at}\n")
        assert (await talk.named(), await talk.named()) == ("a.py", "")
    talk.held.put("a.py", "2\ntwo\n")
    assert await talk.named() == "a.py"
    await talk.call(*EDIT_A)  # of a text it was told of
    assert await talk.named() == ""


@pytest.mark.parametrize(
    ("masked", "replaced", "named"),
    [(False, 0, "a.py, b.py"), (True, 0, "b.py"), (False, 3, "b.py"), (False, 5, "")],
)
async def test_what_is_not_in_the_conversation_any_more_is_not_told_of(
    tmp_path: Path, masked: bool, replaced: int, named: str
) -> None:
    talk = Talk(tmp_path)
    call = await talk.call(*READ_A)
    await talk.call("read_file", {"path": "b.py"})
    if masked:
        talk.conversation.mask(Masked(texts={call: "[Left out to make room: …]"}))
    if replaced:
        talk.conversation.compact(Compacted(replaced=replaced, text="…", snapshot=""))
    for name in ("a.py", "b.py"):
        talk.held.put(name, "other\n")
    assert await talk.named() == named


async def test_a_compaction_also_forgets_what_was_edited_or_mentioned(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    await talk.call(*EDIT_A)
    talk.held.workspace.shown_files.show(await talk.held.workspace.read(tmp_path / "b.py"))
    talk.conversation.compact(Compacted(replaced=1, text="…", snapshot=""))
    for name in ("a.py", "b.py"):
        talk.held.put(name, "other\n")
    assert await talk.named() == ""


async def test_the_many_and_the_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = Talk(tmp_path)
    names = [f"f{at:02}" for at in range(30)]
    for name in names:
        talk.held.put(name, "x\n")
    talk.held.put("two\nlines", "x\n")
    await talk.call("read_file", {"path": "two\nlines"})
    talk.held.put("two\nlines", "y\n")
    assert await talk.named() == "two<U+000A>lines"
    await talk.call("read_many_files", {"paths": ["f*"]})
    for name in names:
        talk.held.put(name, "y\n")
    assert (await talk.named()).endswith("f18, f19 and 10 more")
    monkeypatch.setattr(seen, "MAX_FILES", 2)  # those read last
    talk = Talk(tmp_path)
    await talk.call("read_many_files", {"paths": ["f0*"]})
    for name in names:
        talk.held.put(name, "z\n")
    assert await talk.named() == "f08, f09"


async def test_between_steps_some_are_looked_at_and_all_once_one_has_changed(tmp_path: Path) -> None:
    count = LATEST + 3 * OTHERS
    names = [f"f{n:03}.py" for n in range(count)]
    talk = Talk(tmp_path)
    for name in names:
        talk.held.put(name, "one\n")
        await talk.call("read_file", {"path": name})

    async def told_after(*changed: str) -> tuple[int, str]:
        """How many steps pass until something is told, and what it is."""
        for name in changed:
            talk.held.put(name, f"another than {(tmp_path / name).read_text()}")
        for steps in range(1, 10):
            if (news := await talk.outdated.collect_note(every=False)) is not None:
                return steps, news[0]
        return 0, ""

    assert await told_after() == (0, "")
    steps, news = await told_after(names[-1])
    assert steps == 1 and names[-1] in news
    steps, news = await told_after(names[3])
    assert 1 <= steps <= 4 and names[3] in news
    steps, news = await told_after(names[3], names[70], names[-1])
    assert steps == 1 and all(name in news for name in (names[3], names[70], names[-1]))
    talk.held.put(names[5], "with a prompt\n")
    assert names[5] in await talk.named()
