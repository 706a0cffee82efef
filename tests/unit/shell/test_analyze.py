"""What is understood of command lines: every command in them, the words it gets, and what must be asked about."""

import gc
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.command import CommandContext, Reading
from amanu.shell import programs, syntax
from amanu.shell.analyze import read
from support.command_workspace import PATH, fake_judge, of, with_environment, words, workspace
from support.sweeps import examples
from support.unsafe_commands import ASKED


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> CommandContext:
    return workspace(tmp_path_factory.mktemp("read"))


@pytest.fixture(autouse=True)
def fake_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "judge", fake_judge)


@pytest.mark.parametrize("kind", ASKED)
def test_it_is_asked_about(kind: str, here: CommandContext) -> None:
    unasked = [line for line in ASKED[kind] if read(line, here).effect == "none"]
    assert unasked == []


def test_there_are_many_of_them() -> None:
    lines = [line for lines in ASKED.values() for line in lines]
    assert len(set(lines)) >= 300


NOTHING = [
    "ulimit",
    "ulimit -a",
    "ulimit -Sn",
    "umask",
    "umask -S",
    "ls",
    "ls -la",
    "ls -l | head -5",
    "git status && git log",
    "cat a.txt; wc b.txt",
    "ls 2>/dev/null",
    "ls 2>&1 | head",
    "ls > /dev/null 2>&1",
    "ls &>/dev/null",
    "cat < a.txt",
    "grep x <<< 'a b'",
    "cat <<EOF\nhi\nEOF",
    "cat <<'EOF'\n$(touch x)\nEOF",
    "cat <<EOF\ncost: 5$ \\$(touch x) \\`touch x\\`\nEOF",
    'echo "$(git status)"',
    "echo `ls`",
    "echo '$(touch x)'",
    'echo "it\'s"',
    'grep "x$" a.txt',
    "grep 'a|b' a.txt",
    "CI=1 ls",
    "LANG=C.UTF-8 TZ=Europe/Berlin date",
    "env CI=1 git status",
    "timeout 5 ls",
    "timeout -k 1 5s git log",
    "nice -n 5 ls",
    "time ls",
    "! ls",
    "(ls; cat a.txt)",
    "{ ls; }",
    "cd sub && ls",
    "cd ./sub; pwd",
    "if [ -f a.txt ]; then cat a.txt; else ls; fi",
    'for f in a.txt b.txt; do cat "$f"; done',
    "x=1; echo $x",
    "for f in *.txt; do wc -l $f; done",
    '[ -n "$x" ] && echo yes',
    '[[ "$x" == a* ]] && ls',
    "[[ 1 -lt 2 ]]",
    "test -d sub",
    "case $x in a|b) ls;; *) cat a.txt;; esac",
    'while read -r line; do echo "$line"; done < a.txt',
    "ls | xargs cat",
    "find . -exec cat {} \\;",
    "find . -name '*.txt' -exec grep -l x {} +",
    "bash -c 'ls; git status'",
    "sh -c 'ls | head'",
    "echo $((1 + 2))",
    "x=3; echo $((x * 2))",
    "echo ${x:-none} ${#x} ${x%.txt}",
    "set -e; ls",
    "set -euo pipefail; ls",
    "true",
    ":",
    "ls & wait",
    "command -v git",
    "type ls",
    "printf '%s\\n' a b",
    "printf 'at 100%%\\n'",
    "pwd",
    "ls # a comment",
    "# only\nls",
    "ls \\\n  -l \\\n  -a",
    "export CI=1; ls",
    'x=$(ls); echo "$x"',
    "/bin/ls",
    "/usr/bin/git status",
    "cat <<EOF | grep x\na\nEOF",
    "cat - <<'EOF'\n$(touch x)\nEOF",
    "cat -  <<EOF | grep x\na\nEOF\nls",
    "cd sub && ls | cat - <<EOF\na\nEOF",
    "cat -<<EOF\na\nEOF",
    "ls; ls; ls",
    "",
    "echo {a,b} ~ $HOME",
    "until ls; do cat a.txt; done",
    "diff=1; echo $diff",
    "cat <(ls)",
    "cat <(sort a.txt) <(sort b.txt)",
    'while read -r x; do echo "$x"; done < <(ls)',
    "exit 1",
    "ls || exit 1",
    "time -p ls",
    "if ls; then cd sub; ls; fi",
    "(cd sub && ls); ls",
    "echo a#b",
    "ls -- -x",
    "echo \\$x \\`",
    'echo "a\nb"',
    "ls\n\nls\n",
    "GIT_PAGER=cat git log",
    "PAGER= GIT_TERMINAL_PROMPT=0 git log",
    "export PAGER=cat; git log",
    "grep -rn x --include=*.py",
    "ls & wait $!; jobs -l",
    'echo "$(git status) $(date +%F)"',
    "wait -n",
    "x=3; echo $((x - -1)) $((x == 1))",
    "printf '%5.2f %(%F)T' 1",
]


@pytest.mark.parametrize("line", NOTHING)
def test_it_has_no_effect(line: str, here: CommandContext) -> None:
    found = read(line, here)
    assert (found.unclear, found.effect) == (None, "none"), found


FOUND: list[tuple[str, list[tuple[str | None, ...]]]] = [
    ("a b; c && d || e | f & g", [("a", "b"), ("c",), ("d",), ("e",), ("f",), ("g",)]),
    ("a 'b c' \"d e\" f\\ g $'h\\n'", [("a", "b c", "d e", "f g", "h\n")]),
    ("a $(b `c`)", [("c",), ("b", None), ("a", None)]),
    ('a "x$(b)y" $z', [("b",), ("a", None, None)]),
    ("x=ls; $x -l", [("ls", "-l")]),
    ("x=1; x=$(b); a $x", [("b",), ("a", None)]),
    ("for i in 1 2; do a $i; done", [("a", "1"), ("a", "2")]),
    ("if x; then y=1; fi; a $y", [("x",), ("a", None)]),
    ("y=1; if x; then y=1; fi; a $y", [("x",), ("a", "1")]),
    ("y=1; (y=2); a $y", [("a", "1")]),
    ("y=1; while x; do y=2; done; a $y", [("x",), ("a", None)]),
    ("timeout 5 nice -n 3 env CI=1 a b", [("a", "b")]),
    ("env A=1 a b", [("A=1", "a", "b")]),
    ("LD_PRELOAD=x a", [("LD_PRELOAD=x", "a")]),
    ("B=2 A=$b a", [("B=2", None, "a")]),
    ("a | xargs -n 1 b c", [("a",), ("b", "c", None)]),
    ("a | xargs -I% b x%y z", [("a",), ("b", None, "z")]),
    ("bash -c 'a; b \"$1\"' x y", [("a",), ("b", None)]),
    (
        "find . -name x -exec a {} b \\; -print",
        [("a", None, "b"), ("find", ".", "-name", "x", "-exec", "a", "{}", "b", ";", "-print")],
    ),
    ("find . -exec a {} +", [("a", None), ("find", ".", "-exec", "a", "{}", "+")]),
    ("a > x 2>> y < a.txt", [(">", "x"), (">", "y"), ("<", "a.txt"), ("a",)]),
    ("a {b,c}d {1..3}", [("a", "bd", "cd", "1", "2", "3")]),
    ("a *.txt sub/* nothing* s?b", [("a", "a.txt", "b.txt", "sub/c.txt", "nothing*", "sub")]),
    ("a '*.txt' \\*.txt \"{a,b}\"", [("a", "*.txt", "*.txt", "{a,b}")]),
    ("cd sub; a *", [("cd", "sub"), ("a", "c.txt")]),
    ("sudo -u me a b", [("a", "b"), ("sudo", "-u", "me", "a", "b")]),
    ("eval 'a b'", [("a", "b"), ("eval", "a b")]),
    ("a <<E\n$(b)\nE\nc", [("b",), ("a",), ("c",)]),
    ("X=1 a 'b' - <<E\n$(c)\nE\nd", [("c",), ("X=1", "a", "b", "-"), ("d",)]),
    ("f() { a; }; b", [("a",), ("b",)]),
    ("a ( b; c", [("b",), ("c",)]),
    ("PATH=x", [("PATH=x",)]),
    ("export A=1 B=$c", [("export", "A=1", None)]),
    ("[ -f x ] && a", [("[", "-f", "x", "]"), ("a",)]),
    ('x=-v; a $x; a "$x"y', [("a", "-v"), ("a", "-vy")]),
    ("x='a b'; a $x \"$x\"", [("a", None, "a b")]),
    ("a x=~ x=~/y ~ '~' ~x a~", [("a", None, None, "HOME", "~", None, "a~")]),
    ("time a && ! b", [("a",), ("b",)]),
    ("a ~'' ~\"\"/x {1..''3} {~,b}'' a'' $''b", [("a", None, None, None, None, "a", "b")]),
    ('a "$HOME $HOME"', [("a", "HOME HOME")]),
]


@pytest.mark.parametrize(("line", "expected"), FOUND)
def test_every_command_is_found(line: str, expected: list[tuple[str | None, ...]], here: CommandContext) -> None:
    home = here.environment["HOME"]
    expected = [tuple(word and word.replace("HOME", home) for word in each) for each in expected]
    assert words(read(line, here)) == expected


RUIN = [
    "rm -rf /",
    "rm -r -f /",
    "rm -fr /",
    "rm --recursive --force /",
    "rm --rec /",
    "rm -Rf /",
    "rm -rfv -- /",
    "rm -rf //",
    "rm -rf /.",
    "rm -rf /*",
    "rm -rf ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    'rm -rf "$HOME"',
    "rm -rf $HOME/",
    "rm -rf ${HOME}",
    "rm -rf ${HOME}/*",
    "rm -rf .",
    "rm -rf ./",
    "rm -rf ..",
    "rm -rf ../",
    "rm -rf *",
    "rm -rf ./*",
    "rm -rf $PWD",
    'rm -rf "$PWD"/*',
    "rm -rf /etc",
    "rm -rf /usr/",
    "rm -rf /home",
    "rm -rf a.txt /",
    "rm / -rf",
    "rm -r /",
    "'rm' -rf /",
    "r\\m -rf /",
    "/bin/rm -rf /",
    "\\rm -rf /",
    "rm -rf '/'",
    "rm -rf /x/..",
    "sudo rm -rf /",
    "sudo -n rm -rf /",
    "env rm -rf /",
    "env A=1 rm -rf /",
    "timeout 5 rm -rf /",
    "nohup rm -rf / &",
    "nice -n 5 rm -rf ~",
    "command rm -rf /",
    "exec rm -rf /",
    "time rm -rf /",
    "! rm -rf /",
    "ls; rm -rf /",
    "ls && rm -rf ~",
    "ls | rm -rf /",
    "(rm -rf /)",
    "{ rm -rf /; }",
    "if ls; then rm -rf /; fi",
    "echo $(rm -rf /)",
    "echo `rm -rf /`",
    "bash -c 'rm -rf /'",
    'sh -c "rm -rf ~"',
    "zsh -c 'rm -rf /'",
    "bash -lc 'rm -rf /'",
    "eval 'rm -rf /'",
    "eval rm -rf /",
    "ls | xargs rm -rf /",
    "find . -exec rm -rf / \\;",
    "find / -delete",
    "find ~ -exec rm {} +",
    "f() { rm -rf /; }",
    "trap x EXIT; rm -rf /",
    "x=/; rm -rf $x",
    "x=rm; $x -rf /",
    "for i in /; do rm -rf $i; done",
    "rm -rf / (",
    "rm -rf / '",
    "ls\u200b; rm -rf /",
    "rm -rf /\r",
    "echo 'rm -rf /' | sh",
    "bash <<EOF\nrm -rf /\nEOF",
    "bash - <<EOF\nrm -rf /\nEOF",
    "cat <<EOF | bash\nrm -rf ~\nEOF",
    "chmod -R 777 /",
    "chmod -R 000 ~",
    "chown -R me /",
    "chown --recursive me /etc",
    "chgrp -R x /usr",
    "mkfs /dev/sda",
    "mkfs.ext4 /dev/sda1",
    "mkfs -t ext4 /dev/nvme0n1",
    "dd if=/dev/zero of=/dev/sda",
    "sudo dd of=/dev/nvme0n1 if=x",
    "wipefs -a /dev/sda",
    "shred /dev/sda",
    "cp x /dev/sda",
    "ls | tee /dev/sda",
    "ls > /dev/sda",
    "cat x >/dev/nvme0n1p1",
    "ls >> /dev/disk/by-id/x",
    "mv ~ /tmp/x",
    "mv / x",
    "mv /etc x",
    ":(){ :|:& };:",
    ":(){ :|: & };:",
    "bomb() { bomb | bomb & }; bomb",
    "function b() { b|b& }; b",
    "rm -rf {/,x}",
    "rm -rf ${HOME}/.",
]


@pytest.mark.parametrize("line", RUIN)
def test_no_rule_may_allow_it(line: str, here: CommandContext) -> None:
    assert read(line, here).effect == "ruin"


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf build",
        "rm -rf ./sub",
        "cd sub && rm -rf *",
        "rm -f *",
        "rm /tmp/x",
        "rm -rf /tmp/x",
        "rm -rf ~/x/y",
        "chmod -R u+w .",
        "echo rm -rf /",
        "git commit -m 'never rm -rf / again'",
        "grep 'rm -rf /' a.txt",
        "dd if=/dev/zero of=disk.img",
        "find . -name '*.pyc' -delete",
        "mv a.txt b.txt",
        "rm -rf $x",
        "ls > /dev/null",
        "cp /dev/null x",
    ],
)
def test_it_is_no_ruin(line: str, here: CommandContext) -> None:
    assert read(line, here).effect != "ruin"


ARGV: list[tuple[str, tuple[str, ...] | None]] = [
    ("cat -n 'a b' c\\ d \"e\"", ("-n", "a b", "c d", "e")),
    ("  cat a.txt  ", ("a.txt",)),
    ("cat $'a\\tb'", ("a\tb",)),
    ("cat $'\\' x'", ("' x",)),
    ("cat *.txt", None),
    ("cat ~", None),
    ("cat $HOME", None),
    ("cat {a,b}", None),
    ("cat a; cat b", None),
    ("cat a &", None),
    ("cat a > b", None),
    ("cat a 2>&1", None),
    ("CI=1 cat a", None),
    ("! cat a", None),
    ("time cat a", None),
    ("(cat a)", None),
    ("echo a", None),
    ("pwd", None),
    ("kill 1", None),
    ("./run.sh", None),
    ("cat $(ls)", None),
    ("cat <<E\nE", None),
    ("bash -c 'cat a'", None),
    ("nosuchprogram a", None),
    ("cat 'a' # b", None),
    ("if cat a; then cat a; fi", None),
    ("cat a | cat", None),
    ("{ cat a; }", None),
]


@pytest.mark.parametrize(("line", "expected"), ARGV)
def test_a_plain_command_can_do_without_a_shell(
    line: str, expected: tuple[str, ...] | None, here: CommandContext
) -> None:
    argv = read(line, here).argv
    assert (argv and argv[1:]) == expected
    assert argv is None or (Path(argv[0]).is_absolute() and Path(argv[0]).name == "cat")


def test_what_a_rule_would_remember(here: CommandContext) -> None:
    def prefix(line: str) -> tuple[str, ...] | None:
        return read(line, here).commands[-1].prefix

    assert prefix("git commit -m x") == ("git", "commit")
    assert prefix("./run.sh a") == ("./run.sh",)
    assert prefix("bash run.sh a") == ("bash", "run.sh")
    assert prefix("A=1 git commit") == ("A=1", "git", "commit")
    for line in ("sudo ls", "A=$b git commit", "eval ls", "> x", "nosuchprogram", "$x", "ssh a b", "bash -c $x"):
        assert prefix(line) is None, line


def test_why_a_program_of_the_workspace_is_asked_about_again(here: CommandContext) -> None:
    assert of(read("./run.sh a", here), "./run.sh").why == "Runs ./run.sh, a program of the workspace."
    [command] = read("PYTHONPATH=src ./run.sh a", here).commands
    assert command.why == "Runs ./run.sh, a program of the workspace. PYTHONPATH can change what the program does."


def test_files_it_runs_and_reads(here: CommandContext) -> None:
    root = here.folder
    assert of(read("./run.sh a", here), "./run.sh").runs == (str(root / "run.sh"),)
    assert of(read("cd sub && bash ../run.sh", here), "bash").runs == (str(root / "run.sh"),)
    assert of(read("source run.sh", here), "source").runs == (str(root / "run.sh"),)
    assert of(read("cat < sub/c.txt", here), "<").reads == (str(root / "sub" / "c.txt"),)
    assert of(read("cat > /dev/tcp/example.org/80", here), ">").network


@pytest.mark.parametrize("path", [".:{path}", "{root}:{path}", ":{path}", "sub/..:{path}"])
def test_a_program_of_the_workspace_is_not_the_one_of_that_name(path: str, here: CommandContext) -> None:
    there = with_environment(here, PATH=path.format(path=PATH, root=here.folder))
    found = read("ls", there)
    assert found.effect == "some" and found.argv is None
    assert found.commands[0].runs == (str(here.folder / "ls"),)
    assert found.commands[0].prefix is None, "a rule for `ls` is for the system's"
    assert found.commands[0].words == (found.commands[0].program,)
    assert read("cat a.txt", there).effect == ("none" if path.startswith("{") else "some")


def test_a_program_that_all_can_change_is_not_known(tmp_path: Path, here: CommandContext) -> None:
    program = tmp_path / "ls"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    there = with_environment(here, PATH=f"{tmp_path}:{PATH}")
    assert read("ls", there).effect == "none"
    program.chmod(0o777)
    assert read("ls", there).effect == "some"
    program.chmod(0o755)
    tmp_path.chmod(0o777)
    assert read("ls", there).effect == "some"


@pytest.mark.parametrize("name", ["BASH_ENV", "SHELLOPTS", "BASH_FUNC_ls%%", "BASHOPTS", "POSIXLY_CORRECT", "IFS"])
def test_an_environment_that_changes_the_shell_is_seen(name: str, here: CommandContext) -> None:
    there = replace(here, environment={**here.environment, name: "x"})
    assert read("ls", there).unclear is not None


def test_patterns_do_not_become_options_and_do_not_leave_the_roots(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    assert words(read("ls s*", here)) == [("ls", "sub")]
    (here.folder / "out").symlink_to("/etc")
    assert words(read("ls out/host* /etc/host* ../* sub/../a*", here)) == [("ls", None, None, None, None)]
    assert words(read("ls */*", here)) == [("ls", None)], "bash finds sub/c.txt, and what is behind the link"
    assert words(read("ls .e*", here)) == [("ls", ".env")]
    assert words(read("ls .* .?* .[e]* .??*", here)) == [("ls", None, None, ".env", ".env")]
    (here.folder / "-la").touch()
    assert words(read("ls *", here)) == [("ls", None)]
    assert words(read("ls ./*", here))[0][1] == "./-la"
    for number in range(1_001):
        (here.folder / "sub" / f"f{number}").touch()
    assert words(read("ls sub/*", here)) == [("ls", None)]


def test_what_belongs_to_git_is_no_input(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    (here.folder / ".git").mkdir()
    (here.folder / ".git" / "config").touch()
    assert read("wc -l < .git/config", here).effect == "some"


def test_a_folder_that_a_link_leads_to_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    here = workspace(tmp_path)
    (here.folder / "out").symlink_to("/etc")
    (here.folder / "in").symlink_to("sub")
    assert read("cd out && ls", here).effect == "some"
    assert read("cd in && ls", here).effect == "none"
    assert read("cd in/.. && ls", here).effect == "none"
    (here.folder / "sub" / "deep").mkdir()
    (here.folder / "link").symlink_to("sub/deep")
    assert read("cd link/.. && ls", here).effect == "some", "the shell and the disk disagree on where that is"


HOSTILE = [
    "(" * 65_000,
    "$(" * 32_000,
    '"$(' * 20_000,
    "`" * 65_000,
    "${" * 32_000,
    "{ " * 32_000,
    "{a," * 20_000,
    "if " * 20_000,
    "a|" * 10_000 + "a",
    "a|" * 299 + "a",
    "a&&" * 20_000 + "a",
    "<<a " * 16_000,
    "cat <<A\n$(cat <<A\n" * 3_000,
    "* " * 32_000,
    "ls " + "*/*/* " * 2_000,
    "*" * 65_000,
    "$((" * 20_000,
    "$((a+" * 13_000,
    "'" * 65_000,
    "a) " * 20_000,
    "a()" * 20_000,
    "[[ a == " * 8_000,
    "a[" * 32_000,
    ">" * 65_000,
    "<" * 65_000,
    "! " * 32_000,
    "a\n" * 32_000,
    "x" * 65_000,
    "x" * 70_000,
    "echo " + "{a,b,c}" * 40,
    "rm -" + "r" * 60_000 + "1 /",
    ":" * 65_000,
    "ls;" * 20_000,
    "".join(f"a{n}={n};" for n in range(7_000)),
    "for a in 1 2 3 4 5 6 7 8 9 10; do " * 6 + "ls;" + "done;" * 6,
    "nosuch;" * 9_000,
    "if a; then b; else c; fi;" * 2_500,
    "echo " + "$(" * 400 + "ls" + ")" * 400,
    "> /dev/" * 8_000,
    "rm -rf x " * 7_000 + ")",
    "~" * 65_000,
    "\\" * 65_000,
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_lines_end_in_time(line: str, here: CommandContext) -> None:
    """A verdict has 100 ms; measured are less than 20, of processor time. Once more if it took longer: collecting
    garbage of other tests counts, too."""
    for size in (2_000, 15_000, 64_000):
        assert _seconds(line[:size], here) < 0.1 or _seconds(line[:size], here) < 0.1, size


def _seconds(line: str, here: CommandContext) -> float:
    began = time.thread_time()
    read(line, here)
    return time.thread_time() - began


TOO_MUCH = [
    ("ls;" * 201, "too many commands"),
    ("$(ls)" * 201, "too many commands"),
    ("eval ls;" * 101, "too many commands"),
    ("echo " + "a" * (16 << 10), "too long"),
    ("cat <<E\n" + "a\n" * (8 << 10) + "E", "too long"),
    ("cat <<'E'\nE\n" + "a" * (16 << 10), "too long"),
    ("cat <<'E'\n" + "a\n" * (32 << 10) + "E", "too long"),
    ("[[ a == " * 2_000, "too"),
    ("x " * 8_000, "too long or nested too deeply"),
]


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much it is decides, not how fast this machine is just now."""
    monkeypatch.setattr(syntax, "_SECONDS", 10)


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(("line", "why"), TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_more_than_can_be_seen_at_once_is_asked_about(line: str, why: str, here: CommandContext) -> None:
    assert why in (read(line, here).unclear or "")


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    "line", ["ls;" * 50, "cat <<'E'\n" + "a $(b) `c`\n" * 4_000 + "E", "echo " + "a" * (15 << 10)], ids=range(3)
)
def test_much_can_be_seen_at_once(line: str, here: CommandContext) -> None:
    assert read(line, here).unclear is None


def test_what_would_ruin_is_found_in_a_text_that_is_not_understood(here: CommandContext) -> None:
    for line in (
        "a;" * 8_000 + "rm -rf /",
        "x" * 40_000 + " & 'r'm -rf ~ ;" + "rm x;" * 50,
        "a(" * 9_000 + "\n> /dev/sda",
    ):
        assert read(line, here).effect == "ruin"


@pytest.mark.parametrize("line", ["> x \n=${s:0<<E×_<<-é\nዔ😀_{", "fak€<<ཥ\n\U000929d5\n\t€F"])
def test_a_character_that_is_cut_in_pieces_is_asked_about(line: str, here: CommandContext) -> None:
    assert read(line, here).unclear is not None


LINES = [line for lines in ASKED.values() for line in lines] + NOTHING + RUIN


@settings(max_examples=examples(150, 60), deadline=None)
@given(st.data())
def test_any_text_has_a_reading(here: CommandContext, data: st.DataObject) -> None:
    pieces = st.lists(
        st.sampled_from(
            [*LINES, *"(){}[]<>|&;$`\"'\\ \n\t#!*?~=", "$(", "${", "<<E\n", "\nE\n", "$((", "[[", "]]", "a"]
        )
        | st.text(max_size=4),
        max_size=8,
    )
    text = "".join(data.draw(pieces))
    found = read(text, here)
    assert isinstance(found, Reading)
    assert found.unclear is None or found.effect != "none"


@settings(max_examples=examples(100, 40), deadline=None)
@given(line=st.sampled_from(LINES), position=st.integers(0, 200), piece=st.text(max_size=3))
def test_a_changed_line_has_a_reading(here: CommandContext, line: str, position: int, piece: str) -> None:
    assert read(line[:position] + piece + line[position + len(piece) :], here).effect in ("none", "some", "ruin")


WORDS_OF_A_FILE = "xargs takes arguments from a file, so they are not known in advance."


@pytest.mark.parametrize(
    ("line", "commands", "why"),
    [
        ("xargs -a a.txt touch", ["touch"], WORDS_OF_A_FILE),
        ("xargs -aa.txt touch", ["touch"], WORDS_OF_A_FILE),
        ("xargs --arg-file=a.txt touch", ["touch"], WORDS_OF_A_FILE),
        ("xargs --arg-file a.txt touch", ["touch"], WORDS_OF_A_FILE),
        ("xargs -0 -n 1 -a a.txt ls -l", ["ls -l"], WORDS_OF_A_FILE),
        ("xargs -I{} -a a.txt touch {}", ["touch"], WORDS_OF_A_FILE),
        ("xargs -a a.txt", [], WORDS_OF_A_FILE),
        ("xargs -a", [], "xargs is called with arguments Amanu does not understand."),
        ("xargs -a $X touch", ["touch"], "xargs is called with arguments Amanu does not understand."),
        ("xargs -p touch", ["touch"], "xargs is called with arguments Amanu does not understand."),
    ],
)
def test_what_xargs_does_with_a_file(line: str, commands: list[str], why: str, here: CommandContext) -> None:
    reading = read(line, here)
    *inner, outer = reading.commands
    said = [" ".join(word for word in each.words if word is not None and word != "{}") for each in inner]
    assert said == commands and outer.why == why and reading.effect == "some"
    assert not any("No program called" in each.why for each in reading.commands)


def test_a_walk_over_all_objects_takes_none_of_its_time(here: CommandContext, request: pytest.FixtureRequest) -> None:
    """It takes longer than a line may, in a process with many, and `ls | head` was asked about."""
    collected: list[str] = []

    def collecting(phase: str, _: dict[str, int]) -> None:
        collected.append(phase)

    read("ls | head", here)  # loads the parser
    thresholds = gc.get_threshold()
    request.addfinalizer(lambda: gc.set_threshold(*thresholds))
    gc.callbacks.append(collecting)
    request.addfinalizer(lambda: gc.callbacks.remove(collecting))
    gc.set_threshold(50)
    assert [str(each) for each in range(100)] and [[each] for each in range(100)]
    before = len(collected)
    assert before  # it would
    assert read("ls | head; " * 20 + "ls", here).unclear is None
    assert len(collected) - before <= 4  # around it
    assert gc.isenabled()


@pytest.mark.parametrize(
    "line",
    [
        "test -v 'a[$(touch P)]'",
        "[ -v 'a[$(touch P)]' ]",
        "printf -v 'a[`touch P`]' x",
        "read 'a[$(touch P)]' < x",
        "declare 'a[$(touch P)]=1'",
        "let 'a[$(touch P)]=1'",
        "typeset -i 'x=a[$(touch P)]'",
        "builtin test -v 'a[$(touch P)]'",
    ],
)
def test_a_subscript_that_runs_a_command_is_never_allowed_by_a_rule(line: str, here: CommandContext) -> None:
    assert "runs a command" in (read(line, here).unclear or "")
