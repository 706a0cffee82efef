"""What a mention may become while it is typed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amanu.context.editor import EditorContext
from amanu.session import mention_completion, path_index
from amanu.session.path_index import PathIndex
from amanu_protocol.requests import ActiveEditor, ContextChangedParams, MentionCompleteParams
from support.repository_changes import repository
from support.scripted_session import scripted_session

WORDS = ["@problems", "@diff", "@symbol:"]
LONG = "x" * 200


@pytest.mark.parametrize(
    ("text", "typed", "items"),
    [
        ("see @car", "@car", ["@src/cart.py", '@"docs/a cart.md"']),
        ("see @CaRt.p", "@CaRt.p", ["@src/cart.py"]),
        ("@sc", "@sc", ["@src/", "@src/cart.py", '@"docs/a cart.md"']),
        ("@src", "@src", ["@src/", "@src/cart.py"]),
        ('@"a ca', '@"a ca', ['@"docs/a cart.md"']),
        ("@di", "@di", ["@diff"]),
        ("@terminal", "@terminal", []),
        ("@", "@", [*WORDS, "@src/", "@docs/", "@notes.txt", "@src/cart.py", '@"docs/a cart.md"', f"@{LONG}"]),
        ("@symbol:Ca", "@symbol:Ca", ["@symbol:Cart"]),
        ("@symbol:tot", "@symbol:tot", ["@symbol:total"]),
        ("@symbol:", "@symbol:", []),
        (f"@{LONG}yz", f"@{LONG}yz", [f"@{LONG}"]),
        ("me@ex", "", []),
        ("see", "", []),
    ],
)
@pytest.mark.parametrize("session", [True, False])
async def test_completion(tmp_path: Path, text: str, typed: str, items: list[str], session: bool) -> None:
    async with scripted_session(tmp_path) as d:
        (d.root / "src").mkdir()
        (d.root / "docs").mkdir()
        (d.root / LONG).touch()
        (d.root / "src" / "cart.py").write_text("class Cart:\n    def total(self):\n        return 1\n")
        (d.root / "docs" / "a cart.md").write_text("class\n")
        where = {"session_id": "s"} if session else {"roots": [str(d.root)]}
        params = MentionCompleteParams.model_validate({"text": text, **where}, by_name=True)
        result = await d.sessions.completion.mention(params)
        assert (result.typed, [item.text for item in result.items]) == (typed, items)


@pytest.mark.parametrize(
    ("text", "nearest", "all_files"),
    [
        ("@", [*WORDS, "@a/", "@a.py", "@a/b.py", "@notes.txt", "@.gitignore"], [*WORDS, "@a/", "@a.py", "@a/c/"]),
        ("@py", ["@a.py", "@a/b.py"], ["@a.py", "@a/b.py", "@a/c/d.py"]),
        ("@a/c", [], ["@a/c/", "@a/c/d.py"]),
        ("@x", ["@notes.txt"], ["@notes.txt"]),
        ("@dif", ["@diff"], ["@diff"]),
    ],
)
async def test_the_nearest_files_are_offered_while_all_are_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, nearest: list[str], all_files: list[str]
) -> None:
    async with scripted_session(tmp_path) as d:
        for name in ("a.py", "a/b.py", "a/c/d.py", "dist/x.py"):
            (d.root / name).parent.mkdir(parents=True, exist_ok=True)
            (d.root / name).touch()
        (d.root / ".gitignore").write_text("dist/\n")
        monkeypatch.setattr(mention_completion, "FIRST_WAIT", 0)
        monkeypatch.setattr(mention_completion, "MAX_NEAREST", len([*d.root.iterdir(), *(d.root / "a").iterdir()]))
        params = MentionCompleteParams(text=text, roots=[str(d.root)])
        result = await d.sessions.completion.mention(params)
        assert (result.incomplete, [item.text for item in result.items]) == (True, nearest)
        while result.incomplete:
            result = await d.sessions.completion.mention(params)
        assert [item.text for item in result.items][: len(all_files)] == all_files


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("@", ["@b.py", "@ignored.py", '@"c c.py"', *WORDS, "@a.py", "@notes.txt"]),
        ("#", ["@b.py", "@ignored.py", '@"c c.py"', *WORDS, "@a.py", "@notes.txt"]),
        ("# heading #b", ["@b.py"]),
        ("#prob", ["@problems"]),
        ("C#b", []),
        ("@.py", ["@b.py", "@ignored.py", '@"c c.py"', "@a.py"]),
    ],
)
async def test_what_was_used_lately_comes_first(tmp_path: Path, text: str, items: list[str]) -> None:
    async with scripted_session(tmp_path) as d:
        for name in ("a.py", "b.py", "c c.py", "ignored.py", "never.py"):
            (d.root / name).touch()
        (d.root / ".git").mkdir()
        (d.root / ".gitignore").write_text("ignored.py\nnever.py\n.gitignore\n")
        editor = EditorContext()
        for name in ("ignored.py", "b.py"):
            editor = editor.changed(ContextChangedParams(active=ActiveEditor(path=str(d.root / name))))
        open_files = [str(d.root / "c c.py"), str(d.root / "b.py"), str(d.root / "gone.py"), str(tmp_path / "out.py")]
        editor = editor.changed(ContextChangedParams(active=ActiveEditor(), open_files=open_files))
        params = MentionCompleteParams(session_id="s", text=text)
        result = await d.sessions.completion.mention(params, editor)
        assert [item.text for item in result.items] == items


async def test_what_the_session_read_comes_before_the_rest(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        workspace = d.session.core.workspace
        for name in ("a.py", "ba.py", "cba.py"):
            (d.root / name).touch()
        for name in ("ba.py", "cba.py"):
            workspace.shown_files.show(await workspace.read(d.root / name))
        result = await d.sessions.completion.mention(MentionCompleteParams(session_id="s", text="@.py"))
        assert [item.text for item in result.items] == ["@cba.py", "@ba.py", "@a.py"]


async def test_what_git_has_otherwise_comes_before_the_rest(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository", "printf 'new\n' > d/changed")
    async with scripted_session(tmp_path) as d:
        params = MentionCompleteParams(text="@", roots=[str(root)])
        result = await d.sessions.completion.mention(params)
        while result.incomplete:
            result = await d.sessions.completion.mention(params)
        assert [item.text for item in result.items] == ["@d/changed", *WORDS, "@a", "@b", "@d/", "@d/c"]


async def test_each_is_of_a_kind(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        (d.root / "src").mkdir()
        (d.root / "src" / "a.py").touch()
        result = await d.sessions.completion.mention(MentionCompleteParams(session_id="s", text="@", terminal=True))
        assert {item.text: item.kind for item in result.items} == {
            "@problems": "problems",
            "@diff": "diff",
            "@terminal": "terminal",
            "@symbol:": "symbol",
            "@src/": "folder",
            "@notes.txt": "file",
            "@src/a.py": "file",
        }


async def test_a_client_that_can_send_its_terminal_is_offered_it(tmp_path: Path) -> None:
    async with scripted_session(tmp_path) as d:
        params = MentionCompleteParams(session_id="s", text="@te", terminal=True)
        assert [item.text for item in (await d.sessions.completion.mention(params)).items] == [
            "@terminal",
            "@notes.txt",
        ]


async def test_of_several_roots_only_what_is_in_them_is_offered(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, more_roots=["beside"]) as d:
        (tmp_path / "beside" / "src").mkdir()
        (tmp_path / "beside" / "src" / "a.py").touch()
        params = MentionCompleteParams(session_id="s", text="@")
        items = [item.text for item in (await d.sessions.completion.mention(params)).items]
        names = ["work/", "beside/", "beside/src/", "work/notes.txt", "beside/src/a.py"]
        assert sorted(items) == sorted([*WORDS, *(f"@{tmp_path}/{name}" for name in names)])


PATHS = ["src/", "src/cart.py", "src/cart_test.py", "docs/a cart.md", "README.md", "lib/scar/t.py"]


@pytest.mark.parametrize(
    ("paths", "query", "best"),
    [
        (PATHS, "cart", ["src/cart.py", "src/cart_test.py", "docs/a cart.md", "lib/scar/t.py"]),
        (["a" * 250, "a" * 240 + "/b"], "a" * 30 + "b", ["a" * 240 + "/b"]),
        (["lib/aab.py"], "bba", []),
        (["mcp/model.py", "session/mention_completion.py"], "mc", ["session/mention_completion.py", "mcp/model.py"]),
        (
            ["src/xmlChart.ts", "src/ModelChoice.ts", "amchoir"],
            "mc",
            ["src/ModelChoice.ts", "amchoir", "src/xmlChart.ts"],
        ),
        (["src/a/mention.py", "x/smentz.py"], "src/men", ["src/a/mention.py"]),
        (["server/mention_lookup.py", "docs/ideas.md"], "mentoin_lookup", ["server/mention_lookup.py"]),
        (["server/mention_lookup.py", "docs/ideas.md"], "mex", []),
    ],
    ids=[
        "as one types",
        "names with many ways to match",
        "another order",
        "initials",
        "camel case",
        "folder and name",
        "a typing error",
        "too short for one",
    ],
)
def test_the_best_come_first(paths: list[str], query: str, best: list[str]) -> None:
    assert PathIndex(paths).best(query) == best


@given(
    st.lists(st.text("abA1_./\u0130-", min_size=1, max_size=9), max_size=12),
    st.text("abA1_./-", max_size=3),
    st.integers(0, 3),
    st.integers(1, 6),
)
def test_they_are_those_that_all_compared_would_give(paths: list[str], query: str, used: int, limit: int) -> None:
    recent = list(dict.fromkeys(paths))[:used]
    index = PathIndex(dict.fromkeys(paths))
    for typed in (query[:1], query[:2], query):
        assert index.best(typed, recent, limit) == best_of_all(index, paths, typed.lower(), recent, limit)


def best_of_all(index: PathIndex, paths: Sequence[str], query: str, recent: Sequence[str], limit: int) -> list[str]:
    scores = {
        path: index._score(  # pyright: ignore[reportPrivateUsage]
            path, query, place, recent.index(path) if path in recent else path_index.NEVER_USED
        )
        for path in paths
        if (place := path_index._place(path, query)) is not None  # pyright: ignore[reportPrivateUsage]
    }
    return sorted(scores, key=lambda path: scores[path])[:limit]


def test_of_many_each_is_found() -> None:
    """They are looked at in pieces."""
    paths = [f"part{number % 7}/module_{number}.py" for number in range(20_000)]
    index = PathIndex(paths)
    for number in (0, 1, 4_999, 12_345, 19_999):
        path = f"part{number % 7}/module_{number}.py"
        for query in (f"module_{number}.p", f"{number % 7}mod_{number}.py", f"modlue_{number}"):
            assert path in index.best(query)
    assert index.best("\0") == index.best("zzz") == index.best("zzzz") == []


async def test_it_is_what_is_there_at_the_moment(tmp_path: Path) -> None:
    """A key may be answered from what was there at the one before."""
    async with scripted_session(tmp_path) as d:

        async def offered(*names: str) -> None:
            async with asyncio.timeout(50):
                while sorted(item.text for item in (await complete()).items) != sorted(f"@{name}" for name in names):
                    await asyncio.sleep(0.01)

        def complete():  # pyright: ignore[reportUnknownParameterType]
            return d.sessions.completion.mention(MentionCompleteParams(session_id="s", text="@cart"))

        (d.root / ".gitignore").write_text("*.log\n")
        (d.root / "cart.py").touch()
        await offered("cart.py")
        (d.root / "sub").mkdir()
        (d.root / "sub" / "cart_test.py").touch()
        (d.root / "cart.log").touch()
        await offered("cart.py", "sub/cart_test.py")
        (d.root / "sub").rename(d.root / "carts")
        await offered("cart.py", "carts/", "carts/cart_test.py")
        (d.root / "cart.py").unlink()
        await offered("carts/", "carts/cart_test.py")
        (d.root / ".gitignore").write_text("carts\n")
        await offered("cart.log")
