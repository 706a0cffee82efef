"""What a rule would remember of a command, what it runs, and what it needs."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from amanu.core.command import CommandContext
from amanu.shell.analyze import read
from amanu.shell.call import Judgement, Word
from amanu.shell.programs import judge

PREFIXES = """
git commit -m 'a -f b'          | git commit
git commit -am x                | git commit
git add -A                      | git add
git add -u                      | git add
git push                        | git push
git push -u origin main         | git push
git push --force                | git push
git push -f origin main         | git push
git push --force-with-lease     | git push
git push origin +main           | git push
git push origin :main           | git push
git push --delete origin x      | git push
git push --receive-pack=x       | git push
git fetch --all                 | git fetch
git fetch --upload-pack=evil    | git fetch
git fetch ext::sh               | git fetch
git checkout -b x               | git checkout
git checkout -f                 | git checkout
git checkout -- .               | git checkout
git checkout main               | git checkout
git switch -c x                 | git switch
git switch --discard-changes x  | git switch
git reset HEAD a                | git reset
git reset --hard                | git reset
git clean -fdx                  |
git stash push -u               | git stash
git stash drop                  | git stash
git rebase main                 | git rebase
git rebase -x evil main         | git rebase
git rebase --exec=evil main     | git rebase
git merge main                  | git merge
git merge -s evil main          | git merge
git merge --strategy=evil x     | git merge
git branch x                    | git branch
git branch -D x                 | git branch
git tag v1                      | git tag
git config a.b c                |
git bisect run x                |
git -c core.sshCommand=x fetch  |
git -C src commit               |
git --no-pager commit           | git commit
git commit --no-verify          | git commit
git commit $X                   |
git log --output=x              | git log
git grep -Oless foo             | git grep
npm run build                   | npm run build
npm run build -- --fast         | npm run build
npm test                        | npm test
npm install                     | npm install
npm install --prefix x          | npm install
npm --prefix x run build        |
npm exec x                      |
npm run                         |
npm run $X                      |
npx tsc --noEmit                | npx tsc
pnpm run lint                   | pnpm run lint
pnpm install                    | pnpm install
yarn build                      | yarn build
yarn dlx x                      |
make                            | make
make test                       | make test
make -j4 test                   | make test
make -j 4 test                  | make test
make -C sub test                |
make -f x test                  |
make test CC=evil               |
make a b                        |
cargo test --lib                | cargo test
cargo build --release           | cargo build
cargo run                       |
cargo clippy --config x         | cargo clippy
cargo +nightly test             | cargo +nightly
go test ./...                   | go test
go test -exec evil ./...        | go test
go build -toolexec=evil         | go build
go run .                        |
go vet -vettool=x               | go vet
pip install x                   | pip install
pip install --index-url x y     | pip install
python -m pytest -q             | python -m pytest
python3 -m pytest               | python3 -m pytest
python -m pip install x         | python -m pip install
python -m http.server           |
python -m timeit x              |
python -c 'x'                   |
python script.py --fast         | python script.py
python -u script.py             | python script.py
python missing.py               |
python ../out.py                |
python                          |
node app.js                     | node app.js
node -e x                       |
bash run.sh                     | bash run.sh
bash -c x                       |
pytest -q tests                 | pytest
uv run pytest -q                | uv run pytest
uv run python script.py         | uv run python script.py
uv run python -c x              |
uv run --with x y               |
uv sync                         | uv sync
uv pip install x                |
poetry run pytest               | poetry run pytest
poetry install                  | poetry install
ruff check .                    | ruff check
ruff --config x check           |
eslint src                      | eslint
eslint --rulesdir x src         | eslint
tsc --noEmit                    | tsc
mypy src                        | mypy
docker compose up -d            | docker compose up
docker compose exec x sh        |
docker build .                  |
docker run -v /:/x y            |
docker ps                       | docker ps
docker exec x sh                |
gh pr view 5                    | gh pr view
gh api x                        |
kubectl get pods                | kubectl get
kubectl delete pod x            |
kubectl exec x -- sh            |
terraform plan                  | terraform plan
terraform apply                 |
mkdir -p x                      | mkdir
touch x                         | touch
rm x                            |
mv a b                          |
cp a b                          |
curl https://example.org        |
sudo make                       |
kill 5                          |
find . -delete                  |
sed -i s/a/b/ x                 |
awk '{print > "x"}'             |
unheard-of x                    |
"""


def cases() -> list[tuple[str, tuple[str, ...] | None]]:
    found: list[tuple[str, tuple[str, ...] | None]] = []
    for line in PREFIXES.strip().splitlines():
        command, _, prefix = line.rpartition("|")
        found.append((command.strip(), tuple(prefix.split()) or None))
    return found


@pytest.fixture
def here(tmp_path: Path) -> CommandContext:
    root = Path(os.path.realpath(tmp_path)) / "project"
    (root / "src").mkdir(parents=True)
    for name in ("script.py", "app.js", "run.sh", "Makefile", "package.json", "Cargo.toml", "conftest.py"):
        (root / name).touch()
    (root.parent / "out.py").touch()
    return CommandContext(root, (root,), {"HOME": str(root.parent)}, lambda path: True)


def ask(line: str, here: CommandContext) -> Judgement:
    words = [Word(None if word == "$X" else word) for word in shlex.split(line)]
    assert words[0].value is not None
    return judge(words[0].value, words[1:], here)


def test_what_is_remembered(here: CommandContext) -> None:
    got = {line: ask(line, here).prefix for line, _ in cases()}
    assert got == dict(cases())


def test_none_of_them_is_harmless(here: CommandContext) -> None:
    assert [line for line, _ in cases() if ask(line, here).effect == "none"] == []


OF_THE_WORKSPACE = """
.venv/bin/python -m pytest -q             | .venv/bin/python -m pytest
./.venv/bin/python -u -m pytest           | ./.venv/bin/python -m pytest
$PWD/.venv/bin/python3.12 -m pytest       | $PWD/.venv/bin/python3.12 -m pytest
.venv/bin/python script.py --fast         | .venv/bin/python script.py
.venv/bin/python --version                | .venv/bin/python --version
.venv/bin/python -c x                     |
.venv/bin/python                          |
.venv/bin/python -m http.server           |
.venv/bin/node app.js                     | .venv/bin/node app.js
.venv/bin/node -e x                       |
.venv/bin/pip install x                   | .venv/bin/pip install
.venv/bin/ruff check .                    | .venv/bin/ruff check
.venv/bin/pytest -q                       | .venv/bin/pytest
.venv/bin/pytest --rootdir x              | .venv/bin/pytest
.venv/bin/other a b                       | .venv/bin/other
PYTHONPATH=src .venv/bin/python -m pytest | PYTHONPATH=src .venv/bin/python -m pytest
A=1 B=2 pytest -q                         | A=1 B=2 pytest
CI=1 PYTHONHASHSEED=0 A=1 pytest          | A=1 pytest
env A=1 timeout 9 pytest                  | A=1 pytest
A=$X pytest                               |
A=1 python -c x                           |
LD_PRELOAD=x pytest                       |
PATH=x pytest                             |
NODE_OPTIONS=x pytest                     |
GOFLAGS=x pytest                          |
GIT_SSH_COMMAND=x git fetch               |
API_TOKEN=x pytest                        |
"""


@pytest.mark.parametrize("written", OF_THE_WORKSPACE.strip().splitlines())
def test_what_is_remembered_of_a_program_by_its_path_and_of_what_is_set_for_it(
    written: str, here: CommandContext
) -> None:
    programs = here.folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name in ("python", "python3.12", "node", "pip", "ruff", "pytest", "other"):
        (programs / name).touch(0o755)
    system = here.folder.parent / "bin"
    system.mkdir()
    for name in ("python", "pytest", "git", "timeout", "env"):
        (system / name).touch(0o755)
    line, _, expected = written.replace("$PWD", str(here.folder)).rpartition("|")
    found = read(line.strip(), replace(here, environment={**here.environment, "PATH": str(system)}))
    assert found.commands[-1].prefix == (tuple(expected.split()) or None)
    assert read(f"LD_PRELOAD=y {line.strip()}", here).commands[-1].prefix is None


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("python script.py", ["script.py"]),
        ("bash run.sh x", ["run.sh"]),
        ("node app.js", ["app.js"]),
        ("make test", ["Makefile"]),
        ("npm run build", ["package.json"]),
        ("cargo build", ["Cargo.toml"]),
        ("pytest", ["conftest.py"]),
        ("uv run pytest", ["conftest.py"]),
        ("python -m script", ["script.py"]),
        ("git commit", []),
    ],
)
def test_what_is_run(line: str, runs: list[str], here: CommandContext) -> None:
    assert list(ask(line, here).runs) == [str(here.folder / each) for each in runs]


@pytest.mark.parametrize(
    ("line", "network", "git"),
    [
        ("git push", True, True),
        ("git pull --ff-only", True, True),
        ("git ls-remote", True, True),
        ("git submodule update --init", True, True),
        ("git commit -m x", False, True),
        ("git -c a.b=c fetch", True, True),
        ("npm install", True, False),
        ("npm ci", True, False),
        ("npm run build", False, False),
        ("pip install x", True, False),
        ("python -m pip install x", True, False),
        ("curl x", True, False),
        ("gh pr view", True, False),
        ("cargo fetch", True, False),
        ("cargo test", False, False),
        ("go get x", True, False),
        ("uv sync", True, False),
    ],
)
def test_what_is_needed(line: str, network: bool, git: bool, here: CommandContext) -> None:
    judged = ask(line, here)
    assert (judged.network, judged.git) == (network, git)


@pytest.mark.parametrize(
    ("line", "network"),
    [
        ("npx tsc --noEmit", False),
        ("npx tsc --config x", False),
        ("bunx tsc", False),
        ("npx prettier --check .", False),
        ("pnpx tsc", True),
        ("npx tsc@5", True),
        ("npx -y tsc", True),
        ("npx -p typescript tsc", True),
        ("npx jest", True),
        ("npx elsewhere", True),
        ("npx ../.bin/tsc", True),
        ("npx .", True),
        ("npx $X", True),
        ("npx", True),
    ],
)
def test_an_installed_package_needs_no_network(line: str, network: bool, here: CommandContext) -> None:
    """In the folder or above it, but not above the workspace."""
    folder = here.folder / "src"
    for name in (
        "project/node_modules/.bin/tsc",
        "project/src/node_modules/.bin/prettier",
        "node_modules/.bin/elsewhere",
    ):
        path = here.folder.parent / name
        path.parent.mkdir(parents=True)
        path.touch()
    assert ask(line, replace(here, folder=folder)).network == network
