"""A hundred thousand new files are a row within a second of their command's end; `make soak` alone makes so many."""

import time
from pathlib import Path

import pytest

from amanu.tools.shell.layer_changes import LayerChanges
from amanu.tools.shell.layered_run import LayeredRun
from support.draft_session import DONE, decide_all, turn
from support.loop_time import loop_times
from support.required_programs import needs
from support.row_session import rows, states, undo
from support.scripted_session import scripted_session, step
from support.sweeps import WHOLE
from unit.test_session_layer import shell

pytestmark = [pytest.mark.layers, pytest.mark.skipif(not WHOLE, reason="make soak makes so many files")]

FOLDERS = 1000
MAKE = (
    f"mkdir big && cd big && seq -f 'd%g' {FOLDERS} | xargs mkdir && "
    "for d in d*; do (cd $d && seq 100 | xargs touch); done"
)
SECONDS = 1.0
"""Processor time, so that other processes do not count."""


@pytest.mark.timeout(900)
async def test_a_hundred_thousand_files_are_a_row_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs("bwrap")
    real, took = LayeredRun.read, list[float]()

    async def read(run: LayeredRun) -> LayerChanges:
        began = time.process_time()
        try:
            return await real(run)
        finally:
            took.append(time.process_time() - began)

    monkeypatch.setattr(LayeredRun, "read", read)
    async with scripted_session(tmp_path, step("", shell(MAKE, timeout_s=600)), DONE, mode="draft") as d:
        with loop_times() as times:
            await turn(d)
            (row,) = rows(d)
            assert row.title == f"new folder, {FOLDERS * 100:,} files, 0 bytes"
            await decide_all(d, "accept")
            assert states(d) == ["applied"] and (d.root / "big" / "d7" / "7").is_file()
            await undo(d)
            assert states(d) == ["reverted"] and not (d.root / "big").exists()
    assert took[0] < SECONDS and max(times) < 0.05, (took, max(times))
