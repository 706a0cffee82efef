"""Which uses of programs only print: as data, each line a command; near misses beside them."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.command import CommandContext
from amanu.shell.analyze import read
from amanu.shell.call import Judgement, Word
from amanu.shell.harmless import PROGRAMS
from amanu.shell.programs import judge
from support.sweeps import examples

HARMLESS = r"""
cat a.txt
cat -n a.txt src/b.py
cat -- a.txt
cat /dev/null
cat inner
cat missing.txt
head -5 a.txt
head -n5 a.txt
tail -n +5 a.txt
wc -lwc
sort -rn -k2,2 -t , a.txt
sort -u
uniq -c a.txt
cut -d ' ' -f 1,2
cut -d/ -f1
tr -cd '[:alnum:]'
tr a $X
diff -u a.txt src/b.py
diff -rq src src
column -t -s, a.txt
jq -rc '.items[] | {a: .b}' data.json
jq '.env.NODE_ENV' data.json
od -A x -t x1z -v a.txt
base64 -w0 a.txt
sha256sum a.txt src/b.py
file -b --mime-type a.txt
ls -la src
ls
tree -L 2 -I 'node_modules|.git'
stat -c %s a.txt
du -h --max-depth=1 src
df -h .
find . -type f -not -path './node_modules/*'
find . '(' -name a -o -name b ')' -print0
find . -newer a.txt
fd -H -t f b src
basename $X
realpath a.txt
which -a python3 node
grep -n foo a.txt
grep -rn foo src
grep -A 3 -B3 foo a.txt
grep -f a.txt src/b.py
grep -v foo
grep -v secret
grep -il foo a.txt
rg -n foo src
rg --files -g '*.py'
sed -n 1,5p a.txt
sed -n '/foo/,/bar/p' a.txt
sed -n '/foo/I,+3p' a.txt
sed -n '$=' a.txt
sed 's|a/b|c|g' a.txt
sed -E 's/(a)(b)/\2\1/gI' a.txt
sed -e 1d -e '$d' a.txt
sed '/^#/!d;s/[0-9]\{1,\}/N/2g' a.txt
sed -n '10,20p;20q' a.txt
sed 's/[[:space:]]*$//' a.txt
awk '{print $1}' a.txt
awk -F: '{print $1, $NF}' a.txt
awk 'NR>3 {print $2 "x" $1}' a.txt
awk '/foo/' a.txt
echo $*X
expr 1 + 2
seq 1 10
date -u +%H:%M
date -d yesterday +%s
date --iso-8601=seconds
uname -a
id -u
sleep 0.5
python3 --version
git
git --version
git status --short --branch
git --no-pager status
git -C src log --oneline
git log --oneline --graph --all --decorate
git log --format='%h %s' -10
git -c core.quotepath=false status
git shortlog -sn HEAD
git diff --name-only HEAD~1
git ls-files -m -o --exclude-standard
git rev-parse --abbrev-ref HEAD
git describe --tags --always
git for-each-ref --sort=-committerdate refs/heads
git check-ignore -v a.txt
git branch -vv
git branch --list 'x*'
git branch --merged main
git tag -l 'v*'
git stash list
git reflog
git worktree list
git config user.name
git config --get user.email
"""

SHOWS_CONTENT = """
git show HEAD:a.txt
git diff --stat -p
git diff HEAD~1 -- a.txt
git diff main...HEAD
git log -p -1
git log -S foo
git blame -L 1,2 a.txt
git grep -n foo
git cat-file -p HEAD
git remote -v
git remote get-url origin
git stash show -p
"""

OTHERS = r"""
cat .env
cat src/../.env
cat link-out
cat link-env
cat ../x
cat ../missing
ls /srv/missing
cat /proc/self/environ
cat .git/config
cat fifo
cat /dev/zero
cat $X
cat -- $X
cat a.txt .env
head -n $X a.txt
tail -F a.txt
tail -5f a.txt
tail --foll=name a.txt
wc --files0-from=a.txt
sort -oout a.txt
sort -no out a.txt
sort --outp out a.txt
sort --comp x a.txt
sort --files0-from=a.txt
uniq a.txt out
uniq -- -a out
uniq - out
uniq $X
paste a.txt .env
diff -r . src
diff -l a.txt src/b.py
diff -X .env a.txt src/b.py
diff -rN src linked
iconv -o out a.txt
jq -f .env data.json
jq -L src . data.json
jq -n 'env.HOME'
jq -n '$ #'
jq '. | env' data.json
jq --slurpfile a .env . data.json
xxd a.txt out
base64 -o out a.txt
md5sum -c a.txt
file -C -m a.txt
tar -czf a.tar src
ls ..
ls link-out
tree -aLo 2 out
tree --info
du --files0-from=a.txt
find . -delete
find . -fprintf out x
find -L .
find -files0-from a.txt
find /root
find . -name $X
fd b --exec rm
fd b -X rm
which --read-alias
grep foo .env
grep -f.env a.txt
grep -nf.env a.txt
grep --file=.env a.txt
grep -r foo secret
grep -rn foo
grep -rn --include=*.py foo
grep -r foo .git
grep -R foo linked
grep foo $X
rg --pre=cat foo src
rg foo src --pre x
rg -zn foo src
rg -L foo src
rg foo
rg src
rg -A 3 src
rg foo .env
rg -f .env foo src
sed -i.bak s/a/b/ a.txt
sed --in s/a/b/ a.txt
sed -ni p a.txt
sed p a.txt -i
sed -f a.txt a.txt
sed 'w out' a.txt
sed 's/a/b/gw out' a.txt
sed 's/a/b/pe' a.txt
sed '1e touch x' a.txt
sed 'r .env' a.txt
sed -n '1!w out' a.txt
sed -n '\,x,w out' a.txt
sed 's,a,b,w out' a.txt
sed 's/[/]/b/w out' a.txt
sed 's/a/b
/w out' a.txt
sed -n 1p .env
sed -e p -e 'w out' a.txt
awk 'BEGIN {system("touch x")}'
awk '{print > "out"}' a.txt
awk '{print $1 >> "out"}' a.txt
awk '{print | "sh"}' a.txt
awk '{print $1 > "out"}' a.txt
awk -f a.txt
awk -i inplace '{print}' a.txt
awk '{print}' .env
awk '{print}' x=1 a.txt
date -s tomorrow
date -us tomorrow
date -f .env
sleep 1000
sleep infinity
env
python3 -c 'print(1)'
python3 --version x
npm ls
make -n
docker ps
unheard-of --version
rm a.txt
git commit -m x
git fetch
git ls-remote
git branch new
git branch -v new
git branch -D x
git branch --set-upstream-to=x
git tag v1
git tag -am x
git remote add x y
git remote show origin
git stash
git stash pop
git reflog expire
git worktree add ../x
git submodule foreach ls
git config user.name evil
git config --unset user.name
git config -- user.email
git config --list
git config --get http.extraheader
git -c core.fsmonitor=evil status
git --git-dir=x status
git -p log
git -C .. status
git log --outp=out
git log -p --ext-diff
git log --textconv
git log --format=%G?
git log $X
git diff -O out
git diff /etc/passwd a.txt
git diff -- .env
git show HEAD:.env
git show HEAD:src/../.env
git show :.env
git blame --contents .env a.txt
git grep -Oless foo
git grep --open-files foo
git grep --untracked foo
git cat-file --batch
git diff --no-index a.txt b.txt
git describe --dirty
git bisect run x
git shell-alias
git log --help
"""


def lines(table: str) -> list[str]:
    """Commands, one a line; one with an open quote goes on in the next."""
    found: list[str] = []
    for line in table.strip().splitlines():
        if found and found[-1].count("'") % 2:
            found[-1] += f"\n{line}"
        else:
            found.append(line)
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandContext]:
    """A workspace with a file that may not be read, links that lead out, a folder with such a file, and git's."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("harmless")))
    root = top / "project"
    for name in ("src", "secret", "linked"):
        (root / name).mkdir(parents=True)
    (root / "a.txt").write_text("a\n")
    (root / "data.json").write_text("{}")
    (root / "src" / "b.py").write_text("b = 1\n")
    (top / "x").write_text("outside")
    (top / "home").mkdir()
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    for name in (".env", "secret/.env"):
        (root / name).write_text("SECRET=1")
    (root / "link-out").symlink_to(top / "x")
    (root / "link-env").symlink_to(".env")
    (root / "inner").symlink_to("a.txt")
    (root / "linked" / "out").symlink_to(top)
    os.mkfifo(root / "fifo")
    yield surroundings(root)


def surroundings(root: Path) -> CommandContext:
    """A folder the user trusts, on a machine where no sandbox works."""
    environment = {"HOME": str(root.parent / "home"), "PATH": "/usr/bin"}
    return CommandContext(
        root, (root,), environment, lambda path: not path.name.lower().startswith(".env"), trusted=True
    )


def ask(line: str, here: CommandContext) -> Judgement:
    """Judge a line of plain words: `$X` is one that is not known, `$*X` any number of them."""
    words = [Word(None, word == "$*X") if word in ("$X", "$*X") else Word(word) for word in shlex.split(line)]
    assert words[0].value is not None
    return judge(words[0].value, words[1:], here)


def asked(table: str, here: CommandContext) -> dict[str, str]:
    judged = {line: ask(line, here) for line in lines(table)}
    return {line: it.why for line, it in judged.items() if it.effect != "none" or not it.why.endswith(".")}


def test_these_only_print(project: CommandContext) -> None:
    assert asked(HARMLESS, project) == {}


def test_these_are_asked_about_where_no_sandbox_works(project: CommandContext) -> None:
    judged = asked(OTHERS, project)
    assert [line for line in lines(OTHERS) if line not in judged] == []


def test_a_sandbox_makes_none_of_them_harmless(project: CommandContext) -> None:
    """They are tried in it: its absence is noticed, as in a line part of which runs outside."""
    judged = asked(OTHERS, replace(project, sandboxed=True))
    assert [line for line in lines(OTHERS) if line not in judged] == []


def test_git_shows_content_unasked_only_in_a_sandbox(project: CommandContext) -> None:
    """It may track secrets."""
    assert len(asked(SHOWS_CONTENT, project)) == len(lines(SHOWS_CONTENT))
    assert asked(SHOWS_CONTENT, replace(project, sandboxed=True)) == {}


def test_in_a_folder_that_is_not_trusted_git_is_harmless_only_in_a_read_only_sandbox(project: CommandContext) -> None:
    """What is configured there may start programs."""
    untrusted = replace(project, trusted=False, sandboxed=True)
    assert [read(line, untrusted).effect for line in ("git status", "git diff | head")] == ["none", "none"]
    for line in ("git status; touch x", "make && git log", "git status | cat; f() { x; }"):
        assert {command.effect for command in read(line, untrusted).commands if "git" in command.words} == {"some"}
    assert read("git status", replace(project, trusted=False)).effect == "some"


def test_what_is_only_known_when_it_runs_may_be_an_option(project: CommandContext) -> None:
    limited = [name for name, program in PROGRAMS.items() if program.not_with or program.form]
    assert [name for name in limited for word in ("$X", "$*X") if ask(f"{name} {word}", project).effect == "none"] == []


@settings(max_examples=examples(150, 50), deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=8), st.none(), st.just("<(")), max_size=6), st.sampled_from(sorted(PROGRAMS))
)
def test_any_words_are_judged(words: list[str | None], program: str) -> None:
    here = surroundings(Path("/usr/share/doc"))
    judged = judge(program, [Word(None, pipe=True) if word == "<(" else Word(word) for word in words], here)
    assert judged.effect in ("none", "some")


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat a.txt src/b.py", ["a.txt", "src/b.py"]),
        ("cat inner", ["a.txt"]),
        ("grep -f a.txt src/b.py", ["a.txt", "src/b.py"]),
        ("grep -r x src", ["src"]),
        ("cat .env", [".env"]),
        ("grep -nf.env x", [".env"]),
        ("git show HEAD:.env", [".env"]),
        ("awk '{x = 1; print}' .env", [".env"]),
        ("tail -f .env", [".env"]),
        ("cat $X .env", [".env"]),
        ("strings -n 3 .env", [".env"]),
        ("unheard-of .env", []),
        ("echo a.txt", []),
    ],
)
def test_what_is_read(line: str, reads: list[str], project: CommandContext) -> None:
    assert list(ask(line, replace(project, sandboxed=True)).reads) == [str(project.folder / each) for each in reads]


def test_of_what_a_search_would_read_only_what_rules_protect_is_named(tmp_path: Path) -> None:
    """Files with secrets are hidden by the sandbox."""
    root = Path(os.path.realpath(tmp_path))
    (root / "src").mkdir()
    (root / "src" / "denied.txt").touch()
    here = replace(surroundings(root), may_read=lambda path: path.name not in ("denied.txt", ".env"))
    assert ask("grep -r x .", here).reads == ask("rg x", here).reads == (str(root / "src" / "denied.txt"),)
    (root / "src" / "denied.txt").rename(root / "src" / ".env")
    assert (ask("grep -r x .", here).effect, ask("grep -r x .", here).reads) == ("some", ())


def test_a_folder_with_too_much_in_it_is_asked_about(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    for each in range(30):
        (root / f"f{each}").mkdir()
        for name in range(101):
            (root / f"f{each}" / str(name)).touch()
    assert "too many files" in ask("grep -r x .", surroundings(root)).why
    assert ask("grep -r x f1", surroundings(root)).effect == "none"


def test_a_folder_whose_git_may_have_a_token_is_asked_about(project: CommandContext, tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    assert ask("grep -r x .", surroundings(root)).effect == "none"
    (root / ".git" / "config").write_text("[remote]\nurl = https://me:key@example.org/x\n")
    assert ask("grep -r x .", surroundings(root)).effect == "some"


def test_settings_of_rg_outside_the_line_count(project: CommandContext) -> None:
    environment = {**project.environment, "RIPGREP_CONFIG_PATH": "x"}
    assert ask("rg foo src", replace(project, environment=environment)).effect == "some"


def test_more_words_than_can_be_looked_at_are_asked_about(project: CommandContext) -> None:
    assert ask(f"cat {'a.txt ' * 300}", project).effect == "none"
    assert ask(f"cat {'a.txt ' * 301}", project).effect == "some"
    assert ask(f"echo {'a.txt ' * 301}", project).effect == "none"
