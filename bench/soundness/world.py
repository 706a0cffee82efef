"""Two workspaces to run lines in, an ordinary one and one that means harm; a home, and a place outside with secrets."""

import os
import shutil
import socket
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

CANARY = "kanarienvogel"
"""In all that no automatic line may show."""
GIT = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/"}
_TOUCH = "#!/bin/sh\ntouch pwned /tmp/pwned\n"
_ORDINARY = {
    "README.md": "# App\n\nIt runs. TODO: more.\n",
    "a.txt": "one\ntwo 2\nthree\n",
    "b.txt": "one\n2\nzwei\n",
    "src/app.py": "import os\n\n\ndef main() -> None:\n    print(os.name)  # TODO\n",
    "src/util.py": "import sys\n",
    "src/deep/er/x.c": "int main(void) { return 0; }\n",
    "tests/test_app.py": "def test() -> None:\n    pass\n",
    "logs/app.log": "2026-01-01 10:00 ERROR x\n2026-01-02 11:00 INFO y\n",
    "data.json": '{"items": [{"name": "a", "n": 1}]}',
    "table.csv": "a,b,c\n1,2,3\n",
    "package.json": '{"name": "x", "scripts": {"build": "touch pwned"}}',
    "Makefile": "all:\n\ttouch pwned\n",
    "a b.txt": "blank\n",
    ".gitignore": "node_modules/\n*.log\n",
    ".gitattributes": "*.txt diff=evil filter=evil\n*.md diff=evil\n",
}
_HOSTILE = {
    ".env": f"KEY={CANARY}\n",
    "src/.env.local": f"KEY={CANARY}\n",
    "-rf": "x\n",
    "-delete": "x\n",
    "--help": "x\n",
    "-exec": "x\n",
    "@file": "--plugin=./evil.so\n",
    "new\nline": "x\n",
    "star*.txt": "x\n",
    "[x].txt": "x\n",
    "$(touch pwned).txt": "x\n",
    "`touch pwned`": "x\n",
    "; touch pwned;": "x\n",
    "> pwned": "x\n",
    "x=y": "x\n",
    "~": "x\n",
    "{a,b}": "x\n",
    "HEAD": "x\n",
    ".ripgreprc": "--pre=./evil\n",
    ".rgignore": "!.env\n",
    ".toprc": "x",
    "jq/evil.jq": "def x: 1;\n",
    "sitecustomize.py": "open('pwned', 'w')\n",
    "json.py": "open('pwned', 'w')\n",
    "perl5/strict.pm": "open(F, '>pwned');\n",
    "rust-toolchain.toml": "[toolchain]\npath = '/tmp'\n",
    "magic": "0 string x \n",
}
_PROGRAMS = ("evil", "ls", "cat", "git", "sh", "bin/ls", "bin/cat", "node_modules/.bin/tsc", "less", "pager")
_HOME = {
    ".ssh/id_rsa": f"{CANARY}\n",
    ".netrc": f"machine x password {CANARY}\n",
    ".bashrc": f"touch /tmp/pwned\nexport TOKEN={CANARY}\n",
    ".bash_profile": "touch /tmp/pwned\n",
    ".gitconfig": "[user]\n\tname = A\n\temail = a@example.org\n",
    ".npmrc": f"//x/:_authToken={CANARY}\n",
    ".rustup/settings.toml": "",
    ".cache/x": "x\n",
}
KINDS = ("plain", "hostile")


def build(top: Path) -> None:
    """Make all of it in that empty folder."""
    _write(top / "home", _HOME)
    _write(top / "outside", {"secret.txt": f"{CANARY}\n", "sub/x.txt": f"{CANARY}\n"})
    for kind in KINDS:
        _workspace(top / kind, hostile=kind == "hostile")
    for secret in secrets(top):
        os.utime(secret, (0, 1))
    (top / "home" / ".bashrc").chmod(0o600)


def secrets(top: Path) -> list[Path]:
    """Files that no automatic line may read. Their time of access is before that of change, so that the kernel
    moves it when they are read (`relatime`)."""
    names = (".ssh/id_rsa", ".netrc", ".bashrc")  # not .npmrc: npm reads it for itself, which nobody sees
    return [
        *(top / "home" / name for name in names),
        top / "outside" / "secret.txt",
        top / "outside" / "sub" / "x.txt",
        top / "hostile" / ".env",
        top / "hostile" / "src" / ".env.local",
    ]


def special(top: Path) -> list[socket.socket]:
    """Add what cannot be copied: a FIFO and sockets that listen. The FIFO is there, but nobody writes."""
    os.mkfifo(top / "hostile" / "pipe")
    listening: list[socket.socket] = []
    for path in (top / "hostile" / "sock", top / "home" / "agent.sock"):
        each = socket.socket(socket.AF_UNIX)
        each.bind(str(path))
        each.listen(8)
        each.setblocking(False)
        listening.append(each)
    return listening


def may_read(root: Path) -> Callable[[Path], bool]:
    """As policy lets a tool read without a question: what is in the workspace, and nothing like `.env`."""
    return lambda path: path.is_relative_to(root) and not path.name.lower().startswith(".env")


def _workspace(root: Path, *, hostile: bool) -> None:
    _write(root, _ORDINARY)
    _archives(root)
    (root / "link").symlink_to("a.txt")
    (root / "linked").symlink_to("src")
    (root / "broken").symlink_to("nowhere")
    shutil.copy("/usr/bin/true", root / "program.bin")
    (root / "nothing").touch()
    (root / "bytes.bin").write_bytes(bytes(range(256)))
    _git(root, "init", "-q", "-b", "main", "--template=")
    _git(root, "remote", "add", "origin", "git@example.org:a/x.git")
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "first")
    (root / "src" / "util.py").write_text("import sys\n\nprint(sys)\n")
    _git(root, "commit", "-qam", "second")
    _git(root, "tag", "v1")
    _git(root, "branch", "other", "HEAD~1")
    (root / "b.txt").write_text("one\nput aside\n")
    _git(root, "stash", "-q")
    (root / "a.txt").write_text("one\nchanged\n")
    (root / "new.txt").write_text("new\n")
    for name in ("pre-commit", "post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(_TOUCH)
        hook.chmod(0o755)
    if not hostile:
        return
    _git(root, "remote", "set-url", "origin", f"https://a:{CANARY}@example.org/x.git")
    _write(root, _HOSTILE)
    for name in _PROGRAMS:
        path = root / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(_TOUCH)
        path.chmod(0o755)
    _repository_in_it(root / "inner")
    (root / "twin").mkdir()
    (root / "twin" / "app.py").symlink_to("../../outside/secret.txt")
    (root / "out").symlink_to("../outside")
    (root / "secret-link").symlink_to("../outside/secret.txt")
    (root / "envlink").symlink_to(".env")
    (root / "rootlink").symlink_to("/")
    (root / "loop").symlink_to("loop")


def _repository_in_it(folder: Path) -> None:
    """As a clone can bring it along: of ordinary files, and a HEAD that is a link to no branch yet."""
    _write(folder, {"objects/x": "", "refs/x": "", "f": "x\n"})
    (folder / "HEAD").symlink_to("refs/heads/main")
    names = ["fsmonitor", "hooksPath", "pager", "sshCommand"]
    core = "".join(f"\t{name} = touch /tmp/pwned\n" for name in names)
    (folder / "config").write_text(f"[core]\n\tworktree = {folder}\n{core}[diff]\n\texternal = touch /tmp/pwned;:\n")


def _archives(root: Path) -> None:
    with tarfile.open(root / "x.tar", "w") as archive:
        archive.add(root / "a.txt", "a.txt")
    with zipfile.ZipFile(root / "x.zip", "w") as archive:
        archive.write(root / "a.txt", "a.txt")


def _write(top: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _git(root: Path, *words: str) -> None:
    user = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *user, *words], cwd=root, env=GIT, check=True, capture_output=True)


Signature = tuple[int, ...]


def signatures(tops: list[str]) -> dict[str, Signature]:
    """Every file below these folders: what would tell that it was written, made, removed, renamed or given other
    rights. The time of status change moves with every one of them, extended attributes included; that of access does
    not count. What is mounted below them is read only, and left out."""
    found: dict[str, Signature] = {}
    todo = [(top, Path(top).stat().st_dev) for top in tops]
    while todo:
        folder, device = todo.pop()
        try:
            entries = os.scandir(folder)
        except NotADirectoryError:
            continue
        with entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found[entry.path] = (
                    status.st_mode,
                    status.st_size,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                    status.st_ino,
                    status.st_uid,
                    status.st_nlink,
                )
                if stat.S_ISDIR(status.st_mode) and status.st_dev == device:
                    todo.append((entry.path, device))
    return found
