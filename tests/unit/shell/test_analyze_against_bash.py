"""What is read, against what bash makes of the same text: the words, and the commands that really run."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.command import Command, CommandContext
from amanu.shell.analyze import read
from support.command_workspace import workspace
from support.sweeps import examples

_END = "\1"
_RECORD = (
    "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\1' >&9; [[ $1 != p* ]]; }\n"
    'while IFS= read -r -d "" line <&8; do (eval "$line") </dev/null; printf "\\2\\0" >&9; done'
)
"""Programs are not found, but noted; those whose names begin with p fail."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> CommandContext:
    return workspace(tmp_path_factory.mktemp("bash"))


def bash(script: str, here: CommandContext) -> str:
    done = subprocess.run(
        ["bash", "-c", script], cwd=here.folder, env=dict(here.environment), capture_output=True, text=True, timeout=20
    )
    assert not done.stderr, done.stderr
    return done.stdout


PIECES = [
    "a",
    "b.c",
    "-x",
    "/",
    "~",
    "~/",
    "*",
    "?",
    "*.txt",
    "[ab]",
    "[!a]",
    "{",
    "}",
    ",",
    "..",
    "{a,b}",
    "{1..3}",
    "{,a}",
    "'",
    '"',
    "\\",
    "\\ ",
    "\\*",
    "' '",
    '" "',
    '"$"',
    "$",
    "$'\\n'",
    "$'\\x41'",
    "$'\\''",
    "$'\\101b'",
    "''",
    '""',
    "=",
    ":",
    "#",
    "!",
    "^",
    "%",
    "+",
    "@",
    "é",
    "😀",
    '"\\$\\`\\"\\\\\\a"',
    "'\\'",
    "\\\\",
    '"\\\na"',
    "x=~",
    "sub/",
    "$HOME",
    '"$HOME"',
    "$PWD",
    "${HOME}",
    "$((1+2))",
    "1",
    "01",
    "a\\\nb",
    "[",
    "]",
    "]]",
    "\\{",
    "'{a,b}'",
    "$$",
    '"$HOME $HOME"',
    '"$PWD  ${HOME}\t$HOME"',
]
WORD = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)


@settings(max_examples=examples(60, 30), deadline=None, derandomize=True)
@given(st.lists(WORD, min_size=10, max_size=30))
def test_words_are_what_bash_makes_of_them(here: CommandContext, candidates: list[str]) -> None:
    known: list[tuple[str, tuple[str | None, ...]]] = []
    for word in candidates:
        found = read(f"printf '%s\\0' x {word}", here)
        if found.unclear is None and len(found.commands) == 1 and None not in found.commands[0].words[2:]:
            known.append((word, found.commands[0].words[2:]))
    script = "\n".join(f"printf '%s\\0' x {word}\nprintf '\\1\\0'" for word, _ in known)
    output = bash(script, here).split("\0")[:-1]
    for word, expected in known:
        end = output.index(_END)
        assert tuple(output[:end]) == expected, word
        del output[: end + 1]


def test_most_words_are_known(here: CommandContext) -> None:
    known = [piece for piece in PIECES if read(f"x {piece}", here).unclear is None]
    assert len(known) > len(PIECES) / 2


ARGUMENT = st.sampled_from(
    [
        "a",
        "'a b'",
        '"a $x"',
        "$x",
        '"$x"',
        "*.txt",
        "{b,c}",
        "$(q1 a)",
        '"$(q2; p2)"',
        "`q3`",
        '"$(q4) $(p5)"',
        '"a`q4`  $x `p5` "',
        "~",
        "$((1+1))",
        "'$(q9)'",
        "\\$x",
        "#a",
        "a#b",
        "=",
        "{a",
        "!",
        "a=b",
        "[",
        "$y",
    ]
)
PROGRAM = st.sampled_from(
    [
        "p",
        "q",
        "pp",
        "qq",
        "'q'",
        "q\\\\",
        "x=1 q",
        "time q",
        "! p",
        "CI=1 p",
        "$x",
        "q >/dev/null",
        "q 2>&1",
        "env q",
        "x=2; q",
        "bash -c 'q5; q6 $0'",
        "test a && q",
    ]
)
SIMPLE = st.builds(lambda program, rest: " ".join([program, *rest]), PROGRAM, st.lists(ARGUMENT, max_size=3))


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    joined = st.builds(
        lambda left, operator, right: f"{left}{operator}{right}",
        inner,
        st.sampled_from(["; ", " && ", " || ", " | ", " |& ", "\n", " & wait\n", ";", "|", "&&", " &&\n", " # it's\n"]),
        inner,
    )
    wrapped = st.builds(
        str.format,
        st.sampled_from(
            [
                "({})",
                "{{ {}; }}",
                "if {0}; then {0}; else {0}; fi",
                "for x in q r; do {}; done",
                "while p; do {}; done",
                "case a in a) {};; esac",
                "until q; do {}; done",
                "x=$({}); q $x",
                "q <<E\n$({})\nE",
                "q <<'E'\n{}\nE",
                "{0} && {{ {0}; }}",
                "if p; then {}; fi",
                "[[ a == a ]] && {}",
            ]
        ),
        inner,
    )
    return joined | wrapped


@settings(max_examples=examples(40, 20), deadline=None, derandomize=True)
@given(st.lists(st.recursive(SIMPLE, _compound, max_leaves=5), min_size=5, max_size=15))
def test_what_really_runs_was_found(here: CommandContext, candidates: list[str]) -> None:
    lines = [(line, found) for line in candidates if (found := read(line, here)).unclear is None]
    ran = _run([line for line, _ in lines], here)
    for (line, found), commands in zip(lines, ran, strict=True):
        for each in commands:
            program = each[1:] if each[0] in ("env", "time") else each  # there is none to look through
            if program[0] != "bash":
                assert any(_fits(_called(command), program) for command in found.commands), (line, each, found)


def _run(lines: Sequence[str], here: CommandContext) -> list[list[list[str]]]:
    """For each line, the programs that bash would have started."""
    folder = here.folder.parent
    (folder / "lines").write_text("".join(f"{line}\0" for line in lines), "utf-8")
    subprocess.run(
        ["/bin/bash", "-c", f"{{ {_RECORD}\n}} 8<../lines 9>../ran"],
        cwd=here.folder,
        env={**here.environment, "PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
    )
    ran: list[list[list[str]]] = []
    for line in Path(folder / "ran").read_text("utf-8").split("\2\0")[:-1]:
        ran.append([each.split("\0")[:-1] for each in line.split("\1\0")[:-1]])
    return ran


def _called(command: Command) -> Sequence[str | None]:
    """Without the assignments before it."""
    return command.words[1:] if command.words[0] == "x=1" else command.words


def _fits(words: Sequence[str | None], argv: Sequence[str]) -> bool:
    """None stands for any number of words."""
    if not words:
        return not argv
    if words[0] is None:
        return any(_fits(words[1:], argv[count:]) for count in range(len(argv) + 1))
    return bool(argv) and words[0] == argv[0] and _fits(words[1:], argv[1:])


def test_what_runs_is_noted(here: CommandContext) -> None:
    assert _run(["q a; p 'b c' && q d", "q $(p e)"], here) == [[["q", "a"], ["p", "b c"]], [["p", "e"], ["q"]]]
