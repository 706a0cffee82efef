---From change to change, in a file and on to the next.

local apply = require("amanu.wire.apply")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local marks = require("amanu.review.marks")
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")
local say = require("amanu.say")
local sight = require("amanu.review.sight")
local visible = require("amanu.visible")

local M = {}

local jumps = 0 -- of the user, so far
local SEEN_MS = 500 -- a key that comes sooner was pressed before the user saw where a decision led
local led = { at = -SEEN_MS, buffer = 0, line = 0 } -- where a decision led last

---@return boolean
local function was_just_led()
  local line = vim.api.nvim_win_get_cursor(0)[1]
  local is_there = led.buffer == vim.api.nvim_get_current_buf() and led.line == line
  return is_there and vim.uv.now() - led.at < SEEN_MS
end

---After a jump, show the whole change, if it fits, and say which of all it is: "3/12 helpers.py".
---@param note? string Said before that.
function M.arrive(note)
  local change, first, last = marks.change()
  if change then
    sight.show(first, last)
    local name = change.kind == "row" and rows.name(change.decided) or vim.fs.basename(change.path)
    say.brief(("%s%s %s"):format(note and note .. " · " or "", rows.numbers()[change.id], name))
  end
end

---Show the file of a hunk, with the cursor on it: its buffer, or side by side when the file is gone.
---@param place amanu.Place
---@param arrived fun()
local function go_to(place, arrived)
  local buffer = apply.find(place.path)
  if not buffer and place.file.change ~= "create" and not vim.uv.fs_stat(place.path) then
    return require("amanu.review.diff").open(place.proposal.proposalId, place.file.path, arrived)
  end
  local window = require("amanu.wire.context").file_window()
  if window then
    vim.api.nvim_set_current_win(window)
  end
  vim.cmd("normal! m'")
  local ok, why = pcall(vim.cmd.buffer, buffer or vim.fn.bufadd(vim.fn.fnamemodify(place.path, ":.")))
  if not ok then
    return say.error(tostring(why))
  end
  vim.bo.buflisted = true
  marks.draw(vim.api.nvim_get_current_buf())
  vim.api.nvim_win_set_cursor(0, { math.min(marks.line(place), vim.api.nvim_buf_line_count(0)), 0 })
  arrived()
end

---The files that have something to review, each with the change to go to; then the list of rows.
---@param step 1|-1 Forwards, the first change of each; backwards, the last.
---@return { path: string, go: fun(in_diff: boolean, arrived: fun()) }[]
local function stops(step)
  local found = {}
  ---@param path string
  ---@param go fun(in_diff: boolean, arrived: fun())
  local function add(path, go)
    local known = found[#found] and found[#found].path == path
    if not known then
      table.insert(found, { path = path, go = go })
    elseif step == -1 then
      found[#found].go = go
    end
  end
  for _, place in ipairs(hunks.all()) do
    add(place.path, function(in_diff, arrived)
      if in_diff then
        return require("amanu.review.diff").open(place.proposal.proposalId, place.file.path, arrived)
      end
      go_to(place, arrived)
    end)
  end
  for _, place in ipairs(rows.all()) do
    add(row_list.NAME, function(_, arrived)
      row_list.show(place.id)
      arrived()
    end)
  end
  return found
end

local PAST = { [1] = "that was the last", [-1] = "that was the first" }

---Go to the next or previous file that has something to review; the list of rows comes after the last file.
---@param step 1|-1
---@return boolean there is one
function M.jump_file(step)
  jumps = jumps + 1
  local buffer = vim.api.nvim_get_current_buf()
  local diff = require("amanu.review.diff").path(buffer)
  local here = diff or row_list.is(buffer) and row_list.NAME or apply.real(vim.api.nvim_buf_get_name(buffer))
  local found, at = stops(step), nil
  for number, stop in ipairs(found) do
    at = stop.path == here and number or at
  end
  local to = ((at or (step == 1 and 0 or 1)) - 1 + step) % math.max(#found, 1) + 1
  local other = found[to]
  local is_settled = diff and #(require("amanu.review.diff").rows(buffer) or {}) == 0 -- another proposal may be of the same file
  if not other or (other.path == here and not is_settled) then
    return false
  end
  if diff then
    vim.cmd.tabclose()
  end
  other.go(diff ~= nil, function()
    M.arrive(at and (to - at) * step < 0 and PAST[step] or nil)
  end)
  return true
end

---@param row integer Of the current buffer.
---@param note? string
local function go_to_row(row, note)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
  M.arrive(note)
end

---To the next hunk, or the one before; on to the next file after the last, and around.
---@param step 1|-1
function M.jump(step)
  jumps = jumps + 1
  if step == 1 and was_just_led() then
    return M.arrive() -- it is the next already
  end
  local firsts = marks.firsts(vim.api.nvim_get_current_buf())
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local target
  for at = step == 1 and 1 or #firsts, step == 1 and #firsts or 1, step do
    if (firsts[at] - line) * step > 0 then
      target = firsts[at]
      break
    end
  end
  if not target and M.jump_file(step) then
    return
  end
  local note = not target and (#firsts == 1 and "the only one" or PAST[step]) or nil
  target = target or firsts[step == 1 and 1 or #firsts]
  if not target then
    return require("amanu.sessions.sessions").say_others("nothing to review in this session")
  end
  go_to_row(target, note)
end

function M.say_left()
  local changes, paths = rows.changes(), {}
  for _, change in ipairs(changes) do
    paths[change.path] = true
  end
  local count, key = vim.tbl_count(paths), config.key("next")
  local files = count == 1 and visible.line(vim.fs.basename(next(paths)), 40) or count .. " files"
  local where = ("%d left in %s"):format(#changes, files)
  say.brief(#changes == 0 and "all is reviewed" or where .. (key ~= "" and " · " .. key .. " goes on" or ""))
end

---The step after a decision: to the next change in this buffer, unless the user went on alone, or it waits still.
---@param change amanu.Change
---@param first integer Row of it.
---@return fun()
function M.after(change, first)
  local buffer, jumped = vim.api.nvim_get_current_buf(), jumps
  return function()
    local waits = vim.iter(rows.changes()):any(function(each)
      return each.id == change.id
    end)
    if waits or jumps ~= jumped or vim.api.nvim_get_mode().mode ~= "n" then
      return
    end
    local firsts = buffer == vim.api.nvim_get_current_buf() and marks.firsts(buffer) or {}
    local next_one = vim.iter(firsts):find(function(row)
      return row >= first
    end)
    if #firsts == 0 then
      return M.say_left()
    end
    go_to_row(next_one or firsts[1])
    led = { at = vim.uv.now(), buffer = buffer, line = vim.api.nvim_win_get_cursor(0)[1] }
  end
end

return M
