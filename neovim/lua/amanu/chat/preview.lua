---What going back would do, in a window above the others: read it, then press a key that does it, or `q`.

local rows = require("amanu.review.rows")
local visible = require("amanu.visible")

local M = {}

local NARROW, WIDE = 40, 110

---@param path string
---@return string
local function name(path)
  return visible.line(vim.fn.fnamemodify(path, ":."))
end

---@param file amanu.UndoneFile
---@return string
local function action(file)
  local count = #file.undone
  local what = ({
    edit = ("%d change%s will be undone"):format(count, count == 1 and "" or "s"),
    create = "will be restored",
    delete = "will be deleted, since Amanu created it",
    rename = "will be renamed to " .. name(file.newPath or ""),
    none = "stays as it is",
  })[file.action]
  return ("%s: %s"):format(name(file.path), what or file.action)
end

---Whether it is a row: its title stands in place of a diff.
---@param file amanu.UndoneFile
---@return boolean
local function is_row(file)
  local one = file.undone[1] or file.skipped[1]
  return one ~= nil and rows.has(one.hunkId)
end

---@param files amanu.UndoneFile[]
---@param commands string[] What those did stays.
---@return string[]
local function lines(files, commands)
  local found, diffs = {}, {}
  for _, file in ipairs(files) do
    local row = is_row(file)
    table.insert(found, action(file) .. (row and (" (%s)"):format(visible.line(vim.trim(file.diff))) or ""))
    for _, skipped in ipairs(file.skipped) do
      table.insert(found, "  ! a change stays: " .. visible.line(skipped.reason))
    end
    if file.diff ~= "" and not row then
      vim.list_extend(diffs, { "" })
      vim.list_extend(diffs, visible.lines(visible.text(file.diff)))
    end
  end
  if #files == 0 then
    table.insert(found, "No file changes.")
  end
  if #commands > 0 then
    vim.list_extend(found, { "", "Not covered, what these commands changed:" })
    for _, command in ipairs(commands) do
      table.insert(found, "  " .. visible.line(command))
    end
  end
  return vim.list_extend(found, diffs)
end

---@class amanu.PreviewKey
---@field key string
---@field what string
---@field run fun()

---@param title string
---@param files amanu.UndoneFile[]
---@param commands string[]
---@param keys amanu.PreviewKey[]
function M.undo(title, files, commands, keys)
  local text = lines(files, commands)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, text)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].syntax = "diff"
  local help, widest = {}, vim.fn.strdisplaywidth(title) + 4
  for _, each in ipairs(keys) do
    table.insert(help, each.key .. " " .. each.what)
  end
  table.insert(help, "q close")
  local footer = " " .. table.concat(help, " · ") .. " "
  for _, line in ipairs({ footer, unpack(text) }) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line))
  end
  local width = math.min(math.max(widest, NARROW), WIDE, vim.o.columns - 4)
  local height = math.min(#text, math.max(3, vim.o.lines - 8))
  local window = vim.api.nvim_open_win(buffer, true, {
    relative = "editor",
    row = math.floor((vim.o.lines - height) / 3),
    col = math.floor((vim.o.columns - width) / 2),
    width = width,
    height = height,
    style = "minimal",
    border = "rounded",
    title = " " .. visible.line(title, width - 4) .. " ",
    footer = footer,
  })
  local function close()
    if vim.api.nvim_win_is_valid(window) then
      vim.api.nvim_win_close(window, true)
    end
  end
  for _, key in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", key, close, { buffer = buffer, nowait = true, desc = "Amanu: close" })
  end
  for _, each in ipairs(keys) do
    vim.keymap.set("n", each.key, function()
      close()
      each.run()
    end, { buffer = buffer, nowait = true, desc = "Amanu: " .. each.what })
  end
end

return M
