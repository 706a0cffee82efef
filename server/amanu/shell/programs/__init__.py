"""The grammars of all programs (`HARMLESS`), one file per family."""

from collections.abc import Mapping

from amanu.shell.programs import binaries, git, listing, packages, search, system, text
from amanu.shell.spec import Judge

HARMLESS: Mapping[str, Judge] = {
    **text.PROGRAMS,
    **binaries.PROGRAMS,
    **listing.PROGRAMS,
    **search.PROGRAMS,
    **system.PROGRAMS,
    **packages.PROGRAMS,
    **git.PROGRAMS,
}
"""Program → its grammar, which says why a call is harmless or raises `NotHarmless`."""

STARTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("egrep", "fgrep"), ("grep",)),  # scripts, as of grep 3.8
    "tar": ("gzip", "bzip2", "xz", "lzma", "lzip", "lzop", "zstd", "compress"),
    **dict.fromkeys(("npm", "npx"), ("node",)),  # `#!/usr/bin/env node`
    **dict.fromkeys(("pip", "pip3", "lsb_release"), ("python3",)),
}
"""Programs with a grammar → programs that they start by name, found in PATH as the shell finds them."""
