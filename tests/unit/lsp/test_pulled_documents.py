"""Clients that send no documents but give a text when they are asked: ones that keep their word, and others."""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import ToolError
from amanu.frontends.lsp import edit_request
from amanu.frontends.lsp import pulled_documents as module
from amanu.frontends.lsp.buffers import Buffers, EditorClient, sha256
from amanu.frontends.lsp.jsonrpc import ClientError
from amanu.frontends.lsp.pulled_documents import PulledDocuments
from amanu.text.span_edits import SpanEdit, edited
from amanu.workspace.range_edits import placed_edits
from amanu.workspace.workspace import Workspace
from amanu_protocol.items import Proposal
from amanu_protocol.requests import EditorApplyParams, EditorReadParams
from support.scripted_session import call, scripted_session, step
from support.tool_harness import ToolHarness, hunks, states

SHORT = 0.03
FILES: dict[str, str | bytes] = {"a.py": "disk a\n", "b.py": "disk b\n"}


class Client:
    """Shows what was typed into it, else the disk. Saves an edited file, unless something else was typed there."""

    def __init__(
        self,
        held: ToolHarness,
        name: str = "Pulled",
        *,
        takes_edits: bool = True,
        folder: Path | None = None,
        process: int | None = None,
        session_id: str = "",
    ) -> None:
        self.held = held
        self.folder = folder or held.root
        self.typed: dict[str, str] = {}
        """Unsaved texts by name."""
        self.asked: list[tuple[str, str]] = []
        self.answer: Callable[[], Any] | None = None
        """What it answers instead to a read."""
        self.edit_answer: Callable[[], Any] | None = None
        client = EditorClient(name, self.ask, "utf-16", own_apply=takes_edits, process=process)
        self.documents = PulledDocuments(
            client, lambda: [self.folder], held.overlay.notify_changed, lambda asked: asked == session_id
        )
        held.overlay.add(self.documents)

    def save(self, name: str) -> None:
        self.held.put(name, self.typed.pop(name))

    def shows(self, name: str) -> str | None:
        return self.typed.get(name, text) if (text := self._on_disk(name)) is not None else self.typed.get(name)

    def take_asked(self) -> list[tuple[str, str]]:
        asked, self.asked = self.asked, []
        return asked

    async def ask(self, method: str, params: Any) -> Any:
        path = Path(params.path)
        self.asked.append((method.rpartition("/")[2], str(path.relative_to(self.folder))))
        await asyncio.sleep(0)
        if isinstance(params, EditorReadParams):
            result = {"text": self.shows(path.name)} if self.answer is None else self.answer()
        else:
            assert isinstance(params, EditorApplyParams)
            result = self._edit(path.name, params) if self.edit_answer is None else self.edit_answer()
        return await result if asyncio.iscoroutine(result) else result

    def _edit(self, name: str, params: EditorApplyParams) -> Any:
        text = self.shows(name)
        if text is None or sha256(text) != params.expected_sha256:
            return {"status": "conflict"}
        self.typed[name] = text = edited(text, placed_edits(text, params.edits, "utf-16"))
        if params.save:
            self.save(name)
        return {"status": "success", "sha256": sha256(text), "saved": params.save}

    def _on_disk(self, name: str) -> str | None:
        path = self.held.root / name
        return path.read_bytes().decode("utf-8", "replace") if path.exists() else None


@pytest.fixture
def held(tmp_path: Path) -> ToolHarness:
    return ToolHarness(tmp_path / "work", FILES)


async def text_of(held: ToolHarness, name: str) -> tuple[str, bool]:
    """Text, and whether it is unsaved."""
    file = await held.workspace.read(held.root / name)
    return file.text, file.unsaved


def last_made(held: ToolHarness) -> Proposal:
    """The last version of the proposal that was made last; of an earlier one a version may come later."""
    ids = list(dict.fromkeys(version.proposal_id for version in held.versions))
    return next(version for version in reversed(held.versions) if version.proposal_id == ids[-1])


async def edit(held: ToolHarness, name: str, old: str, new: str) -> Sequence[str]:
    """States of the hunks after an edit that was accepted."""
    await held.run("edit_file", {"path": name, "old_text": old, "new_text": new})
    return states(last_made(held))


async def edit_both(held: ToolHarness, word: str) -> None:
    """Replace the first word of a.py and b.py, in one proposal."""
    changes = "".join(f"*** Update File: {name}.py\n-{word} {name}\n+edited {name}\n" for name in "ab")
    await held.run("apply_patch", {"patch": f"*** Begin Patch\n{changes}*** End Patch"})


async def hangs() -> Any:
    await asyncio.Event().wait()


async def never() -> Any:
    """Hang like `hangs`, with the time over at once: on a busy machine, a limit short enough for a test would be too
    short for an editor that answers."""
    raise TimeoutError


def fail() -> Any:
    raise ClientError("no")


async def test_unsaved_text_is_what_is_read(held: ToolHarness) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed a\n", "new.py": "typed new\n"}
    assert await text_of(held, "a.py") == ("typed a\n", True)
    assert await text_of(held, "b.py") == ("disk b\n", False)
    assert await text_of(held, "new.py") == ("typed new\n", True)
    client.typed["a.py"] = "more\n"
    assert await text_of(held, "a.py") == ("more\n", True)
    assert (await held.run("grep", {"pattern": "disk|more|typed"})).for_model == (
        "a.py (unsaved in the editor)\n1: more\nb.py\n1: disk b\nnew.py (unsaved in the editor)\n1: typed new\n"
    )
    client.typed["a.py"] = "again\n"  # what is known to be unsaved is asked for before it is searched
    assert "1: again\n" in (await held.run("grep", {"pattern": "again"})).for_model


async def test_saved_text_does_not_count_any_more(held: ToolHarness) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed\n"}
    await text_of(held, "a.py")
    client.save("a.py")
    assert held.overlay.buffers() == [] and held.overlay.find(held.root / "a.py") is None
    client.answer = lambda: {"text": None}
    assert await text_of(held, "a.py") == ("typed\n", False)


async def test_what_the_client_has_not_read_again_does_not_hide_the_disk(held: ToolHarness) -> None:
    client = Client(held)
    await text_of(held, "a.py")
    await text_of(held, "b.py")
    client.typed = {"a.py": "disk a\n", "b.py": "disk b\n"}  # as it read them
    held.put("a.py", "written by a command\n")
    (held.root / "b.py").unlink()
    for _ in range(2):
        assert await text_of(held, "a.py") == ("written by a command\n", False)
        assert await held.workspace.read_if_exists(held.root / "b.py") is None
    client.typed = {"a.py": "the user's\n", "b.py": "the user's, too\n"}
    assert await text_of(held, "a.py") == ("the user's\n", True)
    assert await text_of(held, "b.py") == ("the user's, too\n", True)


@pytest.mark.parametrize(
    "answer",
    [lambda: {"text": None}, dict, lambda: None, list],
)
async def test_a_client_without_the_file(held: ToolHarness, answer: Callable[[], Any]) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed\n", "new.py": "typed\n"}
    assert await text_of(held, "a.py") == await text_of(held, "new.py") == ("typed\n", True)
    client.answer = answer
    assert await held.workspace.read_if_exists(held.root / "new.py") is None
    assert await text_of(held, "a.py") == ("disk a\n", False)
    assert await edit(held, "a.py", "disk a", "edited") == ["applied"]
    assert held.on_disk("a.py") == b"edited\n"


async def test_no_text_of_no_file_is_no_document(held: ToolHarness) -> None:
    client = Client(held)
    client.answer = lambda: {"text": ""}
    assert await held.workspace.read_if_exists(held.root / "new.py") is None
    assert await text_of(held, "a.py") == ("", True)


async def test_a_client_that_hangs_is_left_alone_for_a_while(
    held: ToolHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_TIMEOUT", SHORT)
    client = Client(held)
    client.answer = hangs
    for name in ("a.py", "a.py", "b.py"):
        assert (await text_of(held, name))[1] is False
    assert client.take_asked() == [("read", "a.py")]
    monkeypatch.setattr(module, "COOLDOWN", 0.0)
    another = Client(held, "Another")
    another.answer = hangs
    await text_of(held, "a.py")
    await text_of(held, "b.py")
    assert another.take_asked() == [("read", "a.py"), ("read", "b.py")]


async def refused(held: ToolHarness, tool: str, **arguments: Any) -> bool:
    """Whether a change is not made because the client does not answer."""
    await held.run(tool, arguments)
    reasons = [hunk.reason for hunk in hunks(last_made(held)) if hunk.state == "conflicted"]
    return all(reason is not None and "Pulled did not answer" in reason for reason in reasons) and reasons != []


@pytest.mark.parametrize("takes_edits", [True, False])
@pytest.mark.parametrize("answer", [never, fail, lambda: {"text": 1}])
async def test_nothing_is_edited_while_a_client_that_has_answered_does_not(
    held: ToolHarness, answer: Callable[[], Any], takes_edits: bool
) -> None:
    client = Client(held, takes_edits=takes_edits)
    client.typed = {"a.py": "typed a\n"}
    await text_of(held, "a.py")
    client.typed |= {"b.py": "typed b\n", "new.py": "typed new\n"}  # it has not told of these
    client.answer = answer
    assert await text_of(held, "a.py") == ("typed a\n", True)
    assert await text_of(held, "b.py") == ("disk b\n", False)
    assert await refused(held, "edit_file", path="a.py", old_text="typed", new_text="edited")
    assert await refused(held, "edit_file", path="b.py", old_text="disk", new_text="edited")
    assert await refused(held, "write_file", path="new.py", content="written\n")
    assert await refused(held, "move_file", path="b.py", new_path="c.py")
    assert await refused(held, "delete_file", path="b.py")
    held.put("a.py", "written by a command\n")
    assert await text_of(held, "a.py") == ("written by a command\n", False)
    assert await refused(held, "edit_file", path="a.py", old_text="written", new_text="edited")
    assert sorted(path.name for path in held.root.iterdir()) == ["a.py", "b.py"]
    assert (held.on_disk("a.py"), held.on_disk("b.py")) == (b"written by a command\n", b"disk b\n")
    client.answer = None
    if answer is never:
        assert await text_of(held, "b.py") == ("disk b\n", False)  # it rests
        assert await edit(held, "b.py", "disk", "edited") == ["conflicted"]  # but not before an edit
    else:
        assert await text_of(held, "b.py") == ("typed b\n", True)
    assert await text_of(held, "a.py") == ("typed a\n", True)
    if takes_edits:
        assert await edit(held, "b.py", "typed", "edited") == ["applied"]
        assert client.typed["b.py"] == "edited b\n"


@pytest.mark.parametrize("answer", [never, fail])
async def test_a_client_that_does_not_answer_for_long_counts_only_with_what_it_is_known_to_show(
    held: ToolHarness, answer: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    held.put("c.py", "disk c\n")
    client = Client(held)
    client.typed = {"a.py": "typed a\n"}
    await text_of(held, "a.py")
    await text_of(held, "b.py")
    client.answer = client.edit_answer = answer
    for name in ("b.py", "c.py"):
        assert await refused(held, "edit_file", path=name, old_text="disk", new_text="edited")
    monkeypatch.setattr(module, "COOLDOWN", 0.0)
    for name in ("b.py", "c.py"):
        assert await edit(held, name, "disk", "edited") == ["applied"]
        assert held.on_disk(name).startswith(b"edited")
    assert await text_of(held, "a.py") == ("typed a\n", True)
    assert await edit(held, "a.py", "typed", "edited") == ["conflicted"]
    assert held.on_disk("a.py") == b"disk a\n"
    held.put("a.py", "saved a\n")
    assert await edit(held, "a.py", "saved", "edited") == ["applied"]
    assert held.on_disk("a.py") == b"edited a\n"
    client.answer = client.edit_answer = None
    client.typed = {"b.py": "typed b\n"}
    assert await edit(held, "b.py", "typed", "more") == ["applied"]
    assert client.typed == {"b.py": "more b\n"}
    monkeypatch.setattr(module, "COOLDOWN", 60.0)
    client.answer = answer
    assert await refused(held, "edit_file", path="b.py", old_text="more", new_text="edited")


@pytest.mark.parametrize("answer", [never, fail])
async def test_a_client_that_has_never_answered_does_not_count(held: ToolHarness, answer: Callable[[], Any]) -> None:
    client = Client(held)
    client.answer = answer
    await edit_both(held, "disk")
    assert states(held.versions[-1]) == ["applied"] * 2
    assert held.on_disk("b.py") == b"edited b\n"
    if answer is never:
        assert client.asked == [("read", "a.py")]


async def test_a_client_that_is_gone_does_not_count(held: ToolHarness) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed a\n"}
    await text_of(held, "a.py")
    client.answer = never
    assert await refused(held, "edit_file", path="a.py", old_text="typed", new_text="edited")

    def leaves() -> Any:
        held.overlay.remove(client.documents)
        raise ClientError("The client has disconnected.")

    client.answer = leaves
    file = await held.workspace.read_to_edit(held.root / "a.py")
    assert file is not None and file.text == "disk a\n"
    assert await edit(held, "a.py", "disk", "edited") == ["applied"]


async def test_all_clients_are_asked_at_the_same_time(held: ToolHarness) -> None:
    one, two = Client(held, "One"), Client(held, "Two")
    both = asyncio.Event()

    async def waits() -> Any:
        if one.asked and two.asked:
            both.set()
        await both.wait()
        return {"text": None}

    one.answer = two.answer = waits
    await text_of(held, "a.py")


@pytest.mark.parametrize(
    ("folder", "asked"),
    [("work", True), ("link", True), ("work/sub", False), ("wor", False), ("other", False)],
)
async def test_only_a_client_of_that_folder_is_asked(
    held: ToolHarness, tmp_path: Path, folder: str, asked: bool
) -> None:
    (tmp_path / "link").symlink_to("work")
    client = Client(held, folder=tmp_path / folder)
    client.typed = {"a.py": "typed\n"}
    assert await text_of(held, "a.py") == (("typed\n", True) if asked else ("disk a\n", False))
    assert client.take_asked() == ([("read", "a.py")] if asked else [])
    if asked:
        buffer = held.overlay.buffer(held.root / "a.py")
        assert buffer is not None and buffer.path == tmp_path / folder / "a.py"
        assert client.documents.buffer(buffer.path) == buffer
        assert await edit(held, "a.py", "typed", "edited") == ["applied"]
        assert client.typed == {"a.py": "edited\n"}


async def test_who_reads_at_the_same_time_shares_a_request(held: ToolHarness) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed\n"}
    answered = asyncio.Event()

    async def late() -> Any:
        await answered.wait()
        return {"text": "typed\n"}

    client.answer = late
    first, *others = [asyncio.create_task(text_of(held, "a.py")) for _ in range(5)]
    while not client.asked:
        await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    answered.set()
    assert await asyncio.gather(*others) == [("typed\n", True)] * 4
    assert client.take_asked() == [("read", "a.py")]


async def test_a_text_from_before_an_edit_does_not_hide_the_edit(held: ToolHarness) -> None:
    client, path = Client(held), held.root / "a.py"
    client.typed = {"a.py": "typed\n"}
    await text_of(held, "a.py")
    answered = asyncio.Event()

    async def late() -> Any:
        await answered.wait()
        return {"text": "typed\n"}

    client.answer = late
    reading = asyncio.create_task(held.overlay.refresh(path))
    edits = [SpanEdit(start=0, end=5, new_text="edited")]
    result = await client.documents.apply(path, sha256("typed\n"), edits, "edited\n", save=False)
    assert result.status == "success"
    answered.set()
    await reading
    buffer = client.documents.buffer(path)
    assert buffer is not None and buffer.text == "edited\n"


async def test_a_file_that_changes_while_its_text_is_asked_for_is_asked_for_again(held: ToolHarness) -> None:
    client = Client(held)

    def before() -> Any:
        held.put("a.py", "written by a command\n")
        client.answer = None
        return {"text": "disk a\n"}

    client.answer = before
    assert await text_of(held, "a.py") == ("written by a command\n", False)
    assert client.take_asked() == [("read", "a.py")] * 2

    def always() -> Any:
        text = held.on_disk("a.py").decode()
        held.put("a.py", text + "more\n")
        return {"text": text}

    client.answer = always
    assert (await text_of(held, "a.py"))[1] is False


async def test_what_is_kept_is_bounded(held: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DOCUMENTS", 2)
    monkeypatch.setattr(module, "MOST_CHARACTERS", 20)
    client = Client(held)
    for name, text in {"1": "x", "2": "x", "3": "x", "1 ": "x", "big": "x" * 19, "too big": "x" * 21}.items():
        client.typed = {name: text}
        await held.workspace.read_if_exists(held.root / name)
        assert len(held.overlay.buffers()) <= 2
    assert [buffer.path.name for buffer in held.overlay.buffers()] == ["1 ", "big"]


async def test_a_big_change_is_applied_though_not_all_texts_are_kept(
    held: ToolHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_DOCUMENTS", 1)
    client = Client(held)
    client.typed = {"a.py": "typed a\n", "b.py": "typed b\n"}
    await edit_both(held, "typed")
    assert states(held.versions[-1]) == ["applied"] * 2
    assert client.typed == {"a.py": "edited a\n", "b.py": "edited b\n"}


# Edits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("typed", [None, "typed a\n"])
async def test_an_edit_goes_through_the_client(held: ToolHarness, typed: str | None) -> None:
    client = Client(held)
    if typed is not None:
        client.typed = {"a.py": typed}
    assert await edit(held, "a.py", " a", " edited") == ["applied"]
    assert client.take_asked().count(("apply", "a.py")) == 1
    if typed is None:
        assert (held.on_disk("a.py"), client.typed) == (b"disk edited\n", {})
        assert await text_of(held, "a.py") == ("disk edited\n", False)
    else:
        assert (held.on_disk("a.py"), client.typed) == (b"disk a\n", {"a.py": "typed edited\n"})
        assert await text_of(held, "a.py") == ("typed edited\n", True)
    buffer = held.overlay.buffer(held.root / "a.py")
    assert buffer is not None and buffer.text == client.shows("a.py")


async def test_a_file_that_is_saved_in_the_middle_is_edited_all_the_same(held: ToolHarness) -> None:
    """What the client said of it does not count then; it is asked again."""
    client = Client(held)
    writer = held.proposals._writer  # pyright: ignore[reportPrivateUsage]
    transactions = writer._transactions  # pyright: ignore[reportPrivateUsage]

    async def save(*args: Any) -> None:
        await transactions.save_preimage(*args)
        os.utime(held.root / "a.py", (1, 1))

    writer._transactions = replace(transactions, save_preimage=save)  # pyright: ignore[reportPrivateUsage]
    assert await edit(held, "a.py", "disk", "edited") == ["applied"]
    assert ("apply", "a.py") in client.asked


@pytest.mark.parametrize("typed", [None, "typed a\n"])
async def test_where_the_client_takes_no_edits(held: ToolHarness, typed: str | None) -> None:
    client = Client(held, takes_edits=False)
    if typed is None:
        assert await edit(held, "a.py", "disk", "edited") == ["applied"]
        assert held.on_disk("a.py") == b"edited a\n"
        return
    client.typed = {"a.py": typed}
    assert await edit(held, "a.py", "typed", "edited") == ["conflicted"]
    reason = hunks(held.versions[-1])[0].reason
    assert reason is not None and "it does not accept edits from a server" in reason
    assert (held.on_disk("a.py"), client.typed) == (b"disk a\n", {"a.py": typed})
    assert {method for method, _ in client.asked} == {"read"}


NEW = "edited a\n"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (lambda: {"status": "success", "sha256": sha256(NEW)}, "success"),
        (lambda: {"status": "success", "sha256": sha256("other")}, "conflict"),
        (lambda: {"status": "success"}, "conflict"),  # nothing else would confirm it
        (lambda: {"status": "conflict"}, "conflict"),
        (lambda: {"status": "notOpen"}, "notOpen"),
        (lambda: {"state": 1}, "error"),
        (fail, "error"),
        (hangs, "error"),
    ],
)
async def test_apply(
    held: ToolHarness, answer: Callable[[], Any], status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if answer is hangs:
        monkeypatch.setattr(edit_request, "APPLY_TIMEOUT", SHORT)
    client, path = Client(held), held.root / "a.py"
    client.typed = {"a.py": "typed a\n"}
    client.edit_answer = answer
    await text_of(held, "a.py")
    edits = [SpanEdit(start=0, end=5, new_text="edited")]
    for wrong_path, base, expected in ((path, "old", "conflict"), (held.root / "c.py", "typed a\n", "notOpen")):
        assert (await client.documents.apply(wrong_path, sha256(base), edits, NEW, False)).status == expected
    assert ("apply", "a.py") not in client.asked
    result = await client.documents.apply(path, sha256("typed a\n"), edits, NEW, save=False)
    assert result.status == status
    buffer = client.documents.buffer(path)
    assert (buffer and buffer.text) == {"success": NEW, "error": "typed a\n"}.get(status)


async def test_what_is_unsaved_is_neither_deleted_nor_moved_nor_made_anew(held: ToolHarness) -> None:
    client = Client(held)
    client.typed = {"a.py": "typed\n", "new.py": "typed new\n"}
    for tool, arguments, why in (
        ("delete_file", {"path": "a.py"}, "unsaved changes"),
        ("move_file", {"path": "a.py", "new_path": "c.py"}, "unsaved changes"),
        ("move_file", {"path": "b.py", "new_path": "new.py"}, "already exists"),
    ):
        with pytest.raises(ToolError, match=why):
            await held.run(tool, arguments)
    await held.run("move_file", {"path": "b.py", "new_path": "c.py"})
    assert (await text_of(held, "c.py"), (held.root / "b.py").exists()) == (("disk b\n", False), False)


@pytest.mark.parametrize("typed", [False, True])
async def test_what_a_crash_interrupted_is_finished_but_not_behind_unsaved_text(held: ToolHarness, typed: bool) -> None:
    await edit_both(held, "disk")
    died = next(each for each in held.versions if states(each) == ["accepted", "accepted"])
    again = ToolHarness(held.root, {"b.py": FILES["b.py"]})
    client = Client(again)
    if typed:
        client.typed = {"b.py": "typed\n"}
    await again.proposals.restore([died])
    assert again.on_disk("a.py") == b"edited a\n"
    assert again.on_disk("b.py") == (b"disk b\n" if typed else b"edited b\n")
    assert ("read", "b.py") in client.asked


# Beside other editors -------------------------------------------------------------------------------


@pytest.mark.parametrize("pulled_first", [True, False])
@pytest.mark.parametrize(
    ("disk", "shown"),
    [
        (b"disk a\n", "disk a\n"),
        (b"\xef\xbb\xbfdisk a\n", "disk a\n"),
        (b"\xef\xbb\xbfdisk a\n", "\ufeffdisk a\n"),
        (b"disk\r\na\r\n", "disk\na\n"),
        (b"disk\r\na\n", "disk\na\n"),
        (b"caf\xe9\n", "caf\ufffd\n"),
        (b"\0\x01\x02\xff", "\0\x01\x02\ufffd"),
    ],
)
async def test_what_is_on_disk_never_wins_over_unsaved_text(
    held: ToolHarness, disk: bytes, shown: str, pulled_first: bool
) -> None:
    held.put("a.py", disk)
    other = Buffers(EditorClient("Other", fail_to_ask, "utf-16"), held.overlay.notify_changed)
    client = Client(held)
    client.answer = lambda: {"text": shown}
    if pulled_first:
        await held.workspace.overlay.refresh(held.root / "a.py")
    held.overlay.add(other)
    uri = (held.root / "a.py").as_uri()
    other.opened(uri, 1, shown)
    other.changed(uri, 2, ["typed\n"])
    for _ in range(2):
        assert await text_of(held, "a.py") == ("typed\n", True)
        document = held.workspace.find_open(held.root / "a.py", "typed\n")
        assert document is not None and document[0] is other
    if b"\0" in disk:
        return  # nothing such a client says of it counts
    client.answer = lambda: {"text": "typed later\n"}
    assert await text_of(held, "a.py") == ("typed later\n", True)
    other.changed(uri, 3, ["typed last\n"])
    assert await text_of(held, "a.py") == ("typed last\n", True)


@pytest.mark.parametrize(
    ("session_id", "processes", "asked"),
    [
        ("a", (1, 1), "a"),
        ("b", (1, 1), "b"),
        ("c", (1, 1), "ab"),  # another client's: either may have unsaved text
        ("a", (1, 2), "ab"),
        ("a", (None, None), "ab"),
    ],
)
async def test_of_one_clients_connections_a_session_uses_its_own(
    held: ToolHarness, session_id: str, processes: tuple[int | None, int | None], asked: str
) -> None:
    clients = {
        each: Client(held, process=process, session_id=each) for each, process in zip("ab", processes, strict=True)
    }
    workspace = Workspace([held.root], held.overlay.seen_from(session_id))
    path = held.root / "a.py"
    for client in clients.values():
        client.typed = {"a.py": "typed\n"}
        await client.documents.refresh(path)
        client.take_asked()
    file = await workspace.read(path)
    assert "".join(each for each, client in clients.items() if client.take_asked() == [("read", "a.py")]) == asked
    assert file.text == "typed\n" and [buffer.text for buffer in workspace.overlay.buffers()] == ["typed\n"]
    clients[asked[0]].typed = {}
    for other in asked[1:]:
        clients[other].typed = {}
    assert (await workspace.read(path)).text == "disk a\n"  # the other connection's is old
    document = workspace.find_open(path)
    assert document is not None and document[0] in [clients[each].documents for each in asked]


async def fail_to_ask(method: str, params: Any) -> Any:
    raise ClientError("no")


@pytest.mark.parametrize(
    ("disk", "shown"),
    [(b"disk\r\na\r\n", "disk\na\n"), (b"\0\x01\x02\xff", "\0\x01\x02\ufffd"), (b"\xff\n", "\ufffd\n")],
)
async def test_what_the_client_decodes_its_own_way_is_not_unsaved(held: ToolHarness, disk: bytes, shown: str) -> None:
    held.put("a.py", disk)
    client = Client(held)
    client.answer = lambda: {"text": shown}
    await held.overlay.refresh(held.root / "a.py")
    assert await held.workspace.unsaved() == []


async def test_folders_and_the_like_are_not_asked_for(held: ToolHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILE", 100)
    (held.root / "folder").mkdir()
    os.mkfifo(held.root / "pipe")
    held.put("big", "x" * 101)
    client = Client(held)
    for name in ("folder", "pipe", "big"):
        await held.overlay.refresh(held.root / name)
    assert client.asked == []


async def test_who_watches_a_path_is_told_of_another_text(held: ToolHarness) -> None:
    client, heard = Client(held), list[str]()
    held.overlay.watch(held.root / "a.py", lambda: heard.append(client.typed.get("a.py", "")))
    for text in ("1", "1", "2"):
        client.typed = {"a.py": text}
        await text_of(held, "a.py")
    client.answer = lambda: {"text": None}
    await text_of(held, "a.py")
    assert heard == ["1", "2", "2"]
    client.answer = None
    await edit(held, "a.py", "2", "edited")
    assert heard[3:] == ["2", "edited"]
    held.overlay.remove(client.documents)
    assert heard[5:] == ["edited"]


async def test_a_prompt_tells_of_what_was_typed_since_the_model_read_it(tmp_path: Path) -> None:
    steps = step("", call("read_file", path="notes.txt")), step("Read."), step("I see."), step("Well.")
    async with scripted_session(tmp_path, *steps) as d:
        shown = d.file.read_text()

        async def ask(method: str, params: Any) -> Any:
            return {"text": shown if params.path == str(d.file) else None}

        d.sessions.overlay.add(PulledDocuments(EditorClient("Test", ask, "utf-16"), lambda: [d.root]))
        told: list[bool] = []
        for at, text in enumerate([shown, "typed\n", "typed\n"]):
            shown = text
            before = len(d.told())
            await d.prompt("go on", f"p{at}")
            await d.over(f"p{at}")
            told.append("notes.txt (unsaved in the editor)" in d.told()[before:])
        assert told == [False, True, False]
