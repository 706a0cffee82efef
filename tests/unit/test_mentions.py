"""What a prompt mentions, and what of it goes to the model."""

import asyncio
import re
import subprocess
from pathlib import Path

import pytest

from amanu.checks.proposal_checks import ProposalChecks
from amanu.context.attachments import _mentioned  # pyright: ignore[reportPrivateUsage]
from amanu.context.mentions import Mention, mentions, without_mentions
from amanu.context.slash_commands import ExpandedPrompt
from amanu.core.conversation import User
from amanu.session import mention_lookup
from amanu_protocol.base import LineRange
from amanu_protocol.items import Attachment, FileAttachment, Finding, SelectionAttachment
from amanu_protocol.requests import PromptSendParams
from support.required_programs import needs
from support.scripted_session import conversation, scripted_session, step
from support.tool_harness import ToolHarness


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @src/a.py, and @src/a.py.", [("path", "src/a.py")]),
        ('@"a b.txt" (@cc)', [("path", "a b.txt"), ("path", "cc")]),
        ("mail me@example.org or @@x or \\@x", []),
        ("@problems, @diff @terminal?", [("problems", ""), ("diff", ""), ("terminal", "")]),
        ("@diff/ @./diff @diffs", [("path", "diff/"), ("path", "./diff"), ("path", "diffs")]),
        ("@symbol:Cart.total, @symbol:a::b.", [("symbol", "Cart.total"), ("symbol", "a::b")]),
        ("@symbol:", [("path", "symbol")]),
        ("(@https://example.org/a?b=c(d)#e).", [("url", "https://example.org/a?b=c(d)#e")]),
        ("look at @app/(auth)/x.tsx please", [("path", "app/(auth)/x.tsx")]),
        ("(see @app/[[...slug]]/p(1).tsx).", [("path", "app/[[...slug]]/p(1).tsx")]),
        ("@app/@modal/x.tsx @node_modules/@types/n", [("path", "app/@modal/x.tsx"), ("path", "node_modules/@types/n")]),
        ("看@中文.py，谢谢", [("path", "中文.py")]),
        ("「@a.py」と@b.py。", [("path", "a.py"), ("path", "b.py")]),
        ("@my\\ dir/f.py", [("path", "my dir/f.py")]),
        ("@'my dir/f.py' @“my dir/f.py”", [("path", "my dir/f.py")]),
        ("**@a.py** [@b.py](c) @d.py…", [("path", "a.py"), ("path", "b.py"), ("path", "d.py")]),
        ("@C:\\x\\a.py: @file:///w/a.py!", [("path", "C:\\x\\a.py"), ("path", "file:///w/a.py")]),
        ('@app.get("/x") @Component({', [("path", "app.get"), ("path", "Component")]),
    ],
)
def test_mentions(text: str, found: list[tuple[str, str]]) -> None:
    assert [(each.kind, each.text) for each in mentions(text)] == found
    assert mentions(without_mentions(text)) == []


def test_a_mention_is_named_as_it_was_written() -> None:
    assert [str(each) for each in mentions("@a.py @symbol:b @diff @http://c")] == [
        "a.py",
        "@symbol:b",
        "@diff",
        "@http://c",
    ]
    assert Mention("diff", "").label == "diff"


async def check(tmp_path: Path, text: str, *parts: str, attachments: list[Attachment] | None = None) -> None:
    """The prompt as the model gets it has these parts, and nothing was left out."""
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / "src" / "inner").mkdir(parents=True)
        (d.root / "src" / "cart.py").write_text("class Cart:\n    async def total(self):\n        return 1\n")
        await d.trust()
        params = PromptSendParams(session_id="s", prompt_id="p1", text=text, attachments=attachments or [])
        await d.session.prompts.send(params, d.client)
        state = await d.ended()
        assert [item.text for item in state.items if item.kind == "notice"] == []
        heard = conversation(d.session)[0]
        assert isinstance(heard, User)
        assert [part for part in parts if part not in heard.text] == [], heard.text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("look at @src", ['<folder path="src">\ninner/\ncart.py (', "</folder>"]),
        ("look at @src/", ['<folder path="src/">\ninner/\ncart.py (']),
        ("mend @symbol:Cart", ['<symbol path="Cart">\n', "cart.py", "1: class Cart:"]),
        ("mend @symbol:Cart.total", ['<symbol path="Cart.total">\n', "2:     async def total(self):"]),
        ("read @https://example.org/x", ['<url path="https://example.org/x">\n(The user mentioned this address']),
    ],
)
async def test_what_is_mentioned_goes_along(tmp_path: Path, text: str, parts: list[str]) -> None:
    await check(tmp_path, text, *parts)


NAMES = (
    "app/(auth)/x.tsx",
    "中文.py",
    "my dir/f.py",
    "what's new.md",
    "a.py",
    "a,b.py",
    "f(1).txt",
    "目录/文件",
    "src/cart.py",
    "cafe\u0301.txt",
    "Makefile",
)


@pytest.mark.parametrize(
    ("text", "attached", "notice"),
    [
        ("@app/(auth)/x.tsx", ["app/(auth)/x.tsx"], None),
        ("(@app/(auth)/x.tsx).", ["app/(auth)/x.tsx"], None),
        ("@app/(auth), please", ["app/(auth)"], None),
        ("@app/(auth)/y.tsx", [], "Sent without app/(auth)/y.tsx: There is no file"),
        ("@app/(other)/x.tsx", [], "Sent without app/(other)/x.tsx: There is no file"),
        ("@app/[id]/x.tsx.", [], "Sent without app/[id]/x.tsx: There is no file"),
        ("@app/a,b.tsx", [], "Sent without app/a,b.tsx"),
        ("@f(2).txt", [], "Sent without f(2).txt"),
        ("看一下@中文.py，谢谢", ["中文.py"], None),
        ("看@src/cart.py的total函数", ["src/cart.py"], None),
        ("@src/cart.py를 봐", ["src/cart.py"], None),
        ("@src目录", ["src"], None),
        ("@目录/文件里的", ["目录/文件"], None),
        ("@目录/没有.py的", [], "Sent without 目录/没有.py"),
        ("@what's new.md, please", ["what's new.md"], None),
        ("@my dir/f.py: why?", ["my dir/f.py"], None),
        ("@my\\ dir/f.py", ["my dir/f.py"], None),
        ("@'my dir/f.py'", ["my dir/f.py"], None),
        ("@'my dir/g'", [], "Sent without my dir/g"),
        ("@a,b.py @f(1).txt?", ["a,b.py", "f(1).txt"], None),
        ("@a.py,@src/cart.py!", ["a.py", "src/cart.py"], None),
        ("@a.py(line 3) is wrong", ["a.py"], None),
        ("@src\\cart.py", ["src\\cart.py"], None),
        ("@types/node @alice @app.get('x') @expo/ui", [], None),
        ("@app/(auth)/nothing", [], "Sent without app/(auth)/nothing"),
        ("@app/[id]/nothing", [], "Sent without app/[id]/nothing"),
        ("@a.py؟ @中文.py। @src/cart.py—x", ["a.py", "中文.py", "src/cart.py"], None),
        ("@a.py👍", ["a.py"], None),
        ("@a.py's @src/'s", ["a.py", "src/"], None),
        ("@cafe\u0301.txt", ["cafe\u0301.txt"], None),
        ("@caf\u00e9.txt!", ["caf\u00e9.txt"], None),
        ("@file://{root}/a.py.", ["file://{root}/a.py"], None),
        ("@{root}/app/(auth)/x.tsx,", ["{root}/app/(auth)/x.tsx"], None),
        ("@Makefile-old and @srcs", [], None),
        (f"@{'x' * 300} @{'x' * 300}/y", [], None),
        ("@file:///a%00b", [], None),
    ],
)
async def test_a_path_ends_where_a_person_ends_it(
    tmp_path: Path, text: str, attached: list[str], notice: str | None
) -> None:
    async with scripted_session(tmp_path, step("I see.")) as d:
        text, attached = text.replace("{root}", str(d.root)), [path.replace("{root}", str(d.root)) for path in attached]
        for name in NAMES:
            (d.root / name).parent.mkdir(parents=True, exist_ok=True)
            (d.root / name).write_text("content\n")
        await d.prompt(text)
        state = await d.ended()
        heard = conversation(d.session)[0]
        assert isinstance(heard, User)
        assert re.findall('<(?:file|folder) path="([^"]+)">\\n(?!\\(not)', heard.text) == attached
        notices = [item.text for item in state.items if item.kind == "notice"]
        assert len(notices) == (notice is not None) and all(said.startswith(notice or "") for said in notices)


async def test_a_folder_can_be_attached_and_a_terminal_selected(tmp_path: Path) -> None:
    attachments: list[Attachment] = [
        FileAttachment(path="src"),
        SelectionAttachment(path="@terminal", lines=LineRange.numbered(1, 1), text="boom"),
    ]
    await check(tmp_path, "why @terminal", '<folder path="src">\ninner/', "boom", attachments=attachments)


@pytest.mark.parametrize("more_roots", [[], ["beside", "no repository"]])
async def test_the_working_trees_changes(tmp_path: Path, more_roots: list[str]) -> None:
    git = needs("git")
    async with scripted_session(tmp_path, step("I see."), more_roots=more_roots) as d:
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        for root in [d.root, *(tmp_path / name for name in more_roots[:1])]:
            (root / "notes.txt").write_text("one\n")
            for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
                subprocess.run([git, *arguments], cwd=root, check=True)
            (root / "notes.txt").write_text(f"{root.name}\n")
        await d.trust()
        await d.prompt("review @diff")
        await d.ended()
        heard = conversation(d.session)[0]
        assert isinstance(heard, User)
        assert '<diff path="diff">\n' in heard.text
        assert [name for name in ("work", *more_roots[:1]) if f"-one\n+{name}" not in heard.text] == [], heard.text


async def test_lines_are_counted_as_editors_count_them(tmp_path: Path) -> None:
    lines = FileAttachment(path="a.py", lines=LineRange.numbered(2, 2))
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / "a.py").write_text("one = 1\f\u2028\ntwo = 2\n")
        params = PromptSendParams(session_id="s", prompt_id="p1", text="look", attachments=[lines])
        await d.session.prompts.send(params, d.client)
        await d.ended()
        assert '<file path=\\"a.py lines 2-2\\">\\ntwo = 2\\n' in d.told()


async def test_problems_are_what_checkers_find_where_no_editor_can_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find(checks: ProposalChecks, path: Path) -> list[Finding]:
        return [Finding(lines=LineRange.numbered(2, 2), severity="error", message="wrong", source="toy")]

    monkeypatch.setattr(ProposalChecks, "find", find)
    edit = step("", {"tool": "edit_file", "arguments": {"path": "notes.txt", "old_text": "line 2", "new_text": "two"}})
    async with scripted_session(tmp_path, edit, step("Done."), step("I see."), mode="acceptEdits") as d:
        await d.prompt("do it", "p1")
        await d.over("p1")
        await d.prompt("mend @problems", "p2")
        await d.over("p2")
        assert "Checked: notes.txt\\nnotes.txt:2: error: wrong (toy)" in d.told()


@pytest.mark.parametrize("mention", ["@diff", "@problems", "@symbol:Cart", "@src"])
async def test_a_look_up_that_takes_too_long_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mention: str
) -> None:
    async def hang(look_up: mention_lookup.MentionLookup, name: str, **arguments: object) -> str:
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(mention_lookup.MentionLookup, "_run", hang)
    monkeypatch.setattr(mention_lookup, "SECONDS", 0.01)
    async with scripted_session(tmp_path, step("I see.")) as d:
        (d.root / "src").mkdir()
        await d.prompt(f"review {mention}")
        state = await d.ended()
        (notice,) = [item.text for item in state.items if item.kind == "notice"]
        assert notice == f"Sent without {mention.replace('@src', 'src')}: it took more than 0.01 seconds."
        heard = conversation(d.session)[0]
        assert isinstance(heard, User)
        assert "(not attached: it took more than 0.01 seconds.)" in heard.text


async def test_what_a_file_mentions_is_not_what_the_user_typed(tmp_path: Path) -> None:
    """A slash command's text of the workspace begins a longer path with the same letters."""
    harness = ToolHarness(tmp_path, {"a": "typed\n", "a,b/.env": "KEY=1\n"})
    prompt = ExpandedPrompt("See @a,b/.env and @a", mentioning="See @a,b/.env and @a", typed="@a")
    found = await _mentioned(prompt, [], harness.workspace, lambda subjects: [])
    assert [each.path for each in found if isinstance(each, FileAttachment)] == ["a"]
