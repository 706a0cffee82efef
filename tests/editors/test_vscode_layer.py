"""Commands that nobody was asked about, in a real VS Code: what they changed is reviewed under what they printed, hunk
by hunk; a commit is asked about with its message; and unsaved text stays the user's."""

import subprocess
from pathlib import Path

import pytest

from editors.test_vscode_review import becomes, write
from support.required_programs import needs
from support.strict_services.http import Say, ToolUse
from support.vscode import (
    IN_VSCODE,
    SECONDS,
    answered,
    asked,
    open_chat,
    open_file,
    send,
    service,
    shoot,
    shows,
    until,
    workbench,
)

pytestmark = [pytest.mark.layers, *IN_VSCODE]

TIDY = """
from pathlib import Path

for name, lines in (("a.txt", (2, 16)), ("b.txt", (9,))):
    text = Path(name).read_text()
    for line in lines:
        text = text.replace(f"line {line}\\n", f"line {line}!\\n")
    Path(name).write_text(text)
    print(f"{name}: tidied {len(lines)}")
Path("c.txt").write_text("new\\n")
print("2 files tidied, c.txt written")
"""
COMMAND = "python3 tidy.py --width 120 --line-endings unix --strip-trailing-whitespace --report a.txt b.txt"


def text(*changed: int, of: int = 20) -> str:
    return "".join(f"line {n}{'!' if n in changed else ''}\n" for n in range(1, of + 1))


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def run(line: str) -> ToolUse:
    return ToolUse("run_shell_command", {"command": line})


async def test_what_a_command_changed_is_reviewed_and_its_commit_asked_about(lived_in: Path) -> None:
    needs("bwrap")
    folder = lived_in / "work"
    before = {"a.txt": text(), "b.txt": text(), "tidy.py": TIDY}
    for name, content in before.items():
        (folder / name).write_text(content)
    for line in ("init -q -b main", "config user.email a@b", "config user.name n", "add .", "commit -qm first"):
        git(folder, *line.split())
    script = [
        Say(text="I tidy up.", calls=[run(COMMAND)]),
        Say(text="I commit it.", calls=[run("git commit -qam 'Tidy up two files'")]),
        Say(text="All done."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await send(chat, "Tidy up and commit")
        card = chat.locator(".tool:has(.approval:visible)")
        await asked(chat)
        await shoot(page, "layer-1-review")
        assert (folder / "a.txt").read_text() == text() and not (folder / "c.txt").exists()

        # what it printed stands over what it changed, and nothing says that it was allowed
        await card.locator(".output", has_text="a.txt: tidied 2").wait_for(timeout=SECONDS)
        title = await card.locator(".title").inner_text()
        assert "python3 tidy.py" in title and title.endswith("3 files changed")
        assert "llowed" not in await card.inner_text()
        assert await card.locator("details.file").count() == 3

        # in a low window a question keeps its title in sight, whatever of it is looked at
        size = page.viewport_size
        await page.set_viewport_size({**size, "height": 640})
        await card.locator(".allow").scroll_into_view_if_needed()
        await shoot(page, "layer-1-low")
        top = (await chat.locator(".list").bounding_box())["y"]
        assert top <= (await card.locator(".title").bounding_box())["y"] < top + 20
        assert (await card.bounding_box())["y"] < top - 100
        await page.set_viewport_size(size)

        # one hunk is refused, the rest is taken
        await card.locator('.hunk[aria-label="Change at line 16"] .reject').click()
        await card.locator(".hunk.rejected").wait_for(timeout=SECONDS)
        await shoot(page, "layer-1-one-rejected")
        await card.locator(".allow", has_text="Accept the rest").click()
        await becomes(folder / "a.txt", text(2))
        await becomes(folder / "b.txt", text(9))
        await becomes(folder / "c.txt", "new\n")

        # the commit
        await chat.locator(".answer", has_text="I commit it").wait_for(timeout=SECONDS)
        allow = await asked(chat)
        await shoot(page, "layer-2-commit")
        await card.locator("*", has_text="commit: Tidy up two files").first.wait_for(timeout=SECONDS)
        assert "git commit -qam" in await card.locator(".title").inner_text()
        assert git(folder, "log", "--format=%s") == "first\n"
        await allow.click()
        await answered(chat, "All done")
        await shoot(page, "layer-3-done")
        assert git(folder, "log", "--format=%s") == "Tidy up two files\nfirst\n"
        assert git(folder, "status", "--porcelain") == "?? c.txt\n"
        told = served.requests[1].body.decode()
        assert "2 files tidied" in told and "1 of 2 changes applied" in told
        assert not served.refused


async def test_unsaved_text_is_seen_by_a_command_and_stays_the_user_s(lived_in: Path) -> None:
    needs("bwrap")
    folder = lived_in / "work"
    file = folder / "notes.txt"
    file.write_text(text())
    line = "grep -n typed notes.txt; sed -i 's/line 9$/line nine/' notes.txt"
    script = [Say(text="I change a line.", calls=[run(line)]), Say(text="Done with it.")]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await open_file(page, "notes.txt")
        await write(page, 1, " typed")
        await send(chat, "Change a line")
        card = chat.locator(".tool:has(.approval:visible)")
        allow = await asked(chat)
        await shoot(page, "layer-4-unsaved")
        await card.locator(".output", has_text="1:line 1 typed").wait_for(timeout=SECONDS)
        changed = await card.locator(".hunk :is(.added, .removed)").all_inner_texts()
        assert [each.strip() for each in changed] == ["− line 9", "+ line nine"]
        await write(page, 3, "\nadded")
        await card.locator(".where", has_text="line 10").wait_for(timeout=SECONDS)  # was line 9
        await allow.click()
        await answered(chat, "Done with it")
        for each in ("line nine", "line 1 typed", "added"):
            await shows(page, each)
        assert file.read_text() == text()  # what was unsaved stays so
        await shoot(page, "layer-5-applied")
        await page.keyboard.press("Control+s")
        mine = text().replace("line 1\n", "line 1 typed\n").replace("line 3\n", "line 3\nadded\n")
        await becomes(file, mine.replace("line 9\n", "line nine\n"))
        await until(page.locator('.cldr[class*="dirty-diff"]').count, 0)  # what is decided is marked no more
        assert not served.refused


async def test_a_draft_is_reviewed_once_when_the_model_is_done(lived_in: Path) -> None:
    """An edit, a failing test, a second edit, tests pass, one review; with the file dirty in the editor."""
    needs("bwrap")
    folder = lived_in / "work"
    file = folder / "notes.txt"
    file.write_text(text())
    edits = [{"old_string": "line 9\n", "new_string": "line nine\n"}]
    test = "grep -q 'line 16!' notes.txt && grep -c typed notes.txt"
    script = [
        Say(text="First a line.", calls=[ToolUse("edit_file", {"path": "notes.txt", "edits": edits})]),
        Say(text="", calls=[run(test)]),
        Say(text="", calls=[run("sed -i 's/line 16$/line 16!/' notes.txt; echo new > c.txt")]),
        Say(text="", calls=[run(test)]),
        Say(text="All of it is drafted."),
    ]
    async with service("anthropic", script) as (served, environment), workbench(lived_in, environment) as page:
        chat = await open_chat(page)
        await open_file(page, "notes.txt")
        await write(page, 1, " typed")
        await chat.locator("select.mode").select_option("draft")
        await send(chat, "Change it")
        card = chat.locator(".tool:has(.approval:visible)")
        allow = await asked(chat)
        await shoot(page, "draft-1-review")
        assert (await card.locator(".title").inner_text()).endswith("Apply the draft: 2 files")
        assert "Ran on the draft: `grep -q" in await card.inner_text()
        assert file.read_text() == text() and not (folder / "c.txt").exists()
        await allow.click()
        await answered(chat, "All of it is drafted")
        for each in ("line nine", "line 16!"):
            await shows(page, each)  # else it would be saved without
        mine = text().replace("line 1\n", "line 1 typed\n")
        await page.locator(".editor-instance .view-line").first.click()
        await page.keyboard.press("Control+s")
        await becomes(file, mine.replace("line 9\n", "line nine\n").replace("line 16\n", "line 16!\n"))
        await becomes(folder / "c.txt", "new\n")
        await shoot(page, "draft-2-applied")
        assert not served.refused
