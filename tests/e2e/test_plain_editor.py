"""An editor without a plugin, through the real relay and daemon."""

import asyncio
import contextlib
import json
import os
import platform
import re
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import LanguageClient, client_capabilities

from amanu.frontends.lsp.plain.transcript import YOUR_TURN
from amanu.home import find_home
from amanu.text.code_units import units
from support import checked_edits
from support.agent_session import ask_agent, complete, user_agent
from support.cli_process import amanu
from support.plain_editor import PlainEditor, WarmServer
from support.raw_client import RawClient
from support.running_daemon import signal_daemon
from support.warm_process import warm

SERVE = [sys.executable, "-P", "-m", "amanu", "serve"]
SHOP = """\
LIMIT = 5000  # ü𝒳


def subtotal(items):
    return sum(item.price for item in items)


def unrelated():
    return None


def shipping(amount):
    return 0 if amount > LIMIT else 490
"""
FIXED = SHOP.replace("item.price for", "item.price * item.quantity for").replace("amount > LIMIT", "amount >= LIMIT")
FIRST, SECOND = 4, 12
"""Lines of the two mistakes."""

Start = Callable[..., Any]


@pytest_lsp.fixture(config=WarmServer(server_command=SERVE))  # pyright: ignore[reportUntypedFunctionDecorator]
async def client(lsp_client: LanguageClient) -> AsyncGenerator[None]:
    yield
    with contextlib.suppress(Exception):
        async with asyncio.timeout(50):
            await lsp_client.shutdown_session()
    signal_daemon()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    file = folder / "shop.py"
    file.write_text(SHOP)
    return file.resolve()


ALE = "ale"
"""Vim with ALE: it names itself nowhere, says that it takes no edits, makes them and answers nothing."""


async def begin(
    client: LanguageClient, shop: Path, steps: list[Any], like: str = "neovim", pulls: bool = False, **options: Any
) -> PlainEditor:
    script = shop.parent.parent / "script.json"
    script.write_text(json.dumps(steps))
    editor = PlainEditor(client)
    editor.answers_edits = like != ALE
    capabilities = client_capabilities("neovim" if like == ALE else like)
    assert capabilities.text_document is not None and capabilities.workspace is not None
    if like == ALE:
        capabilities.workspace.apply_edit = False
    if pulls:
        capabilities.text_document.diagnostic = types.DiagnosticClientCapabilities()
        capabilities.workspace.diagnostics = types.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    folder = types.WorkspaceFolder(shop.parent.as_uri(), "project")
    result = await client.initialize_session(
        types.InitializeParams(
            capabilities=capabilities,
            process_id=os.getpid(),
            workspace_folders=[folder],
            client_info=None if like == ALE else types.ClientInfo(like),
            initialization_options={"amanu": {"model": f"scripted:{script}", **options}},
        )
    )
    kind = result.capabilities.position_encoding
    editor.encoding = str(getattr(kind, "value", kind) or "utf-16")
    editor.open(shop)
    return editor


def edit(old: str, new: str, path: str = "shop.py") -> dict[str, Any]:
    return {"tool": "edit_file", "arguments": {"path": path, "old_text": old, "new_text": new}}


BOTH = {
    "text": "Two mistakes.",
    "calls": [
        edit("item.price for", "item.price * item.quantity for"),
        edit("amount > LIMIT", "amount >= LIMIT"),
    ],
}
DONE = {"text": "Done, *both*."}


async def proposed(editor: PlainEditor, shop: Path) -> None:
    """Both mistakes have a proposal, and it can be decided."""
    await editor.command("amanu.prompt", "mend it")
    await editor.until(lambda: len(editor.messages(shop)) == 2)
    await editor.until(lambda: any("waiting for you" in str(value) for _, value in editor.progress))
    await asyncio.sleep(0.55)


async def test_a_folder_that_is_not_on_this_machine_is_named(client: LanguageClient, tmp_path: Path) -> None:
    editor, nowhere = PlainEditor(client), "file:///nowhere/a%20b"
    await client.initialize_session(types.InitializeParams(types.ClientCapabilities(), root_uri=nowhere))
    here = f"is not a folder on {platform.node()}, where Amanu runs"
    before = nowhere
    for uri, said in [
        (nowhere, f"Amanu: /nowhere/a b {here}. Check the path; if the folder is on another machine, run Amanu there."),
        (
            "file:///c%3A/Users/me",
            f"Amanu: /c:/Users/me {here}: it is a Windows path. Run Amanu on the machine that ",
        ),
        ("vscode-remote://wsl+U/home", f"Amanu: vscode-remote://wsl+U/home {here}: it is not a path on this machine. "),
        ("untitled:Untitled-1", f"Amanu: untitled:Untitled-1 {here}: it is not a path on this machine. "),
        (tmp_path.as_uri(), "Amanu: No model is available"),
    ]:
        change = types.WorkspaceFoldersChangeEvent(*([types.WorkspaceFolder(each, "")] for each in (uri, before)))
        client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(change))
        before = uri
        editor.said.clear()
        await editor.command("amanu.prompt", "mend it")
        await editor.until(lambda: editor.said)
        assert editor.said[0].startswith(said)


@pytest.mark.parametrize("like", ["visual_studio_code", "neovim", "emacs"])
async def test_hunks_are_diagnostics_hovers_and_code_actions(client: LanguageClient, shop: Path, like: str) -> None:
    editor = await begin(client, shop, [BOTH, DONE], like)
    await proposed(editor, shop)
    assert editor.text(shop) == SHOP
    (first, second) = editor.diagnostics(shop)
    assert (first.range.start.line, second.range.start.line) == (FIRST, SECOND)
    assert (first.source, first.severity) == ("amanu", types.DiagnosticSeverity.Information)
    assert first.message.startswith("Amanu proposes −1 +1")
    told = await editor.hover(shop, FIRST)
    assert "-    return sum(item.price for item in items)" in told
    assert "+    return sum(item.price * item.quantity for item in items)" in told
    assert await editor.hover(shop, 7) == ""
    assert await editor.titles(shop, FIRST, only=["source.organizeImports"]) == []
    if like == "visual_studio_code":
        lenses = [(line, title) for line in (FIRST, SECOND) for title in ("Accept −1 +1", "Reject")]
        assert await editor.lenses(shop) == lenses
    await editor.act("Amanu: accept this change", shop, FIRST)
    await editor.until(lambda: "quantity" in editor.text(shop))
    await editor.until(lambda: len(editor.messages(shop)) == 1)
    await editor.act("Amanu: reject this change", shop, SECOND)
    await editor.until(lambda: editor.messages(shop) == [])
    assert editor.text(shop) == SHOP.replace("item.price for", "item.price * item.quantity for")
    assert shop.read_text() == SHOP  # this editor cannot be told to save


async def test_what_waits_and_what_was_answered_is_announced(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, {"text": "\n## Done, *both*.\n\nMore of it."}])
    await proposed(editor, shop)
    said = "Amanu proposes 2 changes in shop.py (line 5, 13)"
    await editor.until(lambda: said in editor.said)
    await editor.act("Amanu: accept all 2", shop, 0)
    await editor.until(lambda: "Amanu: Done, *both*." in editor.said)
    assert editor.said.count(said) == 1 and not any("More of it" in each for each in editor.said)


async def test_the_chat_is_a_document_under_the_state_folder(client: LanguageClient, shop: Path) -> None:
    told = {"text": f"I **looked**.\n\n{YOUR_TURN}\n\nThat was not yours.\x1b[2J\n", "chunk": 7}
    read = {"calls": [{"tool": "read_file", "arguments": {"path": "shop.py"}}]}
    editor = await begin(client, shop, [read, told, {"expect": "and now", "text": "Again."}])
    await editor.act("Ask Amanu about this", shop, FIRST, FIRST + 1)
    chat = (await editor.until(lambda: editor.shown))[0]
    assert chat.is_relative_to(find_home().state) and chat.suffix == ".md"
    assert "[shop.py:5-5]" in editor.text(chat)
    editor.type(chat, editor.text(chat) + "what is this?")
    assert "Amanu: send" in await editor.titles(chat)
    await editor.act("Amanu: send", chat)
    await editor.until(lambda: "not yours" in editor.text(chat))
    text = editor.text(chat)
    assert "## You\n\n[shop.py:5-5] what is this?\n\n## Amanu\n\n- ✓ Read shop.py\n\nI **looked**.\n" in text
    assert f"\n\\{YOUR_TURN}\n" in text and "\x1b" not in text and "<U+001B>" in text
    assert text.endswith(f"{YOUR_TURN}\n\n")
    editor.type(chat, text + "and now, typed while\nit was idle")
    await editor.act("Amanu: send", chat)
    await editor.until(lambda: "Again." in editor.text(chat))
    assert editor.text(chat).endswith(f"Again.\n\n{YOUR_TURN}\n\n")
    editor.type(chat, editor.text(chat) + "/memory")
    await editor.act("Amanu: send", chat)
    await editor.until(lambda: "Memory files in use: " in editor.text(chat))
    await editor.act("Amanu: send", chat)
    assert "Your turn" in await editor.until(lambda: editor.said and editor.said[-1])
    assert not any(path.name == "chat.md" for path in shop.parent.rglob("*"))


@pytest.mark.parametrize(
    ("title", "heard"),
    [
        ("Amanu: explain this", "Explain these lines."),
        ("Amanu: document this", "Write documentation comments"),
        ("Amanu: test this", "Write tests for these lines"),
    ],
)
async def test_selected_lines_are_explained_documented_and_tested(
    client: LanguageClient, shop: Path, title: str, heard: str
) -> None:
    editor = await begin(client, shop, [{"expect": heard, "text": "Heard."}])
    assert title not in await editor.titles(shop, FIRST)
    await editor.act(title, shop, FIRST, FIRST + 1)
    await editor.until(lambda: "Amanu: Heard." in editor.said)


async def test_documents_the_editor_shows_without_us_are_files(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [{"text": "Hello."}, BOTH, DONE])
    editor.shows = False
    await editor.act("Amanu: open chat", shop)
    said = await editor.until(lambda: [each for each in editor.said if "Amanu: open /" in each])
    chat = Path(said[0].removeprefix("Amanu: open "))
    chat.write_text(chat.read_text() + "are you there?\n")
    await editor.act("Amanu: send the text written in the chat", shop)
    await editor.until(lambda: chat.read_text().endswith(f"## Amanu\n\nHello.\n\n{YOUR_TURN}\n\n"))
    assert "## You\n\nare you there?\n" in chat.read_text()
    await proposed(editor, shop)
    await editor.act("Amanu: review as an editable patch", shop, FIRST)
    patch = Path(await editor.until(lambda: editor.said[-1].endswith(".patch") and editor.said[-1].split()[-1]))
    head, _, second = patch.read_text().split("\n@@ ")
    patch.write_text(f"{head}\n@@ {second}")
    await editor.act("Amanu: apply the reviewed patch", shop)
    await editor.until(lambda: editor.text(shop) == SHOP.replace("amount > LIMIT", "amount >= LIMIT"))


async def test_what_the_user_types_meanwhile_stays(client: LanguageClient, shop: Path) -> None:
    slow = {"text": "".join(f"line {each}\n" for each in range(40)), "chunk": 8, "delay_ms": 30}
    editor = await begin(client, shop, [slow])
    await editor.command("amanu.chat")
    chat = (await editor.until(lambda: editor.shown))[0]
    await editor.command("amanu.prompt", "count")
    typed = ""
    while "line 39" not in editor.text(chat):
        assert len(typed) < 1000
        typed += "x"
        editor.type(chat, editor.text(chat) + "x")
        await asyncio.sleep(0.03)
    assert [f"line {each}\n" in editor.text(chat) for each in range(40)] == [True] * 40
    assert editor.text(chat).count("line 3\n") == 1
    assert editor.text(chat).endswith(f"{YOUR_TURN}\n\n{typed}")


def run(command: str) -> dict[str, Any]:
    return {"calls": [{"tool": "run_shell_command", "arguments": {"command": command}}]}


async def test_a_question_is_asked_and_its_answer_counts_once_it_was_read(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [run("touch made"), DONE])
    editor.answers.put_nowait("Allow once")  # in no time: too soon to have been read
    await editor.command("amanu.prompt", "run it")
    await editor.until(lambda: len(editor.asked) == 2)
    titles = [each.title for each in editor.asked[0].actions or ()]
    assert titles == ["Allow once", "Allow for this session", "Show all of it", "Reject"]
    assert "touch made" in editor.asked[0].message
    assert "Ignored: answered within" in editor.said[-1] and not (shop.parent / "made").exists()
    await asyncio.sleep(0.55)
    editor.answers.put_nowait("Allow once")
    await editor.until((shop.parent / "made").exists)


@pytest.mark.parametrize("answer", [None, "Nonsense"])
async def test_no_answer_leaves_the_question_to_code_actions(
    client: LanguageClient, shop: Path, answer: str | None
) -> None:
    editor = await begin(client, shop, [run("touch made"), DONE])
    editor.answers.put_nowait(answer)
    await editor.command("amanu.prompt", "run it")
    await editor.until(lambda: any("Amanu asks" in each for each in editor.messages(shop)))
    assert not (shop.parent / "made").exists()
    await asyncio.sleep(0.55)
    await editor.act("Amanu: allow once", shop)
    await editor.until((shop.parent / "made").exists)
    await editor.until(lambda: editor.messages(shop) == [])


async def test_a_rule_is_edited_in_the_question_and_saved_only_when_it_answers_it(
    client: LanguageClient, shop: Path, tmp_path: Path
) -> None:
    config = find_home().make().config / "config.toml"
    config.write_text('[sandbox]\nwithout = "accept"\n')  # rules count, with a sandbox here or not
    editor = await begin(client, shop, [run("touch made"), run("touch made again"), DONE])
    editor.answers.put_nowait("Show all of it")
    await editor.command("amanu.prompt", "run it")
    document = await editor.until(lambda: editor.shown and editor.shown[-1])
    text = editor.text(document)
    assert "touch made" in text and "- ? Creates files" in text and "run_shell_command(touch *)" in text
    await editor.until(lambda: any("answered none of the earlier" in each for each in editor.messages(document)))
    await asyncio.sleep(0.55)
    editor.type(document, text.replace("touch *", "make *"))
    await editor.until(lambda: any("cannot be saved" in each for each in editor.messages(document)))
    await editor.act("Amanu: allow for this session, by the rules below", document)
    await editor.until(lambda: any("cannot be saved" in each for each in editor.said))
    assert not (shop.parent / "made").exists()
    editor.type(document, text.replace("touch *", "touch made *"))
    await editor.act("Amanu: allow for this session, by the rules below", document)
    await editor.until((shop.parent / "again").exists)
    await editor.command("amanu.audit")
    await editor.until(lambda: editor.shown[-1].name == "audit.md")


async def test_a_late_click_hears_who_decided(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [run("touch made"), DONE])
    await editor.command("amanu.prompt", "run it")
    await editor.until(lambda: editor.asked)
    await asyncio.sleep(0.55)
    await editor.act("Amanu: reject", shop)
    await editor.until(lambda: editor.progress and editor.progress[-1][1]["kind"] == "end")
    editor.answers.put_nowait("Allow once")
    await editor.until(lambda: "Your answer came too late. Rejected by you (neovim)." in editor.said)
    assert not (shop.parent / "made").exists()


def asks(*questions: dict[str, Any]) -> dict[str, Any]:
    return {"calls": [{"tool": "ask_user", "arguments": {"questions": list(questions)}}]}


DATABASE = {
    "header": "Database",
    "question": "Which database?",
    "options": [{"label": "SQLite", "description": "One file."}, {"label": "Postgres"}],
}


def heard(text: str) -> dict[str, Any]:
    return {"expect": text, "text": "Heard."}


async def finished(editor: PlainEditor) -> None:
    await editor.until(lambda: editor.progress and editor.progress[-1][1]["kind"] == "end")
    assert not any("expected to hear" in each for each in editor.said)


async def test_a_short_question_is_a_dialog(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [asks(DATABASE), heard("Answer: SQLite")])
    editor.answers.put_nowait("SQLite")
    await editor.command("amanu.prompt", "make it")
    await finished(editor)
    (asked,) = editor.asked
    assert asked.message == "Amanu asks: Which database?\nSQLite: One file."
    titles = [each.title for each in asked.actions or ()]
    assert titles == ["SQLite", "Postgres", "Something else …", "Decline to answer"]
    await editor.until(lambda: "Amanu: Answered in neovim: Database: SQLite" in editor.said)


@pytest.mark.parametrize(
    ("action", "told"),
    [("Amanu: answer Postgres: Which", "Answer: Postgres"), ("Amanu: decline to answer: Which", "declined to answer")],
)
async def test_a_dismissed_question_is_left_to_code_actions_and_a_late_click_is_told(
    client: LanguageClient, shop: Path, action: str, told: str
) -> None:
    editor = await begin(client, shop, [asks(DATABASE), heard(told)])
    await editor.command("amanu.prompt", "make it")
    await editor.until(lambda: editor.asked)
    await editor.act(action, shop)
    await finished(editor)
    editor.answers.put_nowait("SQLite")
    await editor.until(lambda: any("Your answer came too late" in each for each in editor.said))


async def test_more_than_a_short_question_is_a_form(client: LanguageClient, shop: Path) -> None:
    several = {**DATABASE, "header": "Others", "question": "Which others?", "multi_select": True}
    name = {"header": "Name", "question": "What is it called?"}
    editor = await begin(
        client,
        shop,
        [
            asks(DATABASE, several, name),
            heard("Which database?\nAnswer: Postgres\n\nWhich others?\nAnswer: SQLite; Oracle"),
        ],
    )
    await editor.command("amanu.prompt", "make it")
    await editor.until(lambda: any("Amanu asks: 3 questions" in each for each in editor.messages(shop)))
    assert editor.asked == []
    await editor.act("Amanu: answer: 3 questions", shop)
    form = await editor.until(lambda: editor.shown and editor.shown[-1])
    text = editor.text(form)
    assert "## 1. Database: Which database?\n\n- [ ] SQLite — One file.\n- [ ] Postgres\n" in text
    editor.type(form, text.replace("- [ ] Postgres", "- [x] Postgres", 1))
    await editor.act("Amanu: send the answers", form)
    await editor.until(lambda: any("needs an answer" in each for each in editor.said))
    first, second, third = text.split("\n## ")[1:]
    second = second.replace("- [ ] SQLite", "- [x] SQLite").rstrip("\n") + "\nOracle\n"
    filled = [first.replace("- [ ] Postgres", "- [X] Postgres"), second, f"{third}\nshop\n"]
    editor.type(form, "\n## ".join([text.split("\n## ")[0], *filled]))
    await editor.act("Amanu: send the answers", form)
    await finished(editor)
    await editor.until(lambda: not any("Amanu asks" in each for each in editor.messages(shop)))


async def test_progress_names_what_is_done_and_can_be_cancelled(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [{"text": "word " * 500, "chunk": 5, "delay_ms": 50}], "visual_studio_code")
    await editor.command("amanu.prompt", "talk")
    token, value = await editor.until(lambda: editor.progress and editor.progress[0])
    assert (value["kind"], value["cancellable"], value["message"]) == ("begin", True, "thinking")
    client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    await editor.until(lambda: editor.progress[-1][1]["kind"] == "end")
    assert editor.progress[-1][1]["message"] == "cancelled"


async def test_progress_is_on_the_token_of_the_client_until_the_turn_is_over(
    client: LanguageClient, shop: Path
) -> None:
    editor = await begin(client, shop, [{"text": "word " * 500, "chunk": 5, "delay_ms": 50}, DONE])
    work = asyncio.create_task(editor.command("amanu.prompt", "talk", token=7))
    await editor.until(lambda: editor.progress)
    assert not work.done()
    client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(7))
    await work
    await editor.command("amanu.prompt", "go on", token="next")
    await editor.command("amanu.mode", "auto", token="no turn")
    shown = [(token, value["kind"]) for token, value in editor.progress if value["kind"] != "report"]
    assert shown == [(token, kind) for token in (7, "next", "no turn") for kind in ("begin", "end")]


async def test_diagnostics_of_open_documents_are_pulled_and_others_pushed(client: LanguageClient, shop: Path) -> None:
    other = shop.with_name("other.py")
    other.write_text("a = 1\n")
    edits = {"text": "", "calls": [edit("item.price for", "item.cost for"), edit("a = 1", "a = 2", "other.py")]}
    editor = await begin(client, shop, [edits, DONE], pulls=True)
    await editor.command("amanu.prompt", "mend it")
    await editor.until(lambda: editor.messages(shop) and editor.messages(other))
    uri, other_uri = shop.as_uri(), other.as_uri()
    assert (len(editor.pulled[uri]), client.diagnostics.get(uri, [])) == (1, [])
    assert len(client.diagnostics[other_uri]) == 1
    editor.open(other)
    await editor.until(lambda: len(editor.pulled.get(other_uri, [])) == 1 and not client.diagnostics[other_uri])


async def test_a_patch_file_decides_hunk_by_hunk(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, {"expect": "changed", "text": "Heard."}])
    await proposed(editor, shop)
    await editor.act("Amanu: review as an editable patch", shop, FIRST)
    file = (await editor.until(lambda: editor.shown))[0]
    assert file.is_relative_to(find_home().state)
    text = editor.text(file)
    assert text.count("\n@@ ") == 2
    editor.type(file, text.replace("-    return sum", "-    return SUM"))
    await editor.act("Amanu: apply the reviewed patch", file)
    (wrong,) = await editor.until(lambda: editor.diagnostics(file))
    assert text.splitlines()[wrong.range.start.line].startswith("-    return sum")
    assert editor.text(shop) == SHOP
    head, first, second = text.split("\n@@ ")
    assert "amount" in second
    editor.type(file, f"{head}\n@@ {first.replace('item.quantity', 'item.count')}\n")
    await editor.act("Amanu: apply the reviewed patch", file)
    await editor.until(lambda: editor.text(shop) == SHOP.replace("item.price for", "item.price * item.count for"))
    await editor.until(lambda: "1 accepted, 1 rejected" in editor.text(file))
    await editor.until(lambda: editor.messages(shop) == [] and editor.messages(file) == [])


async def test_hunks_move_with_what_the_user_types(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE])
    await proposed(editor, shop)
    mine = "# mine\n# and mine\n"
    editor.type(shop, mine + SHOP)
    await editor.until(lambda: [each.range.start.line for each in editor.diagnostics(shop)] == [FIRST + 2, SECOND + 2])
    await editor.act("Amanu: accept all 2 changes in this file", shop)
    await editor.until(lambda: editor.text(shop) == mine + FIXED)


async def test_an_edit_that_the_editor_dropped_stays_open(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE])
    await proposed(editor, shop)
    editor.refusing = True
    await editor.act("Amanu: accept this change", shop, FIRST)
    await editor.until(lambda: any("does not fit" in each for each in editor.messages(shop)))
    assert editor.text(shop) == SHOP == shop.read_text()
    editor.refusing = False
    await editor.act("Amanu: accept this change", shop, FIRST)
    await editor.until(lambda: "quantity" in editor.text(shop))


async def test_an_editor_that_says_it_takes_no_edits_but_makes_them(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE], ALE)
    await proposed(editor, shop)
    mine = SHOP.replace("return None", "return 1")
    editor.type(shop, mine)  # not saved, and not lost
    await editor.act("Amanu: accept this change", shop, FIRST)
    await editor.until(lambda: "quantity" in editor.text(shop))
    await editor.act("Amanu: accept this change", shop, SECOND)
    await editor.until(lambda: editor.text(shop) == FIXED.replace("return None", "return 1"))
    await editor.act("Amanu: undo the last turn's changes", shop)
    await editor.until(lambda: editor.text(shop) == mine)
    assert shop.read_text() == SHOP


async def test_undo_takes_back_ours_and_only_ours(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE])
    await proposed(editor, shop)
    await editor.act("Amanu: accept all 2 changes in this file", shop)
    await editor.until(lambda: editor.text(shop) == FIXED)
    editor.type(shop, FIXED.replace("return None", "return 1"))
    await asyncio.sleep(0.5)
    await editor.act("Amanu: undo this change", shop, FIRST)
    half = SHOP.replace("return None", "return 1").replace("amount > LIMIT", "amount >= LIMIT")
    await editor.until(lambda: editor.text(shop) == half)
    await editor.act("Amanu: undo the last turn's changes", shop)
    await editor.until(lambda: editor.text(shop) == SHOP.replace("return None", "return 1"))


async def test_what_a_rule_applied_is_kept_or_undone(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE])
    await editor.command("amanu.mode", "acceptEdits")
    await editor.until(lambda: any("acceptEdits" in each for each in editor.said))
    await editor.command("amanu.prompt", "mend it")
    await editor.until(lambda: editor.text(shop) == FIXED)
    await editor.until(lambda: ["keep or undo" in each for each in editor.messages(shop)] == [True, True])
    await editor.act("Amanu: keep this change", shop, FIRST)
    await editor.until(lambda: len(editor.messages(shop)) == 1)
    await editor.act("Amanu: undo this change", shop, SECOND)
    await editor.until(lambda: editor.text(shop) == SHOP.replace("item.price for", "item.price * item.quantity for"))


async def test_what_is_open_is_shown_again_after_a_reload(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [BOTH, DONE])
    await proposed(editor, shop)
    again = await RawClient.spawn(warm(SERVE), os.environ)
    try:
        folder = {"uri": shop.parent.as_uri(), "name": "project"}
        await again.initialize({}, workspaceFolders=[folder])
        told = await again.notification("textDocument/publishDiagnostics")
        assert (told["uri"], len(told["diagnostics"])) == (shop.as_uri(), 2)
    finally:
        await again.stop()


async def test_background_commands_are_shown_and_stopped(client: LanguageClient, shop: Path) -> None:
    started = {"command": "echo ready; sleep 60", "background": True, "until": "ready"}
    call = {"tool": "run_shell_command", "arguments": started}
    editor = await begin(client, shop, [{"text": "", "calls": [call]}, {"text": "Started."}])
    await editor.command("amanu.mode", "auto")
    await editor.command("amanu.prompt", "start it")
    await editor.until(lambda: any("Started." in said for said in editor.said))
    await editor.act("Amanu: output of job-1 (echo ready; sleep 60; running)", shop, FIRST)
    await editor.until(lambda: editor.shown)
    assert (editor.shown[-1].name, editor.text(editor.shown[-1])) == ("job-1.txt", "ready\n")
    await editor.act("Amanu: stop job-1", shop, FIRST)
    await editor.until(lambda: "job-1 (echo ready; sleep 60): Stopped by the user, after " in "".join(editor.said))
    assert not any("job-1" in title for title in await editor.titles(shop, FIRST))


async def test_commands_that_are_wrong_are_refused_with_a_reason(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [])
    for name, arguments, reason in [
        ("amanu.nothing", [], "Unknown command"),
        ("amanu.mode", ["yolo"], "text"),
        ("amanu.answer", [{"session": "x"}], "call"),
        ("amanu.accept", [{"proposals": {"p": 3}}], "proposals"),
    ]:
        with pytest.raises(Exception, match=reason):
            await editor.command(name, *arguments)
    for name, arguments, reason in [
        ("amanu.accept", [], "no changes to decide"),
        ("amanu.applyPatch", [{"path": "/etc/passwd"}], "not a patch file"),
        ("amanu.review", [], "no open proposals"),
        ("amanu.send", [], "Write something"),
    ]:
        await editor.command(name, *arguments)
        await editor.until(lambda reason=reason: any(reason in each for each in editor.said))


async def test_the_model_hears_of_checkers_with_the_result_of_its_edit_and_mends_it(
    client: LanguageClient, shop: Path
) -> None:
    checked_edits.prepare(shop.parent)
    file = (shop.parent / checked_edits.FILE).resolve()
    editor = await begin(client, file, checked_edits.STEPS)
    await editor.command("amanu.mode", "acceptEdits")
    trusted = await asyncio.to_thread(amanu, "trust", "add", cwd=shop.parent)
    assert trusted.returncode == 0, trusted.stderr
    await editor.command("amanu.prompt", "do it")
    await editor.until(lambda: any("Heard." in each for each in editor.said))
    assert editor.text(file) == checked_edits.MENDED


async def test_mentions_complete_in_the_chat_document(client: LanguageClient, shop: Path) -> None:
    editor = await begin(client, shop, [DONE])
    await editor.command("amanu.chat")
    chat = (await editor.until(lambda: editor.shown))[0]
    text = editor.text(chat) + "𝒳 see @sho"
    editor.type(chat, text)
    place = types.Position(text.count("\n"), units("𝒳 see @sho", editor.encoding))
    for document, found in ((chat, ["@shop.py"]), (shop, None)):
        params = types.CompletionParams(types.TextDocumentIdentifier(document.as_uri()), place)
        result = await client.text_document_completion_async(params)
        items = result.items if isinstance(result, types.CompletionList) else result
        assert (items and [item.label for item in items]) == found
        for item in items or ():
            assert isinstance(item.text_edit, types.TextEdit)
            assert place.character - item.text_edit.range.start.character == len("@sho")


async def test_sub_agents_are_a_line_each_and_are_stopped_and_opened(client: LanguageClient, shop: Path) -> None:
    read = {"text": "I look.", "calls": [{"tool": "read_file", "arguments": {"path": "shop.py"}}]}
    user_agent(shop.parent.parent, "slow", [read, {"text": "x", "delay_ms": 60_000}])
    user_agent(shop.parent.parent, "asks", [run("touch made"), {"calls": [complete("Made.")]}])
    both = {"calls": [ask_agent("slow"), ask_agent("asks")]}
    editor = await begin(client, shop, [both, {"text": "Without it."}])
    await editor.act("Amanu: open chat", shop)
    chat = (await editor.until(lambda: editor.shown))[0]
    editor.answers.put_nowait("Allow once")  # in no time: too soon to have been read
    await editor.command("amanu.prompt", "go")
    await editor.until(lambda: len(editor.asked) == 2)
    asks = editor.asked[0].message.partition(":")[0]  # of two that begin together any may be the first
    slow = "slow 2" if asks == "asks 1" else "slow 1"
    assert editor.asked[0].message.startswith(f"{asks}: Run touch made\n")

    def reports() -> list[str]:
        return [report.get("message", "") for _, report in editor.progress]

    await editor.until(lambda: f"waiting for you: {asks}: Run touch made" in reports())
    assert f"Amanu: allow once: {asks}: Run touch made" in await editor.titles(shop)
    await asyncio.sleep(0.55)
    editor.answers.put_nowait("Allow once")
    await editor.until((shop.parent / "made").exists)
    await editor.until(lambda: reports()[-1] == f"{slow}: Read shop.py")
    await editor.act(f"Amanu: stop {slow} (the task of slow; Running", shop)
    await editor.until(lambda: any(each.startswith(f"{slow}: Cancelled: ") for each in editor.said))
    await editor.until(lambda: "Without it." in editor.text(chat))
    text = editor.text(chat)
    head, *lines = re.sub(r" steps?\b", " steps", text).split("## Amanu\n\n")[1].split("\n- ")
    assert head.startswith("- ") and f"{slow}: the task of slow (Cancelled: 2 steps)\n" in f"{head}\n"
    assert lines[0].startswith(f"✓ {asks}: the task of asks (Completed: 2 steps)\n")
    nested = set(lines[0].split("\n\n")[0].split("\n")[1:])
    assert nested == {f"  - {slow}: I look.", f"  - ✓ {slow}: Read shop.py", f"  - ✓ {asks}: Run touch made"}
    titles = [title for title in await editor.titles(shop) if "the task of" in title]
    assert len(titles) == 2 and all(title.startswith("Amanu: open ") for title in titles)
    await editor.act(f"Amanu: open {asks}", shop)
    opened = await editor.until(lambda: editor.shown[-1] != chat and editor.shown[-1])
    assert (opened.name, "Task: the task of asks" in editor.text(opened)) == (f"agent-{asks[-1]}.md", True)
    assert "- ✓ Run touch made" in editor.text(opened)
