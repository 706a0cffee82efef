"""The machine that commands meet: a home folder, programs on PATH, and nothing of whoever runs this."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench.questions.services import Services
from bench.subjects.environment import ROOT

_SYSTEM = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin")
_VENV = ROOT / ".venv"
_SCRIPTS = {
    "pytest": "from pytest import console_main as main",
    "pip": "from pip._internal.cli.main import main",
}
_LINKED = ("ruff", "uv", "rg")
_STAND_INS = Path(__file__).parent / "stand_ins"
_GITCONFIG = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n"
_LOGGED_IN = "github.com:\n    user: ada\n    oauth_token: gho_0000000000000000\n    git_protocol: https\n"


class Machine:
    """Everything is below `folder`."""

    def __init__(self, folder: Path, services: Services) -> None:
        self.home = folder / "home"
        self.tools = folder / "tools"
        self.home.mkdir()
        (self.home / ".gitconfig").write_text(_GITCONFIG)
        (self.home / ".config" / "gh").mkdir(parents=True)
        (self.home / ".config" / "gh" / "hosts.yml").write_text(_LOGGED_IN)
        make_environment(self.tools)
        programs = self.tools / "bin"
        for name in _LINKED:
            if (_VENV / "bin" / name).exists():
                (programs / name).symlink_to(_VENV / "bin" / name)
        for name in ("gh", "docker"):
            text = (_STAND_INS / f"{name}.py").read_text().replace("PORT = 0", f"PORT = {services.port}")
            write_program(programs / name, f"#!{programs / 'python'} -I\n{text}")
        self._link_pyright(programs)
        self._link_node(programs)
        path = [str(programs), *self._rust(), *_SYSTEM]
        self.environment = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(path),
            "LANG": "C.UTF-8",
            "SHELL": "/bin/bash",
            "USER": "ada",
            "CARGO_NET_OFFLINE": "true",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_DEFAULT_INDEX": services.packages,
            "PIP_INDEX_URL": services.packages,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "NPM_CONFIG_REGISTRY": services.registry,
            "NPM_CONFIG_UPDATE_NOTIFIER": "false",
        }

    @property
    def packages(self) -> Path:
        """Where pip installs to."""
        return _packages(self.tools)

    def has(self, program: str, root: Path) -> bool:
        """Whether it is on PATH, or among the programs of the project's packages."""
        path = f"{root / 'node_modules' / '.bin'}{os.pathsep}{self.environment['PATH']}"
        return shutil.which(program, path=path) is not None

    def _link_pyright(self, programs: Path) -> None:
        """What its package holds; the program of that name may fetch another."""
        program = _packages(_VENV) / "pyright" / "dist" / "index.js"
        if program.exists():
            write_program(programs / "pyright", f'#!/bin/sh\nexec node {program} "$@"\n')

    def _link_node(self, programs: Path) -> None:
        if shutil.which("node", path=os.pathsep.join(_SYSTEM)) is None:
            for name in ("node", "npm", "npx"):
                (programs / name).symlink_to(_VENV / "bin" / name)

    def _rust(self) -> list[str]:
        """The folder of cargo, where it is installed; rustup finds its toolchains in the home folder."""
        cargo = shutil.which("cargo")  # before this process gives up its own home folder
        if cargo is None:
            return []
        folder = Path(cargo).parent
        toolchains = Path(os.environ.get("RUSTUP_HOME") or Path.home() / ".rustup")
        if toolchains.is_dir():
            (self.home / ".rustup").symlink_to(toolchains)
        (self.home / ".cargo").mkdir()
        (self.home / ".cargo" / "bin").symlink_to(folder)
        return [str(self.home / ".cargo" / "bin")]


def make_environment(folder: Path) -> None:
    """A virtual environment with the packages of this checkout, and with programs that install nothing there."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (_packages(folder) / "checkout.pth").write_text(f"{_packages(_VENV)}\n")
    for name, imported in _SCRIPTS.items():
        write_program(
            folder / "bin" / name, f"#!{folder / 'bin' / 'python'}\nimport sys\n{imported}\n\nsys.exit(main())\n"
        )


def _packages(environment: Path) -> Path:
    return next((environment / "lib").glob("python3*")) / "site-packages"


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
