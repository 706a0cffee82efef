"""How much a tool reads, keeps, shows and waits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ToolLimits:
    """Defaults are Gemini CLI's where it has them: what models of today expect."""

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
    """Of a command that has no effect: nobody was asked whether it may run for long."""
    shell_model: int = 30_000
    """Characters of output the model gets: the beginning and the end."""
    shell_user: int = 30_000
    shell_live: int = 200_000
    """Characters shown while the command runs; after that, only the end result."""
    shell_stored: int = 16 << 20
    """Bytes kept as a blob."""
    shell_endless: int = 1 << 30
    """Bytes of output after which a command is taken for endless and ended."""
