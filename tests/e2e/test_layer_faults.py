"""A sample of `support/layer_faults.py`: the boundaries between the phases in which changes come home. `make soak`
tries every moment."""

import pytest

from support.layer_faults import FileFault, survive
from support.required_programs import needs

KILLS = [
    # The change that the daemon was about to make. Before the decision is on record:
    FileFault("kill", at=r"os.rename .*/files/[0-9a-f]{64}$", since="command"),
    FileFault("kill", at=r"os.mkdir .*/s1/blobs$", since="command", mode="draft"),
    # When it is: the first change through the editor, the first on disk, the last of text.
    FileFault("kill", editor_at="saved"),
    FileFault("kill", at=r"os.rename .*/work/b\.txt", mode="draft", editor="none"),
    FileFault("kill", at=r"os.rename .*/work/\.x\.txt\.", elsewhere=True),
    # Changes that are no text: executable bits, a file that is replaced, one that is renamed, folders.
    FileFault("kill", at=r"os.chmod .*/run\.sh$", since="command", mode="acceptEdits"),
    FileFault("kill", at=r"os.rename .*/work/pic\.bin$", since="command", mode="auto"),
    FileFault("kill", at=r"os.rename .*/work/\.song\.bin\.", mode="draft", elsewhere=True),
    FileFault("kill", at=r"os.rmdir .*/work/hollow$", mode="draft"),
    # The repository.
    FileFault("kill", at=r"os.rename .*/\.git/refs/heads/main"),
    # Undo.
    FileFault("kill", at=r"os.rename .*/work/b\.txt", since="undo", mode="acceptEdits"),
]
FULL = [
    # The change from which on the disk was full.
    FileFault("full", at=r"os.link .*/\.git/index\.lock"),
    FileFault("full", at=r"os.link .*/d/sub/new\.txt", mode="draft"),
]


@pytest.mark.parametrize("fault", [*KILLS, *FULL], ids=str)
async def test_leaves_no_mix(fault: FileFault) -> None:
    needs("bwrap")
    assert (await survive(fault)).happened
