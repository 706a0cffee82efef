"""What a wrapper runs, told as the wrapper itself tells it: whichever word is its own, whichever is handed on."""

from pathlib import Path

import pytest

from amanu.core.rules import parse_rule
from amanu.core.tool import Subject
from amanu.permissions.policy import decide_all
from amanu.shell.analyze import read
from support.command_workspace import workspace

HARMLESS = [
    "echo a | xargs echo",
    "echo a | xargs -n1 echo",
    "echo a | xargs -I{} echo {}",
    "echo a | xargs --replace=X echo X",
    "echo a | xargs --max-lines=1 echo",
    "echo a | xargs -E end echo",
    "find sub -exec echo '{}' + -name x",
    "env -u FOO ls",
    "env -u LANG ls",
    "timeout -s KILL 1.5s ls",
    "chrt -o 0 ls",
    "taskset 0x1 ls",
    "setsid -w ls",
]
ASKED = [
    # `+` ends what find executes after `{}`, however that is written; what follows is find's own.
    "find sub -exec echo \\{} + -delete -exec echo x \\;",
    "find sub -exec echo '{'} + -delete -exec echo x \\;",
    'find sub -exec echo "{"} + -fprint out -exec echo x \\;',
    "find sub -exec echo $'{}' + -ok rm {} \\;",
    "find sub -exec echo {''} + -delete -exec echo x \\;",
    # So may a word that is not known before it runs.
    "find sub -exec echo {$unset} + -delete -exec echo x \\;",
    "find sub -exec echo $unset -delete \\;",
    'find sub -exec echo "$unset" -delete \\;',
    "find sub -exec echo $(cat sub/f) -delete \\;",
    "find sub -exec echo {} $(cat sub/f) \\;",
    # The last mark counts, and -n, -L undo it.
    "echo --output=x | xargs -I A -I B sort B",
    "echo --output=x | xargs -I A --replace=B sort B",
    "echo --output=x | xargs -I A -n 2 sort",
    "echo --output=x | xargs -I A -L 1 sort",
    # What looks like a mark is the value of another option.
    "echo --output=x | xargs -E -I sort",
    # These take a value in the same word only.
    "echo a | xargs --max-lines touch echo",
    "echo a | xargs --replace touch echo",
    # What a look is held by is taken away from it.
    "env -u GIT_OPTIONAL_LOCKS git --version",
    "env -uGIT_CONFIG_COUNT git --version",
    "env --unset=GIT_CONFIG_COUNT git --version",
    "env -u PAGER git --version",
    # Where its own operand is left out, the command is what stands there.
    "chrt -o touch echo x",
    "timeout touch echo x",
    # It goes on when the line has ended.
    "setsid -f sleep 50",
    "setsid --fork sleep 50",
]


@pytest.mark.parametrize("line", HARMLESS)
def test_it_is_not_asked_about(line: str, tmp_path: Path) -> None:
    assert read(line, workspace(tmp_path)).effect == "none"


@pytest.mark.parametrize("line", ASKED)
def test_it_is_asked_about(line: str, tmp_path: Path) -> None:
    assert read(line, workspace(tmp_path)).effect != "none"


@pytest.mark.parametrize(
    "line",
    [
        "env -C sub git push",
        "env --chdir sub git push",
        "env --chdir=sub -i git push",
        "env -S 'git push'",
        "env -S'git -C sub push' x",
        "sudo --user nobody git push",
        "flock --timeout 5 lock git push",
        "/usr/bin/time -o x git push",
        "timeout --weird 5 git push",
        "xargs --weird x git push",
        "setpriv --reuid 1 git push",
        "chrt -T 5 -P 5 -d 0 git push",
    ],
)
def test_no_wrapper_hides_what_is_denied(line: str, tmp_path: Path) -> None:
    reading = read(line, workspace(tmp_path))
    subjects = [Subject("run_shell_command", "run", each.text, command=each) for each in reading.commands]
    rules = [parse_rule("deny", "run_shell_command(git push *)", "user"), parse_rule("allow", "@run", "user")]
    assert decide_all(rules, subjects)[0].decision == "deny"
