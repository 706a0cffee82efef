"""The dev container feature: its installer, with stand-ins for the programs that it runs."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from amanu import __version__

ROOT = Path(__file__).parents[2]
FEATURE = ROOT / ".ci" / "container" / "feature" / "amanu"
PYTHON = """\
#!/bin/sh
[ "$1 $2" = "-m venv" ] || exit 0
mkdir -p "$3/bin"
printf '#!/bin/sh\\necho "pip $*" >> "%s"\\n' "$LOG" > "$3/bin/pip"
printf '#!/bin/sh\\necho "amanu 1"\\n' > "$3/bin/amanu"
chmod +x "$3/bin/pip" "$3/bin/amanu"
"""
PIP = "pip install --no-cache-dir --disable-pip-version-check"


@pytest.mark.parametrize(
    ("wheel", "daemon", "code", "installed"),
    [
        ("", False, 1, []),
        ("/some/amanu.whl", True, 0, [f"{PIP} /some/amanu.whl"]),
        (
            "",
            True,
            0,
            [
                f"{PIP} --require-hashes --no-deps --only-binary=:all: --requirement daemon/requirements.txt",
                f"{PIP} --no-deps --no-index daemon/amanu-1-py3-none-any.whl",
            ],
        ),
    ],
)
def test_install(tmp_path: Path, wheel: str, daemon: bool, code: int, installed: list[str]) -> None:
    feature = tmp_path / "feature"
    shutil.copytree(FEATURE, feature)
    if daemon:
        (feature / "daemon").mkdir()
        for name in ("requirements.txt", "amanu-1-py3-none-any.whl"):
            (feature / "daemon" / name).touch()
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("git", "bwrap", "python3"):
        (programs / name).write_text(PYTHON if name == "python3" else "#!/bin/sh\n")
        (programs / name).chmod(0o755)
    log = tmp_path / "log"
    log.touch()
    environ = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "LOG": str(log),
        "WHEEL": wheel,
        "AMANU_PREFIX": str(tmp_path / "prefix"),
        "AMANU_BIN": str(programs),
    }
    done = subprocess.run([feature / "install.sh"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert log.read_text().splitlines() == installed
    assert done.stdout == ("amanu 1 is installed.\n" if code == 0 else "")
    assert ("make feature" in done.stderr) == (code == 1)


def test_the_feature_has_the_version_of_amanu() -> None:
    feature = json.loads((FEATURE / "devcontainer-feature.json").read_text("utf-8"))
    assert (feature["id"], feature["version"]) == (FEATURE.name, __version__)
