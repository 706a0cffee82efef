"""`amanu run --record`, then `--replay`: the same output, without a service, a network or a key."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from amanu.models.recording import load
from e2e.test_run_vendors import SCRIPT, TESTS, VENDORS
from support.strict_services.http import Fault, Script, Service

FLAKY = [Fault("cut", after=1), *SCRIPT]
"""The first reply breaks off."""


async def run(shop: Path, *arguments: str, **environment: str) -> tuple[int | None, str, str]:
    shutil.rmtree(shop, ignore_errors=True)
    with as_file(files("amanu.cli") / "sample") as sample:
        shutil.copytree(sample, shop)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "amanu", "run", "The tests fail. Mend it.", *arguments),
        *("--workspace", str(shop), "--allow", "@write(*.py)", "--allow", f"run_shell_command({TESTS})"),
        env={**os.environ, **environment},
        cwd=shop.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        stdin=asyncio.subprocess.DEVNULL,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(("make", "model", "variables"), VENDORS[::2], ids=[model for _, model, _ in VENDORS[::2]])
async def test_a_run_is_replayed(
    make: Callable[[Script], Service], model: str, variables: dict[str, str], tmp_path: Path
) -> None:
    service = make(list(FLAKY))
    url = await service.start()
    environment = {name: value.format(url=url) for name, value in variables.items()}
    file = tmp_path / "bug.ndjson"
    code, out, err = await run(tmp_path / "shop", "--model", model, "--record", str(file), **environment)
    await service.stop()
    assert (code, service.refused, service.lint) == (0, [], []), err
    assert "All green." in out
    ends = [each.end for each in load(file).exchanges]
    assert ends == ["failed", "complete", "complete", "complete", "complete"]
    (key,) = (value for name, value in variables.items() if name.endswith("_KEY"))
    assert key not in file.read_text()
    again = await run(tmp_path / "shop", "--replay", file.name)
    assert again[:2] == (0, out), again[2]
    assert "not used" not in again[2]
    assert "item.quantity" in (tmp_path / "shop" / "cart.py").read_text()
    code, out, err = await run(tmp_path / "shop", "--replay", file.name, "--model", "openai:gpt-4.1")
    assert code == 1
    assert "Exchange 1 of the recording is for" in err


async def test_what_cannot_be_recorded_or_replayed(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    (tmp_path / "there").write_text(json.dumps({}))
    for arguments, said in (
        (("--record", "there"), "already exists"),
        (("--record", "no/where"), "does not exist"),
        (("--record", "shop/r.ndjson"), "is in the workspace"),
        (("--replay", "nothing"), "cannot be read: No such file"),
        (("--replay", "there"), "is not a recording"),
        (("--replay", "there", "--record", "r"), "not allowed with argument"),
    ):
        code, out, err = await run(shop, "--model", "scripted:demo", *arguments)
        assert (code, out) == (2, ""), err
        assert said in err
        assert "Traceback" not in err
