"""Which uses of programs have no effect: as data, each line a command; near misses beside them."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amanu.core.command import CommandContext
from amanu.shell.grammar import Judgement, Word, judge
from amanu.shell.programs import HARMLESS, search, text

AUTOMATIC = """
cat a.txt
cat -n a.txt src/b.py
cat a.txt -A
cat --number a.txt
cat -
cat
cat -- a.txt
cat /etc/os-release
cat /dev/null
cat inner
cat missing.txt
cat --help
head a.txt
head -5 a.txt
head -n 5 a.txt
head -n5 a.txt
head -qn 5 a.txt src/b.py
head --lines=5 a.txt
head --lines 5 a.txt
head -c 100 a.txt
head -n $X a.txt
tail a.txt
tail -20 a.txt
tail -n +5 a.txt
tail --bytes=10 a.txt
wc -l a.txt src/b.py
wc -lwc
wc --lines a.txt
sort a.txt
sort -rn -k2,2 -t , a.txt
sort -u
sort --reverse --key=2 a.txt
uniq
uniq -c
uniq -c a.txt
uniq -f1 a.txt
cut -d: -f1 a.txt
cut -d ' ' -f 1,2
cut --delimiter=, --fields=2 a.txt
cut -d $X -f 1
tr a-z A-Z
tr -d '\\n'
tr -cd '[:alnum:]'
nl -ba a.txt
tac a.txt
rev a.txt
paste -sd, a.txt
paste a.txt src/b.py
join a.txt src/b.py
comm -12 a.txt src/b.py
diff a.txt src/b.py
diff -u a.txt src/b.py
diff -rq src src
diff --unified=5 a.txt src/b.py
diff --color=never a.txt src/b.py
cmp a.txt src/b.py
cmp -s a.txt src/b.py
column -t -s, a.txt
fold -w 80 -s a.txt
fmt -w 72 a.txt
expand -t 4 a.txt
unexpand -a a.txt
iconv -f latin1 -t utf-8 a.txt
tsort a.txt
jq . data.json
jq -r .name data.json
jq -rc '.items[] | {a: .b}' data.json
jq '.env.NODE_ENV' data.json
jq -n 1+1
od -c a.txt
od -A x -t x1z -v a.txt
hexdump -C a.txt
xxd a.txt
xxd -l 64 a.txt
xxd -p
xxd -c16 -g 1 a.txt
strings a.txt
strings -n 8 a.txt
nm -C a.txt
readelf -h a.txt
size a.txt
base64 a.txt
base64 -d
base64 -w0 a.txt
md5sum a.txt
sha256sum a.txt src/b.py
sha1sum
cksum a.txt
file a.txt
file -b --mime-type a.txt
unzip -l a.zip
tar tf a.tar
tar -tzf a.tar
tar tvf a.tar
ls
ls -la
ls -la src
ls -lhS --sort=time src
ls --color=never -1 src
ls -R
ls /
ls /usr/lib
ls missing
tree
tree -L 2 -I 'node_modules|.git'
tree -a src
stat a.txt
stat -c %s a.txt
stat --format=%Y a.txt
du -sh .
du -h --max-depth=1 src
df -h
df -h .
find . -name '*.py'
find . -type f -not -path './node_modules/*'
find src -maxdepth 2 -mtime -1 -print
find . '(' -name a -o -name b ')' -print0
find . -newer a.txt
find . -size +1M -ls
find . -printf '%p\\n'
find
find . -name $X
fd b
fd -e py
fd -H -t f b src
basename src/b.py .py
basename $X
dirname $*X
realpath a.txt
readlink -f a.txt
pwd
pwd -P
which git
which -a python3 node
type ls
command -v node
grep foo a.txt
grep -n foo a.txt
grep -rn foo src
grep -R foo src
grep -rn foo src --include=*.py
grep -E 'a|b' a.txt
grep -c foo a.txt src/b.py
grep -A 3 -B3 foo a.txt
grep -5 foo a.txt
grep -e foo -e bar a.txt
grep -f a.txt src/b.py
grep -v foo
grep -il foo a.txt
grep -rl foo src --exclude-dir=x
grep --color=auto foo a.txt
grep -- -x a.txt
grep -e $X a.txt
grep -rn foo --include=*.py .
egrep 'a|b' a.txt
fgrep a.b a.txt
rg foo
rg -n foo src
rg -l foo -g '!*.md'
rg foo -g '*.py'
rg -t py foo
rg --files
rg --files src
rg -i -C 3 foo src
rg -e foo src
ag foo src
ag -i foo src
rg foo secret
grep -rn foo secret/..//src
sed -n 1,5p a.txt
sed -n '5p' a.txt
sed -n '/foo/,/bar/p' a.txt
sed -n '/foo/I,+3p' a.txt
sed -n '$p' a.txt
sed -n '$=' a.txt
sed 's/a/b/' a.txt
sed 's|a/b|c|g' a.txt
sed -E 's/(a)(b)/\\2\\1/gI' a.txt
sed -e 1d -e '$d' a.txt
sed '/^$/d' a.txt
sed '/^#/!d;s/[0-9]\\{1,\\}/N/2g' a.txt
sed 10q a.txt
sed -n '10,20p;20q' a.txt
sed -n '/a/{p;q}' a.txt
sed 'y/abc/xyz/' a.txt
sed 's/[[:space:]]*$//' a.txt
sed -n --expression=1p a.txt
awk '{print $1}' a.txt
awk -F: '{print $1, $NF}' a.txt
awk -F, -v n=3 'NR>n {print $2}' a.txt
awk 'NR==1,NR==5' a.txt
awk '/foo/ {c++} END {print c}' a.txt
awk 'BEGIN {FS=","} {s+=$3} END {printf "%d\\n", s}' a.txt
awk '{ if ($3 > 5) print $1 }' a.txt
awk 'length($0) > 80' a.txt
awk '!seen[$0]++' a.txt
awk '$1 ~ /^a[0-9]+$/ {print}' a.txt
echo hello
echo -n $X
echo $*X
echo -e 'a\\tb'
printf '%s\\n' a b
printf '%-10s %5d|%05.2f%%\\n' $X $*X
printf hello
true
false
:
expr 1 + 2
seq 1 10
seq 5 -1 1
test -f a.txt
test a = b
[ -d src ]
[ ! -f x ]
[ -n $X ]
[ $X = y ]
[ ! $X = y ]
[ 1 -lt 2 ]
date
date +%F
date -u +%H:%M
date -d yesterday +%s
date --iso-8601=seconds
uname -a
arch
nproc
whoami
id -u
groups
hostname
uptime
free -h
lscpu
getconf PAGE_SIZE
locale
tty
sleep 1
sleep 0.5
ps
ps aux
ps -ef
ps -eo pid,comm
pgrep -fl node
ss -tlnp
ss -tn state established
ss -tn sport = :443
ss dst 127.0.0.1
printenv PATH HOME
python3 --version
python -V
python3 -m json.tool data.json
python -m json.tool --indent 2 --sort-keys
mypy --version
node --version
node -v
npm --version
gcc --version
cmake --version
make --version
bash --version
go version
cargo --version
pip --version
pip list
pip list --format=json
pip show requests
pip freeze
pip
git
git --version
git status
git status --short --branch
git status -sb
git status --porcelain=v1
git --no-pager status
git --no-optional-locks status
git -C src status
git -C src log --oneline
git log
git log --oneline -5
git log -n 3 --stat
git log --oneline --graph --all --decorate
git log -p -1
git log --since=yesterday --author=$X
git log --format='%h %s' -10
git log --grep=fix main
git log -- a.txt
git log -S foo
git log --follow -p a.txt
git -c color.ui=never log
git -c core.quotepath=false status
git show
git show HEAD
git show HEAD:a.txt
git show --stat HEAD
git show --name-only
git diff
git diff --cached
git diff --staged --stat
git diff HEAD~1 -- a.txt
git diff main...HEAD
git diff -w -U5
git diff --name-only
git diff a.txt
git shortlog -sn
git shortlog -sn HEAD
git shortlog -ns --no-merges main..HEAD
git blame a.txt
git blame -L 1,2 a.txt
git grep -n foo
git grep -l foo -- src
git ls-files
git ls-files -m -o --exclude-standard
git ls-tree -r HEAD --name-only
git cat-file -p HEAD
git cat-file -t HEAD
git rev-parse HEAD
git rev-parse --abbrev-ref HEAD
git rev-parse --show-toplevel
git rev-list --count HEAD
git describe --tags --always
git merge-base main HEAD
git name-rev HEAD
git for-each-ref --sort=-committerdate refs/heads
git show-ref
git count-objects -vH
git check-ignore -v a.txt
git symbolic-ref --short HEAD
git branch
git branch -a
git branch -vv
git branch --show-current
git branch --list 'x*'
git branch --merged
git branch --merged main
git branch --contains HEAD
git tag
git tag -l 'v*'
git tag --contains
git remote
git remote -v
git remote get-url origin
git stash list
git stash show
git stash show -p
git reflog
git reflog show -5
git worktree list
git config user.name
git config --get user.email
git config --list --name-only
git config --get remote.origin.url
git range-diff main HEAD HEAD
git diff-tree --no-commit-id --name-only -r HEAD
git log -p --diff-merges=first-parent
grep -r --include=*.py --exclude=x a .
diff -r --no-dereference linked src
git log -p --submodule=short
git shortlog --group=author HEAD
"""

ASKED = """
grep -r --exclude=x --include=*.py a .
grep -r --include=[^a]env a .
grep -r --include=[.]env a .
grep -r --include='\\.env' a .
grep -r --include=[[:punct:]]env a .
grep -r --include=x/*.py a .
grep -r --exclude-dir=[s]ecret a .
grep -r --exclude-dir='s\\ecret' a .
diff -r linked src
diff linked src
diff -rN src linked
jq -n '$ #'
unzip -l '*.zip'
zipinfo 'a.[z]ip'
git shortlog --group=%G? HEAD
git shortlog --group format:%GS HEAD
git for-each-ref --sort=signature
git branch --sort=-signature:key
git log -p --diff-merges=remerge
git log -p --diff-merges r
git log -p --submodule
git log -p --submodule=diff
git diff --submodule=log HEAD~1 HEAD
cat .env
cat src/../.env
cat link-out
cat link-env
cat /etc/passwd
cat ../x
cat /proc/self/environ
cat /proc/version
cat .git/config
cat .GIT/config
cat fifo
cat /dev/zero
cat $X
cat -- $X
cat $*X
cat --unknown a.txt
cat a.txt .env
head --lin=5 a.txt
head -n $*X a.txt
head -n
head .env
tail -f a.txt
tail -F a.txt
tail -5f a.txt
tail --follow=name a.txt
tail --retry a.txt
wc --files0-from=a.txt
sort -o out a.txt
sort a.txt -o out
sort -oout a.txt
sort -no out a.txt
sort -uo out
sort --output=out a.txt
sort --output out a.txt
sort --out=out a.txt
sort --outp out a.txt
sort --compress-program=x a.txt
sort --comp x a.txt
sort -T /x a.txt
sort -S1 a.txt
sort --files0-from=a.txt
uniq a.txt out
uniq -c a.txt out
uniq -- a.txt out
uniq $X
uniq a.txt $*X
uniq - out
cut --unknown
cut -f1 .env
tr a b c
nl -x a.txt
tac .env
paste a.txt .env
join a.txt .env
comm a.txt b.txt c.txt
diff a.txt .env
diff -r . src
diff -l a.txt src/b.py
diff --paginate a.txt src/b.py
diff -X .env a.txt src/b.py
diff --to-file=.env a.txt
cmp a.txt .env
column -n x a.txt
fold -x
iconv -o out a.txt
iconv --output=out a.txt
jq -f .env data.json
jq -L src . data.json
jq env
jq -n env
jq -n '$ENV.PATH'
jq -n 'env.HOME'
jq '. | env' data.json
jq 'import "x" as x; .' data.json
jq --slurpfile a .env . data.json
jq --rawfile a .env . data.json
jq . .env
jq $X data.json
od .env
hexdump -f .env a.txt
xxd a.txt out
xxd -r a.txt
xxd -r a.txt out
xxd - -ps
xxd a.txt -p
xxd -pr a.txt
xxd --revert a.txt
xxd $X
strings @a.txt
strings -T x a.txt
nm --plugin x a.txt
readelf @a.txt
base64 -o out a.txt
base64 -i a.txt -o out
md5sum -c a.txt
sha256sum --check a.txt
file -C -m a.txt
file -f .env
file -m a.txt b
file -z a.txt
file -p a.txt
unzip a.zip
unzip -o a.zip
unzip -l .env
tar xf a.tar
tar -czf a.tar src
tar tf host:a.tar
tar -tf a.tar --to-command=x
tar -t --checkpoint-action=exec=x -f a.tar
tar tIf x a.tar
ls ..
ls link-out
ls $X
ls --unknown
tree -o out
tree -R
tree -aLo 2 out
stat /srv/x
du /root
du --files0-from=a.txt
df --sync
find . -delete
find . -name x -delete
find . -exec rm {} ;
find . -execdir rm {} ;
find . -ok rm {} ;
find . -okdir rm {} ;
find . -fprint out
find . -fprintf out x
find . -fprint0 out
find . -fls out
find -L .
find -files0-from a.txt
find /root
find $X
find . $*X
find . -name
find . -newer /srv/x
fd -x rm
fd b -X rm
fd b --exec rm
fd b --exec-batch rm
fd -L b
realpath --unknown a
which --read-alias
command ls
command -p ls
grep foo .env
grep foo a.txt .env
grep -f .env a.txt
grep -f.env a.txt
grep --file=.env a.txt
grep -r foo secret
grep -rn foo
grep -rn foo .
grep -rn foo . --include=*
grep -r foo . --include=.env
grep -r foo .git
grep -r foo ./.git/
rg -uu foo .git
grep -R foo linked
grep foo /etc/passwd
grep $X a.txt
grep foo $X
grep -D skip foo a.txt
rg --pre cat foo
rg --pre=cat foo
rg foo --pre x
rg --hostname-bin=x foo
rg -z foo
rg -L foo
rg --follow foo
rg -uu foo
rg -uuu foo
rg --hidden foo .
rg -. foo
rg foo .env
rg -t sh foo
rg -g .env foo
rg -g '*env' foo
rg -g '.e{n}v' foo
rg --iglob '.ENV' foo
rg --ignore-file x foo
rg -f .env foo
rg --search-zip foo
rg $X
ag --pager x foo
ag -u foo
sed -i s/a/b/ a.txt
sed -i.bak s/a/b/ a.txt
sed --in-place s/a/b/ a.txt
sed --in s/a/b/ a.txt
sed -ni p a.txt
sed -n -i p a.txt
sed p a.txt -i
sed -f a.txt a.txt
sed --file=a.txt
sed 'w out' a.txt
sed 's/a/b/w out' a.txt
sed 's/a/b/gw out' a.txt
sed 's/a/b/e' a.txt
sed 's/a/b/pe' a.txt
sed e a.txt
sed '1e touch x' a.txt
sed 'e touch x' a.txt
sed '/a/e' a.txt
sed 'r .env' a.txt
sed 'R .env' a.txt
sed '1W out' a.txt
sed -n '/x/{p;w out
}' a.txt
sed 'p;w out' a.txt
sed -n '1!w out' a.txt
sed -n '1,2 w out' a.txt
sed -n '\\,x,w out' a.txt
sed 's,a,b,w out' a.txt
sed 's/[/]/b/w out' a.txt
sed 's/a/b
/w out' a.txt
sed 'y/a/b/;w out' a.txt
sed 'a hello' a.txt
sed -n 1p .env
sed 1p ../x
sed $X a.txt
sed -e p -e 'w out' a.txt
sed --expression='w out' a.txt
sed -s -n -e 'e id'
awk 'BEGIN {system("touch x")}'
awk '{print > "out"}' a.txt
awk '{print $1 >> "out"}' a.txt
awk '{print | "sh"}' a.txt
awk '{printf "%s", $1 > "out"}' a.txt
awk 'BEGIN {while (("id" | getline l) > 0) print l}'
awk 'BEGIN {getline x < ".env"; print x}'
awk 'BEGIN {for (print "x" > "out"; 0;) {}}'
awk -f a.txt
awk -i inplace '{print}' a.txt
awk '@load "x"'
awk '@include "x"; {print}' a.txt
awk 'BEGIN {print ENVIRON["HOME"]}'
awk 'BEGIN {print SYMTAB["ENVIRON"]["HOME"]}'
awk 'BEGIN {f="system"; @f("id")}'
awk 'BEGIN {ARGV[1]=".env"} {print}' a.txt
awk '{print}' .env
awk '{print}' x=1 a.txt
awk -v $X '{print}' a.txt
awk $X a.txt
awk '{print $1/2 "/" > "out"}' a.txt
awk '1 / 2 ; {print > "x"} /' a.txt
awk -W exec=a.txt
awk '{print |& "x"}'
printf -v PATH x
printf -- %n PATH
printf %n PATH
printf '%-5n' PATH
printf $X
printf
test -v 'a[$(x)]'
test -R x
[ -v x ]
[ -n $*X ]
[ $X y ]
[ -f a
test $X -a $X
[ a -a -v x ]
date -s tomorrow
date --set=tomorrow
date --se=tomorrow
date 01010000
date -us tomorrow
date -f .env
date $X
uname --unknown
hostname evil
hostname -F a.txt
hostname -f
id --unknown
env
env -0
printenv
printenv GITHUB_TOKEN
printenv $X
ps auxe
ps e
ps eww
ps -o pid,env
pgrep --unknown x
ss -K dst x
ss x
ss dst example.org
ss src $X
ss -p never
ss sport = :https
java -version
java --version
javac --version
ss -D out
sleep 1000
sleep infinity
sleep $X
sleep
yes
python3 -c 'print(1)'
python3 a.py
python3 --version x
python3 -m json.tool data.json out
python3 -m json.tool .env
python3 -m json.tool -f x
python3 -m json data.json
python3 -u -m json.tool data.json
python -m pip list
node -e 1
npm ls
npm install
npm run build
yarn --version
pnpm -v
pip install x
pip list --outdated
pip config list
pip list --log out
pip download x
cargo build
cargo --version --config x
go build
go env -w X=y
bash --version -c id
make
make -n
make --version -f x
docker ps
kubectl get pods
gh pr view
unheard-of
unheard-of --version
rm a.txt
touch x
tee out
xargs cat
git commit -m x
git add .
git push
git pull
git fetch
git clone https://example.org/x
git ls-remote
git checkout main
git switch main
git reset
git branch new
git branch -d x
git branch -D x
git branch -m x
git branch -v new
git branch -a new
git branch --set-upstream-to=x
git branch --edit-description
git tag v1
git tag -d v1
git tag -a v1 -m x
git remote add x y
git remote show origin
git remote update
git remote set-url origin x
git stash
git stash pop
git stash drop
git reflog expire
git reflog delete
git worktree add ../x
git worktree prune
git submodule update
git submodule foreach ls
git config user.name evil
git config user.email --
git config -- user.email
git ls-files --eol --others
git var -l
git config core.fsmonitor evil
git config --global x.y z
git config --unset user.name
git config -e
git config alias.x
git config --list
git config --get http.extraheader
git -c core.fsmonitor=evil status
git -c core.pager=evil log
git -c alias.status=!evil status
git -c diff.external=evil diff
git --exec-path=. status
git --git-dir=x status
git --work-tree=x status
git -p log
git --paginate log
git -C .. status
git -C $X status
git log --output=out
git log --output out
git log --outp=out
git log -p --ext-diff
git log --textconv
git log --show-signature
git log --format=%G?
git log --pretty='%h %GS'
git log $X
git log $*X
git diff --output=out
git diff --out=x
git diff --ext-diff
git diff --no-index a.txt .env
git diff -O out
git diff /etc/passwd a.txt
git diff .env
git diff -- .env
git diff HEAD:.env a.txt
git show HEAD:.env
git show HEAD:src/../.env
git show :.env
git show HEAD -- .env
git blame .env
git blame --contents .env a.txt
git grep -O foo
git grep -Oless foo
git grep --open-files-in-pager foo
git grep --open-files foo
git grep -f .env
git grep --no-index foo
git grep --untracked foo
git cat-file -p HEAD:.env
git cat-file --batch
git cat-file --filters HEAD:a.txt
git cat-file --textconv HEAD:a.txt
git describe --dirty
git symbolic-ref HEAD refs/heads/x
git bisect run x
git difftool
git gc
git fsck
git archive HEAD
git archive -o out HEAD
git format-patch HEAD
git bundle create x
git rev-parse --unknown
git ls-files --unknown
git log --help
git help log
git shell-alias
git update-index --refresh
git for-each-ref --format $X
git show-branch --unknown
"""


def lines(table: str) -> list[str]:
    """Commands, one a line; one with an open quote goes on in the next."""
    found: list[str] = []
    for line in table.strip().splitlines():
        if found and found[-1].count("'") % 2:
            found[-1] += f"\n{line}"
        else:
            found.append(line.replace("\\\\", "\\"))
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandContext]:
    """A workspace with a file that may not be read, links that lead out, a folder with such a file, and git's."""
    top = Path(os.path.realpath(tmp_path_factory.mktemp("grammar")))
    root = top / "project"
    (root / "src").mkdir(parents=True)
    (root / "secret").mkdir()
    (root / "linked").mkdir()
    (root / "a.txt").write_text("a\n")
    (root / "data.json").write_text("{}")
    (root / "a.tar").write_bytes(b"")
    (root / "a.zip").write_bytes(b"")
    (root / "src" / "b.py").write_text("b = 1\n")
    (top / "x").write_text("outside")
    (top / "home" / ".rustup").mkdir(parents=True)
    (top / "home" / ".rustup" / "settings.toml").touch()
    git(root, "init", "-q", "-b", "main")
    git(root, "remote", "add", "origin", "git@example.org:x/y.git")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / ".env").write_text("SECRET=1")
    (root / "secret" / ".env").write_text("SECRET=1")
    (root / "link-out").symlink_to(top / "x")
    (root / "link-env").symlink_to(".env")
    (root / "inner").symlink_to("a.txt")
    (root / "linked" / "out").symlink_to(top)
    os.mkfifo(root / "fifo")
    yield surroundings(root)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"},
    )


def surroundings(root: Path, **environment: str) -> CommandContext:
    return CommandContext(
        root,
        (root,),
        {"HOME": str(root.parent / "home"), "PATH": "/usr/bin", **environment},
        lambda path: not path.name.lower().startswith(".env"),
    )


def ask(line: str, here: CommandContext) -> Judgement:
    """Judge a line of plain words: `$X` is one that is not known, `$*X` any number of them."""
    words = [Word(None, word == "$*X") if word in ("$X", "$*X") else Word(word) for word in shlex.split(line)]
    assert words[0].value is not None
    return judge(words[0].value, words[1:], here, piped=True)


def by_program(table: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines(table):
        found.setdefault(line.split()[0], []).append(line)
    return found


@pytest.mark.parametrize("program", by_program(AUTOMATIC))
def test_these_uses_only_print(program: str, project: CommandContext) -> None:
    judged = {line: ask(line, project) for line in by_program(AUTOMATIC)[program]}
    assert {line: it.why for line, it in judged.items() if it.effect != "none" or not it.why.endswith(".")} == {}


@pytest.mark.parametrize("program", by_program(ASKED))
def test_these_uses_are_asked_about(program: str, project: CommandContext) -> None:
    judged = {line: ask(line, project) for line in by_program(ASKED)[program]}
    assert {line: it.why for line, it in judged.items() if it.effect != "some" or not it.why.endswith(".")} == {}


def test_every_table_has_its_cases() -> None:
    covered = by_program(AUTOMATIC).keys() & by_program(ASKED).keys()
    assert {*text.PROGRAMS, *search.PROGRAMS, "git", "find", "ls", "xxd", "date", "printf"} - covered <= {
        *("rev", "tsort", "expand", "unexpand", "fmt", "tr", "join", "ag", "egrep", "fgrep", "gsed", "gawk", "mawk")
    }


TAKES_ANYTHING = ("echo", "basename", "dirname", "readlink", "true", "false", ":", "expr", "seq", "factor")
TAKES_ANY_TEXT = ("test", "[", "printf")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_an_unknown_option_is_never_harmless(project: CommandContext, data: st.DataObject) -> None:
    plain = [line for line in lines(AUTOMATIC) if line.split()[0] not in (*TAKES_ANYTHING, *TAKES_ANY_TEXT)]
    words = shlex.split(data.draw(st.sampled_from([line for line in plain if " -- " not in line])))
    option = data.draw(st.sampled_from(["--zzz-unknown", "--zzz=1", "-~", "--zzz-exec=touch"]))
    if words[-1].startswith("-") or data.draw(st.booleans()):  # else it could be the value of that option
        words.insert(1, option)
    else:
        words.append(option)
    assert judge(words[0], [Word(word) for word in words[1:]], project, piped=True).effect == "some", words


@pytest.mark.parametrize(
    ("name", "effect"),
    [("json.py", "some"), ("JSON", "some"), ("argparse.cpython-311.so", "some"), ("_colorize", "some"),
     ("sitecustomize.py", "some"), ("__pycache__", "none"), ("jsonx.py", "none"), ("data.json", "none")],
)  # fmt: skip
def test_python_takes_no_module_of_the_folder_for_its_own(tmp_path: Path, name: str, effect: str) -> None:
    (tmp_path / name).touch()
    assert ask("python3 -m json.tool", surroundings(tmp_path)).effect == effect


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=8), st.none(), st.just("<(")), max_size=6), st.sampled_from(sorted(HARMLESS))
)
def test_any_words_are_judged(words: list[str | None], program: str) -> None:
    here = surroundings(Path("/usr/share/doc"))
    judged = judge(program, [Word(None, pipe=True) if word == "<(" else Word(word) for word in words], here, piped=True)
    assert judged.effect in ("none", "some")


@pytest.mark.parametrize(
    ("line", "variable"),
    [
        ("git status", "GIT_DIR"),
        ("git diff", "GIT_EXTERNAL_DIFF"),
        ("git log", "GIT_TRACE"),
        ("git log", "GIT_TRACE_CURL"),
        ("git log", "GIT_CONFIG_COUNT"),
        ("git log", "GIT_CONFIG_KEY_0"),
        ("git log", "GIT_CONFIG_GLOBAL"),
        ("git log", "GIT_EXEC_PATH"),
        ("git log", "GIT_WORK_TREE"),
        ("git log", "GIT_INDEX_FILE"),
        ("git log", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
        ("git log", "GIT_NAMESPACE"),
        ("git log", "GIT_SSL_"),
        ("rg foo src", "RIPGREP_CONFIG_PATH"),
        ("uniq a.txt -c", "POSIXLY_CORRECT"),
        ("tar tf a.tar", "TAR_OPTIONS"),
        ("awk '{print}' a.txt", "AWKPATH"),
    ],
)
def test_the_environment_counts(line: str, variable: str, project: CommandContext) -> None:
    assert ask(line, project).effect == "none"
    assert ask(line, surroundings(project.folder, **{variable: "/x"})).effect == "some"


@pytest.mark.parametrize(
    "variable",
    ["GIT_SSL_CAINFO", "GIT_HTTP_LOW_SPEED_TIME", "GIT_PAGER", "GIT_AUTHOR_NAME", "GIT_SSH_COMMAND", "GIT_ASKPASS"],
)
def test_what_concerns_the_network_or_who_one_is_does_not_matter_to_a_look(
    variable: str, project: CommandContext
) -> None:
    assert ask("git status", surroundings(project.folder, **{variable: "/x"})).effect == "none"


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("cat a.txt src/b.py", ["a.txt", "src/b.py"]),
        ("cat inner", ["a.txt"]),
        ("grep -f a.txt src/b.py", ["a.txt", "src/b.py"]),
        ("grep -r x src", ["src"]),
        ("echo a.txt", []),
    ],
)
def test_what_is_read(line: str, reads: list[str], project: CommandContext) -> None:
    assert list(ask(line, project).reads) == [str(project.folder / each) for each in reads]


def test_a_folder_with_too_much_in_it_is_asked_about(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    for each in range(30):
        (root / f"f{each}").mkdir()
        for name in range(101):
            (root / f"f{each}" / str(name)).touch()
    assert "too many files" in ask("grep -r x .", surroundings(root)).why
    assert ask("grep -r x f1", surroundings(root)).effect == "none"


@pytest.mark.parametrize(
    "where", (".ignore", ".rgignore", ".gitignore", "sub/.ignore", ".git/info/exclude", "../.ignore")
)
@pytest.mark.parametrize("back", ("!.env", "!/.env*", "!sub/.env", "!**/.e??", "!.env/", "!.[e]nv"))
def test_what_an_ignore_file_takes_back_is_searched_though_it_is_hidden(tmp_path: Path, where: str, back: str) -> None:
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / ".git" / "info").mkdir(parents=True)
    (root / "sub" / ".env").write_text("KEY=1")
    (root / where).write_text("*.log\n!.github\n")
    assert ask("rg KEY", surroundings(root)).effect == "none"
    (root / where).write_text(f"*.log\n{back}\n")
    assert ask("rg KEY", surroundings(root)).effect == "some"


@pytest.mark.parametrize("text", ["$ENV", "$ ENV", "$#\nENV", "$ # x\n # y\n ENV.HOME", "1 | env"])
def test_no_writing_hides_the_environment_from_what_is_said_of_jq(text: str, project: CommandContext) -> None:
    assert judge("jq", [Word("-n"), Word(text)], project, piped=True).effect == "some"


@pytest.mark.parametrize("text", ["\ufeff!.env\n", "*.log\n" * 20_000 + "!.env\n"])
def test_the_whole_of_an_ignore_file_counts(text: str, tmp_path: Path) -> None:
    """Its first line behind a byte order mark, and what comes after all that is looked at."""
    root = tmp_path / "work"
    root.mkdir()
    (root / ".env").write_text("KEY=1")
    assert ask("rg KEY", surroundings(root)).effect == "none"
    (root / ".ignore").write_text(text)
    assert ask("rg KEY", surroundings(root)).effect == "some"


@pytest.mark.parametrize(("back", "effect"), [("sub/.gitignore", "some"), ("sub/.git/HEAD", "some"), ("x", "none")])
def test_what_is_ignored_above_may_not_be_below(back: str, effect: str, tmp_path: Path) -> None:
    """A folder takes it back, or is a repository of its own."""
    root = tmp_path / "work"
    (root / ".git").mkdir(parents=True)
    (root / ".gitignore").write_text("build\n")
    (root / "sub" / "build").mkdir(parents=True)
    (root / "sub" / "build" / ".env").write_text("KEY=1")
    (root / back).parent.mkdir(exist_ok=True)
    (root / back).write_text("!build\n")
    assert ask("rg --hidden KEY", surroundings(root)).effect == effect


def test_more_words_than_can_be_looked_at_are_asked_about(project: CommandContext) -> None:
    assert ask(f"cat {'a.txt ' * 300}", project).effect == "none"
    assert ask(f"cat {'a.txt ' * 301}", project).effect == "some"
    assert ask(f"echo {'a.txt ' * 301}", project).effect == "none"
