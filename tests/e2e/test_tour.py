"""The tour of the editors (`scripted:tour`) makes sense in any folder, whatever the user decides."""

from pathlib import Path

import pytest

from support.cli_process import amanu


@pytest.mark.parametrize("files", [{}, {"main.c": "int main;\n", "amanu-tour.md": "the user's own\n"}])
def test_it_ends_well_with_every_change_accepted(files: dict[str, str], tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    done = amanu(
        "run", "Show me how you work.", "--model", "scripted:tour", "--allow", "write_file(amanu-tour.md)", cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "That is how it goes" in done.stdout
    assert "never forced" in (tmp_path / "amanu-tour.md").read_text()
    assert {each.name for each in tmp_path.iterdir()} == {*files, "amanu-tour.md"}


def test_it_goes_on_when_everything_is_refused(tmp_path: Path) -> None:
    done = amanu("run", "Show me how you work.", "--model", "scripted:tour", cwd=tmp_path)
    assert "That is how it goes" in done.stdout
    assert not list(tmp_path.iterdir())
