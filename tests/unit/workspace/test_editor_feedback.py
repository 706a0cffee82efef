"""What an edit did to the findings of the user's editor, as model and user hear it."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from amanu.checks import editor_feedback as aftermath
from amanu.core.tool import CallContext, Outcome
from amanu.permissions.policy import built_in, decide, of_mode
from amanu.workspace.overlay import CodePlace, Question, Renaming
from amanu_protocol import requests as r
from amanu_protocol.base import LineRange
from amanu_protocol.items import Check, Finding
from support.tool_harness import FakeEditor, ToolHarness

TEXT = "one\nwrong two\nthree\nfour\n"


class Linting:
    """An editor's language server: every line with `wrong` in it is an error. It sees a text only after it was asked
    that often (`lag`), as one that needs time; `status` is what the editor says of it."""

    name = "Fake editor"

    def __init__(self, path: Path, editor: FakeEditor, *, lag: int = 0, status: str = "success") -> None:
        self.path, self.editor, self.lag, self.status = path, editor, lag, status
        self.seen: list[str] = []
        self.hold: asyncio.Event | None = None

    def answers(self, question: Question, path: Path) -> bool:
        return question == "diagnostics"

    async def diagnostics(self, params: r.EditorDiagnosticsParams) -> r.EditorDiagnosticsResult:
        path = Path(params.paths[0])
        buffer = self.editor.buffer(path)
        self.seen.append(buffer.text if buffer is not None else path.read_text())
        if self.hold is not None:
            await self.hold.wait()
        behind = len(set(self.seen)) > 1 and self.seen.count(self.seen[-1]) <= self.lag
        text = self.seen[0] if behind else self.seen[-1]
        found = [
            Finding(lines=LineRange.numbered(at, at), severity="error", message=line, source="toy")
            for at, line in enumerate(text.splitlines(), 1)
            if "wrong" in line
        ]
        file = r.FileFindings(path=str(path), findings=found)
        return r.EditorDiagnosticsResult.model_validate(
            {"status": self.status, "files": [file] if found else []}, by_name=True
        )

    async def definition(self, place: CodePlace) -> r.EditorLocationsResult:
        raise AssertionError("not asked")

    async def references(self, place: CodePlace) -> r.EditorLocationsResult:
        raise AssertionError("not asked")

    async def symbols(self, params: r.EditorSymbolsParams) -> r.EditorSymbolsResult:
        raise AssertionError("not asked")

    async def hover(self, place: CodePlace) -> r.EditorHoverResult:
        raise AssertionError("not asked")

    async def call_hierarchy(self, place: CodePlace, direction: str) -> r.EditorCallHierarchyResult:
        raise AssertionError("not asked")

    async def rename(self, place: CodePlace, new_name: str) -> Renaming:
        raise AssertionError("not asked")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, seconds in (("PAUSE", 0.005), ("STABLE", 0.02), ("UNCHANGED", 0.3), ("PATIENCE", 2.0)):
        monkeypatch.setattr(aftermath, name, seconds)
    yield


def harness(root: Path, *, opened: bool = True, **how: Any) -> tuple[ToolHarness, Linting]:
    held = ToolHarness(root, {"a.txt": TEXT})
    path = held.root / "a.txt"
    language = Linting(path, held.editor, **how)
    held.editor.language = language
    if opened:
        held.editor.put(path, TEXT)
    return held, language


def call(held: ToolHarness, step: int = 1) -> CallContext:
    made, rules = held.context(step), (*built_in(), *of_mode("acceptEdits"))
    made.allowed = lambda subjects: [each for each in subjects if decide(rules, each).decision == "allow"]
    return made


async def edit(held: ToolHarness, old: str, new: str, step: int = 1, path: str = "a.txt") -> Outcome:
    return await held.run("edit_file", {"path": path, "old_text": old, "new_text": new}, call=call(held, step))


def checks(held: ToolHarness) -> list[Check]:
    return held.versions[-1].files[0].checks


async def until(reached: Callable[[], object]) -> None:
    async with asyncio.timeout(50):
        while not reached():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("lag", [0, 3])
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "three\n",
            "wrong 3\nwrong 4\n",
            ["adds 2 errors (", "- 3: error: wrong 3 (toy)", "- 4: error: wrong 4 (toy)"],
        ),
        ("one\n", "zero\none\nwrong 1\n", ["- 3: error: wrong 1 (toy)"]),
        ("wrong two\nthree\n", "two\nwrong three\n", ["adds 1 error, fixes 1 (", "- 3: error: wrong three (toy)"]),
        ("wrong two", "two", ["fixes 1 and adds nothing new."]),
        ("one\n", "zero\none\n", []),
    ],
)
async def test_only_what_is_new(tmp_path: Path, opened: bool, lag: int, old: str, new: str, told: list[str]) -> None:
    held, _ = harness(tmp_path, opened=opened, lag=lag if opened else 0)
    outcome = await edit(held, old, new)
    head, _, news = outcome.for_model.partition("\n\n")
    assert head.startswith("Applied to a.txt")
    assert all(each in news for each in told) and bool(told) == bool(news)
    assert news.count("\n- ") == sum(each.startswith("- ") for each in told)
    if told:
        await until(lambda: checks(held))
        (check,) = checks(held)
        assert (check.checker, check.about, check.state) == ("Fake editor", "applied", "done")
        assert len(check.added) == news.count("\n- ") and check.fixed == news.count("fixes 1")
    await held.aftermath.close()


async def test_edits_one_after_the_other_are_compared_with_each_other(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    first = await edit(held, "three", "wrong 3")
    second = await edit(held, "four", "wrong 4", step=2)
    third = await edit(held, "wrong 3", "three", step=3)
    assert "wrong 3" in first.for_model
    assert "wrong 4" in second.for_model and "wrong 3" not in second.for_model
    assert "fixes 1 and adds nothing new" in third.for_model
    await held.aftermath.close()


async def test_calls_of_one_step_tell_it_once(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    tool = held.tools["edit_file"]
    calls = [(call(held), "one", "wrong 1"), (call(held), "four", "wrong 4")]
    given = [tool.params.model_validate({"path": "a.txt", "old_text": a, "new_text": b}) for _, a, b in calls]
    for (context, _, _), params in zip(calls, given, strict=True):
        await tool.preview(params, context)
    outcomes = [await tool.run(params, context) for (context, _, _), params in zip(calls, given, strict=True)]
    everything = "".join(each.for_model for each in outcomes)
    assert everything.count("wrong 1") == 1 and everything.count("wrong 4") == 1
    await held.aftermath.close()


@pytest.mark.parametrize("status", ["noServer", "error", "starting"])
async def test_who_cannot_say_is_not_waited_for(tmp_path: Path, status: str) -> None:
    held, language = harness(tmp_path, status=status)
    outcome = await edit(held, "three", "wrong 3")
    assert outcome.for_model.startswith("Applied to a.txt") and "\n\n" not in outcome.for_model
    assert len(language.seen) == 1, "asked before the edit, and not after it"
    assert checks(held) == []


async def test_an_editor_that_never_answers_delays_no_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aftermath, "HEAD_START", 0.01)
    held, language = harness(tmp_path)
    language.hold = asyncio.Event()
    outcome = await edit(held, "three", "wrong 3")
    assert outcome.for_model == "Applied to a.txt: line 3."
    await held.aftermath.close()


@pytest.mark.parametrize(
    ("meanwhile", "told"), [("nothing", True), ("the user types", False), ("it may not be quoted", False)]
)
async def test_what_comes_too_late_for_the_result_is_told_later(tmp_path: Path, meanwhile: str, told: bool) -> None:
    held, language = harness(tmp_path)
    tool, context = held.tools["edit_file"], call(held)
    held.aftermath._wait = 0.05  # pyright: ignore[reportPrivateUsage]
    params = tool.params.model_validate({"path": "a.txt", "old_text": "three", "new_text": "wrong 3"})
    await tool.preview(params, context)
    await held.aftermath.ready([held.root / "a.txt"])
    language.hold = asyncio.Event()
    outcome = await tool.run(params, context)
    assert outcome.for_model == "Applied to a.txt: line 3."
    language.hold.set()
    await until(lambda: checks(held))
    assert [each.message for each in checks(held)[0].added] == ["wrong 3"]
    if meanwhile == "the user types":
        held.editor.put(held.root / "a.txt", "other\n")
    news = await held.aftermath.collect_late(lambda _: meanwhile != "it may not be quoted")
    assert news == (
        (
            "Checked a.txt: this change adds 1 error (line: severity: message):\n- 3: error: wrong 3 (toy)",
            "The model was told about findings that arrived after its edits: a.txt.",
        )
        if told
        else None
    )
    assert await held.aftermath.collect_late(lambda _: True) is None
    await held.aftermath.close()


async def test_what_the_result_told_is_not_told_later(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    assert "wrong 3" in (await edit(held, "three", "wrong 3")).for_model
    assert await held.aftermath.collect_late(lambda _: True) is None
    await held.aftermath.close()


@pytest.mark.parametrize("opened", [True, False])
async def test_a_file_that_moved_is_looked_at_where_it_went(tmp_path: Path, opened: bool) -> None:
    held, _ = harness(tmp_path, opened=opened)
    patch = "*** Update File: a.txt\n*** Move to: b.txt\n-three\n+wrong 3\n"
    outcome = await held.run("apply_patch", {"patch": patch}, call=call(held))
    assert "Checked b.txt: this change adds 1 error" in outcome.for_model and "3: error: wrong 3" in outcome.for_model
    assert [each.message for each in checks(held)[0].added] == ["wrong 3"]
    proposal = held.versions[-1]
    held.editor.open.clear()
    await held.proposals.undo(proposal.proposal_id, [proposal.files[0].hunks[0].hunk_id])
    await until(lambda: checks(held)[0].fixed)
    assert (checks(held)[0].added, checks(held)[0].fixed) == ([], 1)
    await held.aftermath.close()


async def test_what_the_user_types_is_not_the_edits(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    outcome = await edit(held, "three", "wrong 3")
    assert "wrong 3" in outcome.for_model
    path = held.root / "a.txt"
    held.editor.put(path, "wrong typed\n" + held.editor.open[path].text)
    held.overlay.notify_changed(path)
    await until(lambda: not held.aftermath._watches[path].task or held.aftermath._watches[path].task.done())  # pyright: ignore
    assert [each.message for each in checks(held)[0].added] == ["wrong 3"]
    second = await edit(held, "four", "wrong 4", step=2)
    assert "wrong 4" in second.for_model and "wrong typed" not in second.for_model
    await held.aftermath.close()


async def test_nothing_is_quoted_of_a_file_the_user_is_asked_about(tmp_path: Path) -> None:
    held, language = harness(tmp_path, opened=False)
    language.path = held.put(".env", "A=1\n")
    outcome = await edit(held, "A=1", "wrong=s3cret", path=".env")
    await until(lambda: checks(held))
    assert "s3cret" not in outcome.for_model
    await held.aftermath.close()


async def test_cancelled_while_it_waits_it_still_tells_that_the_edit_was_made(tmp_path: Path) -> None:
    held, language = harness(tmp_path)
    tool, context = held.tools["edit_file"], call(held)
    params = tool.params.model_validate({"path": "a.txt", "old_text": "three", "new_text": "wrong 3"})
    await tool.preview(params, context)
    await held.aftermath.ready([held.root / "a.txt"])
    language.hold = asyncio.Event()
    running = asyncio.create_task(tool.run(params, context))
    await until(lambda: held.on_disk("a.txt") == b"one\nwrong two\nwrong 3\nfour\n" and len(language.seen) > 1)
    running.cancel()
    assert (await running).for_model == "Applied to a.txt: line 3."
    await held.aftermath.close()


async def test_many_are_capped(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    outcome = await edit(held, "three\n", "".join(f"wrong {n}\n" for n in range(30)))
    assert outcome.for_model.count("\n- ") == 11
    assert outcome.for_model.endswith("- 20 more")
    await held.aftermath.close()


async def test_checks_are_no_other_version(tmp_path: Path) -> None:
    held, _ = harness(tmp_path)
    await edit(held, "three", "wrong 3")
    await until(lambda: checks(held))
    last, before = held.versions[-1], held.versions[-2]
    assert last.version == before.version
    assert last.model_copy(update={"files": []}) == before.model_copy(update={"files": []})
    await held.aftermath.close()
