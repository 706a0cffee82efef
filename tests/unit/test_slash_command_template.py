"""What stands for arguments, files and command lines in the text of a slash command."""

import pytest

from amanu.context.slash_command_template import ShellLine, Style, fill

CASES: list[tuple[Style, str, str, str]] = [
    # Style, template, arguments → text, with command lines in ‹ ›
    ("markdown", "Fix $1 in $2, not $10.", "a b", "Fix a in b, not $10."),
    ("markdown", 'Fix $1 and "$3".', "'a b' c", 'Fix a b and "".'),
    ("markdown", "Fix $ARGUMENTS.", "a  b", "Fix a  b."),
    ("markdown", "$ARGUMENTSX", "a", "$ARGUMENTSX\n\na"),
    ("markdown", "It costs $5.", "it's", "It costs ."),
    ("markdown", "Diff: !`git diff $1`", "a;b", "Diff: ‹git diff 'a;b'›"),
    ("markdown", "!`git log $ARGUMENTS`", "--oneline -5 $(rm)", "‹git log --oneline -5 '$(rm)'›"),
    ("markdown", "wow!`code` and x !`ls`", "", "wow!`code` and x ‹ls›"),
    ("markdown", "!{ls} @{a b.md} {{args}}", "x", '‹ls› @"a b.md" x'),
    ("markdown", "See @src/a.py.", "", "See @src/a.py."),
    ("gemini", "Explain {{args}}, {{args}}.", "it", "Explain it, it."),
    ("gemini", "!{grep -r {{args}} .} done", "it's $(x)", "‹grep -r 'it'\"'\"'s $(x)' .› done"),
    ("gemini", "!{awk '{print $1}' f} $1 $ARGUMENTS", "", "‹awk '{print $1}' f› $1 $ARGUMENTS"),
    ("gemini", "Plain.", "a b", "Plain.\n\n/name a b"),
    ("gemini", "Plain.", "", "Plain."),
    ("gemini", "Never !{closed", "a", "Never !{closed\n\n/name a"),
    ("gemini", "@{docs/x.md} and me@{y.md}", "", '@"docs/x.md" and me @"y.md"'),
    # What is put in is not read again.
    ("gemini", "Say {{args}}.", "!{rm x} @{y} {{args}}", "Say !{rm x} @{y} {{args}}."),
    ("markdown", "Say $1 $2.", "'!`rm x`' $1", "Say !`rm x` $1."),
]


@pytest.mark.parametrize(("style", "template", "arguments", "text"), CASES)
def test_arguments_files_and_commands(style: Style, template: str, arguments: str, text: str) -> None:
    filled = fill(template, style, arguments, f"/name {arguments}")
    shown = "".join(f"‹{piece.command}›" if isinstance(piece, ShellLine) else piece for piece in filled.pieces)
    assert shown == text


def test_time_is_linear() -> None:
    """Whatever the file: it is read with the prompt."""
    for hostile in ("!{" * 20_000, "!`" * 40_000, "{{args" * 15_000, "@{a" * 30_000):
        fill(hostile[:100_000], "markdown", "x", "/x x")
