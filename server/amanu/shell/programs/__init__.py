"""The grammars, by program."""

from collections.abc import Mapping

from amanu.shell.programs import binaries, git, listing, packages, search, system, text
from amanu.shell.uses import Judge

HARMLESS: Mapping[str, Judge] = {
    **text.PROGRAMS,
    **binaries.PROGRAMS,
    **listing.PROGRAMS,
    **search.PROGRAMS,
    **system.PROGRAMS,
    **packages.PROGRAMS,
    **git.PROGRAMS,
}
"""Program → says why a call of it is harmless, or raises `Asked`."""
