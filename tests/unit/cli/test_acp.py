"""`amanu acp --setup`: what an ACP client opens in a terminal."""

import io
import os

import pytest

from amanu.cli.acp import main
from amanu.home import find_home
from amanu.models.credentials import Credentials


@pytest.mark.parametrize(
    ("answer", "code", "vendor"),
    [("1", 0, "anthropic"), ("3", 0, "gemini"), ("0", 2, None), ("", 2, None), ("x", 2, None)],
)
def test_a_key_is_stored_for_the_service_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, code: int, vendor: str | None
) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: answer)
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-secret\n"))
    assert main(["--setup"]) == code
    stored = [each.vendor for each in Credentials(find_home().make().auth).status(os.environ) if each.source == "file"]
    assert stored == ([] if vendor is None else [vendor])
    assert "sk-secret" not in "".join(capsys.readouterr())


@pytest.mark.parametrize(("argv", "code"), [(["--help"], 0), (["-h"], 0), (["--nonsense"], 2), (["--alone", "x"], 2)])
def test_usage(capsys: pytest.CaptureFixture[str], argv: list[str], code: int) -> None:
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == code
    out, err = capsys.readouterr()
    assert (out if code == 0 else err).startswith("usage: amanu acp")
