"""How much the tools read, store and show, and how long they wait."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ToolLimits:
    """The defaults are Gemini CLI's where it has one, since models are used to them."""

    read_lines: int = 2000
    line_characters: int = 2000
    many_files: int = 100
    many_characters: int = 200_000
    list_entries: int = 1000
    glob_files: int = 500
    grep_lines: int = 100
    locations: int = 100
    """Definitions or uses of a symbol."""
    symbols: int = 300
    findings: int = 100
    shell_inactivity: float = 300.0
    """Seconds without output after which a command is ended."""
    shell_total: float = 1800.0
    shell_read_only: float = 300.0
    """Seconds for a command without effects: it may run without approval, so not for long."""
    shell_model: int = 30_000
    """Characters of output the model gets: the beginning and the end."""
    shell_user: int = 30_000
    shell_live: int = 200_000
    """Characters shown while the command runs; after that, only the end result."""
    shell_stored: int = 16 << 20
    """Bytes stored as a blob."""
    shell_endless: int = 1 << 30
    """Bytes of output after which a command is considered endless and is ended."""
