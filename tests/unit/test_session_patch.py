"""A patch of a session's changes, which `git apply` takes elsewhere."""

import shutil
import subprocess
from pathlib import Path

import pytest

from amanu.permissions import approvals as approval
from amanu.proposals.model import FILE_CHANGED
from amanu.workspace.git_patch import PatchFile, git_patch
from amanu_protocol.requests import ProposalPatchParams, ProposalPatchResult
from support.draft_session import decide_all
from support.required_programs import needs
from support.row_session import Tree, changed_by, fresh, look, over, rows, undo
from support.scripted_session import ScriptedSession


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "GUARD_SECONDS", 0.0)


# Two versions of some files -----------------------------------------------------------------------------

FILE, OTHER = PatchFile(b"one\ntwo\n"), PatchFile(b"one\n2\n")
BINARY, ODD = PatchFile(b"\0\1\2"), PatchFile(b"caf\xe9\n")
SIDES: dict[str, tuple[dict[str, PatchFile], dict[str, PatchFile], str]] = {
    "nothing": ({}, {}, ""),
    "a text": ({"a": FILE}, {"a": OTHER}, "edit a +1 -1"),
    "a new file": ({}, {"a/b": FILE}, "create a/b +2 -0"),
    "an empty file": ({}, {"a": PatchFile(b"")}, "create a +0 -0"),
    "a deleted file": ({"a": FILE}, {}, "delete a +0 -2"),
    "a moved file": ({"a/x": FILE}, {"b/y": FILE}, "rename a/x b/y +0 -0"),
    "a moved binary": ({"a/x": BINARY}, {"b/y": BINARY}, "rename a/x b/y +0 -0"),
    "a binary": ({"a": BINARY}, {"a": PatchFile(b"\0")}, "edit a +0 -0"),
    "a new binary": ({}, {"a": BINARY}, "create a +0 -0"),
    "another encoding": ({"a": ODD}, {"a": PatchFile(b"\xe9\n")}, "edit a +0 -0"),
    "text and binary": ({"a": FILE, "b": BINARY}, {"a": OTHER}, "edit a +1 -1, delete b +0 -0"),
    "text becomes binary": ({"a": FILE}, {"a": BINARY}, "edit a +0 -0"),
    "bits": ({"a": FILE}, {"a": PatchFile(FILE.data, executable=True)}, "edit a +0 -0"),
    "a link": ({}, {"a": PatchFile(b"../x", is_link=True)}, "create a +1 -0"),
    "another target": ({"a": PatchFile(b"x", is_link=True)}, {"a": PatchFile(b"y", is_link=True)}, "edit a +1 -1"),
    "a link for a file": ({"a": FILE}, {"a": PatchFile(b"y", is_link=True)}, "edit a +1 -2"),
    "no line end": ({"a": FILE}, {"a": PatchFile(b"one")}, "edit a +1 -2"),
    "carriage returns": ({"a": PatchFile(b"1\r\n2\r\n")}, {"a": PatchFile(b"1\r\n3\r\n")}, "edit a +1 -1"),
    "odd names": (
        {'"q" x': FILE},
        {'"q" x': OTHER, "n\nl": FILE, "ä": FILE},
        'edit "q" x +1 -1, create n\nl +2 -0, create ä +2 -0',
    ),
    "attributes": (
        {"b": FILE},
        {"b": OTHER, ".gitattributes": PatchFile(b"* binary\n")},
        "create .gitattributes +1 -0, edit b +1 -1",
    ),
    "lines like a header": ({"a": PatchFile(b"x\n")}, {"a": PatchFile(b"x\nrename from a/x\n")}, "edit a +1 -0"),
}


def _write(folder: Path, files: dict[str, PatchFile]) -> None:
    for name, file in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.is_link:
            path.symlink_to(file.data.decode())
        else:
            path.write_bytes(file.data)
            path.chmod(0o755 if file.executable else 0o644)


@pytest.mark.parametrize("name", SIDES)
def test_patch(tmp_path: Path, name: str) -> None:
    before, after, expected = SIDES[name]
    patch, changes = git_patch(before, after)
    said = [" ".join(filter(None, (each.change, each.path, each.new_path))) for each in changes]
    counted = [f"{text} +{each.added} -{each.removed}" for text, each in zip(said, changes, strict=True)]
    assert ", ".join(counted) == expected
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    _write(there, before)
    _write(here, after)
    _apply(there, patch)
    assert look(there) == look(here)


def _apply(folder: Path, patch: str) -> None:
    if patch:
        subprocess.run(["git", "apply", "-"], cwd=folder, input=patch.encode(), check=True)


# A session's changes --------------------------------------------------------------------------------------

LINES = {
    "text": "echo more >> notes.txt; rm sub/a.txt; echo new > new.txt",
    "moved": "mv notes.txt moved.txt",
    "moved and changed": "mv notes.txt moved.txt; echo more >> moved.txt",
    "binary": "printf 'new\\0' > pic.bin; rm sub/deep/b.bin; printf 'x\\0' > made.bin",
    "links": "ln -sf tool.sh link; ln -s pic.bin other",
    "a link for a file": "rm tool.sh; ln -s notes.txt tool.sh",
    "bits": "chmod +x tool.sh; chmod -x run.sh; chmod +x pic.bin",
    "bits and text": "echo more >> tool.sh; chmod +x tool.sh",
    "a new program": "printf '#!/bin/sh\\n' > go; chmod +x go",
    "encodings": "printf 'caf\\351\\n' > latin.txt; printf '\\377\\376a\\0' > wide.txt",
    "a removed folder": "rm -r sub",
    "many new files": "mkdir -p new/in; for n in $(seq 250); do echo $n > new/in/$n; done; ln -s in new/a",
}


async def _patch(d: ScriptedSession, *paths: str, **options: str) -> ProposalPatchResult:
    named = [str(d.root / path) for path in paths]
    return await d.session.patches.patch(
        ProposalPatchParams.model_validate({"sessionId": "s", "paths": named, **options})
    )


@pytest.mark.layers
@pytest.mark.parametrize("name", LINES)
async def test_a_patch_does_elsewhere_what_accepting_does_here(tmp_path: Path, name: str) -> None:
    needs("bwrap")
    async with changed_by(tmp_path, "draft", LINES[name]) as d:
        drafted = await _patch(d)
        there, elsewhere = fresh(tmp_path), tmp_path / "elsewhere"
        shutil.copytree(there, elsewhere, symlinks=True)
        _apply(there, drafted.patch)
        await decide_all(d, "accept")
        assert _without_folders(look(there)) == _without_folders(look(d.root))
        _apply(elsewhere, (await _patch(d, state="applied")).patch)
        assert _without_folders(look(elsewhere)) == _without_folders(look(d.root))
        assert drafted.left == [] and (await _patch(d)).files == []
        await undo(d)
        assert (await _patch(d, state="applied")).patch == ""


MANY = "mkdir -p d; for n in $(seq 250); do echo $n > d/$n; done"
SEQUENCES: dict[str, tuple[list[str], set[str]]] = {
    "changed twice": (["printf 'one\\0' > out.bin", "printf 'two\\0' > out.bin"], set()),
    "made and removed": (["printf 'one\\0' > out.bin", "rm out.bin"], set()),
    "moved and changed": (["mv pic.bin b.bin; printf 't\\0' > t.bin", "printf 'x\\0' > b.bin", "rm t.bin"], set()),
    "moved twice": (["mv pic.bin b.bin", "mv b.bin c.bin"], set()),
    "bits and back": (["chmod +x tool.sh", "chmod -x tool.sh"], set()),
    "text and bits": (["echo more >> tool.sh", "chmod +x tool.sh"], set()),
    "a folder for a file": (["printf 'o\\0' > out", "rm out", "mkdir out; printf 'x\\0' > out/x.bin"], set()),
    "a folder for a link": (["ln -s $PWD/sub d", "rm d", MANY], set()),
    "a folder that is no longer empty": (["mkdir made", "printf 'x\\0' > made/x.bin"], set()),
    "many files and one of them changed": ([MANY, "echo other > d/1"], {"d"}),
}


@pytest.mark.layers
@pytest.mark.parametrize("name", SEQUENCES)
async def test_a_patch_of_what_several_commands_did(tmp_path: Path, name: str) -> None:
    needs("bwrap")
    lines, left = SEQUENCES[name]
    async with changed_by(tmp_path, "acceptEdits", *lines) as d:
        await over(d)
        in_sub = sorted((d.root / "sub").iterdir())
        found = await _patch(d, state="applied")
        assert {Path(each.path).relative_to(d.root).as_posix() for each in found.left} == left
        there = fresh(tmp_path)
        _apply(there, found.patch)
        here = {name: text for name, text in look(d.root).items() if name.partition("/")[0] not in left}
        assert _without_folders(look(there)) == _without_folders(here)
        assert sorted((d.root / "sub").iterdir()) == in_sub, "nothing is written through a link"


@pytest.mark.layers
async def test_a_new_folder_that_the_user_has_changed_is_left_out(tmp_path: Path) -> None:
    needs("bwrap")
    async with changed_by(tmp_path, "acceptEdits", MANY) as d:
        await over(d)
        (d.root / "d/.env").write_text("SECRET=1\n")
        found = await _patch(d, state="applied")
        assert (found.patch, [each.reason for each in found.left]) == ("", [FILE_CHANGED])


@pytest.mark.layers
async def test_of_a_file_whose_last_content_is_lost_nothing_is_in_the_patch(tmp_path: Path) -> None:
    needs("bwrap")
    lines = "printf 'one\\0' > out.bin", "mv out.bin b.bin", "printf 'two\\0' > b.bin"
    async with changed_by(tmp_path, "acceptEdits", *lines) as d:
        await over(d)
        last = rows(d)[-1].after
        assert last is not None
        d.session.core.files.path(last.file_id).unlink()
        (d.root / "b.bin").write_bytes(b"the user's\0")
        found = await _patch(d, state="applied")
        assert (found.patch, [Path(each.path).name for each in found.left]) == ("", ["b.bin"])


def _without_folders(tree: Tree) -> Tree:
    """Git knows no empty folders."""
    return {name: text for name, text in tree.items() if text != "/"}


@pytest.mark.layers
async def test_some_paths_only(tmp_path: Path) -> None:
    needs("bwrap")
    async with changed_by(tmp_path, "draft", "rm -r sub; echo more >> notes.txt; chmod +x tool.sh") as d:
        for paths, expected in (
            (["notes.txt"], ["notes.txt"]),
            (["sub", "tool.sh"], ["sub/a.txt", "sub/deep/b.bin", "tool.sh"]),
            (["nothing"], []),
        ):
            found = await _patch(d, *paths)
            assert [Path(file.path).relative_to(d.root).as_posix() for file in found.files] == expected


@pytest.mark.layers
async def test_what_is_no_part_of_a_patch_is_said(tmp_path: Path) -> None:
    needs("bwrap")
    async with changed_by(
        tmp_path, "draft", "mkdir made; rmdir empty; printf 'x\\0' > made.bin; echo a > new.txt"
    ) as d:
        (d.root / "new.txt").write_text("the user's\n")
        binary = next(row.after for row in rows(d) if row.after is not None and row.after.file_id)
        d.session.core.files.path(binary.file_id).unlink()
        found = await _patch(d)
        assert {Path(each.path).name: each.reason for each in found.left} == {
            "made": "Git does not keep empty folders.",
            "made.bin": "Amanu does not have its content.",
            "new.txt": "A file of that name was made meanwhile.",
        }
        assert found.patch == ""


@pytest.mark.layers
async def test_paths_in_a_patch_begin_at_the_top_of_the_repository(tmp_path: Path) -> None:
    needs("bwrap")
    async with changed_by(tmp_path, "draft", "echo more >> notes.txt") as d:
        for line in ("init -q", "-c user.name=x -c user.email=x@x commit -q --allow-empty -m first"):
            subprocess.run(["git", *line.split()], cwd=d.root.parent, check=True)
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=d.root.parent, check=True, capture_output=True, text=True
        )
        found = await _patch(d)
        assert (found.base.folder, found.base.commit) == (str(d.root.parent), head.stdout.strip())
        assert f"+++ b/{d.root.name}/notes.txt\n" in found.patch
