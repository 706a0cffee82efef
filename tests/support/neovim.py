"""A real Neovim, with a screen where a size is given, and the hands of a user at it: keys are typed, Lua is asked."""

import json
import socket
import struct
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PLUGIN = Path(__file__).parents[2] / "neovim"
WAIT = 50.0
"""Seconds for what must happen; a machine under load is slow."""

WITH_PLUGIN = r"""
vim.opt.rtp:prepend(%(plugin)s)
vim.g.mapleader = " "
require("amanu").setup(vim.json.decode(%(setup)s))
"""
HANDS = r"""
vim.o.swapfile = false
vim.g.loaded_python3_provider = 0 -- or it starts a dozen Pythons as soon as a file in Python is opened

-- A user's answers to what `vim.ui` asks, in order: text that a choice must hold, or what to type.
Asked, Answers, Said = {}, {}, {}
local function answer()
  return table.remove(Answers, 1)
end
vim.ui.select = function(items, options, chosen)
  local labels = vim.tbl_map(options.format_item or tostring, items)
  table.insert(Asked, { prompt = options.prompt, labels = labels })
  local wanted = answer()
  for at, label in ipairs(labels) do
    if wanted and label:find(wanted, 1, true) then
      return chosen(items[at], at)
    end
  end
  chosen(nil)
end
vim.ui.input = function(options, done)
  table.insert(Asked, { prompt = options.prompt, default = options.default })
  local typed = answer()
  done(typed == "<default>" and options.default or typed)
end
vim.notify = function(text)
  table.insert(Said, text)
end

-- The line to the test: a request and its answer are a line of JSON each.
Typed = 0
local server = assert(vim.uv.new_pipe())
assert(server:bind(%(socket)s))
server:listen(1, function()
  local line, unread = assert(vim.uv.new_pipe()), ""
  server:accept(line)
  line:read_start(vim.schedule_wrap(function(_, data)
    unread = unread .. (data or "")
    if not unread:find("\n$") then
      return
    end
    local given = vim.json.decode(unread, { luanil = { object = true, array = true } })
    unread = ""
    local ok, result = xpcall(function()
      return assert(loadstring(given.code))(unpack(given.arguments, 1, given.count))
    end, debug.traceback)
    local answer = ok and { result = result == nil and vim.NIL or result } or { error = result }
    line:write(vim.json.encode(answer) .. "\n")
  end))
end)
"""
SCREEN = """
vim.cmd.redraw()
local rows = {}
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do
    cells[column] = vim.fn.screenstring(row, column)
  end
  rows[row] = table.concat(cells)
end
return rows
"""
AREA = """
local buffer = assert(loadstring("return " .. ...))()
local window = vim.fn.getwininfo(vim.fn.win_findbuf(buffer)[1])[1]
return { window.winrow + window.winbar, window.wincol, window.height, window.width }
"""


def attach(columns: int, lines: int) -> bytes:
    """The request `nvim_ui_attach(columns, lines, {})`, in MessagePack."""
    name = b"nvim_ui_attach"
    return struct.pack(
        f">4B{len(name)}sBBHBHB", 0x94, 0, 1, 0xA0 + len(name), name, 0x93, 0xCD, columns, 0xCD, lines, 0x80
    )


class Neovim:
    """`command` is nvim's path; the editor starts in `folder` with those files open.

    With a `size`, columns and lines, a screen is attached: what Neovim draws on it is what `screen` returns.
    """

    CONFIGURED = WITH_PLUGIN
    """What the user has in init.lua."""

    def __init__(
        self,
        command: str,
        home: Path,
        folder: Path,
        files: Sequence[str] = (),
        size: tuple[int, int] | None = None,
        **setup: Any,
    ) -> None:
        path = home / "s"
        init = home / "init.lua"
        values = {"plugin": json.dumps(str(PLUGIN)), "setup": f"[==[{json.dumps(setup)}]==]", "socket": f"'{path}'"}
        init.write_text((self.CONFIGURED + HANDS) % values)
        self.process = subprocess.Popen(
            [command, "--embed", *([] if size else ["--headless"]), "-i", "NONE", "-u", str(init), *files],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if size:
            assert self.process.stdin is not None
            self.process.stdin.write(attach(*size))  # Neovim waits for it before it reads init.lua
            self.process.stdin.flush()
        self._line = socket.socket(socket.AF_UNIX)
        self._line.settimeout(WAIT + 10)
        end = time.monotonic() + WAIT
        while self._line.connect_ex(str(path)) != 0:
            assert time.monotonic() < end and self.process.poll() is None, "Neovim did not start"
            time.sleep(0.01)
        self._answers = self._line.makefile("rb")
        self._typed = 0

    def lua(self, code: str, *arguments: Any) -> Any:
        """What that chunk of Lua returns, through JSON; its `...` are the arguments."""
        given = {"code": code, "arguments": arguments, "count": len(arguments)}
        self._line.sendall(json.dumps(given).encode() + b"\n")
        answer = json.loads(self._answers.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def keys(self, keys: str) -> None:
        """As typed, in Neovim's notation; returns when they have worked."""
        self._typed += 1
        self.lua("vim.api.nvim_input(...)", f"{keys}<Cmd>lua Typed = {self._typed}<CR>")
        self.until("Typed == ...", self._typed)

    def until(self, condition: str, *arguments: Any) -> Any:
        """Wait until that Lua expression is true; its value. What the user would see is told when it never is."""
        end = time.monotonic() + WAIT
        while not (found := self.lua(f"return {condition}", *arguments)):
            assert time.monotonic() < end, (
                f"never: {condition}\n{self.chat()}\nsaid: {self.lua('return Said')}\n"
                f"{self.lua('return vim.fn.execute([[messages]])')}"
            )
            time.sleep(0.01)
        return found

    def wait_for_answers(self) -> None:
        """Half a second after a question, answers are taken."""
        self.until("#require('amanu.session').state.approvals > 0")
        time.sleep(0.55)

    def chat(self) -> str:
        """The text of the chat buffer."""
        return self.lua(
            "local b = require('amanu.chat.view').buffer "
            "return b and table.concat(vim.api.nvim_buf_get_lines(b, 0, -1, true), '\\n') or ''"
        )

    def screen(self) -> list[str]:
        """What is drawn, a string per line of the screen."""
        return self.lua(SCREEN)

    def window(self, buffer: str) -> str:
        """What is drawn of the window that shows that buffer, a Lua expression; without empty lines."""
        top, left, height, width = self.lua(AREA, buffer)
        rows = self.screen()[top - 1 : top - 1 + height]
        return "\n".join(filter(None, (row[left - 1 : left - 1 + width].rstrip() for row in rows)))

    def text(self) -> str:
        """The current buffer, lines joined by line feeds."""
        return self.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n')")

    def until_text(self, text: str) -> None:
        """Wait until the current buffer holds it: a hunk counts as accepted a moment before it is there."""
        self.until("table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), '\\n') == ...", text)

    def answer(self, *answers: str) -> None:
        """What the user will choose and type at the next questions of `vim.ui`."""
        self.lua("vim.list_extend(Answers, {...})", *answers)

    def close(self) -> None:
        self._answers.close()
        self._line.close()
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
