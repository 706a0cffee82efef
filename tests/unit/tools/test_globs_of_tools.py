"""Globs and includes as models write them: what is there as it is written comes first, and nothing that was not looked
at is said not to be there."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from amanu.core.tool import ToolError
from amanu.workspace.overlay import Overlay
from amanu.workspace.placed_globs import place
from amanu.workspace.search import Search
from amanu.workspace.workspace import Workspace
from support.required_programs import needs
from support.tool_harness import ToolHarness

NFD = unicodedata.normalize("NFD", "한글")
FILES: dict[str, str | bytes] = {
    "app/[id]/page.tsx": "right id\n",
    "app/i/page.tsx": "wrong i\n",
    "app/[...slug]/page.tsx": "right slug\n",
    "app/[[...all]]/page.tsx": "right all\n",
    "app/a/page.tsx": "wrong a\n",
    "app/(auth)/page.tsx": "right auth\n",
    "app/@modal/page.tsx": "right modal\n",
    "app/deep/[id]/edit.ts": "right deep\n",
    "app/deep/d/edit.ts": "wrong deep\n",
    "{x}.txt": "right x\n",
    "x.txt": "wrong x\n",
    "{a,b}.md": "right ab\n",
    "a.md": "wrong md\n",
    "[z].cfg": "right z\n",
    "z.cfg": "wrong z\n",
    "what?.rst": "right what\n",
    "whats.rst": "wrong what\n",
    "my dir/a.js": "right js\n",
    "src/a.py": "right py\n",
    "src/in/b.py": "right in\n",
    "src/in/b_test.py": "right test\n",
    "docs/src/c.py": "right doc\n",
    f"{NFD}/{NFD}.log": "right nfd\n",
    ".gitignore": "dist/\n",
    "dist/out.mjs": "right dist\n",
    "target/t.csv": "right t\n",
    "target/in/u.csv": "right u\n",
}


@pytest.fixture
def harness(tmp_path: Path) -> ToolHarness:
    made = ToolHarness(tmp_path / "root", FILES, ripgrep=needs("rg"))
    (made.root / "lnk").symlink_to("target")
    (made.root / "src" / "far").symlink_to(made.root / "target" / "in")
    (made.root / "lnk.csv").symlink_to("target/t.csv")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "s.csv").write_text("secret")
    (made.root / "out").symlink_to(tmp_path / "outside")
    return made


GLOBS = [
    ("app/[id]/page.tsx", "app/[id]/page.tsx"),
    ("app/[id]/*", "app/[id]/page.tsx"),
    ("app/[id]/**", "app/[id]/page.tsx"),
    ("./app/[id]/*.tsx", "app/[id]/page.tsx"),
    ("app/[id]", "app/[id]/page.tsx"),
    ("app/\\[id\\]/*", "app/[id]/page.tsx"),
    ("app/[...slug]/**/*.tsx", "app/[...slug]/page.tsx"),
    ("app/[[...all]]/*", "app/[[...all]]/page.tsx"),
    ("app/(auth)/*", "app/(auth)/page.tsx"),
    ("app/@modal/*", "app/@modal/page.tsx"),
    ("**/[id]/*.ts", "app/deep/[id]/edit.ts"),
    ("app/[ai]/*", "app/a/page.tsx app/i/page.tsx"),
    ("app/deep/[id]/edit.{ts,tsx}", "app/deep/[id]/edit.ts"),
    ("{x}.txt", "{x}.txt"),
    ("{a,b}.md", "{a,b}.md"),
    ("[z].cfg", "[z].cfg"),
    ("[zy].cfg", "z.cfg"),
    ("{root}/app/[id]/*", "app/[id]/page.tsx"),
    ("{root}/src/**/*.py", "src/a.py src/in/b.py src/in/b_test.py"),
    ("file://{root}/src/*.py", "src/a.py"),
    ("'src/*.py'", "src/a.py"),
    ("src\\*.py", "src/a.py"),
    ("src\\in\\*.py", "src/in/b.py src/in/b_test.py"),
    ("src/", "src/a.py src/in/b.py src/in/b_test.py"),
    ("src", "src/a.py src/in/b.py src/in/b_test.py"),
    ("src/../src/*.py", "src/a.py"),
    ("my dir/*.js", "my dir/a.js"),
    ("한글/*.log", f"{NFD}/{NFD}.log"),
    ("**/한글.log", f"{NFD}/{NFD}.log"),
    (f"{NFD}/*한*", f"{NFD}/{NFD}.log"),
    ("dist/*.mjs", "dist/out.mjs"),
    ("*.mjs", ""),
    ("lnk/*.csv", "lnk/t.csv"),
    ("lnk/**/*.csv", "lnk/in/u.csv lnk/t.csv"),
    ("{root}/lnk/in/*", "lnk/in/u.csv"),
    ("src/far/*", "src/far/u.csv"),
    ("lnk.csv", "lnk.csv"),
    ("*/*.csv", "target/t.csv"),
    ("l*/*.csv", ""),
    ("src/**/*.csv", ""),
    ("*.csv", "target/in/u.csv target/t.csv"),
]


def written(harness: ToolHarness, glob: str) -> str:
    return glob.replace("{root}", str(harness.root))


@pytest.mark.parametrize(("glob", "expected"), GLOBS)
async def test_glob(harness: ToolHarness, glob: str, expected: str) -> None:
    told = (await harness.run("glob", {"pattern": written(harness, glob)})).for_model
    assert [*filter(None, told.splitlines())] == ([*split(expected)] or [f"No file matches {glob}."])


def split(names: str) -> list[str]:
    return [name.replace("\0", " ") for name in names.replace("my dir", "my\0dir").split()]


@pytest.mark.parametrize(("glob", "expected"), [case for case in GLOBS if case[0] != "src"])
async def test_many_files(harness: ToolHarness, glob: str, expected: str) -> None:
    try:
        told = (await harness.run("read_many_files", {"paths": [written(harness, glob)]})).for_model
    except ToolError as error:
        told = str(error)
    if glob == "src/":
        assert "is a folder" in told
        return
    if glob.startswith(("'", "file:", "src/..")):  # a path as it was written
        assert "right py" in told
        return
    assert [line[4:-4] for line in told.splitlines() if line.startswith("--- ")] == split(expected)
    assert "not read" not in told


@pytest.mark.parametrize("pattern", ["out/*", "{root}/out/*.csv", "../outside/*", "out/s.csv", "{root}/../outside/*"])
@pytest.mark.parametrize("tool", ["glob", "read_many_files", "grep"])
async def test_no_glob_leads_out(harness: ToolHarness, tool: str, pattern: str) -> None:
    pattern = written(harness, pattern)
    arguments = {"glob": {"pattern": pattern}, "read_many_files": {"paths": [pattern]}}
    arguments["grep"] = {"pattern": "secret", "include": pattern}
    try:
        told = (await harness.run(tool, arguments[tool])).for_model
    except ToolError as error:
        told = str(error)
    assert "outside the workspace" in told or "o file matches" in told
    assert "s.csv" not in told.replace(pattern, "")


@pytest.mark.parametrize(
    "pattern", ["lnk/*.csv", "{root}/lnk/t.csv", "src/../lnk/*.csv", "링크/*.csv", "lnk\\t.csv", "lnk/[t].csv"]
)
async def test_rules_judge_what_a_glob_leads_to(harness: ToolHarness, pattern: str) -> None:
    (harness.root / unicodedata.normalize("NFD", "링크")).symlink_to("target")
    pattern = written(harness, pattern)
    globbed = await harness.preview("glob", {"pattern": pattern})
    assert "target" in [subject.text for subject in (globbed.subject, *globbed.extra_subjects)]
    read = await harness.preview("read_many_files", {"paths": [pattern]})
    assert read.subject.text == "target/t.csv"


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        *(("app/[id]/page.tsx", "app/[id]/page.tsx"), ("app/[id]/*", "app/[id]/page.tsx"), ("{x}.txt", "{x}.txt")),
        *(("app/[...slug]/", "app/[...slug]/page.tsx"), ("[z].cfg", "[z].cfg"), ("{a,b}.md", "{a,b}.md")),
        ("src/", "src/a.py src/in/b.py src/in/b_test.py docs/src/c.py"),
        ("./src", "src/a.py src/in/b.py src/in/b_test.py"),
        ("src", "src/a.py src/in/b.py src/in/b_test.py"),
        ("src/in", "src/in/b.py src/in/b_test.py"),
        ("in/", "src/in/b.py src/in/b_test.py target/in/u.csv"),
        ("{root}/src/in/*.py", "src/in/b.py src/in/b_test.py"),
        (".ts", "app/deep/[id]/edit.ts app/deep/d/edit.ts"),
        ("ts", "app/deep/[id]/edit.ts app/deep/d/edit.ts"),
        (".gitignore", ""),
        ("*.csv,*.js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.csv, *.js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.csv *.js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.csv;*.js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.csv|*.js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.(csv|js)", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.@(csv|js)", "my dir/a.js target/in/u.csv target/t.csv"),
        ("*.{csv, js}", "my dir/a.js target/in/u.csv target/t.csv"),
        ("**/*.{csv,js}", "my dir/a.js target/in/u.csv target/t.csv"),
        ("csv,js", "my dir/a.js target/in/u.csv target/t.csv"),
        ("src/**,*.js", "my dir/a.js src/a.py src/in/b.py src/in/b_test.py"),
        ("*.py,!*_test.py", "docs/src/c.py src/a.py src/in/b.py"),
        ("*.py,!src/**", "docs/src/c.py"),
        ("!*.{py,tsx,ts,md,cfg,rst,txt,log}", "my dir/a.js target/in/u.csv target/t.csv"),
        ("my dir/*.js", "my dir/a.js"),
        ("lnk/*.csv", "target/t.csv"),
        ("src\\in\\*.py", "src/in/b.py src/in/b_test.py"),
        ("한글/*", f"{NFD}/{NFD}.log"),
        ('"*.js"', "my dir/a.js"),
    ],
)
@pytest.mark.parametrize("engine", ["ripgrep", "scan"])
async def test_include(
    harness: ToolHarness, include: str, expected: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "scan":
        monkeypatch.setattr("amanu.workspace.search.find_ripgrep", lambda workspace: None)
    told = (await harness.run("grep", {"pattern": "right|wrong", "include": written(harness, include)})).for_model
    found = [line for line in told.splitlines() if not line.startswith(("1:", "Nothing matches"))]
    assert sorted(found) == sorted(split(expected))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"include": "*.none"}, "Nothing was searched: no file matches the include *.none."),
        ({"include": "app/[nope]/*"}, "Nothing was searched"),
        ({"include": "dist/*"}, "Nothing was searched"),
        ({"include": "*.py", "path": "target"}, "Nothing was searched"),
        ({"include": "*.csv", "path": "target/t.csv"}, "Nothing matches absent."),
        ({"include": "*.csv", "path": "target"}, "Nothing matches absent."),
        ({"include": "in/*.py", "path": "src"}, "Nothing matches absent."),
        ({"include": "src/in/*.py", "path": "src"}, "Nothing matches absent."),
    ],
)
async def test_an_include_that_fits_nothing_is_told(harness: ToolHarness, arguments: dict[str, str], told: str) -> None:
    assert (await harness.run("grep", {"pattern": "absent", **arguments})).for_model.startswith(told)


BIG = "filler\n" * (24 << 17) + "needle\n"


@pytest.mark.parametrize("engine", ["ripgrep", "scan"])
@pytest.mark.parametrize(
    ("files", "arguments", "told"),
    [
        (
            {"big.log": BIG, "b.py": ""},
            {},
            "Nothing matches needle.\n[1 file above 20 MB left out, which may match: big.log. ",
        ),
        ({"big.log": BIG, "a.py": "needle\n"}, {}, "a.py\n1: needle\n[1 file above 20 MB left out"),
        ({"big.log": BIG}, {"path": "big.log"}, "big.log\n3145729: needle\n"),
        ({"big.log": BIG}, {"include": "*.py"}, "Nothing was searched"),
        (
            {"x.db": b"needle\0", "y.txt": b"\0needle"},
            {},
            "Nothing matches needle.\n[2 binary files not searched: x.db, y.txt.]",
        ),
        (
            {"x.db": b"needle\0", "y.txt": b"\0needle"},
            {"path": "x.db"},
            "Nothing matches needle.\n[1 binary file not searched: x.db.]",
        ),
        (
            {"x.db": b"needle\0", "y.txt": b"\0needle"},
            {"include": "*.txt"},
            "Nothing matches needle.\n[1 binary file not searched: y.txt.]",
        ),
        ({"x.db": b"needle\0", "a.py": "needle\n"}, {}, "a.py\n1: needle\n"),
        (
            {f"{n}.bin": b"\0" for n in range(9)},
            {},
            "Nothing matches needle.\n[9 binary files not searched: 0.bin, 1.bin, 2.bin, 3.bin, 4.bin, ….]",
        ),
        ({"wide.txt": "other\n".encode("utf-16")}, {}, "Nothing matches needle."),
    ],
)
async def test_what_was_not_searched_is_named(
    tmp_path: Path,
    files: dict[str, str | bytes],
    arguments: dict[str, str],
    told: str,
    engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = needs("rg") if engine == "ripgrep" else None
    monkeypatch.setattr("amanu.workspace.search.find_ripgrep", lambda workspace: program)
    found = (await ToolHarness(tmp_path, files).run("grep", {"pattern": "needle", **arguments})).for_model
    assert found.startswith(told) and ("not searched" in found) == ("not searched" in told)


async def test_a_text_that_binary_data_ends_is_named(tmp_path: Path) -> None:
    held = ToolHarness(tmp_path, {"log.txt": b"needle\n" + b"x\n" * 100_000 + b"\0\nneedle\n"}, ripgrep=needs("rg"))
    told = (await held.run("grep", {"pattern": "needle"})).for_model
    assert told == "log.txt\n1: needle\n[log.txt: not searched to the end, which is binary.]\n"


async def test_of_several_roots_each_is_looked_in(tmp_path: Path) -> None:
    for name in ("web/app/[id]/a.ts", "api/app/i/a.ts", "api/src/b.ts"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    workspace = Workspace([tmp_path / "web", tmp_path / "api"], Overlay())
    for glob, expected in (
        ("app/[id]/*.ts", "web/app/[id]/a.ts api/app/i/a.ts"),
        ("web/app/[id]/*.ts", "web/app/[id]/a.ts"),
        ("api/**/*.ts", "api/app/i/a.ts api/src/b.ts"),
        (f"{tmp_path}/api/src/*", "api/src/b.ts"),
    ):
        search, listed = Search(workspace), dict[Path, Sequence[str]]()
        found = [
            placed.root / name for placed in place(workspace, glob) for name in await search.matching(placed, listed)
        ]
        assert [path.relative_to(tmp_path).as_posix() for path in dict.fromkeys(found)] == expected.split()


@pytest.mark.parametrize(
    ("ignore", "left_out"), [("[id]", "[id]"), ("[i]", "i"), ("./i/", "i"), ("{a,b}", "{a,b}"), ("*", "[id] i {a,b}")]
)
async def test_what_a_listing_leaves_out_is_a_name_first(tmp_path: Path, ignore: str, left_out: str) -> None:
    held = ToolHarness(tmp_path, {"[id]/x": "", "i/x": "", "{a,b}/x": ""})
    told = (await held.run("list_directory", {"ignore": [ignore]})).for_model
    assert {name for name in ("[id]", "i", "{a,b}") if f"{name}/\n" not in told} == {*left_out.split()}


async def test_a_glob_as_path_is_explained(harness: ToolHarness) -> None:
    with pytest.raises(ToolError, match="glob is given as include"):
        await harness.run("grep", {"pattern": "x", "path": "src/*.py"})
