"""A rename: what a language server says of many files becomes one proposal, or nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import Subject, ToolError
from amanu.tools.code.rename_symbol import RenameSymbol
from amanu.workspace.overlay import CodePlace, Renaming
from amanu.workspace.text_file import sha256
from amanu_protocol import requests as r
from support.tool_harness import FakeEditor, ToolHarness, states
from unit.tools.test_code_tools import FakeLanguage

CART = "def subtotal(items):\n    return sum(items)\n"
USE = "from cart import subtotal\r\n𝄞 = subtotal([1])\r\n"
FILES = {"cart.py": CART, "sub/use.py": USE}
CALL = {"path": "cart.py", "line": 1, "symbol": "subtotal", "new_name": "total"}
Answer = dict[str, Any]


class RenamingLanguage(FakeLanguage):
    """Something may happen while it is asked."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    async def diagnostics(self, params: r.EditorDiagnosticsParams) -> r.EditorDiagnosticsResult:
        return r.EditorDiagnosticsResult(status="noServer")

    async def rename(self, place: CodePlace, new_name: str) -> Renaming:
        self.meanwhile()
        return await super().rename(place, new_name)


def edit(line: int, start: int, end: int, new_text: str) -> Answer:
    places = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"range": places, "newText": new_text}


def file(path: object, *places: tuple[int, int], **more: Any) -> Answer:
    edits = [edit(line, at, at + 8, "total") for line, at in places]
    return {"path": str(path), "edits": edits, **more}


def both(root: Path) -> Answer:
    return {"status": "success", "files": [file(root / "cart.py", (0, 4)), file(root / "sub/use.py", (0, 17), (1, 5))]}


def harness(root: Path, *answers: Answer) -> tuple[ToolHarness, RenamingLanguage]:
    held, language = ToolHarness(root, FILES), RenamingLanguage(*answers)
    editor = FakeEditor()
    editor.language = language
    held.overlay.add(editor)
    return held, language


async def test_all_files_are_one_proposal(tmp_path: Path) -> None:
    held, language = harness(tmp_path, both(tmp_path))
    call = held.context()
    preview = await held.preview("rename_symbol", CALL, call=call)
    assert preview.title == "Rename subtotal to total in 2 files"
    assert preview.writes == {str(tmp_path / "cart.py"), str(tmp_path / "sub/use.py")}
    subjects = (preview.subject, *preview.extra_subjects)
    assert [(each.tool, each.effect, each.text) for each in subjects] == [
        ("rename_symbol", "write", "cart.py"),
        ("rename_symbol", "write", "sub/use.py"),
    ]
    assert len({each.proposal_id for each in held.versions}) == 1
    assert held.on_disk("cart.py").decode() == CART  # nothing is changed unseen
    outcome = await held.tools["rename_symbol"].run(None, call)
    assert not outcome.is_error and set(states(held.versions[-1])) == {"applied"}
    assert held.on_disk("cart.py").decode() == CART.replace("subtotal", "total")
    assert held.on_disk("sub/use.py").decode() == USE.replace("subtotal", "total")
    assert language.asked == [(CodePlace(tmp_path / "cart.py", 0, "def "), "total")]


async def test_the_file_moves_along(tmp_path: Path) -> None:
    moved = file(tmp_path / "cart.py", (0, 4), newPath=str(tmp_path / "total.py"))
    held, _ = harness(tmp_path, {"status": "success", "files": [moved]})
    await held.run("rename_symbol", CALL)
    assert held.on_disk("total.py").decode() == CART.replace("subtotal", "total")
    assert not (tmp_path / "cart.py").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": []}, "cannot rename subtotal there. Nothing was changed. Find the uses with grep"),
        ({"files": [file("{root}/cart.py")]}, "cannot rename subtotal there."),
        (
            {"files": [file("{root}/cart.py", (0, 4)), file("/lib/typing.py", (1, 0))]},
            "outside the workspace or in libraries: /lib/typing.py. Nothing was changed.",
        ),
        (
            {"files": [file("{root}/cart.py", (0, 4)), file("{root}/node_modules/x/i.js", (1, 0))]},
            "outside the workspace or in libraries: {root}/node_modules/x/i.js. Nothing",
        ),
        ({"files": [file("jdt://contents/List.class", (0, 4))]}, "outside the workspace or in libraries: jdt:"),
        ({"files": [file("{root}/cart.py", (0, 4)), file("{root}/gone.py", (0, 0))]}, "gone.py"),
        (
            {"files": [file("{root}/cart.py", (7, 4))]},
            "edits of cart.py name a place in line 8 that does not exist, so they are for",
        ),
        ({"files": [file("{root}/cart.py", (0, 4), (0, 5))]}, "edits of cart.py overlap, so they are for other text."),
        (  # counted from 1, in both files
            {"files": [file("{root}/cart.py", (1, 5)), file("{root}/sub/use.py", (1, 18))]},
            "edit of line 2 of cart.py would replace something else than subtotal: it is for other text, or counts",
        ),
        (
            {"files": [file("{root}/cart.py", (0, 4)), file("{root}/sub/use.py", (0, 17), (1, 4))]},
            "edit of line 2 of sub/use.py would replace something else than subtotal:",
        ),
        ({"files": [file("{root}/cart.py", (0, 4)), file("{root}/cart.py", (0, 4))]}, "changed while"),
        ({"files": [file("{root}/cart.py", (0, 4), newPath="/tmp/x.py")]}, "outside"),
        ({"status": "noServer"}, "Instead, find the uses with grep and change them with apply_patch."),
        ({"status": "error", "message": "it would also delete files"}, "could not answer: it would also delete files."),
    ],
)
async def test_all_or_nothing(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    files = [{**each, "path": each["path"].format(root=tmp_path)} for each in change.get("files", [])]
    held, _ = harness(tmp_path, {"status": "success", **change, "files": files})
    with pytest.raises(ToolError) as refused:
        await held.run("rename_symbol", CALL)
    assert said.format(root=tmp_path) in str(refused.value)
    assert not held.versions
    assert held.on_disk("cart.py").decode() == CART


async def test_nothing_is_written_where_edits_need_no_approval(tmp_path: Path) -> None:
    """The client counts from 1, as version 3 did elsewhere."""
    wrong = [file(tmp_path / "cart.py", (0, 5)), file(tmp_path / "sub/use.py", (1, 6))]
    held, _ = harness(tmp_path, {"status": "success", "files": wrong})
    with pytest.raises(ToolError, match=r"edit of line 1 of cart\.py would replace something else than subtotal"):
        await held.run("rename_symbol", CALL)
    assert (held.on_disk("cart.py").decode(), held.on_disk("sub/use.py").decode()) == (CART, USE)


@pytest.mark.parametrize("new_name", ["", " ", "a b", "subtotal", "x\n"])
async def test_a_new_name_is_one(tmp_path: Path, new_name: str) -> None:
    held, language = harness(tmp_path, both(tmp_path))
    with pytest.raises((ToolError, ValueError)):
        await held.run("rename_symbol", {**CALL, "new_name": new_name})
    assert language.asked == []


TYPED = f"{CART}# typed\n"


@pytest.mark.parametrize(
    ("opened", "told", "meanwhile", "asked", "renames"),
    [
        (False, None, None, 1, True),
        (True, CART, None, 1, True),
        (True, None, None, 1, True),
        (True, "older", None, 2, False),  # its change has not arrived yet, or another editor shows other text
        (False, "unsaved, and not told", None, 2, False),
        (True, CART, CART, 1, True),  # the same again
        (False, CART, CART, 2, True),  # opened meanwhile
        (True, TYPED, TYPED, 2, True),
        (True, None, TYPED, 2, False),  # unsaved in an editor that was not the one asked
    ],
)
async def test_what_was_typed_meanwhile(
    tmp_path: Path, opened: bool, told: str | None, meanwhile: str | None, asked: int, renames: bool
) -> None:
    """`told` is the text that the asked editor says it has open."""
    known = file(tmp_path / "cart.py", (0, 4), sha256=told and sha256(told.encode()))
    held, language = harness(tmp_path, {"status": "success", "files": [known]})
    if opened:
        held.editor.put(tmp_path / "cart.py", CART)
    if meanwhile is not None:
        language.meanwhile = lambda: held.editor.put(tmp_path / "cart.py", meanwhile)
    try:
        await held.preview("rename_symbol", CALL)
    except ToolError as error:
        assert "cart.py changed while the language server worked out the rename" in str(error)
    assert (len(language.asked), bool(held.versions)) == (asked, renames)


async def test_a_file_that_earlier_calls_of_the_step_change_is_not_renamed_in(tmp_path: Path) -> None:
    held, _ = harness(tmp_path, both(tmp_path))
    await held.preview("edit_file", {"path": "cart.py", "old_text": "sum(items)", "new_text": "0"})
    with pytest.raises(ToolError, match="Rename in the next step"):
        await held.preview("rename_symbol", CALL)


@pytest.mark.parametrize("refusing", ["cart.py", "sub/use.py"])
async def test_a_file_that_may_not_be_read_stays_unknown(tmp_path: Path, refusing: str) -> None:
    held, language = harness(tmp_path, both(tmp_path))
    call = held.context()
    call.denied = lambda subjects: [each for each in subjects if each.text == refusing]
    with pytest.raises(ToolError, match=f"A rule denies reading {refusing}"):
        await held.preview("rename_symbol", CALL, call=call)
    assert bool(language.asked) is (refusing != "cart.py")


async def test_where_a_symbol_is_is_not_told_of_a_file_that_needs_approval(tmp_path: Path) -> None:
    held, _ = harness(tmp_path, both(tmp_path))
    call = held.context()
    call.allowed = lambda subjects: list[Subject]()
    with pytest.raises(ToolError) as refused:
        await held.preview("rename_symbol", {**CALL, "line": 2}, call=call)
    assert "needs the user's approval" in str(refused.value) and "is on line" not in str(refused.value)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "No attached editor can"),
        (
            {"status": "error", "message": "It answered with an error: no."},
            "could not answer: It answered with an error",
        ),
        ({"status": "success"}, "The language server cannot rename subtotal there."),
        ("both", None),
    ],
)
async def test_without_an_editor_a_server_of_the_checks_answers(tmp_path: Path, answer: Any, said: str | None) -> None:
    held = ToolHarness(tmp_path, FILES)

    async def rename(place: CodePlace, new_name: str) -> Renaming | None:
        if answer is None:
            return None
        told = r.EditorRenameResult.model_validate(both(tmp_path) if answer == "both" else answer)
        return Renaming(told.status, "utf-16", told.files, told.message)

    tool = RenameSymbol(replace(held.environment, rename=rename))
    params = tool.params.model_validate(CALL)
    if said is None:
        assert (await tool.preview(params, held.context())).title == "Rename subtotal to total in 2 files"
        return
    with pytest.raises(ToolError, match=said):
        await tool.preview(params, held.context())


async def test_no_editor(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"No attached editor can .* apply_patch\.$"):
        await ToolHarness(tmp_path, FILES).run("rename_symbol", CALL)
