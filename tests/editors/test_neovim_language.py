"""What Neovim knows reaches the daemon: what is shown, as it changes; and answers of its other language servers, real
ones of our own making. See test_neovim.py for the rest of the plugin."""

import hashlib
import sys
from pathlib import Path
from typing import Any

import pytest

from amanu_protocol.requests import TextEdit
from editors.test_neovim import ENDED, STATE, Start, folder, home, start
from support.neovim import Neovim
from support.range_edits import apply_range_edits

__all__ = ["folder", "home", "start"]  # fixtures: pytest finds them by name

TOY = str(Path(__file__).parents[1] / "support" / "toy_language_server.py")
SHOP = "def total(items):\n    é, 𝄞 = total, items\n    return total(items)\n"
QUESTION = """
local method, params = ...
Result = nil
coroutine.wrap(function()
  Result = require("amanu.wire.language")[method](nil, params)
end)()
"""
ENCODED = """
local make = vim.lsp.protocol.make_client_capabilities
local encoding = ...
vim.lsp.protocol.make_client_capabilities = function()
  local made = make()
  made.general.positionEncodings = { encoding }
  return made
end
"""
RECORD = """
Deltas = {}
local client = require("amanu.wire.client")
local notify = client.notify
client.notify = function(method, params)
  if method == "amanu/editor/contextChanged" then
    table.insert(Deltas, vim.deepcopy(params))
  end
  notify(method, params)
end
"""


def serve(vim: Neovim, root: Path, *how: str, ready: bool = True) -> None:
    """Start a language server for the current buffer."""
    begin = "vim.lsp.start({ name = 'toy', cmd = {...}, root_dir = vim.fn.getcwd() })"
    vim.lua(begin, sys.executable, "-P", TOY, *how)
    if ready:
        vim.until("#vim.lsp.get_clients({ name = 'toy' }) > 0")


def ask(vim: Neovim, method: str, **params: Any) -> Any:
    vim.lua(QUESTION, method, params)
    return vim.until("Result")


def at(line: int, character: int) -> dict[str, int]:
    return {"line": line, "character": character}


def connect(vim: Neovim) -> None:
    """Have a session, and what is told from now on recorded."""
    vim.keys(":Amanu<CR>")
    vim.keys("hello<C-s>")
    vim.until(f"{ENDED} == 'completed'")
    vim.keys("<Esc>:Amanu /hide<CR>")
    vim.lua(RECORD)


def places(answer: Any) -> list[tuple[str, int]]:
    return [(Path(each["path"]).name, each["lines"]["start"] + 1) for each in answer["locations"]]


# Questions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_places_and_symbols(start: Start, folder: Path, encoding: str) -> None:
    (folder / "shop.py").write_text(SHOP)
    vim = start("shop.py")
    vim.lua(ENCODED, encoding)
    serve(vim, folder)
    file = str(folder / "shop.py")
    for character in (12, 16):  # the first and the last place within `total`, which comes after 𝄞: two units
        answer = ask(vim, "definition", path=file, position=at(1, character))
        assert (answer["status"], places(answer)) == ("success", [("shop.py", 1)])
    assert ask(vim, "definition", path=file, position=at(1, 17))["status"] == "success"
    answer = ask(vim, "references", path=file, position=at(1, 12))
    assert places(answer) == [("shop.py", 1), ("shop.py", 2), ("shop.py", 3)]
    answer = ask(vim, "symbols", path=file)
    assert answer["symbols"] == [
        {"name": "Cart", "kind": "class", "path": file, "lines": {"start": 0, "end": 4}, "container": ""},
        {"name": "price", "kind": "method", "path": file, "lines": {"start": 0, "end": 1}, "container": "Cart"},
    ]
    answer = ask(vim, "symbols", query="items")
    assert [(each["name"], each["kind"], each["lines"]["start"] + 1) for each in answer["symbols"]] == [
        ("items", "function", line) for line in (1, 2, 3)
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_rename_is_answered_and_not_made(start: Start, folder: Path, encoding: str) -> None:
    (folder / "shop.py").write_text(SHOP)
    (folder / "other.py").write_text("𝄞; total()\n")
    vim = start("shop.py")
    vim.lua(ENCODED, encoding)
    serve(vim, folder)
    file, other = str(folder / "shop.py"), str(folder / "other.py")
    vim.keys(":edit other.py<CR>")
    serve(vim, folder)
    vim.until("vim.lsp.buf_is_attached(0, vim.lsp.get_clients({ name = 'toy' })[1].id)")
    vim.keys("Otyped<Esc>")
    answer = ask(vim, "rename", path=file, position=at(1, 12), newName="sum")
    assert answer["status"] == "success"
    for path, shown in ((file, SHOP), (other, "typed\n𝄞; total()\n")):
        (told,) = [each for each in answer["files"] if each["path"] == path]
        assert told["sha256"] == hashlib.sha256(shown.encode()).hexdigest()
        edits = [TextEdit.model_validate(each, by_alias=True) for each in told["edits"]]
        assert apply_range_edits(shown, edits, "utf-16") == shown.replace("total", "sum")
    assert vim.lua("return vim.fn.getline(2)") == "𝄞; total()"
    assert (folder / "shop.py").read_text() == SHOP


@pytest.mark.parametrize(("new_name", "status", "new_path"), [("Sum", "success", "Sum.py"), ("New", "error", None)])
def test_a_rename_of_the_file_too(start: Start, folder: Path, new_name: str, status: str, new_path: str | None) -> None:
    (folder / "shop.py").write_text(SHOP)
    (folder / "other.py").write_text("def total(): ...\n")
    vim = start("shop.py")
    serve(vim, folder)
    answer = ask(vim, "rename", path=str(folder / "other.py"), position=at(0, 4), newName=new_name)
    assert answer["status"] == status
    if new_path is None:
        assert answer["message"] == "The rename would also create or delete files."
        return
    moved = next(each for each in answer["files"] if each["path"] == str(folder / "other.py"))
    assert moved["newPath"] == str(folder / new_path) and "sha256" not in moved
    assert [(each["range"]["start"]["line"], each["newText"]) for each in moved["edits"]] == [(0, new_name)]


def test_what_a_symbol_is_and_who_calls_it(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    vim = start("shop.py")
    file = str(folder / "shop.py")
    assert ask(vim, "hover", path=file, position=at(1, 12)) == {"status": "noServer"}
    serve(vim, folder)
    assert ask(vim, "hover", path=file, position=at(1, 12)) == {"status": "success", "text": "**total**"}
    caller = {"name": "caller", "kind": "function", "path": file, "lines": {"start": 0, "end": 1}}
    for direction, calls in (("incoming", [{"symbol": caller, "lines": [0]}]), ("outgoing", [])):
        answer = ask(vim, "call_hierarchy", path=file, position=at(1, 12), direction=direction)
        assert (answer["status"], answer["calls"]) == ("success", calls)


def test_a_file_that_is_not_open_is_asked_about_and_no_buffer_is_made(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    (folder / "other.py").write_text("\ndef total(): ...\n")
    vim = start("shop.py")
    serve(vim, folder)
    answer = ask(vim, "references", path=str(folder / "other.py"), position=at(1, 4))
    assert sorted(places(answer)) == [("other.py", 2), ("shop.py", 1), ("shop.py", 2), ("shop.py", 3)]
    answer = ask(vim, "references", path=str(folder / "shop.py"), position=at(0, 4))
    assert ("other.py", 2) not in places(answer)  # it was closed again
    assert vim.lua("return vim.fn.bufloaded('other.py')") == 0
    assert ask(vim, "definition", path=str(folder / "notes.txt"), position=at(0, 0))["status"] == "error"
    (folder / "notes.txt").write_text("total\n")
    assert ask(vim, "definition", path=str(folder / "notes.txt"), position=at(0, 0))["status"] == "noServer"


BOTH = """
Both = {}
for line = 1, 2 do
  coroutine.wrap(function(path)
    local position = { line = line - 1, character = 0 }
    local answer = require("amanu.wire.language").references(nil, { path = path, position = position })
    table.insert(Both, answer)
  end)(...)
end
"""


def test_two_questions_at_once_show_a_file_once(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text("x\n")
    (folder / "other.py").write_text("total()\ntotal()\n")
    log, other = folder.parent / "log", str(folder / "other.py")
    vim = start("shop.py")
    serve(vim, folder, "strict", str(log))
    vim.lua(BOTH, other)
    vim.until("#Both == 2")
    assert [places(each) for each in vim.lua("return Both")] == [[("other.py", 1), ("other.py", 2)]] * 2
    ask(vim, "references", path=other, position=at(0, 0))  # it was closed, and is opened again
    once = ["open other.py", "close other.py"]
    assert log.read_text().splitlines()[:4] == ["open shop.py", *once, once[0]]


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ((), "noServer"),
        (("late", "60"), "starting"),
        (("mute",), "starting"),
        (("broken",), "error"),
        (("busy",), "starting"),
    ],
)
def test_servers_that_cannot_answer(start: Start, folder: Path, how: tuple[str, ...], status: str) -> None:
    (folder / "shop.py").write_text(SHOP)
    vim = start("shop.py")
    if how:
        serve(vim, folder, *how, ready=how[0] != "late")
    if how == ("busy",):
        vim.until("#vim.lsp.get_clients()[1].progress.pending > 0 or next(vim.lsp.get_clients()[1].progress.pending)")
    answer = ask(vim, "definition", path=str(folder / "shop.py"), position=at(0, 4))
    assert answer["status"] == status
    if status == "error":
        assert "no such luck" in answer["message"]


def test_findings(start: Start, folder: Path) -> None:
    (folder / "shop.py").write_text("wrong\nright\n")
    (folder / "fine.py").write_text("right\n")
    vim = start("shop.py")
    connect(vim)
    file, fine = str(folder / "shop.py"), str(folder / "fine.py")
    assert ask(vim, "diagnostics", paths=[file])["status"] == "noServer"
    assert ask(vim, "diagnostics", paths=[fine])["status"] == "error"  # not open: not checked
    serve(vim, folder)
    vim.until("#vim.diagnostic.get(0) > 0")
    vim.lua("local space = vim.api.nvim_create_namespace('linter')\n"
            "vim.diagnostic.set(space, 0, {{ lnum = 1, col = 0, message = 'a\\nb', severity = 2, code = 7 }})\n"
            "local ours = vim.api.nvim_create_namespace('amanu.review')\n"
            "vim.diagnostic.set(ours, 0, {{ lnum = 0, col = 0, message = 'ours' }})")  # fmt: skip
    known = [
        {
            "lines": {"start": 0, "end": 1},
            "severity": "error",
            "message": "this is wrong",
            "source": "toy",
            "code": "W1",
        },
        {"lines": {"start": 1, "end": 2}, "severity": "warning", "message": "a\nb", "source": "", "code": "7"},
    ]
    for paths in ([file], []):
        answer = ask(vim, "diagnostics", paths=paths)
        assert (answer["status"], answer["files"]) == ("success", [{"path": file, "findings": known}])
    vim.keys(":edit fine.py<CR>")
    serve(vim, folder)
    assert vim.until("vim.lsp.buf_is_attached(0, vim.lsp.get_clients({ name = 'toy' })[1].id)")
    answer = ask(vim, "diagnostics", paths=[fine])
    assert (answer["status"], answer["files"]) == ("success", [])


# What is shown ---------------------------------------------------------------------------------------------------


def test_what_changes_is_told_and_nothing_else(start: Start, folder: Path) -> None:
    for name in ("one.py", "two.py"):
        (folder / name).write_text("a\nb\nc\n")
    (folder.parent / "outside.txt").write_text("x\n")
    vim = start("one.py", steps=[{"text": "Hello."}])
    connect(vim)
    one, two = str(folder / "one.py"), str(folder / "two.py")

    def told(count: int) -> list[Any]:
        vim.until("#Deltas >= ...", count)
        deltas = vim.lua("local all = Deltas Deltas = {} return all")
        assert len(deltas) == count, deltas
        return deltas

    vim.keys("j")
    assert told(1) == [{"active": {"path": one, "lines": {"start": 1, "end": 2}}}]
    vim.keys(":edit two.py<CR>")
    assert told(1) == [{"active": {"path": two, "lines": {"start": 0, "end": 1}}, "openFiles": [one, two]}]
    vim.keys("jVj")
    assert told(1) == [{"active": {"path": two, "lines": {"start": 1, "end": 3}, "selectedText": "b\nc"}}]
    vim.keys("<Esc>gg")
    assert told(1)[0]["active"]["lines"]["start"] == 0
    vim.lua("vim.diagnostic.set(vim.api.nvim_create_namespace('x'), 0, {{ lnum = 0, col = 0, message = 'm' }})")
    (delta,) = told(1)
    assert list(delta) == ["findings"] and delta["findings"][0]["path"] == two
    vim.lua("vim.diagnostic.reset()")
    assert told(1) == [{"findings": [{"path": two, "findings": []}]}]
    vim.keys(":edit ../outside.txt<CR>")
    assert told(1) == [{"active": {}}]  # not of the workspace: not told
    vim.lua("require('amanu.wire.context').send()")
    assert vim.lua("return #Deltas") == 0
    vim.keys(":bdelete two.py<CR>")
    assert told(1) == [{"openFiles": [one]}]


def test_the_model_hears_and_asks(start: Start, folder: Path) -> None:
    """The whole road: Neovim, daemon, model, and a language server asked in between."""
    (folder / "shop.py").write_text("wrong = 1\nprint(wrong)\n")
    steps: list[dict[str, Any]] = [
        {"expect": "Active file: shop.py, line 2.\nOpen files: shop.py.\nErrors and warnings: 2 errors in 1 file"},
        {"expect": "1: error: this is wrong (toy W1)\n2: error"},
        {"expect": "shop.py:1: wrong = 1\n", "text": "All as expected."},
    ]
    steps[0]["calls"] = [{"tool": "get_diagnostics", "arguments": {"path": "shop.py"}}]
    arguments = {"path": "shop.py", "line": 2, "symbol": "wrong"}
    steps[1]["calls"] = [{"tool": "find_definition", "arguments": arguments}]
    vim = start("shop.py", steps=steps)
    serve(vim, folder)
    vim.until("#vim.diagnostic.get(0) == 2")
    vim.keys("j")
    vim.keys(":Amanu<CR>")
    vim.keys("what is wrong?<C-s>")
    vim.until(f"{ENDED} == 'completed'")
    assert vim.lua(f"return {STATE}.items[#{STATE}.items].text") == "All as expected."
    assert vim.lua(f"return {STATE}.items[1].text") == "what is wrong?"
