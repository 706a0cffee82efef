"""Files that set-up leaves outside the clone."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUSTUP = """\
#!/bin/sh
echo asked >> "$(dirname "$0")/asked"
mkdir -p "${RUSTUP_HOME:-$HOME/.rustup}"
touch "${RUSTUP_HOME:-$HOME/.rustup}/settings.toml"
"""
PROBE = "probe: ; @$(PIP) --no-index --requirement /dev/null && echo $$UV_CACHE_DIR $$PIP_CACHE_DIR $$npm_config_cache"


def set_up(home: Path) -> list[Path]:
    """Run what set-up runs of pip, with a `rustc` of rustup's in the way. Returns the folders of the caches."""
    (home / "bin").mkdir()
    rustc = home / "bin" / "rustc"
    rustc.write_text(RUSTUP)
    rustc.chmod(0o755)
    own = ("CACHE", "RUSTUP", "MAKE", "npm_config_cache")
    environ = {name: value for name, value in os.environ.items() if not any(each in name for each in own)}
    environ |= {"HOME": str(home), "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    command = ["make", "--no-print-directory", f"--eval={PROBE}", "probe"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (home / "bin" / "asked").exists(), "pip asks rustc"
    (home / "bin" / "asked").unlink()
    return [Path(folder) for folder in done.stdout.split()]


def test_set_up_begins_nothing_in_the_home_folder(tmp_path: Path) -> None:
    assert set_up(tmp_path) == [ROOT / ".tools" / "caches" / name for name in ("uv", "pip", "npm")]
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")} == {"bin", "bin/rustc"}


def test_set_up_uses_the_caches_that_are_there(tmp_path: Path) -> None:
    caches = [tmp_path / ".cache" / "uv", tmp_path / ".cache" / "pip", tmp_path / ".npm"]
    for cache in caches:
        cache.mkdir(parents=True)
    assert set_up(tmp_path) == caches
