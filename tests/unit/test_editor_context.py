"""What a client says has changed, prompt by prompt, and what the model hears of it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from amanu.context import editor as module
from amanu.context.editor import EditorContext, EditorNotes, describe
from amanu.core.tool import Subject
from amanu.permissions.policy import built_in, decide, of_mode
from amanu_protocol.requests import ContextChangedParams
from support.tool_harness import ToolHarness

FILES = {"a.py": "one\ntwo\n", "b.py": "x\n", "sub/c.py": "y\n", ".env": "KEY=s3cr3t\n"}


def asked_about_env(subjects: Iterable[Subject]) -> list[Subject]:
    rules = (*built_in(), *of_mode("ask"))
    return [each for each in subjects if decide(rules, each).decision == "allow"]


def finding(line: int, severity: str, message: str, source: str = "ruff", code: str = "") -> dict[str, Any]:
    return {
        "lines": {"start": line - 1, "end": line},
        "severity": severity,
        "message": message,
        "source": source,
        "code": code,
    }


async def hear(
    held: ToolHarness, prompts: Sequence[Sequence[dict[str, Any]]], generations: Sequence[int] = ()
) -> list[str]:
    """The block at each prompt, without its frame. `ROOT/` in a delta is the root."""
    context, told, blocks = EditorContext(), EditorNotes(), list[str]()
    for at, deltas in enumerate(prompts):
        for delta in deltas:
            params = ContextChangedParams.model_validate(_rooted(delta, f"{held.root}/"))
            context = context.changed(params)
        sections = await describe(context, held.workspace, asked_about_env)
        block = told.note(sections, generations[at] if generations else 0)
        blocks.append(block.removeprefix("<editor_context>\n").removesuffix("\n</editor_context>"))
    return blocks


def _rooted(value: Any, root: str) -> Any:
    match value:
        case str():
            return value.replace("ROOT/", root)
        case list():
            return [_rooted(each, root) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {key: _rooted(each, root) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


FIRST = "What the user's editor shows, for your information:\n"
NEXT = "What has changed there:\n"
AT_TWO: dict[str, Any] = {"active": {"path": "ROOT/a.py", "lines": {"start": 1, "end": 2}}}
OPEN: dict[str, Any] = {"openFiles": ["ROOT/a.py", "ROOT/sub/c.py"]}
BROKEN: dict[str, Any] = {
    "findings": [
        {"path": "ROOT/a.py", "findings": [finding(9, "warning", "long"), finding(2, "error", "no x", code="F821")]},
        {"path": "ROOT/b.py", "findings": [finding(1, "error", "no y"), finding(1, "hint", "spell")]},
    ]
}


@pytest.mark.parametrize(
    ("prompts", "expected"),
    [
        ([[]], [""]),
        ([[{}]], [""]),
        ([[AT_TWO]], [FIRST + "Active file: a.py, line 2."]),
        ([[AT_TWO, OPEN]], [FIRST + "Active file: a.py, line 2.\nOpen files: a.py, sub/c.py."]),
        # Once, then what changed; a field that is absent is as it was.
        ([[AT_TWO, OPEN], [], [{"openFiles": ["ROOT/a.py"]}]], [..., "", NEXT + "Open files: a.py."]),
        ([[AT_TWO, OPEN], [AT_TWO]], [..., ""]),
        ([[OPEN], [{"openFiles": []}], []], [..., NEXT + "Open files: none.", ""]),
        ([[AT_TWO], [{"active": {}}]], [..., NEXT + "Active file: none in the workspace."]),
        ([[AT_TWO], [{"active": None}]], [..., ""]),
        ([[{"active": {"path": "ROOT/a.py"}}]], [FIRST + "Active file: a.py."]),
        # A selection goes along when it is small.
        (
            [[{"active": {"path": "ROOT/a.py", "lines": {"start": 0, "end": 2}, "selectedText": "one\ntw"}}]],
            [FIRST + "Active file: a.py, lines 1-2, selected:\n<selection>\none\ntw\n</selection>"],
        ),
        (
            [[{"active": {"path": "ROOT/a.py", "lines": {"start": 0, "end": 2}, "selectedText": "x" * 2001}}]],
            [FIRST + "Active file: a.py, lines 1-2, selected."],
        ),
        ([[{"active": {"path": "ROOT/a.py", "selectedText": "\ud800"}}]], [...]),
        # Findings: counts of all, the first of the active file; ours are no findings.
        (
            [[AT_TWO, BROKEN]],
            [
                FIRST
                + "Active file: a.py, line 2.\nErrors and warnings: 2 errors, 1 warning in 2 files; of the active file:"
                "\n2: error: no x (ruff F821)\n9: warning: long (ruff)"
            ],
        ),
        ([[BROKEN]], [FIRST + "Errors and warnings: 2 errors, 1 warning in 2 files."]),
        (
            [[BROKEN], [{"findings": [{"path": "ROOT/a.py", "findings": []}]}]],
            [..., NEXT + "Errors and warnings: 1 error in 1 file."],
        ),
        ([[{"findings": [{"path": "ROOT/a.py", "findings": [finding(1, "error", "x", "amanu")]}]}]], [""]),
        ([[{"findings": [{"path": "ROOT/a.py", "findings": [finding(1, "hint", "x")]}]}]], [""]),
        # Nothing outside the roots is told, nothing of a protected file is quoted.
        ([[{"active": {"path": "/etc/passwd"}, "openFiles": ["/etc/passwd", "ROOT/../x", "rel", ""]}]], [""]),
        ([[{"findings": [{"path": "/etc/passwd", "findings": [finding(1, "error", "root:x")]}]}]], [""]),
        (
            [
                [
                    {
                        "active": {"path": "ROOT/.env", "lines": {"start": 0, "end": 1}, "selectedText": "KEY=s3cr3t"},
                        "findings": [{"path": "ROOT/.env", "findings": [finding(1, "error", "bad KEY=s3cr3t")]}],
                    }
                ]
            ],
            [FIRST + "Active file: .env, line 1, selected.\nErrors and warnings: 1 error in 1 file."],
        ),
    ],
)
async def test_what_the_model_hears(tmp_path: Path, prompts: list[list[dict[str, Any]]], expected: list[Any]) -> None:
    heard = await hear(ToolHarness(tmp_path, FILES), prompts)
    assert len(heard) == len(expected)
    for block, wanted in zip(heard, expected, strict=True):
        assert wanted is ... or block == wanted
        block.encode()


async def test_unsaved_files_are_named(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path, FILES)
    held.editor.put(held.root / "a.py", "changed\n")
    held.editor.put(held.root / "b.py", FILES["b.py"])
    (block,) = await hear(held, [[{"openFiles": ["ROOT/a.py", "ROOT/b.py"]}]])
    assert block.endswith(
        "\nUnsaved files (your tools see the text in the editor; commands see the older one on disk): a.py."
    )


async def test_all_of_it_again_when_earlier_messages_were_rewritten(tmp_path: Path) -> None:
    blocks = await hear(ToolHarness(tmp_path, FILES), [[AT_TWO, OPEN], [], []], [0, 1, 1])
    assert blocks[0] == blocks[1] != ""
    assert blocks[2] == ""


async def test_it_is_bounded_whatever_a_client_sends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FILES_FOUND", 3)
    every = [
        {"path": f"/p/{at}", "findings": [finding(n, "error", "m" * 9999) for n in range(1, 51)]} for at in range(9)
    ]
    delta = ContextChangedParams.model_validate(
        {
            "active": {"path": "/p/a", "selectedText": "x" * 99_999},
            "openFiles": [f"/p/{at}" for at in range(999)],
            "findings": every,
        }
    )
    context = EditorContext().changed(delta)
    assert len(context.active.selected_text or "") == module.MAX_SELECTION + 1
    assert len(context.open_files) == module.MAX_FILES
    assert list(context.findings_by_path) == ["/p/6", "/p/7", "/p/8"]  # the last that changed
    assert {(each.errors, len(each.worst)) for each in context.findings_by_path.values()} == {
        (50, module.SHOWN_FINDINGS)
    }
    held = ToolHarness(tmp_path, {f"f{at}": "" for at in range(60)})
    (block,) = await hear(held, [[{"openFiles": [f"ROOT/f{at}" for at in range(60)]}]])
    assert block.endswith(", f49, and 10 more.")
