---Open hunks where they belong: signs, marked lines and virtual lines in the file's buffer, and keys to decide them.
---Nothing of a proposal is ever in the buffer's text before it was accepted.

local apply = require("amanu.apply")
local config = require("amanu.config")
local hunks = require("amanu.hunks")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

local SPACE = vim.api.nvim_create_namespace("amanu.hunks")

for name, link in pairs({ Added = "DiffAdd", Removed = "DiffDelete", Hint = "Comment", Sign = "DiagnosticSignInfo" }) do
  vim.api.nvim_set_hl(0, "Amanu" .. name, { link = link, default = true })
end

---@class amanu.Place
---@field id string Of the hunk.
---@field mark integer Extmark over its old lines, which moves as the person types.
---@field version integer Of the proposal it was drawn for.

---@type table<integer, amanu.Place[]> Per buffer.
local places = {}

---@param buffer integer
---@param place amanu.Place
---@return integer first row
---@return integer last row, exclusive
local function span(buffer, place)
  local mark = vim.api.nvim_buf_get_extmark_by_id(buffer, SPACE, place.mark, { details = true })
  return mark[1] or 0, mark[3] and mark[3].end_row or mark[1] or 0
end

---Where the hunk's old lines are in the buffer: where they should be, or where the mark went, which knows better until
---the daemon moves the hunk.
---@param buffer integer
---@param open amanu.OpenHunk
---@param moved? integer
---@param drawn? integer Version of the proposal the mark was made for.
---@return integer row
---@return boolean found
local function locate(buffer, open, moved, drawn)
  local old = hunks.lines(open.hunk.oldText)
  local count = vim.api.nvim_buf_line_count(buffer)
  for _, row in ipairs(drawn == open.proposal.version and { moved, open.row } or { open.row, moved }) do
    if row <= count and vim.deep_equal(vim.api.nvim_buf_get_lines(buffer, row, row + #old, false), old) then
      return row, true
    end
  end
  return math.min(moved or open.row, count), false
end

---@param open amanu.OpenHunk
---@param found boolean
local function hint(open, found)
  local text = ("amanu %d/%d"):format(open.number, open.count)
  for _, name in ipairs({ "accept", "reject", "edit" }) do
    local key = config.key(name)
    text = text .. (key ~= "" and (" · %s %s"):format(key, name) or "")
  end
  if open.hunk.state == "conflicted" then
    text = text .. " · not applied: " .. visible.line(open.hunk.reason or "", 80)
  elseif not found then
    text = text .. " · the text here is another by now"
  end
  return text
end

---@param buffer integer
---@param open amanu.OpenHunk
---@param moved? integer
---@param drawn? integer
---@return amanu.Place
local function mark(buffer, open, moved, drawn)
  local row, found = locate(buffer, open, moved, drawn)
  local count = vim.api.nvim_buf_line_count(buffer)
  local last = math.min(row + open.hunk.oldLines, count)
  local tab = (" "):rep(vim.bo[buffer].tabstop)
  local lines = { { { hint(open, found), "AmanuHint" } } }
  for _, line in ipairs(hunks.lines(open.hunk.newText)) do
    table.insert(lines, { { "+ " .. visible.text(line):gsub("\t", tab), "AmanuAdded" } })
  end
  for each = row, last - 1 do
    vim.api.nvim_buf_set_extmark(buffer, SPACE, each, 0, {
      line_hl_group = "AmanuRemoved",
      sign_text = "-",
      sign_hl_group = "AmanuSign",
    })
  end
  local above = last == 0
  vim.api.nvim_buf_set_extmark(buffer, SPACE, math.max(last - 1, 0), 0, {
    virt_lines = lines,
    virt_lines_above = above,
    sign_text = open.hunk.oldLines == 0 and "+" or nil,
    sign_hl_group = "AmanuSign",
  })
  local place = vim.api.nvim_buf_set_extmark(buffer, SPACE, math.min(row, count - 1), 0, {
    end_row = math.min(last, count),
    end_col = 0,
    strict = false,
  })
  return { id = open.hunk.hunkId, mark = place, version = open.proposal.version }
end

---@param buffer integer
---@return amanu.OpenHunk[]
local function of_buffer(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype ~= "" or name == "" then
    return {}
  end
  return hunks.all(apply.real(name))
end

---Draw the open hunks of a buffer's file anew.
---@param buffer integer
function M.draw(buffer)
  local before, versions = {}, {}
  for _, place in ipairs(places[buffer] or {}) do
    before[place.id], versions[place.id] = span(buffer, place), place.version
  end
  vim.api.nvim_buf_clear_namespace(buffer, SPACE, 0, -1)
  local found = of_buffer(buffer)
  places[buffer] = #found > 0 and {} or nil
  for _, open in ipairs(found) do
    local id = open.hunk.hunkId
    table.insert(places[buffer], mark(buffer, open, before[id], versions[id]))
  end
  if #found > 0 then
    M.keys(buffer)
  end
end

---A file was shown to the daemon.
---@param buffer integer
function M.begin(buffer)
  M.keys(buffer, "approve")
  M.draw(buffer)
end

---After a change of proposals: all loaded files, or those of one proposal.
---@param proposal? amanu.Proposal
function M.refresh(proposal)
  local buffers = {}
  for _, file in ipairs(proposal and proposal.files or {}) do
    local buffer = apply.find(file.path)
    if buffer then
      table.insert(buffers, buffer)
      local wrote = vim.iter(file.hunks):any(hunks.applied)
      if wrote and not vim.bo[buffer].modified and vim.o.autoread and vim.api.nvim_get_mode().mode:find("^n") then
        vim.cmd.checktime({ args = { tostring(buffer) }, mods = { silent = true } }) -- the daemon may have written the file itself
      end
    end
  end
  if not proposal then
    buffers = vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())
  end
  vim.tbl_map(M.draw, buffers)
  require("amanu.diff").refresh()
end

-- Where the person is ---------------------------------------------------------------------------------

---The open hunk under the cursor.
---@return amanu.OpenHunk?
function M.current()
  local buffer = vim.api.nvim_get_current_buf()
  local diff = require("amanu.diff").current()
  if diff ~= nil then
    return diff or nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local found = of_buffer(buffer)
  for at, place in ipairs(places[buffer] or {}) do
    local first, last = span(buffer, place)
    local on = line >= first and line < last
    if first == last then -- an insertion: the lines it is between
      on = line == first or line == first - 1
    end
    if on then
      return found[at]
    end
  end
end

---To the next hunk of this buffer, or the one before; around the ends.
---@param step 1|-1
function M.jump(step)
  local buffer = vim.api.nvim_get_current_buf()
  local rows = require("amanu.diff").rows(buffer)
  if not rows then
    rows = vim.tbl_map(function(place)
      return (span(buffer, place))
    end, places[buffer] or {})
  end
  if #rows == 0 then
    return say.now("no open hunks in this buffer; :Amanu /hunks lists those of others")
  end
  table.sort(rows)
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local target
  for at = step == 1 and 1 or #rows, step == 1 and #rows or 1, step do
    if (rows[at] - line) * step > 0 then
      target = rows[at]
      break
    end
  end
  target = target or rows[step == 1 and 1 or #rows]
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { math.min(target + 1, vim.api.nvim_buf_line_count(buffer)), 0 })
end

---@param run fun(open: amanu.OpenHunk)
local function on_current(run)
  local open = M.current()
  if not open then
    local key = config.key("next")
    return say.now("no open hunk under the cursor" .. (key ~= "" and "; " .. key .. " goes to the next" or ""))
  end
  run(open)
end

-- Deciding --------------------------------------------------------------------------------------------

function M.accept()
  on_current(function(open)
    session.decide(open.proposal, { { hunkId = open.hunk.hunkId, decision = "accept" } })
  end)
end

function M.reject()
  on_current(function(open)
    vim.ui.input({ prompt = "Why not? (goes to the model, may be empty) " }, function(reason)
      if reason then
        local why = reason ~= "" and reason or nil
        session.decide(open.proposal, { { hunkId = open.hunk.hunkId, decision = "reject", reason = why } })
      end
    end)
  end)
end

function M.edit()
  on_current(function(open)
    require("amanu.edit").open(open)
  end)
end

---Decide all open hunks of this buffer's file, per proposal.
---@param decision "accept"|"reject"
function M.decide_file(decision)
  local here = require("amanu.diff").path(vim.api.nvim_get_current_buf())
  local found = here and hunks.all(here) or of_buffer(vim.api.nvim_get_current_buf())
  local decisions, proposals = {}, {}
  for _, open in ipairs(found) do
    local id = open.proposal.proposalId
    decisions[id] = decisions[id] or {}
    proposals[id] = open.proposal
    table.insert(decisions[id], { hunkId = open.hunk.hunkId, decision = decision })
  end
  for id, proposal in pairs(proposals) do
    session.decide(proposal, decisions[id])
  end
end

---@return { name: string, what: string, run: fun() }[]
local function actions()
  return {
    { name = "next", what = "next hunk", run = function() M.jump(1) end },
    { name = "previous", what = "hunk before", run = function() M.jump(-1) end },
    { name = "accept", what = "accept the hunk", run = M.accept },
    { name = "reject", what = "reject the hunk", run = M.reject },
    { name = "edit", what = "change the hunk, then accept it", run = M.edit },
    { name = "accept_file", what = "accept the file", run = function() M.decide_file("accept") end },
    { name = "reject_file", what = "reject the file", run = function() M.decide_file("reject") end },
    { name = "diff", what = "side by side", run = function() require("amanu.diff").open() end },
    { name = "approve", what = "answer the question", run = function() require("amanu.approve").ask() end },
  } -- stylua: ignore
end

---Give the buffer our keys. They stay: a key that is gone when the person presses it would do something else, to
---their text.
---@param buffer integer
---@param only? string Just that one.
function M.keys(buffer, only)
  for _, action in ipairs(actions()) do
    local key = config.now.keys[action.name]
    if key and (not only or action.name == only) then
      vim.keymap.set("n", key, action.run, { buffer = buffer, desc = "Amanu: " .. action.what })
    end
  end
end

---All open hunks in the quickfix list.
function M.quickfix()
  local items = {}
  for _, open in ipairs(hunks.all()) do
    local first = hunks.lines(open.hunk.newText)[1] or hunks.lines(open.hunk.oldText)[1] or ""
    local buffer = apply.find(open.file.path)
    local row = open.row
    for at, place in ipairs(buffer and places[buffer] or {}) do
      row = places[buffer][at].id == open.hunk.hunkId and span(buffer, place) or row
    end
    table.insert(items, {
      filename = open.file.path,
      lnum = row + 1,
      text = ("%s -%d +%d: %s"):format(open.hunk.state, open.hunk.oldLines, open.hunk.newLines, visible.line(first, 80)),
    })
  end
  if #items == 0 then
    return say.now("no open hunks")
  end
  vim.fn.setqflist({}, " ", { title = "Amanu: open hunks", items = items })
  vim.cmd("botright copen")
end

return M
