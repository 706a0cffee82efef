---Hunks where they belong: signs, marked lines and virtual lines in the file's buffer, and keys to decide them. Nothing
---of a proposal is in the buffer's text before it was accepted, by the person or by a rule.

local apply = require("amanu.apply")
local config = require("amanu.config")
local hunks = require("amanu.hunks")
local say = require("amanu.say")
local visible = require("amanu.visible")

local M = {}

local SPACE = vim.api.nvim_create_namespace("amanu.hunks")

for name, link in pairs({ Added = "DiffAdd", Removed = "DiffDelete", Hint = "Comment", Sign = "DiagnosticSignInfo" }) do
  vim.api.nvim_set_hl(0, "Amanu" .. name, { link = link, default = true })
end

---@class amanu.Mark
---@field id string Of the hunk.
---@field mark integer Extmark over its lines, which moves as the person types.
---@field version integer Of the proposal it was drawn for.

---@type table<integer, amanu.Mark[]> Per buffer, in the order of its places.
local marks = {}
---@type table<integer, boolean> Buffers that show what applied hunks replaced.
local with_old = {}

---@param buffer integer
---@param drawn amanu.Mark
---@return integer first row
---@return integer last row, exclusive
local function span(buffer, drawn)
  local mark = vim.api.nvim_buf_get_extmark_by_id(buffer, SPACE, drawn.mark, { details = true })
  return mark[1] or 0, mark[3] and mark[3].end_row or mark[1] or 0
end

---Where the hunk's lines are in the buffer: where they should be, or where the mark went, which knows better until
---the daemon moves the hunk.
---@param buffer integer
---@param place amanu.Place
---@param moved? integer
---@param drawn? integer Version of the proposal the mark was made for.
---@return integer row
---@return boolean found
local function locate(buffer, place, moved, drawn)
  local here = hunks.here(place.hunk)
  local count = vim.api.nvim_buf_line_count(buffer)
  for _, row in ipairs(drawn == place.proposal.version and { moved, place.row } or { place.row, moved }) do
    if row <= count and vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, row, row + #here, false), here) then
      return row, true
    end
  end
  return math.min(moved or place.row, count), false
end

-- Drawing ---------------------------------------------------------------------------------------------

---Keys that do something with the hunk, and what.
---@param names string[][] Of `keys`, with the word that is shown.
---@return string
local function keys_help(names)
  local text = ""
  for _, each in ipairs(names) do
    local key = config.key(each[1])
    text = text .. (key ~= "" and (" · %s %s"):format(key, each[2]) or "")
  end
  return text
end

---@param place amanu.Place
---@param found boolean
local function hint(place, found)
  local hunk, file = place.hunk, place.file
  local text = ("amanu %d/%d"):format(place.number, place.count)
  if file.change == "rename" then
    text = text .. " renames this file to " .. visible.line(vim.fn.fnamemodify(file.newPath or "", ":."), 60)
  elseif file.change ~= "edit" then
    text = text .. (" %ss this file"):format(file.change)
  end
  if hunks.unreviewed(hunk) then
    return text .. keys_help({ { "accept", "keep" }, { "reject", "undo" }, { "old", "old text" } })
  end
  text = text .. keys_help({ { "accept", "accept" }, { "reject", "reject" }, { "edit", "edit" } })
  if hunk.state == "conflicted" then
    text = text .. " · not applied: " .. visible.line(hunk.reason or "", 80)
  elseif not found then
    text = text .. " · the text here is another by now"
  end
  local verdict = require("amanu.why").verdict(file, "proposed")
  return text .. (verdict ~= "" and " · " .. verdict or "")
end

---A hunk as the pieces that are drawn: of a whole file that moves, only what differs.
---@param place amanu.Place
---@return { first: integer, count: integer, new: string[] }[]
local function pieces(place)
  local hunk = place.hunk
  local new = hunks.lines(hunk.newText)
  if place.file.change ~= "rename" then
    return { { first = 0, count = hunk.oldLines, new = new } }
  end
  local found = {}
  local diff = (vim.text and vim.text.diff or vim.diff) ---@diagnostic disable-line: deprecated
  for _, each in ipairs(diff(hunk.oldText, hunk.newText, { result_type = "indices" }) --[[@as integer[][] ]]) do
    table.insert(found, {
      first = each[2] > 0 and each[1] - 1 or each[1],
      count = each[2],
      new = vim.list_slice(new, each[3], each[3] + each[4] - 1),
    })
  end
  return found
end

---@param buffer integer
---@param sign string
---@param lines string[]
---@param group string
---@return table[] virtual lines
local function virtual(buffer, sign, lines, group)
  local tab = (" "):rep(vim.bo[buffer].tabstop)
  return vim.tbl_map(function(line)
    return { { sign .. " " .. visible.text(line):gsub("\t", tab), group } }
  end, lines)
end

---@param buffer integer
---@param row integer
---@param options table
local function put(buffer, row, options)
  local count = vim.api.nvim_buf_line_count(buffer)
  vim.api.nvim_buf_set_extmark(buffer, SPACE, math.max(0, math.min(row, count - 1)), 0, options)
end

---@param buffer integer
---@param first integer
---@param last integer Exclusive.
---@param sign string
---@param group string
local function mark_lines(buffer, first, last, sign, group)
  for row = first, last - 1 do
    put(buffer, row, { line_hl_group = group, sign_text = sign, sign_hl_group = "AmanuSign" })
  end
end

---@param buffer integer
---@param place amanu.Place
---@param row integer
---@param found boolean
local function draw_open(buffer, place, row, found)
  local empty = vim.api.nvim_buf_line_count(buffer) == 1 and vim.api.nvim_buf_get_lines(buffer, 0, 1, true)[1] == ""
  local lines = { { { hint(place, found), "AmanuHint" } } }
  local explanation = place.hunk.explanation or ""
  if explanation ~= "" then
    table.insert(lines, { { "  " .. visible.line(explanation, 120), "AmanuHint" } })
  end
  if place.file.change == "rename" or place.file.change == "delete" then -- of all lines: said where it begins
    put(buffer, 0, { virt_text = { { hint(place, found), "AmanuHint" } }, sign_text = "!", sign_hl_group = "AmanuSign" })
    lines = {}
  end
  for _, piece in ipairs(pieces(place)) do
    local first = row + piece.first
    local last = math.min(first + piece.count, vim.api.nvim_buf_line_count(buffer))
    mark_lines(buffer, first, last, "-", "AmanuRemoved")
    vim.list_extend(lines, virtual(buffer, "+", piece.new, "AmanuAdded"))
    if #lines > 0 then
      put(buffer, last - 1, {
        virt_lines = lines,
        virt_lines_above = last == 0 and not empty,
        sign_text = piece.count == 0 and "+" or nil,
        sign_hl_group = "AmanuSign",
      })
    end
    lines = {}
  end
end

---@param buffer integer
---@param place amanu.Place
---@param row integer
local function draw_applied(buffer, place, row)
  local count = #hunks.lines(place.hunk.newText)
  mark_lines(buffer, row, row + count, "+", "AmanuAdded")
  put(buffer, row, { virt_text = { { hint(place, true), "AmanuHint" } } })
  if count == 0 then
    put(buffer, row, { sign_text = row == 0 and "‾" or "_", sign_hl_group = "AmanuSign" })
  end
  if with_old[buffer] then
    local old = virtual(buffer, "-", hunks.lines(place.hunk.oldText), "AmanuRemoved")
    if #old > 0 then
      put(buffer, row, { virt_lines = old, virt_lines_above = true })
    end
  end
end

---@param buffer integer
---@param place amanu.Place
---@param moved? integer
---@param drawn? integer
---@return amanu.Mark
local function mark(buffer, place, moved, drawn)
  local row, found = locate(buffer, place, moved, drawn)
  if hunks.unreviewed(place.hunk) then
    draw_applied(buffer, place, row)
  else
    draw_open(buffer, place, row, found)
  end
  local count = vim.api.nvim_buf_line_count(buffer)
  local last = row + (hunks.applied(place.hunk) and #hunks.lines(place.hunk.newText) or place.hunk.oldLines)
  local over = vim.api.nvim_buf_set_extmark(buffer, SPACE, math.min(row, count - 1), 0, {
    end_row = math.min(last, count),
    end_col = 0,
    strict = false,
  })
  return { id = place.hunk.hunkId, mark = over, version = place.proposal.version }
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

---What is above the first line is only seen when there is room for it.
---@param buffer integer
local function make_room(buffer)
  local above = 0
  for _, each in ipairs(vim.api.nvim_buf_get_extmarks(buffer, SPACE, { 0, 0 }, { 0, -1 }, { details = true })) do
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

---Draw the hunks of a buffer's file anew.
---@param buffer integer
function M.draw(buffer)
  local before, versions = {}, {}
  for _, drawn in ipairs(marks[buffer] or {}) do
    before[drawn.id], versions[drawn.id] = span(buffer, drawn), drawn.version
  end
  vim.api.nvim_buf_clear_namespace(buffer, SPACE, 0, -1)
  local found = of_buffer(buffer)
  marks[buffer] = #found > 0 and {} or nil
  for _, place in ipairs(found) do
    local id = place.hunk.hunkId
    table.insert(marks[buffer], mark(buffer, place, before[id], versions[id]))
  end
  if #found > 0 then
    M.keys(buffer)
    make_room(buffer)
  end
end

---A file was shown to the daemon.
---@param buffer integer
function M.begin(buffer)
  M.keys(buffer, { "approve", "comment" })
  M.draw(buffer)
end

---The daemon may have written the file itself.
---@param buffer integer
---@param file amanu.ProposedFile
local function read_again(buffer, file)
  local calm = not vim.bo[buffer].modified and vim.o.autoread and vim.api.nvim_get_mode().mode:find("^n")
  if not calm then
    return
  elseif file.change == "create" and vim.fn.getbufline(buffer, 1, 2)[1] == "" and vim.uv.fs_stat(file.path) then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent! edit!") -- a file that came into being is not read by itself
    end)
  elseif vim.iter(file.hunks):any(function(hunk)
    return hunks.applied(hunk) or hunks.undone(hunk)
  end) then
    vim.cmd.checktime({ args = { tostring(buffer) }, mods = { silent = true } })
  end
end

---After a change of proposals: all loaded files, or those of one proposal.
---@param proposal? amanu.Proposal
function M.refresh(proposal)
  local buffers = {}
  for _, file in ipairs(proposal and proposal.files or {}) do
    for _, path in ipairs({ file.path, file.newPath }) do
      local buffer = apply.find(path)
      if buffer then
        table.insert(buffers, buffer)
        read_again(buffer, file)
      end
    end
  end
  if not proposal then
    buffers = vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())
  end
  vim.tbl_map(M.draw, buffers)
  require("amanu.diff").refresh()
  require("amanu.quickfix").refresh()
end

---Show, or no longer, what the applied hunks of this buffer replaced.
function M.old()
  local buffer = vim.api.nvim_get_current_buf()
  with_old[buffer] = not with_old[buffer]
  M.draw(buffer)
end

-- Where the person is ---------------------------------------------------------------------------------

---Row of a hunk in the buffer, as it is drawn there.
---@param buffer integer
---@param place amanu.Place
---@return integer first
---@return integer last Exclusive.
local function where(buffer, place)
  for _, drawn in ipairs(marks[buffer] or {}) do
    if drawn.id == place.hunk.hunkId then
      return span(buffer, drawn)
    end
  end
  return place.row, place.row + #hunks.here(place.hunk)
end

---The line of a hunk in its file: as it is drawn where the file is loaded. 1-based.
---@param place amanu.Place
---@return integer
function M.line(place)
  local buffer = apply.find(place.path)
  return (buffer and where(buffer, place) or place.row) + 1
end

---The hunk under the cursor.
---@param which? amanu.Which Of those to review, if not given.
---@return amanu.Place?
function M.current(which)
  local buffer = vim.api.nvim_get_current_buf()
  local diff = require("amanu.diff").current(which)
  if diff ~= nil then
    return diff or nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  for _, place in ipairs(of_buffer(buffer, which)) do
    local first, last = where(buffer, place)
    local on = line >= first and line < last
    if first == last then -- nothing here: the lines it is between
      on = line == first or line == first - 1
    end
    if on then
      return place
    end
  end
end

---Show the file of a hunk, with the cursor on it: its buffer, or side by side when the file is gone.
---@param place amanu.Place
local function go_to(place)
  local buffer = apply.find(place.path)
  if not buffer and place.file.change ~= "create" and not vim.uv.fs_stat(place.path) then
    return require("amanu.diff").open(place.proposal.proposalId, place.file.path)
  end
  local window = require("amanu.context").file_window()
  if window then
    vim.api.nvim_set_current_win(window)
  end
  vim.cmd("normal! m'")
  local ok, why = pcall(vim.cmd.buffer, buffer or vim.fn.bufadd(place.path))
  if not ok then
    return say.error(tostring(why))
  end
  vim.bo.buflisted = true
  M.draw(vim.api.nvim_get_current_buf())
  vim.api.nvim_win_set_cursor(0, { math.min(M.line(place), vim.api.nvim_buf_line_count(0)), 0 })
end

---To the file after this one, or before, that has something to review.
---@param step 1|-1
---@return boolean there is one
function M.jump_file(step)
  local here = require("amanu.diff").path(vim.api.nvim_get_current_buf())
    or apply.real(vim.api.nvim_buf_get_name(0))
  local paths, firsts, at = {}, {}, step == 1 and 0 or 1
  for _, place in ipairs(hunks.all()) do
    if paths[#paths] ~= place.path then
      table.insert(paths, place.path)
      at = place.path == here and #paths or at
    end
    firsts[place.path] = step == 1 and firsts[place.path] or place -- backwards: its last
    firsts[place.path] = firsts[place.path] or place
  end
  local other = paths[(at - 1 + step) % math.max(#paths, 1) + 1]
  if not other or other == here then
    return false
  end
  if require("amanu.diff").path(vim.api.nvim_get_current_buf()) then
    vim.cmd.tabclose()
    require("amanu.diff").open(firsts[other].proposal.proposalId, firsts[other].file.path)
  else
    go_to(firsts[other])
  end
  return true
end

---To the next hunk, or the one before; on to the next file after the last, and around.
---@param step 1|-1
function M.jump(step)
  local buffer = vim.api.nvim_get_current_buf()
  local diff = require("amanu.diff").rows(buffer)
  local rows = diff or vim.tbl_map(function(drawn)
    return (span(buffer, drawn))
  end, marks[buffer] or {})
  table.sort(rows)
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local target
  for at = step == 1 and 1 or #rows, step == 1 and #rows or 1, step do
    if (rows[at] - line) * step > 0 then
      target = rows[at]
      break
    end
  end
  if not target and M.jump_file(step) then
    return
  end
  target = target or rows[step == 1 and 1 or #rows]
  if not target then
    return say.now("nothing to review")
  end
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { math.min(target + 1, vim.api.nvim_buf_line_count(buffer)), 0 })
end

-- Deciding --------------------------------------------------------------------------------------------

---@param run fun(place: amanu.Place)
---@param which? amanu.Which
local function on_current(run, which)
  local place = M.current(which)
  if not place then
    local key = config.key("next")
    return say.now("no open hunk under the cursor" .. (key ~= "" and "; " .. key .. " goes to the next" or ""))
  end
  run(place)
end

---Yes: accept it, or keep what a rule applied.
function M.accept()
  on_current(function(place)
    if hunks.unreviewed(place.hunk) then
      return require("amanu.decide").hunk(place, "keep")
    end
    require("amanu.decide").hunks(place.proposal, { { hunkId = place.hunk.hunkId, decision = "accept" } })
  end)
end

---No: reject it, or take back what a rule applied.
function M.reject()
  on_current(function(place)
    if hunks.unreviewed(place.hunk) then
      return require("amanu.decide").undo_hunk(place)
    end
    vim.ui.input({ prompt = "Why not? (goes to the model, may be empty) " }, function(reason)
      if reason then
        local why = reason ~= "" and reason or nil
        local decision = { hunkId = place.hunk.hunkId, decision = "reject", reason = why }
        require("amanu.decide").hunks(place.proposal, { decision })
      end
    end)
  end)
end

function M.edit()
  on_current(function(place)
    require("amanu.edit").open(place)
  end, hunks.open)
end

---@return { name: string, what: string, run: fun() }[]
local function actions()
  local decide = require("amanu.decide")
  return {
    { name = "next", what = "next hunk", run = function() M.jump(1) end },
    { name = "previous", what = "hunk before", run = function() M.jump(-1) end },
    { name = "next_file", what = "next file to review", run = function() M.jump_file(1) end },
    { name = "previous_file", what = "file before", run = function() M.jump_file(-1) end },
    { name = "accept", what = "accept or keep the hunk", run = M.accept },
    { name = "reject", what = "reject or undo the hunk", run = M.reject },
    { name = "edit", what = "change the hunk, then accept it", run = M.edit },
    { name = "accept_file", what = "accept or keep the file", run = decide.accept_file },
    { name = "reject_file", what = "reject or undo the file", run = decide.reject_file },
    { name = "undo", what = "take back what was applied", run = function() decide.undo("") end },
    { name = "redo", what = "bring back what was taken back", run = function() decide.decide("redo", "") end },
    { name = "old", what = "show what was replaced", run = M.old },
    { name = "why", what = "the hunk and its reason", run = function() require("amanu.why").show() end },
    { name = "comment", what = "comment to the agent", run = function() require("amanu.comments").add() end },
    { name = "diff", what = "side by side", run = function() require("amanu.diff").open() end },
    { name = "approve", what = "answer the question", run = function() require("amanu.approve").ask() end },
  } -- stylua: ignore
end

---Give the buffer our keys. They stay: a key that is gone when the person presses it would do something else, to
---their text.
---@param buffer integer
---@param only? string[] Just those.
function M.keys(buffer, only)
  for _, action in ipairs(actions()) do
    local key = config.now.keys[action.name]
    if key and (not only or vim.list_contains(only, action.name)) then
      local modes = action.name == "comment" and { "n", "x" } or "n"
      vim.keymap.set(modes, key, action.run, { buffer = buffer, desc = "Amanu: " .. action.what })
    end
  end
end

return M
