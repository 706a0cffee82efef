---Keys, and signing in with ChatGPT: runs the daemon's program in a Neovim terminal, where its output can be read and it can
---be cancelled, and a key is typed without echo.

local client = require("amanu.wire.client")
local say = require("amanu.say")
local session = require("amanu.session")

local M = {}

local HEIGHT = 12 -- lines

---@param verb "login"|"logout"|"set"
---@param vendor string
function M.open(verb, vendor)
  local command, why = client.command(session.root())
  if not command then
    return say.error(why or "")
  end
  local argv = vim.list_slice(command)
  if argv[#argv] == "serve" then
    table.remove(argv)
  end
  vim.list_extend(argv, { "auth", verb, vendor })
  local options = { cwd = "/", on_exit = require("amanu.sessions.sessions").look_for_model }
  vim.cmd("botright " .. HEIGHT .. "new")
  if vim.fn.has("nvim-0.11") == 1 then
    vim.fn.jobstart(argv, vim.tbl_extend("error", options, { term = true }))
  else
    vim.fn.termopen(argv, options)
  end
  if verb == "set" then
    vim.cmd.startinsert() -- the key is typed next
  end
end

return M
