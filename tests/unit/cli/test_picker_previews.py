"""The facts below a picker about the marked row."""

from collections.abc import Sequence
from typing import Any

import pytest

from amanu.cli import picker_previews as previews
from amanu_protocol import requests as r
from amanu_protocol.items import Line, ModelInfo


def drawn(lines: Sequence[Line]) -> list[str]:
    """A sign for each tone, and the text."""
    return [{"plain": " ", "good": "+", "warning": "!", "bad": "-"}[line.tone] + line.text for line in lines]


def session(**told: Any) -> r.SessionSummary:
    plain: dict[str, Any] = {
        "session_id": "0123456789ab",
        "title": "t",
        "roots": ["/w"],
        "model_id": "anthropic:claude-opus-5-5",
        "created_at": 0,
        "updated_at": 0,
        "status": "idle",
    }
    return r.SessionSummary(**{**plain, **told})


def model(**told: Any) -> ModelInfo:
    plain: dict[str, Any] = {
        "model_id": "a:b",
        "name": "B",
        "context_window": 200_000,
        "max_output": 64_000,
        "thinking": False,
        "images": False,
        "available": True,
    }
    return ModelInfo(**{**plain, **told})


def file(diff: str = "", action: Any = "edit", **told: Any) -> r.UndoneFile:
    return r.UndoneFile(path="/w/a.py", action=action, diff=diff, undone=[], skipped=[], **told)


@pytest.mark.parametrize(
    ("summary", "lines"),
    [
        (session(), [" claude-opus-5-5 · 01234567"]),
        (
            session(
                status="waiting",
                files=2,
                added=5,
                removed=1,
                changes=3,
                cost="$0.12",
                questions=[r.OpenQuestion(tool_call_id="c", title="Run\nmake\x1b[2J")],
                last_prompt="fix\nit",
                last_answer="**Done.**\n\n- one\n",
            ),
            [
                " waiting · 2 files +5 −1 · 3 changes to review · $0.12 · claude-opus-5-5 · 01234567",
                "!? Run make",
                "+› fix it",
                " **Done.**",
                " - one",
            ],
        ),
    ],
)
def test_a_session(summary: r.SessionSummary, lines: list[str]) -> None:
    assert drawn(previews.of_session(summary)) == lines


@pytest.mark.parametrize(
    ("info", "lines"),
    [
        (model(), [" window 200k, answers to 64k tokens", " price unknown"]),
        (
            model(
                input_price=5,
                output_price=25,
                cache_read_price=0.5,
                thinking=True,
                images=True,
                efforts=["low", "high"],
                default_effort="high",
                service_tiers={"fast": 6},
                available=False,
                unavailable="No key.",
                successor="a:c",
                facts_from="Amanu, 2026-11-30",
            ),
            [
                "!No key.",
                "!deprecated; use a:c",
                " window 200k, answers to 64k tokens",
                " $5 in / $25 out per million tokens, cached $0.5 in",
                " effort low, high (default high) · sees pictures · fast at 6 times the price",
                " facts: Amanu, 2026-11-30",
            ],
        ),
    ],
)
def test_a_model(info: ModelInfo, lines: list[str]) -> None:
    assert drawn(previews.of_model(info)) == lines


KEPT = " With the conversation: 2 turns less."
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-new\n+old\n  same\n"


@pytest.mark.parametrize(
    ("preview", "lines"),
    [
        (([], []), [" No change of that turn or a later one is applied.", KEPT]),
        (([], ["make"]), ["!not undone: make", KEPT]),
        (
            ([file(DIFF), file("binary file", "delete")], []),
            [
                " a.py: 0 changes will be undone",
                " a.py: will be deleted, since Amanu created it",
                KEPT,
                " ── a.py",
                " @@ -1 +1 @@",
                "--new",
                "++old",
                "   same",
            ],
        ),
        (
            ([file("--- a\n+++ b\n" + "+x\n" * 500)], []),
            [" a.py: 0 changes will be undone", KEPT, " ── a.py", *["++x"] * 99],
        ),
    ],
)
def test_a_rewind(preview: tuple[list[r.UndoneFile], list[str]], lines: list[str]) -> None:
    files, commands = preview
    dry = r.CheckpointPreviewResult(files=files, commands=commands, turns=2)
    assert drawn(previews.of_rewind(dry, ["/w"])) == lines
