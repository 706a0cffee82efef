"""`amanu run --record`, then `--replay`: the same output, without a service, a network or a key."""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from amanu.cli.run import main
from amanu.models.recording import load
from e2e.test_run_vendors import SCRIPT, TESTS, VENDORS
from support.cli_in_process import InProcessCli, Ran, fails
from support.cli_process import AMANU
from support.service_thread import serving
from support.strict_services.http import Fault, Script, Service
from support.warm_process import warm

FLAKY = [Fault("cut", after=1), *SCRIPT]
"""The first reply breaks off."""


@dataclass
class Runs:
    """`amanu run` over the shop, as it was in the beginning; in this process, unless it is to be one of its own."""

    shop: Path
    cli: InProcessCli

    def run(self, *arguments: str, apart: bool = False) -> Ran:
        shutil.rmtree(self.shop, ignore_errors=True)
        with as_file(files("amanu.cli") / "sample") as sample:
            shutil.copytree(sample, self.shop)
        argv = ["The tests fail. Mend it.", *arguments, "--workspace", str(self.shop)]
        argv += ["--allow", "@write(*.py)", "--allow", f"run_shell_command({TESTS})"]
        if not apart:
            return self.cli.run(main, *argv, cwd=self.shop.parent)
        done = subprocess.run(
            warm([*AMANU, "run", *argv]),
            cwd=self.shop.parent,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path / "shop", InProcessCli(monkeypatch, capsys))


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS[::2], ids=[model for _, model, _ in VENDORS[::2]])
def test_a_run_is_replayed(
    make: Callable[[Script], Service],
    model: str,
    variables: dict[str, str],
    tmp_path: Path,
    runs: Runs,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service, file = make(list(FLAKY)), tmp_path / "bug.ndjson"
    with serving(service) as url, monkeypatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value.format(url=url))
        first = runs.run("--model", model, "--record", str(file), apart=make is VENDORS[0][0])
    assert (first.returncode, service.refused, service.lint) == (0, [], []), first.stderr
    assert "All green." in first.stdout
    ends = [each.end for each in load(file).exchanges]
    assert ends == ["failed", "complete", "complete", "complete", "complete"]
    (key,) = (value for name, value in variables.items() if name.endswith("_KEY"))
    assert key not in file.read_text()
    again = runs.run("--replay", file.name)
    assert (again.returncode, again.stdout) == (0, first.stdout), again.stderr
    assert "not used" not in again.stderr
    assert "item.quantity" in (tmp_path / "shop" / "cart.py").read_text()
    other = runs.run("--replay", file.name, "--model", "openai:gpt-4.1")
    assert other.returncode == 1
    assert "Exchange 1 of the recording is for" in other.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--record", "there"), "already exists"),
        (("--record", "no/where"), "does not exist"),
        (("--record", "shop/r.ndjson"), "is in the workspace"),
        (("--replay", "nothing"), "cannot be read: No such file"),
        (("--replay", "there"), "is not a recording"),
        (("--replay", "there", "--record", "r"), "not allowed with argument"),
    ],
)
def test_what_cannot_be_recorded_or_replayed(tmp_path: Path, arguments: Sequence[str], said: str, runs: Runs) -> None:
    (tmp_path / "there").write_text(json.dumps({}))
    fails(runs.run("--model", "scripted:demo", *arguments), 2, said)
