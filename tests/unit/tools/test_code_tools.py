"""Tools that ask the user's editor, with editors that know something and others."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.core.tool import CallContext, Outcome, ToolError
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.workspace import editor_queries as asking
from amanu.workspace.overlay import CodePlace, Question, Renaming
from amanu_protocol import requests as r
from support.tool_harness import FakeEditor, ToolHarness

CART = "def subtotal(items):\n    return sum(items)\n\n\nprint(subtotal([1]), cart.subtotal)\n"
FILES = {"cart.py": CART, "sub/use.py": "from cart import subtotal\n", ".env": "KEY=s3cr3t\n"}


class FakeLanguage:
    """Answers from a list, then repeats the last."""

    name = "Fake"

    def __init__(self, *answers: dict[str, Any], offers: bool = True) -> None:
        self.answer_with = list(answers)
        self.offers = offers
        self.asked: list[Any] = []

    def answers(self, question: Question, path: Path) -> bool:
        return self.offers

    async def diagnostics(self, params: r.EditorDiagnosticsParams) -> r.EditorDiagnosticsResult:
        return r.EditorDiagnosticsResult.model_validate(self._next(params))

    async def definition(self, place: CodePlace) -> r.EditorLocationsResult:
        return r.EditorLocationsResult.model_validate(self._next(place))

    async def references(self, place: CodePlace) -> r.EditorLocationsResult:
        return r.EditorLocationsResult.model_validate(self._next(place))

    async def symbols(self, params: r.EditorSymbolsParams) -> r.EditorSymbolsResult:
        return r.EditorSymbolsResult.model_validate(self._next(params))

    async def hover(self, place: CodePlace) -> r.EditorHoverResult:
        return r.EditorHoverResult.model_validate(self._next(place))

    async def call_hierarchy(self, place: CodePlace, direction: str) -> r.EditorCallHierarchyResult:
        return r.EditorCallHierarchyResult.model_validate(self._next((place, direction)))

    async def rename(self, place: CodePlace, new_name: str) -> Renaming:
        answer = r.EditorRenameResult.model_validate(self._next((place, new_name)))
        return Renaming(answer.status, "utf-16", answer.files, answer.message)

    def _next(self, asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        return self.answer_with.pop(0) if len(self.answer_with) > 1 else self.answer_with[0]


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(asking, "PAUSE", 0.01)
    monkeypatch.setattr(asking, "PATIENCE", 0.1)
    yield


def harness(root: Path, *languages: FakeLanguage) -> ToolHarness:
    held = ToolHarness(root, FILES)
    for each in languages:
        editor = FakeEditor()
        editor.language = each
        held.overlay.add(editor)
    return held


def watched(held: ToolHarness) -> CallContext:
    call, rules = held.context(), (*built_in(), *of_mode("ask"))
    call.allowed = lambda subjects: [each for each in subjects if decide(rules, each).decision == "allow"]
    return call


def place(path: str, line: int, text: str | None = None) -> dict[str, Any]:
    return {"path": path, "lines": {"start": line - 1, "end": line}, "text": text}


async def use(held: ToolHarness, tool: str, arguments: dict[str, Any]) -> Outcome:
    return await held.run(tool, arguments, call=watched(held))


@pytest.mark.parametrize("tool", ["find_definition", "find_references"])
@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([], "knows no"),
        ([("{root}/cart.py", 1)], "cart.py:1: def subtotal(items):\n"),
        (
            [("{root}/cart.py", 2), ("{root}/sub/use.py", 1), ("{root}/cart.py", 2)],
            "cart.py:2: return sum(items)\nsub/use.py:1: from cart import subtotal\n",
        ),
        ([("{root}/cart.py", 99)], "cart.py:99:\n"),
        ([("/usr/lib/python3/typing.py", 7)], "/usr/lib/python3/typing.py:7 (outside the workspace)\n"),
        ([("{root}/../x\ny", 7)], "(outside the workspace)\n"),
        ([("{root}/.env", 1)], ".env:1 (not quoted: reading this file needs the user's approval)\n"),
        ([("{root}/gone.py", 1)], "gone.py:1 (cannot be read)\n"),
        ([("jdt://contents/List.class", 3)], "jdt://contents/List.class:3 (outside the workspace)\n"),
    ],
)
async def test_places(tmp_path: Path, tool: str, places: list[tuple[str, int]], text: str) -> None:
    given = [place(path.format(root=tmp_path), line, "a client's own idea") for path, line in places]
    language = FakeLanguage({"status": "success", "locations": given})
    held = harness(tmp_path, language)
    result = await use(held, tool, {"path": "cart.py", "line": 5, "symbol": "subtotal"})
    assert text in result.for_model
    assert "own idea" not in result.for_model and "s3cr3t" not in result.for_model
    assert language.asked == [CodePlace(tmp_path / "cart.py", 4, "print(")]


async def test_many_places_are_cut(tmp_path: Path) -> None:
    given = [place(str(tmp_path / "cart.py"), line) for line in range(1, 131)]
    held = harness(tmp_path, FakeLanguage({"status": "success", "locations": given}))
    result = await use(held, "find_references", {"path": "cart.py", "line": 1, "symbol": "subtotal"})
    assert result.for_model.endswith("\n[30 more locations left out]\n")
    assert result.for_user == "130 locations"


@pytest.mark.parametrize(
    ("line", "symbol", "found"),
    [
        (1, "subtotal", 4),
        (5, "cart.subtotal", 26),  # the last name is what is asked about
        (2, "sum", 11),
        (2, "um", 12),
        (2, "subtotal", "Line 2 does not contain 'subtotal'; 'subtotal' is on lines 1, 5."),
        (9, "subtotal", "The file has 5 lines; 'subtotal' is on lines 1, 5."),
        (4, "sum(", "Line 4 does not contain 'sum('; 'sum(' is on line 2."),
        (1, "total_price", "'total_price' is nowhere in this file. Use grep"),
    ],
)
async def test_a_symbol_is_found_in_the_text(tmp_path: Path, line: int, symbol: str, found: int | str) -> None:
    language = FakeLanguage({"status": "success"})
    held = harness(tmp_path, language)
    held.put("cart.py", "older\n")
    held.editor.put(held.root / "cart.py", CART)  # what counts is what the user sees
    arguments = {"path": "cart.py", "line": line, "symbol": symbol}
    if isinstance(found, str):
        with pytest.raises(ToolError) as refused:
            await use(held, "find_definition", arguments)
        assert found in str(refused.value)
        return
    await use(held, "find_definition", arguments)
    (asked,) = language.asked
    assert isinstance(asked, CodePlace) and len(asked.before) == found


def symbol(name: str, path: str, line: int, end: int, kind: str = "function", container: str = "") -> dict[str, Any]:
    return {"name": name, "kind": kind, "path": path, "lines": {"start": line - 1, "end": end}, "container": container}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"path": "cart.py"}, "1-2: function subtotal\n5: class C\n7: method m (in C)\n"),
        (
            {"query": "sub"},
            "cart.py:1: function subtotal\n/lib/x.py:5: class C (outside the workspace)\ncart.py:7: method m (in C)\n",
        ),
    ],
)
async def test_symbols(tmp_path: Path, arguments: dict[str, Any], text: str) -> None:
    here = str(tmp_path / "cart.py")
    given = [
        symbol("subtotal", here, 1, 2),
        symbol("C", here if "path" in arguments else "/lib/x.py", 5, 5, "class"),
        symbol("m", here, 7, 7, "method", "C"),
    ]
    if "query" in arguments:
        given.append(symbol("KEY", str(tmp_path / ".env"), 1, 1, "variable"))
    held = harness(tmp_path, FakeLanguage({"status": "success", "symbols": given}))
    assert (await use(held, "list_symbols", arguments)).for_model == text


@pytest.mark.parametrize("arguments", [{}, {"path": "cart.py", "query": "x"}, {"path": "", "query": ""}])
async def test_symbols_of_what(tmp_path: Path, arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="either path or query"):
        await use(harness(tmp_path), "list_symbols", arguments)


PLACE = {"path": "cart.py", "line": 1, "symbol": "subtotal"}


@pytest.mark.parametrize(
    ("text", "told", "user"),
    [
        ("", "The editor's language server says nothing about subtotal.", "nothing"),
        ("```python\n(function) subtotal\n```\n", "```python\n(function) subtotal\n```\n", "(function) subtotal"),
        ("```\n```", "```\n```\n", "shown"),
        ("\u202ex" * 1001, "\u202ex" * 1000 + "\n[2 more characters left out]\n", None),
    ],
)
async def test_hover(tmp_path: Path, text: str, told: str, user: str | None) -> None:
    language = FakeLanguage({"status": "success", "text": text})
    result = await use(harness(tmp_path, language), "inspect_symbol", {**PLACE, "show": "hover"})
    assert result.for_model == told
    assert result.for_user == user or user is None
    assert "\u202e" not in result.for_user
    assert language.asked == [CodePlace(tmp_path / "cart.py", 0, "def ")]


@pytest.mark.parametrize("direction", ["incoming", "outgoing"])
async def test_call_hierarchy(tmp_path: Path, direction: str) -> None:
    def called(name: str, path: str, *lines: int) -> dict[str, Any]:
        return {"symbol": symbol(name, path, 3, 9, "method", "Cart"), "lines": [line - 1 for line in lines]}

    given = [
        called("total", str(tmp_path / "cart.py"), 5),
        called("use", str(tmp_path / "sub/use.py"), *range(1, 13)),
        called("KEY", str(tmp_path / ".env"), 1),
        called("sum", "/lib/x.py"),
    ]
    language = FakeLanguage({"status": "success", "calls": given + given[:1] * 97}, {"status": "success"})
    held = harness(tmp_path, language)
    result = await use(held, "inspect_symbol", {**PLACE, "show": f"{direction}_calls"})
    assert result.for_model.splitlines()[:4] == [
        "cart.py:3: method total (in Cart), called on line 5",
        "sub/use.py:3: method use (in Cart), called on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …",
        ".env:3 (not quoted: reading this file needs the user's approval)",
        "/lib/x.py:3 (outside the workspace)",
    ]
    assert result.for_model.endswith("\n[1 more left out]\n")
    assert result.for_user == "101 functions"
    (asked,) = language.asked
    assert asked == (CodePlace(tmp_path / "cart.py", 0, "def "), direction)
    result = await use(held, "inspect_symbol", {**PLACE, "show": f"{direction}_calls"})
    assert (result.for_model, result.for_user) == (f"The editor's language server knows no {direction} calls.", "none")


def found(path: str, *findings: tuple[int, str, str, str]) -> dict[str, Any]:
    return {
        "path": path,
        "findings": [
            {"lines": {"start": line - 1, "end": line}, "severity": severity, "message": message, "source": source}
            for line, severity, message, source in findings
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "text", "user"),
    [
        (
            {},
            "cart.py\n2: warning: long (ruff)\n5: error: two · lines (ty)\nsub/use.py\n1: hint: spell\n"
            "Outside the workspace, not shown: /lib/x.py.\n",
            "1 error, 1 warning",
        ),
        ({"path": "cart.py"}, "cart.py\n2: warning: long (ruff)\n5: error: two · lines (ty)\n", "1 error, 1 warning"),
        ({"path": "sub"}, "sub/use.py\n1: hint: spell\n", "1 hints"),
        ({"path": ".env"}, ".env\n1: error: KEY=s3cr3t (env)\n", "1 error"),  # named: that was decided on
    ],
)
async def test_diagnostics(tmp_path: Path, arguments: dict[str, Any], text: str, user: str) -> None:
    files = [
        found("{root}/cart.py", (5, "error", "two\n  lines", "ty"), (2, "warning", "long", "ruff")),
        found("{root}/sub/use.py", (1, "hint", "spell", ""), (1, "error", "ours", "amanu")),
        found("{root}/.env", (1, "error", "KEY=s3cr3t", "env")),
        found("/lib/x.py", (1, "error", "not yours", "ty")),
    ]
    given = [{**each, "path": each["path"].format(root=tmp_path)} for each in files]
    language = FakeLanguage({"status": "success", "files": given})
    result = await use(harness(tmp_path, language), "get_diagnostics", arguments)
    assert (result.for_model, result.for_user) == (text, user)
    file = arguments.get("path") in ("cart.py", ".env")
    assert language.asked == [r.EditorDiagnosticsParams(paths=[str(tmp_path / arguments["path"])] if file else [])]


async def test_of_too_many_findings_the_worst_are_kept(tmp_path: Path) -> None:
    many = [(line, "hint", "h", "x") for line in range(1, 150)]
    given = [found(str(tmp_path / "cart.py"), *many, (200, "error", "e", "x"))]
    held = harness(tmp_path, FakeLanguage({"status": "success", "files": given}))
    text = (await use(held, "get_diagnostics", {})).for_model
    assert text.endswith("200: error: e (x)\n[50 more left out; name a file]\n")


@pytest.mark.parametrize(
    ("tool", "arguments", "looked_up"),
    [
        ("get_diagnostics", {}, 200),
        ("list_symbols", {"query": "x"}, 150),  # of 300 symbols, two in each file; the others are not shown
        ("find_references", {"path": "cart.py", "line": 1, "symbol": "subtotal"}, 50),  # 100 places
    ],
)
async def test_many_files_do_not_hold_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], looked_up: int
) -> None:
    paths = [str(tmp_path / f"f{number}.py") for number in range(200)]
    both = [(path, line) for path in paths for line in (1, 2)]
    answer = {
        "status": "success",
        "files": [found(path, (1, "error", "bad", "ty")) for path in paths],
        "symbols": [symbol("x", path, line, line) for path, line in both],
        "locations": [place(path, line) for path, line in both],
    }
    held = harness(tmp_path, FakeLanguage(answer))
    seen: list[str] = []
    resolve = held.workspace.resolve

    def resolved(path: str) -> Path:
        if path in paths:
            assert threading.current_thread() is not threading.main_thread()
            seen.append(path)
        return resolve(path)

    monkeypatch.setattr(held.workspace, "resolve", resolved)
    result = await use(held, tool, arguments)
    assert seen == paths[:looked_up]
    assert "f0.py" in result.for_model


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("get_diagnostics", {"path": "cart.py"}),
    ("find_definition", {"path": "cart.py", "line": 1, "symbol": "subtotal"}),
    ("find_references", {"path": "cart.py", "line": 1, "symbol": "subtotal"}),
    ("list_symbols", {"query": "subtotal"}),
    ("inspect_symbol", {**PLACE, "show": "hover"}),
    ("inspect_symbol", {**PLACE, "show": "incoming_calls"}),
]
STARTING, NONE, FINE = {"status": "starting"}, {"status": "noServer"}, {"status": "success"}
BROKEN = {"status": "error", "message": "its  answer\ncannot be read"}


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
@pytest.mark.parametrize(
    ("languages", "said"),
    [
        ([], "No attached editor can answer about "),
        ([FakeLanguage(FINE, offers=False)], "No attached editor can answer about "),
        ([FakeLanguage(STARTING, STARTING, FINE)], None),
        ([FakeLanguage(STARTING)], "Fake has a language server, but it is still starting. Instead, "),
        ([FakeLanguage(NONE)], "Fake has no language server for that. Instead, "),
        ([FakeLanguage(BROKEN)], "Fake could not answer: its answer cannot be read. Instead, "),
        ([FakeLanguage(FINE), FakeLanguage(NONE)], None),
        ([FakeLanguage(FINE), FakeLanguage(BROKEN)], None),
        ([FakeLanguage(NONE), FakeLanguage(STARTING)], "still starting. Fake has no language server"),
    ],
)
async def test_who_answers(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, Any],
    languages: list[FakeLanguage],
    said: str | None,
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.05 if said and "starting" in said else 4.0)
    fresh = [FakeLanguage(*each.answer_with, offers=each.offers) for each in languages]
    held = harness(tmp_path, *fresh)
    async with asyncio.timeout(50):
        if said is None:
            await use(held, tool, arguments)
            return
        with pytest.raises(ToolError) as refused:
            await use(held, tool, arguments)
    assert said in str(refused.value)
    assert str(refused.value).endswith(("use grep.", "type checker or build.", "grep finds it."))


@pytest.mark.parametrize(("tool", "arguments"), [each for each in CALLS if "path" in each[1]])
@pytest.mark.parametrize("path", ["gone.py", "../x.py", "/etc/passwd", ""])
async def test_paths_are_guarded(tmp_path: Path, tool: str, arguments: dict[str, Any], path: str) -> None:
    language = FakeLanguage(FINE)
    if tool == "get_diagnostics" and not path:
        return  # no path: everything
    with pytest.raises(ToolError):
        await use(harness(tmp_path, language), tool, {**arguments, "path": path})
    assert language.asked == []


async def test_the_editor_that_has_the_file_open_is_asked_first(tmp_path: Path) -> None:
    one, two = FakeLanguage(FINE), FakeLanguage(FINE)
    held = ToolHarness(tmp_path, FILES)
    for language in (one, two):
        editor = FakeEditor()
        editor.language = language
        held.overlay.add(editor)
        if language is one:
            editor.put(held.root / "cart.py", CART)
    await use(held, "find_definition", {"path": "cart.py", "line": 1, "symbol": "subtotal"})
    await use(held, "list_symbols", {"query": "x"})
    assert [len(each.asked) for each in (one, two)] == [1, 1]
