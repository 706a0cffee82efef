---Signing in with ChatGPT: runs the daemon's program in a Neovim terminal, where its output can be read and it can be
---cancelled.

local client = require("amanu.client")
local say = require("amanu.say")
local session = require("amanu.session")

local M = {}

local HEIGHT = 12 -- lines

---@param verb "login"|"logout"
function M.open(verb)
  local command, why = client.command(session.root())
  if not command then
    return say.error(why or "")
  end
  local argv = vim.list_slice(command)
  if argv[#argv] == "serve" then
    table.remove(argv)
  end
  vim.list_extend(argv, { "auth", verb, "openai" })
  vim.cmd("botright " .. HEIGHT .. "new")
  if vim.fn.has("nvim-0.11") == 1 then
    vim.fn.jobstart(argv, { cwd = "/", term = true })
  else
    vim.fn.termopen(argv, { cwd = "/" })
  end
end

return M
