"""The roads by which a clone of this repository becomes a plugin of a real Neovim, and the daemon that it finds."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.required_programs import needs

ROOT = Path(__file__).parents[2]
SETUP = 'require("amanu").setup({ width = 50 })\n'
LAZY = r"""
vim.go.loadplugins = false
local function source(folder)
  for _, path in ipairs(vim.fn.glob(CLONE .. "/" .. folder .. "/**/*.{vim,lua}", false, true)) do
    vim.cmd.source(path)
  end
end
local function load()
  vim.opt.rtp:prepend(CLONE)
  source("plugin")
  local modules = {}
  for name, kind in vim.fs.dir(CLONE .. "/lua") do
    local known = kind == "directory" and vim.uv.fs_stat(CLONE .. "/lua/" .. name .. "/init.lua")
    table.insert(modules, (known or name:find("%.lua$")) and name:gsub("%.lua$", "") or nil)
  end
  assert(#modules == 1, vim.inspect(modules))
  require(modules[1]).setup({ width = 50 })
end
vim.loader.enable()
"""
"""The steps of lazy.nvim: it finds the main module by itself, and loads at the start or at the first command."""
WAYS = {
    "packadd, start": SETUP,
    "packadd, opt": "vim.cmd.packadd('amanu')\n" + SETUP,
    "packadd without the plugins' own turn": "vim.go.loadplugins = false\nvim.cmd.packadd('amanu')\n" + SETUP,
    "vim-plug": "vim.opt.rtp:prepend(CLONE)\n" + SETUP,
    "lazy.nvim": LAZY + "load()",
    "lazy.nvim, on a command": LAZY
    + """vim.api.nvim_create_user_command("Amanu", function(given)
      vim.api.nvim_del_user_command("Amanu")
      load()
      vim.cmd.Amanu(given.args)
    end, { nargs = "*" })
    vim.cmd("Amanu /hide")""",
    "the folder alone": "vim.opt.rtp:append(CLONE .. '/neovim')\n" + SETUP,
    "both": "vim.opt.rtp:prepend(CLONE)\nvim.opt.rtp:append(CLONE .. '/neovim')\n" + SETUP,
}
FOUND = r"""
vim.cmd("silent! helptags ALL")
vim.cmd.checkhealth("amanu")
local health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n")
vim.bo.syntax = "amanu"
local modules = vim.tbl_filter(function(name) return vim.startswith(name, "amanu") end, vim.tbl_keys(package.loaded))
local origins = {}
for name, loaded in pairs(package.loaded) do
  for _, each in pairs(vim.startswith(name, "amanu.") and type(loaded) == "table" and loaded or {}) do
    if type(each) == "function" then
      origins[debug.getinfo(each, "S").source:match("^@(.*/lua/amanu)/")] = true
    end
  end
end
io.stdout:write(vim.json.encode({
  command = vim.fn.exists(":Amanu") + vim.fn.exists(":AmanuEdit"),
  width = require("amanu.config").now.width,
  help = #vim.fn.getcompletion("amanu-setup", "help"),
  health = select(2, health:gsub("OK Neovim", "")),
  syntax = vim.b.current_syntax,
  folders = #vim.tbl_keys(origins),
  daemon = select(2, require("amanu.wire.client").command(vim.fn.getcwd())) or health:match("daemon: ([^\n]*)"),
}))
vim.cmd("qall!")
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The repository as git leaves it there, as far as a plugin is concerned."""
    clone = tmp_path / "site" / "pack" / "x" / "start" / "amanu"
    shutil.copytree(ROOT / "neovim", clone / "neovim", ignore=shutil.ignore_patterns("tags"))
    for link in (path for path in ROOT.iterdir() if path.is_symlink()):
        (clone / link.name).symlink_to(link.readlink())
    (clone / "Makefile").touch()
    return clone


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\necho 'amanu 9.9'\n")
    path.chmod(0o755)
    return path


def found(clone: Path, init: str, folder: Path, path: str = "/usr/bin:/bin") -> dict[str, Any]:
    """Answer of a Neovim with that init.lua, once it has started."""
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    script, ask = home / "init.lua", home / "ask.lua"
    site = json.dumps(str(clone.parents[3]))
    script.write_text(f"CLONE = {json.dumps(str(clone))}\nvim.opt.packpath:prepend({site})\n{init}")
    ask.write_text(FOUND)
    xdg = {f"XDG_{name}_HOME": str(home) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    done = subprocess.run(
        [os.environ.get("AMANU_NVIM") or needs("nvim"), "--headless", "-i", "NONE", "-u", script, "-S", ask],
        cwd=folder,
        env={"PATH": path, "HOME": str(home), **xdg},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_a_clone_is_a_plugin(way: str, clone: Path, tmp_path: Path) -> None:
    if way.startswith("packadd") and "start" not in way:
        (clone.parents[1] / "opt").mkdir()
        clone = clone.rename(clone.parents[1] / "opt" / "amanu")
    elif not way.startswith("packadd"):
        clone = clone.rename(tmp_path / "amanu")
    seen = found(clone, WAYS[way], tmp_path / "work")
    seen.pop("daemon")
    assert seen == {"command": 4, "width": 50, "help": 1, "health": 1, "syntax": "amanu", "folders": 1}


def test_the_daemon_is_the_one_of_the_clone_or_of_path(clone: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"

    def check(
        expected: str, *, where: Path = folder, path: str = "/usr/bin:/bin", cmd: list[str] | None = None
    ) -> None:
        given = f"require('amanu').setup({{ cmd = vim.json.decode({json.dumps(json.dumps(cmd))}) }})" if cmd else ""
        assert found(clone, given, where, path)["daemon"] == expected

    none = "no amanu program was found: {}, or name it: "
    none += 'require("amanu").setup({{ cmd = {{ "/path/to/amanu", "serve" }} }})'
    check(none.format(f"run `make` in {clone} (it needs Python 3.11 or newer), or put amanu on PATH"))
    on_path = program(tmp_path / "bin" / "amanu")
    both = f"{on_path.parent}:/usr/bin:/bin"
    check(f"{on_path} serve (from PATH)", path=both)
    built = program(clone / ".venv" / "bin" / "amanu")
    check(f"{built} serve (built in the plugin's checkout)")
    check(f"{built} serve (built in the plugin's checkout)", path=both)  # it has the plugin's own version
    check(f"{on_path} serve (from setup)", cmd=[str(on_path), "serve"])
    refused = "lies in the workspace, so it is not run; if it is yours, name it with cmd in setup()"
    check(f"{built} {refused}", where=clone)
    check(f"{on_path} serve (from PATH)", where=clone, path=both)  # who works on this plugin itself has one
    check(f"{built} {refused}", where=tmp_path, path=both)
    (clone / "Makefile").unlink()
    shutil.rmtree(clone / ".venv")
    check(f"{on_path} {refused}", where=on_path.parent, path=both)
    check(none.format("put it on PATH"))
