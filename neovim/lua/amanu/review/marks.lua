---Hunks where they belong: signs, marked lines and virtual lines in the file's buffer, and keys to decide them. Nothing
---of a proposal is in the buffer's text before it was accepted, by the user or by a rule.

local ask = require("amanu.ask")
local apply = require("amanu.wire.apply")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")
local say = require("amanu.say")
local sight = require("amanu.review.sight")
local visible = require("amanu.visible")

local M = {}

local SPACE = vim.api.nvim_create_namespace("amanu.hunks")

for name, link in pairs({ Added = "DiffAdd", Removed = "DiffDelete", Hint = "Comment", Sign = "DiagnosticSignInfo" }) do
  vim.api.nvim_set_hl(0, "Amanu" .. name, { link = link, default = true })
end

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

-- Drawing ---------------------------------------------------------------------------------------------

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
---@param number string
local function draw_open(buffer, place, row, number)
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
    put(buffer, 0, vim.tbl_extend("error", said, { sign_text = "!", sign_hl_group = "AmanuSign" }))
    lines = {}
  end
  for _, piece in ipairs(hunks.pieces(place.file, place.hunk)) do
    local first = row + piece.first
    local last = math.min(first + #piece.old, vim.api.nvim_buf_line_count(buffer))
    mark_lines(buffer, first, last, "-", "AmanuRemoved")
    vim.list_extend(lines, virtual(buffer, "+", piece.new, "AmanuAdded"))
    if #lines > 0 then
      put(buffer, last - 1, {
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
local function draw_applied(buffer, place, row, last, number)
  mark_lines(buffer, row, last, "+", "AmanuAdded")
  put(buffer, row, { virt_text = behind(buffer, row, place, number) })
  if row == last then
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
---@param row integer
---@param last integer Exclusive.
---@param number string
---@return amanu.Mark
local function mark(buffer, place, row, last, number)
  if hunks.unreviewed(place.hunk) then
    draw_applied(buffer, place, row, last, number)
  else
    draw_open(buffer, place, row, number)
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
    M.keys(buffer)
    make_room(buffer)
  end
  for _, place in ipairs(of_buffer(buffer, hunks.applied)) do
    if place.file.change == "delete" and not vim.uv.fs_stat(place.path) then
      local undo = config.key("undo")
      local text = "amanu: this file is deleted" .. (undo ~= "" and " · " .. undo .. " brings it back" or "")
      put(buffer, 0, { virt_text = { { text, "AmanuHint" } }, sign_text = "!", sign_hl_group = "AmanuSign" })
    end
  end
end

---A file was shown to the daemon.
---@param buffer integer
function M.begin(buffer)
  M.keys(buffer)
  M.draw(buffer)
end

---The file has moved: its windows go along. The buffer of the place it left would bring it back with the next `:w`.
---@param buffer integer
---@param path string
---@return integer buffer
local function follow(buffer, path)
  local other = apply.find(path) or vim.fn.bufadd(vim.fn.fnamemodify(path, ":."))
  vim.bo[other].buflisted = true
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_call(window, function()
      local view = vim.fn.winsaveview()
      vim.cmd("silent keepalt buffer " .. other)
      vim.fn.winrestview(view)
    end)
  end
  pcall(vim.api.nvim_buf_delete, buffer, {})
  return other
end

---The daemon may have written, moved or deleted the file itself.
---@param buffer integer
---@param file amanu.ProposedFile
---@return integer buffer The one that shows the file now.
local function read_again(buffer, file)
  local calm = not vim.bo[buffer].modified and vim.api.nvim_get_mode().mode:find("^n")
  if not calm then
    return buffer
  end
  local here = file.presentPath
  local there = here == file.path and file.newPath or file.path
  if file.change == "rename" and vim.uv.fs_stat(here) and not vim.uv.fs_stat(there) then
    return apply.find(there) == buffer and follow(buffer, here) or buffer
  elseif file.change == "delete" and hunks.applied(file.hunks[1]) and not vim.uv.fs_stat(file.path) then
    require("amanu.wire.client").forget(buffer)
  elseif not vim.o.autoread then
    return buffer
  elseif file.change == "create" and vim.fn.getbufline(buffer, 1, 2)[1] == "" and vim.uv.fs_stat(file.path) then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent! edit!") -- a file that came into being is not read by itself
    end)
  elseif vim.iter(file.hunks):any(function(hunk)
    return hunks.applied(hunk) or hunks.undone(hunk)
  end) then
    if vim.uv.fs_stat(vim.api.nvim_buf_get_name(buffer)) then
      vim.cmd.checktime({ args = { tostring(buffer) }, mods = { silent = true } })
    end
  end
  return buffer
end

---After a change of proposals: all loaded files, or those of one proposal.
---@param proposal? amanu.Proposal
function M.refresh(proposal)
  local buffers = {}
  for _, file in ipairs(proposal and proposal.files or {}) do
    for _, path in ipairs({ file.path, file.newPath }) do
      local buffer = apply.find(path)
      if buffer then
        table.insert(buffers, read_again(buffer, file))
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
local function current_change(which)
  local row, first, last = row_list.current(which or hunks.to_review)
  if row then
    return row, first, last
  end
  return M.current(which)
end

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
local function arrive(note)
  local change, first, last = current_change()
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
  M.draw(vim.api.nvim_get_current_buf())
  vim.api.nvim_win_set_cursor(0, { math.min(M.line(place), vim.api.nvim_buf_line_count(0)), 0 })
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
    arrive(at and (to - at) * step < 0 and PAST[step] or nil)
  end)
  return true
end

---Rows of a buffer where something to review begins, in order.
---@param buffer integer
---@return integer[]
local function firsts_of(buffer)
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

---@param row integer Of the current buffer.
---@param note? string
local function go_to_row(row, note)
  vim.cmd("normal! m'")
  vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
  arrive(note)
end

---To the next hunk, or the one before; on to the next file after the last, and around.
---@param step 1|-1
function M.jump(step)
  jumps = jumps + 1
  if step == 1 and was_just_led() then
    return arrive() -- it is the next already
  end
  local firsts = firsts_of(vim.api.nvim_get_current_buf())
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

-- Deciding --------------------------------------------------------------------------------------------

local function nothing_here()
  local key = config.key("next")
  say.now("nothing to review under the cursor" .. (key ~= "" and "; " .. key .. " goes to the next" or ""))
end

local function say_left()
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
local function moving_on(change, first)
  local buffer, jumped = vim.api.nvim_get_current_buf(), jumps
  return function()
    local waits = vim.iter(rows.changes()):any(function(each)
      return each.id == change.id
    end)
    if waits or jumps ~= jumped or vim.api.nvim_get_mode().mode ~= "n" then
      return
    end
    local firsts = buffer == vim.api.nvim_get_current_buf() and firsts_of(buffer) or {}
    local next_one = vim.iter(firsts):find(function(row)
      return row >= first
    end)
    if #firsts == 0 then
      return say_left()
    end
    go_to_row(next_one or firsts[1])
    led = { at = vim.uv.now(), buffer = buffer, line = vim.api.nvim_win_get_cursor(0)[1] }
  end
end

---@param run fun(change: amanu.Change, first: integer, last: integer)
local function on_current(run)
  local row = row_list.current()
  local change, first, last = current_change()
  if row and not rows.decidable(row.row) then
    return say.now(row.row.undecidable)
  elseif not change then
    return nothing_here()
  end
  run(change, first, last)
end

---@param change amanu.Change
---@param first integer
local function accept(change, first)
  local done = moving_on(change, first)
  if hunks.unreviewed(change.decided) then
    return require("amanu.review.decide").keep(change, done)
  end
  require("amanu.review.decide").one(change, { decision = "accept" }, done)
end

---@param change amanu.Change Taller than the window.
---@param first integer
local function accept_unseen(change, first)
  local place = change.kind == "hunk" and change --[[@as amanu.Place]] or nil
  local side, yes = "Show it side by side", hunks.unreviewed(change.decided) and "Keep it all the same" or "Accept it all the same"
  local in_diff = require("amanu.review.diff").path(vim.api.nvim_get_current_buf()) ~= nil
  local what = place and ("hunk fits on the screen (+%d -%d)"):format(#hunks.lines(place.hunk.newText), #hunks.lines(place.hunk.oldText))
  ask.select((in_diff or not place) and { yes } or { side, yes }, {
    prompt = ("Not all of this %s."):format(what or "change fits on the screen"),
  }, function(choice)
    if choice == yes then
      accept(change, first)
    elseif place and choice == side then
      require("amanu.review.diff").open(place.proposal.proposalId, place.file.path, function()
        local firsts = require("amanu.review.diff").rows(vim.api.nvim_get_current_buf(), function(hunk)
          return hunk.hunkId == place.hunk.hunkId
        end)
        local count = vim.api.nvim_buf_line_count(0)
        vim.api.nvim_win_set_cursor(0, { math.min((firsts and firsts[1] or 0) + 1, count), 0 })
        arrive()
      end)
    end
  end)
end

---Yes: accept it, or keep what a rule applied. A key says it of what is on the screen.
function M.accept()
  on_current(function(change, first, last)
    if sight.whole(first, last) then
      accept(change, first)
    elseif sight.show(first, last) then
      say.now("part of it was out of sight. Look at it, and press again.")
    else
      accept_unseen(change, first)
    end
  end)
end

---No: reject it, or take back what a rule applied.
function M.reject()
  on_current(function(change, first)
    local done = moving_on(change, first)
    if hunks.unreviewed(change.decided) then
      return require("amanu.review.decide").undo_one(change, done)
    end
    ask.input({ prompt = "Tell the model why (may be empty): " }, function(reason)
      if reason then
        local why = reason ~= "" and reason or nil
        require("amanu.review.decide").one(change, { decision = "reject", reason = why }, done)
      end
    end)
  end)
end

function M.edit()
  local place = M.current(hunks.open)
  if not place then
    return nothing_here()
  end
  require("amanu.review.edit").open(place)
end

---@return { name: string, what: string, run: fun() }[]
local function actions()
  local decide = require("amanu.review.decide")
  return {
    { name = "next", what = "next hunk", run = function() M.jump(1) end },
    { name = "previous", what = "hunk before", run = function() M.jump(-1) end },
    { name = "next_file", what = "next file to review", run = function() M.jump_file(1) end },
    { name = "previous_file", what = "file before", run = function() M.jump_file(-1) end },
    { name = "accept", what = "accept or keep the hunk", run = M.accept },
    { name = "reject", what = "reject or undo the hunk", run = M.reject },
    { name = "edit", what = "change the hunk, then accept it", run = M.edit },
    { name = "accept_file", what = "accept or keep the file", run = function() decide.accept_file(say_left) end },
    { name = "reject_file", what = "reject or undo the file", run = function() decide.reject_file(say_left) end },
    { name = "undo", what = "take back what was applied", run = function() decide.undo("") end },
    { name = "redo", what = "bring back what was taken back", run = function() decide.decide("redo", "") end },
    { name = "retry", what = "ask the model again for what is in conflict", run = function() decide.retry("") end },
    { name = "old", what = "show what was replaced", run = M.old },
    { name = "why", what = "the hunk and its reason", run = function() require("amanu.review.why").show() end },
    { name = "comment", what = "comment to the agent", run = function() require("amanu.review.comments").add() end },
    { name = "rewrite", what = "rewrite the line or selection", run = function() require("amanu.review.rewrite").start() end },
    { name = "diff", what = "side by side", run = function() require("amanu.review.diff").open() end },
    { name = "approve", what = "answer the question", run = function() require("amanu.approve.approvals").ask() end },
  } -- stylua: ignore
end

---Give the buffer our keys, whether it has hunks or not, and for good: a key that is not there when the user presses
---it would do something else, to their text.
---@param buffer integer
function M.keys(buffer)
  for _, action in ipairs(actions()) do
    local key = config.now.keys[action.name]
    if key then
      local modes = (action.name == "comment" or action.name == "rewrite") and { "n", "x" } or "n"
      vim.keymap.set(modes, key, action.run, { buffer = buffer, desc = "Amanu: " .. action.what })
    end
  end
end

return M
