---Hunks where they belong: marks in the file's buffer that move along with what the user types. Nothing of a proposal is
---in the buffer's text before it was accepted, by the user or by a rule.

local apply = require("amanu.wire.apply")
local config = require("amanu.config")
local drawing = require("amanu.review.drawing")
local files = require("amanu.review.files")
local hunks = require("amanu.review.hunks")
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")

local M = {}

local SPACE = drawing.SPACE

---@class amanu.Mark
---@field id string Of the hunk.
---@field mark integer Extmark over its lines, which moves as the user types.

---@type table<integer, amanu.Mark[]> Per buffer, in the order of its places.
local marks = {}
---@type table<integer, boolean> Buffers that are drawn anew when they come into a window.
local outdated = {}
---@type table<integer, boolean> Buffers that show what applied hunks replaced.
local with_old = {}

---@param buffer integer
---@param drawn amanu.Mark
---@return integer? first row; nil when the buffer was read again, which takes its marks away.
---@return integer? last row, exclusive
local function span(buffer, drawn)
  local mark = vim.api.nvim_buf_get_extmark_by_id(buffer, SPACE, drawn.mark, { details = true })
  return mark[1], mark[3] and mark[3].end_row or mark[1]
end

---The place of a hunk's lines in the buffer: the daemon's, unless it has not seen yet what the user typed. The mark
---went along with that.
---@param buffer integer
---@param place amanu.Place
---@param first? integer Of the mark.
---@param last? integer
---@return integer first row
---@return integer last row, exclusive
local function locate(buffer, place, first, last)
  local lines, count = place.hunk.lines, vim.api.nvim_buf_line_count(buffer)
  if first and last and place.file.baseVersion ~= vim.lsp.util.buf_versions[buffer] then
    return first, last
  end
  return math.min(lines.start, count), math.min(lines["end"], count)
end

---@param buffer integer
---@param place amanu.Place
---@param row integer
---@param last integer Exclusive.
---@param number string
---@return amanu.Mark
local function mark(buffer, place, row, last, number)
  if hunks.unreviewed(place.hunk) then
    drawing.applied(buffer, place, row, last, number, with_old[buffer])
  else
    drawing.open(buffer, place, row, number)
  end
  -- A mark may be behind the last line, too: for lines that come there.
  local over = vim.api.nvim_buf_set_extmark(buffer, SPACE, row, 0, { end_row = last, end_col = 0, strict = false })
  return { id = place.hunk.hunkId, mark = over }
end

---@param buffer integer
---@param which? amanu.Which
---@return amanu.Place[]
local function of_buffer(buffer, which)
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype ~= "" or name == "" then
    return {}
  end
  return hunks.all(apply.real(name), which)
end

---Draw the hunks of a buffer's file anew.
---@param buffer integer
function M.draw(buffer)
  outdated[buffer] = nil
  local before = {}
  for _, drawn in ipairs(marks[buffer] or {}) do
    before[drawn.id] = { span(buffer, drawn) }
  end
  vim.api.nvim_buf_clear_namespace(buffer, SPACE, 0, -1)
  local found, numbers = of_buffer(buffer), rows.numbers()
  marks[buffer] = #found > 0 and {} or nil
  for _, place in ipairs(found) do
    local first, last = locate(buffer, place, unpack(before[place.id] or {}))
    table.insert(marks[buffer], mark(buffer, place, first, last, numbers[place.id]))
  end
  if #found > 0 then
    require("amanu.review.keys").give(buffer)
    drawing.make_room(buffer)
  end
  for _, place in ipairs(of_buffer(buffer, hunks.applied)) do
    if place.file.change == "delete" and not vim.uv.fs_stat(place.path) then
      local undo = config.key("undo")
      local text = "amanu: this file is deleted" .. (undo ~= "" and " · " .. undo .. " brings it back" or "")
      drawing.put(buffer, 0, { virt_text = { { text, "AmanuHint" } }, sign_text = "!", sign_hl_group = "AmanuSign" })
    end
  end
end

---A file was shown to the daemon.
---@param buffer integer
function M.begin(buffer)
  require("amanu.review.keys").give(buffer)
  M.draw(buffer)
end

---After a change of proposals: all loaded files, or those of one proposal.
---@param proposal? amanu.Proposal
function M.refresh(proposal)
  local buffers = {}
  for _, file in ipairs(proposal and proposal.files or {}) do
    for _, path in ipairs({ file.path, file.newPath }) do
      local buffer = apply.find(path)
      if buffer then
        table.insert(buffers, files.read_again(buffer, file))
      end
    end
  end
  vim.list_extend(buffers, proposal and vim.tbl_keys(marks) or vim.api.nvim_list_bufs()) -- numbers are of all files
  for _, buffer in ipairs(vim.fn.uniq(vim.fn.sort(buffers))) do
    if #vim.fn.win_findbuf(buffer) == 0 then
      outdated[buffer] = true -- there may be many, and nobody sees them
    elseif vim.api.nvim_buf_is_loaded(buffer) then
      M.draw(buffer)
    end
  end
  require("amanu.review.diff").refresh()
  row_list.refresh()
  require("amanu.review.quickfix").refresh()
end

local group = vim.api.nvim_create_augroup("amanu.review", {})
vim.api.nvim_create_autocmd("BufWinEnter", {
  group = group,
  callback = function(given)
    if outdated[given.buf] then
      M.draw(given.buf)
    end
  end,
})
vim.api.nvim_create_autocmd("WinResized", {
  group = group,
  callback = function()
    for _, window in ipairs(vim.v.event.windows) do
      local buffer = vim.api.nvim_win_is_valid(window) and vim.api.nvim_win_get_buf(window)
      if marks[buffer] then
        M.draw(buffer)
      end
    end
  end,
})

---Show, or no longer, what the applied hunks of this buffer replaced.
function M.old()
  local buffer = vim.api.nvim_get_current_buf()
  with_old[buffer] = not with_old[buffer]
  M.draw(buffer)
end

-- Where the user is ---------------------------------------------------------------------------------

---Row of a hunk in the buffer, as it is drawn there.
---@param buffer integer
---@param place amanu.Place
---@return integer first
---@return integer last Exclusive.
local function where(buffer, place)
  for _, drawn in ipairs(marks[buffer] or {}) do
    local first, last = span(buffer, drawn)
    if drawn.id == place.hunk.hunkId and first and last then
      return first, last
    end
  end
  return place.hunk.lines.start, place.hunk.lines["end"]
end

---The line of a hunk in its file: as it is drawn where the file is loaded. 1-based.
---@param place amanu.Place
---@return integer
function M.line(place)
  local buffer = apply.find(place.path)
  if not buffer then
    return place.hunk.lines.start + 1
  end
  return math.min(where(buffer, place) + 1, vim.api.nvim_buf_line_count(buffer))
end

---Rows of what there is to see of a hunk: of a file that goes or moves, that it does, and what changes in it.
---@param place amanu.Place
---@param first integer
---@param last integer
---@return integer first
---@return integer last
local function telling(place, first, last)
  if place.file.change == "delete" then
    return first, math.min(last, first + 1)
  elseif place.file.change == "rename" then
    local piece = vim.iter(hunks.pieces(place.file, place.hunk)):last()
    return first, math.min(last, first + math.max(1, piece and piece.first + #piece.old or 1))
  end
  return first, last
end

---The hunk under the cursor.
---@param which? amanu.Which If not given, one to review.
---@return amanu.Place?
---@return integer first Its first line on the screen, 0-based.
---@return integer last Exclusive.
function M.current(which)
  local buffer = vim.api.nvim_get_current_buf()
  local diff, from, to = require("amanu.review.diff").current(which)
  if diff ~= nil then
    return diff or nil, from or 0, to or 0
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  for _, place in ipairs(of_buffer(buffer, which)) do
    local first, last = where(buffer, place)
    local on = line >= first and line < last
    if first == last then -- nothing here: the lines it is between
      on = line == first or line == first - 1
    end
    if on then
      return place, telling(place, first, last)
    end
  end
  return nil, 0, 0
end

---The hunk or row under the cursor.
---@param which? amanu.Which If not given, one to review.
---@return amanu.Change?
---@return integer first Its first line on the screen, 0-based.
---@return integer last Exclusive.
function M.change(which)
  local row, first, last = row_list.current(which or hunks.to_review)
  if row then
    return row, first, last
  end
  return M.current(which)
end

---Rows of a buffer where something to review begins, in order.
---@param buffer integer
---@return integer[]
function M.firsts(buffer)
  local drawn_elsewhere = row_list.stops(buffer) or require("amanu.review.diff").rows(buffer)
  local last = vim.api.nvim_buf_line_count(buffer) - 1
  local firsts = vim.tbl_map(function(row)
    return math.min(row, last)
  end, drawn_elsewhere or vim.tbl_map(function(drawn)
    return span(buffer, drawn) or 0
  end, marks[buffer] or {}))
  table.sort(firsts)
  return firsts
end

return M
