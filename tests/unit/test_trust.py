"""Folders and what is in them → whether they are trusted, and what the user is shown of a change."""

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from amanu.permissions.policy import unasked
from amanu.permissions.trust_store import MAX_DIFF_LINES, TrustStore
from amanu_protocol.errors import AmanuError
from amanu_protocol.requests import PromptSendParams, SessionCreateParams
from support.scripted_session import scripted_session, step
from support.session_client import Client, until

TREE = {
    "AGENTS.md": "Use tabs. See @docs/style.md.\n",
    "docs/style.md": "Short lines.\n",
    "sub/CLAUDE.md": "In sub.\n",
    ".amanu/config.toml": '[rules]\ndeny = ["@run"]\n',
    ".amanu/commands/look.md": "Look.\n",
    "eslint.config.js": "export default [];\n",
    "web/.eslintrc.cjs": "module.exports = {};\n",
    "pyproject.toml": "[tool.ruff]\n",
    "src/main.py": "pass\n",
}
ENABLED = {
    ".amanu/commands/look.md": "command",
    ".amanu/config.toml": "rules",
    "AGENTS.md": "memory",
    "docs/style.md": "memory",
    "sub/CLAUDE.md": "memory",
}


def write(root: Path, name: str, text: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        write(tmp_path / "work", name, text)
    return tmp_path / "work"


@pytest.fixture
def trust(tmp_path: Path) -> TrustStore:
    for each in ("config", "state"):
        (tmp_path / "amanu" / each).mkdir(parents=True)
    return again(tmp_path)


def again(tmp_path: Path) -> TrustStore:
    """As the next daemon has it."""
    home = tmp_path / "amanu"
    return TrustStore(home / "config" / "trust.json", home / "state" / "trust", unasked, [home])


def replaced(root: Path) -> None:
    root.rename(root.with_name("old"))
    shutil.copytree(root.with_name("old"), root)


def linked_out(root: Path) -> None:
    (root / "AGENTS.md").unlink()
    write(root.parent, "other.md", TREE["AGENTS.md"])
    (root / "AGENTS.md").symlink_to(root.parent / "other.md")


@pytest.mark.parametrize(
    ("change", "standing"),
    [
        (lambda root: None, "trusted"),
        (lambda root: write(root, "AGENTS.md", "Obey.\n"), "changed"),
        (lambda root: write(root, "docs/style.md", "Long lines.\n"), "changed"),  # imported
        (lambda root: write(root, "sub/CLAUDE.md", "Obey.\n"), "changed"),
        (lambda root: write(root, "GEMINI.md", "New.\n"), "changed"),
        (lambda root: write(root, ".amanu/config.toml", "[rules]\ndeny = []\n"), "changed"),
        (lambda root: write(root, ".amanu/commands/more.md", "More.\n"), "changed"),
        (lambda root: (root / ".amanu/config.toml").unlink(), "changed"),  # it forbade something
        (lambda root: (root / "AGENTS.md").unlink(), "trusted"),  # nothing is enabled by what is gone
        (lambda root: (root / ".amanu/commands/look.md").unlink(), "trusted"),
        (lambda root: write(root, "GEMINI.md", " \n"), "trusted"),  # says nothing
        (lambda root: write(root, "GEMINI.md", b"\0\xff"), "trusted"),  # is no text
        (lambda root: write(root, "pyproject.toml", "[tool.black]\n"), "trusted"),  # a checker's business
        (lambda root: write(root, "eslint.config.js", "evil()\n"), "trusted"),  # it runs in the sandbox
        (lambda root: write(root, "src/main.py", "import os\n"), "trusted"),
        (lambda root: os.utime(root / "AGENTS.md"), "trusted"),
        (replaced, "untrusted"),
        (linked_out, "trusted"),  # it is not read any more, whatever it says
    ],
)
@pytest.mark.parametrize("by", ["user", "editor", "older version"])
def test_what_changed_since(
    tmp_path: Path, root: Path, trust: TrustStore, change: Callable[[Path], object], standing: str, by: str
) -> None:
    declared = [str(root)] if by == "editor" else None
    if by == "user":
        trust.set(str(root), True)
    elif by == "older version":
        (tmp_path / "amanu/config/trust.json").write_text(json.dumps([str(root)]))
    assert trust.standing([str(root)], declared) == "trusted"
    change(root)
    assert again(tmp_path).standing([str(root)], declared) == standing


@pytest.mark.parametrize(
    ("words", "declared", "standing"),
    [
        ({}, None, "untrusted"),
        ({}, [], "untrusted"),
        ({}, ["a"], "untrusted"),  # all of them must be
        ({}, ["a", "b"], "trusted"),
        ({"a": True}, None, "untrusted"),
        ({"a": True, "b": True}, None, "trusted"),
        ({"a": True, "b": True}, ["a", "b"], "trusted"),
        ({"a": True, "b": True}, [], "untrusted"),  # the editor's no
        ({"a": True, "b": True}, ["a"], "untrusted"),
        ({"a": False}, ["a", "b"], "untrusted"),  # the user's no
        ({"a": True}, ["b"], "untrusted"),
        ({".": True}, None, "untrusted"),  # the folder above is another one
        ({"a": True, "b/below": True}, None, "untrusted"),
    ],
)
def test_who_has_a_say(
    tmp_path: Path, trust: TrustStore, words: dict[str, bool], declared: list[str] | None, standing: str
) -> None:
    for each in ("a", "b/below"):
        (tmp_path / "roots" / each).mkdir(parents=True)
    for each, word in words.items():
        trust.set(str(tmp_path / "roots" / each), word)
    roots = [str(tmp_path / "roots" / each) for each in ("a", "b")]
    editors = None if declared is None else [str(tmp_path / "roots" / each) for each in declared]
    assert again(tmp_path).standing(roots, editors) == standing
    assert trust.standing([], editors) == "untrusted"


def test_a_link_to_the_folder_is_the_folder(tmp_path: Path, root: Path, trust: TrustStore) -> None:
    (tmp_path / "link").symlink_to(root)
    trust.set(str(tmp_path / "link"), True)
    assert trust.standing([str(root)]) == trust.standing([str(tmp_path / "link")]) == "trusted"
    (tmp_path / "link").unlink()
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "other")
    assert trust.standing([str(tmp_path / "link")]) == "untrusted"


@pytest.mark.parametrize("pointer", ["commondir", "gitdir", "alternates"])
def test_git_cannot_pass_trust_on(tmp_path: Path, root: Path, trust: TrustStore, pointer: str) -> None:
    write(root, ".git/HEAD", "ref: refs/heads/main\n")
    trust.set(str(root), True)
    other = tmp_path / "other"
    match pointer:
        case "commondir":
            write(other, ".git/commondir", f"{root}/.git\n")
        case "gitdir":
            write(other, ".git", f"gitdir: {root}/.git\n")
        case _:
            write(other, ".git/objects/info/alternates", f"{root}/.git/objects\n")
    assert trust.standing([str(other)]) == "untrusted"


def test_what_is_shown_is_what_is_agreed_to(tmp_path: Path, root: Path, trust: TrustStore) -> None:
    first = trust.look(str(root))
    assert (first.state, {each.path: each.kind for each in first.enables}) == ("untrusted", ENABLED)
    assert {each.state for each in first.enables} == {"new"}
    write(root, "sub/CLAUDE.md", "Obey.\n")
    with pytest.raises(AmanuError) as caught:
        trust.set(str(root), True, first.digest)
    assert caught.value.kind == "trustChanged"
    assert trust.standing([str(root)]) == "untrusted"
    trust.set(str(root), True, trust.look(str(root)).digest)
    assert trust.look(str(root)).state == "trusted"

    write(root, "AGENTS.md", "Use tabs.\nHidden: \x1b]0;x\x07 \u202e\n")
    write(root, "GEMINI.md", "line\n" * 1000)
    (root / ".amanu/commands/look.md").unlink()
    shown = again(tmp_path).look(str(root))
    assert shown.state == "changed"
    found = {each.path: each for each in shown.enables}
    assert {path: each.state for path, each in found.items() if each.state != "same"} == {
        "AGENTS.md": "changed",
        "GEMINI.md": "new",
        "docs/style.md": "gone",  # nothing imports it any more
        ".amanu/commands/look.md": "gone",
    }
    assert (
        "-Use tabs. See @docs/style.md.\n+Use tabs.\n+Hidden: <U+001B>]0;x<U+0007> <U+202E>\n"
        in found["AGENTS.md"].diff
    )
    assert len(found["GEMINI.md"].diff.splitlines()) == MAX_DIFF_LINES + 1
    assert "-Look.\n" in found[".amanu/commands/look.md"].diff
    assert found["sub/CLAUDE.md"].diff == ""
    trust.set(str(root), True, shown.digest)
    assert again(tmp_path).standing([str(root)]) == "trusted"


def test_what_turns_up_in_a_deep_folder_counts_for_nothing(root: Path, trust: TrustStore) -> None:
    """A prompt does not look for it; who reads it asks, and who looks is shown it."""
    trust.set(str(root), True)
    write(root, "src/deep/AGENTS.md", "Obey.\n")
    assert trust.standing([str(root)]) == "trusted"
    assert not trust.covers([str(root)], root / "src/deep/AGENTS.md", b"Obey.\n")
    assert trust.covers([str(root)], root / "sub/CLAUDE.md", b"In sub.\n")
    assert not trust.covers([str(root)], root / "sub/CLAUDE.md", b"In sub!\n")
    assert not trust.covers([str(root)], root / "src/CLAUDE.md", b"In sub.\n")
    assert trust.look(str(root)).state == "changed"
    trust.set(str(root), False)
    assert not trust.covers([str(root)], root / "sub/CLAUDE.md", b"In sub.\n")


def test_what_the_user_reviewed_is_trusted(root: Path, trust: TrustStore) -> None:
    trust.set(str(root), True)
    write(root, "AGENTS.md", "Use blanks.\n")
    trust.on_reviewed_change([str(root)], root / "AGENTS.md", b"something else", b"Use blanks.\n")
    assert trust.standing([str(root)]) == "changed"
    trust.on_reviewed_change([str(root)], root / "AGENTS.md", TREE["AGENTS.md"].encode(), b"Use blanks.\n")
    trust.on_reviewed_change([str(root)], root / "GEMINI.md", b"", b"New.\n")
    write(root, "GEMINI.md", "New.\n")
    assert trust.standing([str(root)]) == "trusted"


def test_for_now_is_kept_nowhere(tmp_path: Path, root: Path, trust: TrustStore) -> None:
    trust.trust_for_now(str(root))
    assert trust.standing([str(root)], []) == "trusted"
    assert again(tmp_path).standing([str(root)]) == "untrusted"


def test_what_is_kept_is_the_users_own(tmp_path: Path, root: Path, trust: TrustStore) -> None:
    trust.set(str(root), True)
    kept = [tmp_path / "amanu/config/trust.json", *(tmp_path / "amanu/state/trust").iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    assert len(kept) == len(ENABLED) + 1
    trust.set(str(root), False)
    assert list((tmp_path / "amanu/state/trust").iterdir()) == []


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"folders": 1}', '{"folders": {"/x": {}}}', "7", "[" * 100_000], ids=lambda text: text[:9]
)
def test_a_damaged_file_trusts_nobody(tmp_path: Path, root: Path, trust: TrustStore, text: str) -> None:
    (tmp_path / "amanu/config/trust.json").write_text(text)
    for act in (lambda: trust.standing([str(root)]), lambda: trust.set(str(root), True)):
        with pytest.raises(AmanuError) as caught:
            act()
        assert caught.value.kind == "storageError"
    assert (tmp_path / "amanu/config/trust.json").read_text() == text


def test_a_file_that_cannot_be_read_trusts_nobody(tmp_path: Path, root: Path, trust: TrustStore) -> None:
    (tmp_path / "amanu/config/trust.json").mkdir()
    with pytest.raises(AmanuError, match="cannot be read"):
        trust.standing([str(root)])


async def test_a_session_asks_again(tmp_path: Path) -> None:
    """Content that changed between two prompts: the second goes out without it, and the session says so."""
    async with scripted_session(tmp_path, step("One."), step("Two."), step("Three.")) as d:
        write(d.root, "AGENTS.md", "Use tabs.\n")
        write(d.root, ".amanu/commands/look.md", "Look closely.\n")
        await d.trust()
        assert d.session.state.trusted
        write(d.root, "AGENTS.md", "Obey.\n")
        await d.prompt("/look", "p1")
        state = await d.over("p1")
        assert (state.trusted, state.trust_changed) == (False, True)
        assert "Obey." not in d.told() and "Look closely." not in d.told()
        await d.trust()
        assert (d.session.state.trusted, d.session.state.trust_changed) == (True, False)
        await d.prompt("/look", "p2")
        await d.over("p2")
        assert "Obey." in d.told() and "Look closely." in d.told()


async def test_the_last_editor_with_a_say(tmp_path: Path) -> None:
    async with scripted_session(tmp_path, step("One.")) as d:
        session, roots = d.session, (str(d.root),)
        for declared, trusted in [(roots, True), (None, True), ((), False), (None, False), (roots, True)]:
            await session.trust.refresh(Client(os.environ, trusted_roots=declared))
            assert session.state.trusted == trusted
        write(d.root, "AGENTS.md", "Obey.\n")
        made = SessionCreateParams(session_id="t", roots=list(roots), model_id=session.state.model_id)
        other = Client(os.environ, trusted_roots=roots)
        state = (await d.sessions.create(made, other)).state
        assert (state.trusted, state.trust_changed) == (False, True)
        await d.trust(False)
        second = await d.sessions.get("t")
        await second.prompts.send(PromptSendParams(session_id="t", prompt_id="p", text="go"), other)
        await until(second, lambda state: state.last_turn)
        assert (second.state.trusted, second.state.trust_changed) == (False, False)
