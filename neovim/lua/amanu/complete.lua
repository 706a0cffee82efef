---Completion of `@file` and `/command`, in the prompt (omnifunc) and on the command line.

local session = require("amanu.session")

local M = {}

local MOST = 50
local KEEP_MS = 5000
local MOST_FILES = 50000
local LISTERS = {
  { "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z" },
  { "rg", "--files", "--null" },
}

local cache = { root = "", at = 0, files = {} }

---@param root string
---@return string[]
local function list(root)
  for _, command in ipairs(LISTERS) do
    if vim.fn.executable(command[1]) == 1 then
      local done = vim.system(command, { cwd = root, timeout = 2000 }):wait()
      if done.code == 0 then
        return vim.split(done.stdout, "\0", { plain = true, trimempty = true })
      end
    end
  end
  local files = {}
  local options = {
    depth = 8,
    skip = function(name)
      return not vim.startswith(vim.fs.basename(name), ".")
    end,
  }
  for name, kind in vim.fs.dir(root, options) do
    if kind == "file" then
      table.insert(files, name)
      if #files >= MOST_FILES then
        break
      end
    end
  end
  return files
end

---@return string[] Paths below the workspace folder.
local function files()
  local root = session.root()
  if cache.root ~= root or vim.uv.now() - cache.at > KEEP_MS then
    cache = { root = root, files = list(root), at = vim.uv.now() }
  end
  return cache.files
end

---@param base string Without the `@`.
---@return string[] As they go into a prompt.
local function mentions(base)
  base = base:gsub('^"', "")
  local found = base == "" and files() or vim.fn.matchfuzzy(files(), base)
  return vim.tbl_map(function(path)
    return path:find("[%s\"'`,;:!?()]") and ('@"%s"'):format(path) or "@" .. path
  end, vim.list_slice(found, 1, MOST))
end

---@param base string
---@return { name: string, what: string }[]
local function commands(base)
  return vim.tbl_filter(function(each)
    return vim.startswith(each.name, base)
  end, require("amanu.commands").list())
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
  return { words = mentions(base:sub(2)), refresh = "always" }
end

---For `:Amanu`.
---@param lead string
---@param line string
---@return string[]
function M.command_line(lead, line)
  if vim.startswith(lead, "@") then
    return mentions(lead:sub(2))
  end
  local command = require("amanu.commands").all[line:match("Amanu%s+(/%S+)%s+%S*$")]
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
