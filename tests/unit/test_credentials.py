"""Keys: where they come from, how they are kept, and that they are never shown."""

import os
import stat
from pathlib import Path

import pytest

from amanu.models.credentials import Credentials
from amanu.text.redaction import MASK, Secrets
from amanu_protocol.errors import AmanuError

KEY = "my-very-own-key-0001"


@pytest.fixture
def auth(tmp_path: Path) -> Credentials:
    return Credentials(tmp_path / "config" / "auth.json")


FROM: list[tuple[str, dict[str, str], str | None, str | None]] = [
    ("nothing", {}, None, None),
    ("the file", {}, KEY, KEY),
    ("the environment", {"GEMINI_API_KEY": "env"}, None, "env"),
    ("the environment before the file", {"GEMINI_API_KEY": "env"}, KEY, "env"),
    ("the second variable", {"GOOGLE_API_KEY": "env2"}, None, "env2"),
    ("the first variable first", {"GOOGLE_API_KEY": "env2", "GEMINI_API_KEY": "env"}, None, "env"),
    ("a blank variable does not count", {"GEMINI_API_KEY": " "}, KEY, KEY),
    ("blanks around are cut", {"GEMINI_API_KEY": " env\n"}, None, "env"),
    ("another vendor's variable", {"OPENAI_API_KEY": "env"}, None, None),
]


@pytest.mark.parametrize(
    ("environment", "kept", "expected"), [each[1:] for each in FROM], ids=[each[0] for each in FROM]
)
def test_a_key_comes_from(
    auth: Credentials, environment: dict[str, str], kept: str | None, expected: str | None
) -> None:
    if kept:
        auth.set("gemini", kept)
    assert auth.key("gemini", environment) == expected


def test_the_file_is_private_and_whole(auth: Credentials, tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        auth.set("gemini", KEY)
    finally:
        os.umask(old)
    path = tmp_path / "config" / "auth.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["auth.json"]


def test_another_process_sees_the_change(auth: Credentials, tmp_path: Path) -> None:
    other = Credentials(tmp_path / "config" / "auth.json")
    auth.set("gemini", KEY)
    assert other.key("gemini", {}) == KEY
    auth.set("openai", "second-key-0002")
    auth.set("gemini", None)
    assert (other.key("gemini", {}), other.key("openai", {})) == (None, "second-key-0002")


def test_a_file_others_can_read_is_not_used(auth: Credentials, tmp_path: Path) -> None:
    auth.set("gemini", KEY)
    (tmp_path / "config" / "auth.json").chmod(0o644)
    with pytest.raises(AmanuError, match="can be read by others") as caught:
        Credentials(tmp_path / "config" / "auth.json").key("gemini", {})
    assert caught.value.data.hint and "chmod 600" in caught.value.data.hint


@pytest.mark.parametrize("text", [f'{{"keys": {{"gemini": "{KEY}"', "[]", "\xff"])
def test_a_broken_file_is_named_and_not_quoted(auth: Credentials, tmp_path: Path, text: str) -> None:
    auth.set("gemini", KEY)
    path = tmp_path / "config" / "auth.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(AmanuError, match=r"auth\.json") as caught:
        auth.key("gemini", {})
    assert KEY not in f"{caught.value!r} {caught.value.__cause__!r}"


@pytest.mark.parametrize(("vendor", "key"), [("gemini", ""), ("gemini", "two words"), ("gemini", "é"), ("../x", "k")])
def test_what_is_no_key_is_refused(auth: Credentials, vendor: str, key: str) -> None:
    with pytest.raises(AmanuError):
        auth.set(vendor, key)


def test_status_tells_where_and_never_what(auth: Credentials) -> None:
    auth.set("openai", KEY)
    auth.expect("mine", "MINE_KEY")
    found = {each.vendor: (each.source, each.variable) for each in auth.status({"GEMINI_API_KEY": "env-key-000"})}
    assert found == {
        "anthropic": ("none", "ANTHROPIC_API_KEY"),
        "bedrock": ("none", "AWS_BEARER_TOKEN_BEDROCK"),
        "foundry": ("none", "ANTHROPIC_FOUNDRY_API_KEY"),
        "gemini": ("environment", "GEMINI_API_KEY"),
        "google-openai": ("environment", "GEMINI_API_KEY"),
        "mine": ("none", "MINE_KEY"),
        "openai": ("file", None),
        "openrouter": ("none", "OPENROUTER_API_KEY"),
    }
    assert KEY not in repr(auth.status({})) + repr(auth)


def test_every_key_that_passes_through_is_hidden(tmp_path: Path) -> None:
    secrets = Secrets()
    auth = Credentials(tmp_path / "config" / "auth.json", secrets)
    auth.expect("mine", "MINE_KEY")
    auth.set("gemini", KEY)
    assert auth.key("openai", {"OPENAI_API_KEY": "an-odd-key-0002"}) == "an-odd-key-0002"
    auth.learn({"MINE_KEY": "mine-key-0003", "GITLAB_TOKEN": "a1b2c3d4e5f6g7h8", "POSTGRES_PASSWORD": "postgres"})
    Credentials(tmp_path / "config" / "auth.json").set("openrouter", "from-a-later-write-4")
    auth.learn({})
    told = f"{KEY} an-odd-key-0002 mine-key-0003 a1b2c3d4e5f6g7h8 from-a-later-write-4 postgres"
    assert secrets.mask_content(told) == f"{' '.join([MASK] * 5)} postgres"
