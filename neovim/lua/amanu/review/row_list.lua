---The list of rows: they have no lines in a file, so they stand in a buffer of their own, in the order of the proposals,
---and are decided there with the keys of the hunks.

local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local rows = require("amanu.review.rows")
local sight = require("amanu.review.sight")

local M = {}

M.NAME = "amanu://changes"

local SPACE = vim.api.nvim_create_namespace("amanu.rows")

local TONES = { good = "DiagnosticOk", warning = "DiagnosticWarn", bad = "DiagnosticError" }

---The number of changes accepted with it, in words; "" for none.
---@param row amanu.Row
---@return string
local function with_needed(row)
  local count = #(row.needs or {})
  return count > 0 and (" with %d change%s it needs"):format(count, count == 1 and "" or "s") or ""
end

---The keys that decide it.
---@param place amanu.RowPlace
---@return string "" if there are none.
local function keys(place)
  local row = place.row
  if not rows.decidable(row) then
    return ""
  elseif hunks.open(row) then
    local in_conflict = row.state == "conflicted"
    local yes = (in_conflict and "try again" or "accept") .. with_needed(row)
    local help = config.help({ { "accept", yes }, { "reject", "reject" } })
    return help .. (in_conflict and config.help({ { "retry", "ask for it again" } }) or "")
  elseif hunks.unreviewed(row) then
    return config.help({ { "accept", "keep" }, { "reject", "undo" } })
  elseif hunks.applied(row) then
    return config.help({ { "undo", "undo" } })
  end
  return rows.can_return(row) and config.help({ { "redo", "bring it back" } }) or ""
end

---@type integer?
local buffer = nil
---@type { id: string, first: integer, last: integer }[] Its rows in order; `last` is exclusive.
local blocks = {}

---@return integer?
local function loaded()
  return buffer and vim.api.nvim_buf_is_loaded(buffer) and buffer or nil
end

---The window of the current tab that shows the rows.
---@return integer?
local function shown_in()
  local there = loaded()
  for _, window in ipairs(there and vim.api.nvim_tabpage_list_wins(0) or {}) do
    if vim.api.nvim_win_get_buf(window) == there then
      return window
    end
  end
end

---@param id string
---@return { id: string, first: integer, last: integer }?
local function block(id)
  return vim.iter(blocks):find(function(each)
    return each.id == id
  end)
end

---@param line integer
---@return string? id
local function row_at(line)
  for _, each in ipairs(blocks) do
    if line >= each.first and line < each.last then
      return each.id
    end
  end
end

---@class amanu.DrawnLine
---@field text string
---@field group? string Its highlight group.

---@return amanu.DrawnLine[]
local function fill()
  local lines, numbers = {}, rows.numbers()
  blocks = {}
  for _, place in ipairs(rows.all(nil, rows.any)) do
    local first = #lines
    for at, line in ipairs(rows.told(place.row)) do
      table.insert(lines, { text = line.text, group = at == 1 and "Title" or TONES[line.tone] })
    end
    local help = keys(place)
    if help ~= "" then
      table.insert(lines, { text = ("  amanu%s%s"):format(numbers[place.id] and " " .. numbers[place.id] or "", help), group = "AmanuHint" })
    end
    table.insert(blocks, { id = place.id, first = first, last = #lines })
  end
  return #lines > 0 and lines or { { text = "No other changes." } }
end

---Draw the rows anew, where they are shown. Each window stays at its row.
function M.refresh()
  local there = loaded()
  if not there then
    return
  end
  local kept = {} ---@type table<integer, string>
  for _, window in ipairs(vim.fn.win_findbuf(there)) do
    kept[window] = row_at(vim.api.nvim_win_get_cursor(window)[1] - 1)
  end
  local lines = fill()
  vim.bo[there].modifiable = true
  local texts = vim.tbl_map(function(line)
    return line.text
  end, lines)
  vim.api.nvim_buf_set_lines(there, 0, -1, true, texts)
  vim.bo[there].modifiable = false
  vim.api.nvim_buf_clear_namespace(there, SPACE, 0, -1)
  for at, line in ipairs(lines) do
    if line.group then
      vim.api.nvim_buf_set_extmark(there, SPACE, at - 1, 0, { end_row = at - 1, end_col = #line.text, hl_group = line.group })
    end
  end
  for window, id in pairs(kept) do
    local at = block(id)
    vim.api.nvim_win_set_cursor(window, { at and at.first + 1 or 1, 0 })
  end
end

---@return integer buffer
local function make()
  local there = loaded()
  if there then
    return there
  end
  local made = vim.api.nvim_create_buf(false, true)
  buffer = made
  vim.api.nvim_buf_set_name(made, M.NAME)
  vim.bo[made].undolevels = -1
  require("amanu.review.keys").give(made)
  vim.api.nvim_create_autocmd("BufWinEnter", {
    buffer = made,
    callback = function()
      local options = { wrap = true, linebreak = true, breakindent = true, breakindentopt = "shift:4", signcolumn = "no" }
      for option, value in pairs(options) do
        vim.wo[0][0][option] = value
      end
    end,
  })
  M.refresh()
  return made
end

---The place of a row in the buffer, for lists.
---@param place amanu.RowPlace
---@return integer buffer
---@return integer line 1-based.
function M.place(place)
  local here = make()
  local there = block(place.id)
  return here, there and there.first + 1 or 1
end

---@param shown integer A buffer.
---@return boolean
function M.is(shown)
  return shown == loaded()
end

---Lines of the buffer where a row to review begins; nil for other buffers.
---@param shown integer
---@return integer[]? rows 0-based.
function M.stops(shown)
  if not M.is(shown) then
    return nil
  end
  local found = {}
  for _, place in ipairs(rows.all()) do
    local there = block(place.id)
    table.insert(found, there and there.first)
  end
  return found
end

---The window the user reviews rows in: the current one, or one that shows them where no file is in sight.
---@return integer?
local function review_window()
  if M.is(vim.api.nvim_get_current_buf()) then
    return vim.api.nvim_get_current_win()
  end
  return not require("amanu.wire.context").file_window() and shown_in() or nil
end

---The row under the cursor.
---@param which? amanu.Which Any, if not given.
---@return amanu.RowPlace?
---@return integer first Line of it in the buffer, 0-based.
---@return integer last Exclusive.
function M.current(which)
  local shown = review_window()
  local id = shown and row_at(vim.api.nvim_win_get_cursor(shown)[1] - 1)
  local there = id and block(id)
  for _, place in ipairs(there and rows.all(nil, which or rows.any) or {}) do
    if there and place.id == id then
      return place, there.first, there.last
    end
  end
  return nil, 0, 0
end

---Show the rows, with the cursor on one.
---@param id? string That one; else the first to review.
function M.show(id)
  local shown = make()
  local at = shown_in() or require("amanu.wire.context").file_window()
  if not at then
    vim.cmd("tab sbuffer " .. shown)
  else
    vim.api.nvim_set_current_win(at)
    vim.cmd("normal! m'")
    local ok, why = pcall(vim.cmd.buffer, shown)
    if not ok then
      return require("amanu.say").error(tostring(why))
    end
  end
  local first = rows.all()[1]
  local there = block(id or first and first.id or "")
  if there then
    vim.api.nvim_win_set_cursor(0, { there.first + 1, 0 })
    sight.show(there.first, there.last)
  end
end

return M
