"""Recognize PowerShell, which the analysis does not support."""

import re

_CMDLET = re.compile(
    r"(?:^|[;|&({]\s*)(?:Get|Set|New|Remove|Add|Clear|Copy|Move|Rename|Invoke|Start|Stop|Test|Write|Read|Out|Select|Where|"
    r"ForEach|Sort|Measure|Import|Export|ConvertTo|ConvertFrom|Resolve|Join|Split|Enable|Disable|Install|Update)-"
    r"[A-Z][A-Za-z]+\b",
    re.IGNORECASE,
)
_VARIABLE = re.compile(r"\$env:\w|(?:^|;\s*)\$\w+\s*=\s|\[[A-Z][\w.]+\]::")
SHELLS = frozenset({"powershell", "pwsh", "powershell.exe", "pwsh.exe", "cmd", "cmd.exe"})

SENTENCE = "This is PowerShell, which Amanu does not understand."


def looks_like(line: str) -> bool:
    """Whether a line is clearly PowerShell: a cmdlet (`Get-ChildItem`), `$env:NAME`, `$x = …`, `[Type]::Member`."""
    return bool(_CMDLET.search(line) or _VARIABLE.search(line))
