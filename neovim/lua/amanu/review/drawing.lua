---How a hunk is drawn in its file's buffer: signs, marked lines, and virtual lines with what is not in the text.

local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local visible = require("amanu.visible")

local M = {}

M.SPACE = vim.api.nvim_create_namespace("amanu.hunks")

for name, link in pairs({ Added = "DiffAdd", Removed = "DiffDelete", Hint = "Comment", Sign = "DiagnosticSignInfo" }) do
  vim.api.nvim_set_hl(0, "Amanu" .. name, { link = link, default = true })
end

local LONGEST = 4000 -- bytes of a line that are drawn

---@param place amanu.Place
---@param number string
---@param short? boolean
local function hint(place, number, short)
  local hunk, file = place.hunk, place.file
  local text = "amanu " .. number
  if file.change == "rename" then
    text = text .. " renames this file to " .. visible.line(vim.fn.fnamemodify(file.newPath or "", ":."), 60)
  elseif file.change ~= "edit" then
    text = text .. (" %ss this file"):format(file.change)
  end
  if hunks.unreviewed(hunk) then
    return text .. config.help({ { "accept", "keep" }, { "reject", "undo" }, { "old", "old text" } }, short)
  end
  local yes = hunk.state == "conflicted" and "try again" or "accept"
  text = text .. config.help({ { "accept", yes }, { "reject", "reject" }, { "edit", "edit" } }, short)
  return text .. (hunk.state == "conflicted" and config.help({ { "retry", "ask for it again" } }, short) or "")
end

---Why it does not fit, and what checkers say of it.
---@param place amanu.Place
---@return string[]
local function notes(place)
  local found, verdict = {}, require("amanu.review.why").verdict(place.file, "proposed")
  if place.hunk.state == "conflicted" then
    table.insert(found, "in conflict: " .. visible.line(place.hunk.reason or "", 160))
  end
  return verdict ~= "" and vim.list_extend(found, { verdict }) or found
end

---@param buffer integer
---@param sign string
---@param lines string[]
---@param group string
---@return table[] virtual lines
local function virtual(buffer, sign, lines, group)
  local tab, width, found = (" "):rep(vim.bo[buffer].tabstop), visible.room(buffer) - 2, {}
  for _, line in ipairs(lines) do
    local text = visible.text(#line > LONGEST and line:sub(1, LONGEST) .. " …" or line):gsub("\t", tab)
    local pieces = { text }
    if vim.fn.strdisplaywidth(text) > width then
      pieces = visible.broken(vim.fn.split(text, "\\zs"), "", width)
    end
    for at, piece in ipairs(pieces) do
      table.insert(found, { { (at == 1 and sign or " ") .. " " .. piece, group } })
    end
  end
  return found
end

---@param lines string[]
---@return table[] virtual lines
local function hints(lines)
  return vim.tbl_map(function(line)
    return { { line, "AmanuHint" } }
  end, lines)
end

---Behind a line: in short where there is no room for more.
---@param buffer integer
---@param row integer
---@param place amanu.Place
---@param number string
---@return table[] virtual text
---@return boolean there is room for all of it
local function behind(buffer, row, place, number)
  local line = vim.api.nvim_buf_get_lines(buffer, row, row + 1, false)[1] or ""
  local text = hint(place, number)
  local said = hunks.open(place.hunk) and table.concat({ "", unpack(notes(place)) }, " · ") or ""
  local fits = #line < LONGEST and vim.fn.strdisplaywidth(line .. " " .. text .. said) <= visible.room(buffer)
  return { { (fits and text or hint(place, number, true)) .. said, "AmanuHint" } }, fits
end

---@param buffer integer
---@param row integer
---@param options table
function M.put(buffer, row, options)
  local count = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_buf_set_extmark(buffer, M.SPACE, math.max(0, math.min(row, count - 1)), 0, options)
end

---@param buffer integer
---@param first integer
---@param last integer Exclusive.
---@param sign string
---@param group string
local function mark_lines(buffer, first, last, sign, group)
  for row = first, last - 1 do
    M.put(buffer, row, { line_hl_group = group, sign_text = sign, sign_hl_group = "AmanuSign" })
  end
end

---@param buffer integer
---@param place amanu.Place
---@param row integer
---@param number string
function M.open(buffer, place, row, number)
  local empty = vim.api.nvim_buf_line_count(buffer) == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, true)[1] == ""
  local width = visible.room(buffer)
  local lines = hints(visible.broken(vim.split(hint(place, number), " · ", { plain = true }), " · ", width))
  for _, note in ipairs(vim.list_extend(notes(place), { visible.line(place.hunk.explanation or "", 120) })) do
    for _, line in ipairs(note ~= "" and visible.broken(vim.split(note, " "), " ", width - 2) or {}) do
      vim.list_extend(lines, hints({ "  " .. line }))
    end
  end
  if place.file.change == "rename" or place.file.change == "delete" then -- of all lines: said where it begins
    local text, fits = behind(buffer, 0, place, number)
    local said = fits and { virt_text = text } or { virt_lines = lines }
    M.put(buffer, 0, vim.tbl_extend("error", said, { sign_text = "!", sign_hl_group = "AmanuSign" }))
    lines = {}
  end
  for _, piece in ipairs(hunks.pieces(place.file, place.hunk)) do
    local first = row + piece.first
    local last = math.min(first + #piece.old, vim.api.nvim_buf_line_count(buffer))
    mark_lines(buffer, first, last, "-", "AmanuRemoved")
    vim.list_extend(lines, virtual(buffer, "+", piece.new, "AmanuAdded"))
    if #lines > 0 then
      M.put(buffer, last - 1, {
        virt_lines = lines,
        virt_lines_above = last == 0 and not empty,
        sign_text = #piece.old == 0 and "+" or nil,
        sign_hl_group = "AmanuSign",
      })
    end
    lines = {}
  end
end

---@param buffer integer
---@param place amanu.Place
---@param row integer
---@param last integer Exclusive.
---@param number string
---@param with_old? boolean Show what it replaced.
function M.applied(buffer, place, row, last, number, with_old)
  mark_lines(buffer, row, last, "+", "AmanuAdded")
  M.put(buffer, row, { virt_text = behind(buffer, row, place, number) })
  if row == last then
    M.put(buffer, row, { sign_text = row == 0 and "‾" or "_", sign_hl_group = "AmanuSign" })
  end
  if with_old then
    local old = virtual(buffer, "-", hunks.lines(place.hunk.oldText), "AmanuRemoved")
    if #old > 0 then
      M.put(buffer, row, { virt_lines = old, virt_lines_above = true })
    end
  end
end

---What is above the first line is only seen when there is room for it.
---@param buffer integer
function M.make_room(buffer)
  local above = 0
  for _, each in ipairs(vim.api.nvim_buf_get_extmarks(buffer, M.SPACE, { 0, 0 }, { 0, -1 }, { details = true })) do
    above = above + (each[4].virt_lines_above and #each[4].virt_lines or 0)
  end
  for _, window in ipairs(above > 0 and vim.fn.win_findbuf(buffer) or {}) do
    vim.api.nvim_win_call(window, function()
      if vim.fn.winsaveview().topline == 1 then
        vim.fn.winrestview({ topfill = above })
      end
    end)
  end
end

return M
