---Completion of `@…` and `/command`, in the prompt (omnifunc) and on the command line.

local protocol = require("amanu.protocol")
local session = require("amanu.session")

local M = {}

local WAIT_MS = 1000 -- for the daemon's answer: Neovim waits, and so does the user

---@param text string What stands before the cursor, on its line.
---@return { typed: string, items: amanu.MentionItem[] }
local function ask(text)
  local state = session.state
  local params = { text = text, sessionId = state and state.sessionId, roots = not state and { session.root() } or nil }
  return require("amanu.wire.client").request_sync(protocol.methods.mention_complete, params, WAIT_MS) or { typed = "", items = {} }
end

---@param base string
---@return { name: string, what: string }[]
local function commands(base)
  return vim.tbl_filter(function(each)
    return vim.startswith(each.name, base)
  end, require("amanu.chat.commands").list())
end

---'omnifunc' of the prompt.
---@param find_start integer
---@param base string
function M.omni(find_start, base)
  if find_start == 1 then
    local before = vim.api.nvim_get_current_line():sub(1, vim.api.nvim_win_get_cursor(0)[2])
    local at = before:find('@"?[^%s@]*$') or before:find("^/%S*$")
    return at and at - 1 or -3
  end
  if vim.startswith(base, "/") then
    local words = vim.tbl_map(function(each)
      return { word = each.name, menu = each.what }
    end, commands(base))
    return { words = words, refresh = "always" }
  end
  local found = ask(base)
  local words = vim.tbl_map(function(item)
    return { word = item.text, menu = item.detail }
  end, found.items)
  if found.incomplete then -- every further key asks again
    table.insert(words, { word = base, abbr = "…", menu = "still reading the files", dup = 1, empty = 1 })
  end
  return { words = words, refresh = "always" }
end

---For `:Amanu`.
---@param lead string
---@param line string
---@return string[]
function M.command_line(lead, line)
  if vim.startswith(lead, "@") then
    return vim.tbl_map(function(item)
      return item.text
    end, ask(lead).items)
  end
  local command = require("amanu.chat.commands").all[line:match("Amanu%s+(/%S+)%s+%S*$")]
  if command then
    return vim.tbl_filter(function(word)
      return vim.startswith(word, lead)
    end, command.words or {})
  elseif vim.startswith(lead, "/") or line:find("Amanu%s+$") then
    return vim.tbl_map(function(each)
      return each.name
    end, commands(lead))
  end
  return {}
end

return M
