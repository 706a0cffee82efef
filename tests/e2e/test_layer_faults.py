"""A sample of `support/layer_faults.py`: the moments at which a mix would show. `make soak` tries every moment."""

import pytest

from support.layer_faults import FileFault, survive
from support.required_programs import needs

KILLS: dict[str, tuple[str, str]] = {
    # What the daemon was about to do → whether the text, and the repository, are as before or as after.
    r"os.remove .*/dead/x\.txt": ("after", "before"),
    r"os.rename .*/pic\.bin$": ("after", "after"),
    r"os.rename .*/\.git/index$": ("after", "after"),
    r"os.rename .*/\.git/refs/heads/main": ("after", "after"),
}


@pytest.mark.parametrize("at", KILLS)
async def test_a_daemon_killed_while_changes_come_home_leaves_no_mix(at: str) -> None:
    needs("bwrap")
    outcome = await survive(FileFault("kill", at=at))
    assert outcome.happened and (outcome.text, outcome.git) == KILLS[at]


FULL: dict[str, tuple[str, str]] = {
    # From what on the disk was full, as above.
    r"os.rename .*/held/.*/3$": ("before", "before"),
    r"os.symlink .*/\.git/index\.lock": ("after", "before"),
}


@pytest.mark.parametrize("at", FULL)
async def test_a_full_disk_leaves_no_mix_and_is_told(at: str) -> None:
    needs("bwrap")
    outcome = await survive(FileFault("full", at=at, since="command"))
    assert outcome.happened and (outcome.text, outcome.git) == FULL[at]
