---`amanu/editor/apply`: the daemon's edits to an open buffer. In one tick, as one undo step of their own, only to the
---text they were computed from; while the user is typing they wait.

local positions = require("amanu.wire.positions")

local M = {}

local WAIT_MS = 8000 -- the daemon gives up after ten seconds (frontends/lsp/buffers.py, ANSWER)
local ENDS = { unix = "\n", dos = "\r\n", mac = "\r" }

---The buffer's text as vim.lsp tells it to servers.
---@param buffer integer
---@return string
function M.text(buffer)
  local line_end = ENDS[vim.bo[buffer].fileformat]
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), line_end)
  return vim.bo[buffer].eol and text .. line_end or text
end

---@param path string
---@return string
function M.real(path)
  return vim.uv.fs_realpath(path) or vim.fs.normalize(path)
end

---The loaded buffer that shows the file.
---@param path string
---@return integer?
function M.find(path)
  local real = M.real(path)
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buffer)
    if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].buftype == "" and name ~= "" then
      if name == path or M.real(name) == real then
        return buffer
      end
    end
  end
end

---Bytes before each line.
---@param text string
---@param line_end string
---@return integer[]
local function line_starts(text, line_end)
  local starts, from = { 0 }, 1
  while true do
    local first, last = text:find(line_end, from, true)
    if not first then
      return starts
    end
    table.insert(starts, last)
    from = last + 1
  end
end

---@class amanu.ByteEdit
---@field first integer Bytes before it.
---@field last integer
---@field new string

---Nothing when one of them is not in the text.
---@param text string
---@param edits amanu.TextEdit[]
---@param line_end string
---@return amanu.ByteEdit[]? edits
---@return string new_text
local function in_bytes(text, edits, line_end)
  local starts, encoding = line_starts(text, line_end), positions.encoding()
  local function place(position)
    local start, next_start = starts[position.line + 1], starts[position.line + 2]
    if not start then
      return nil
    end
    local line = text:sub(start + 1, next_start and next_start - #line_end or #text)
    local byte = positions.byte(line, position.character, encoding)
    return byte and start + byte
  end
  local found, parts, behind = {}, {}, 0
  for _, edit in ipairs(edits) do
    local first, last = place(edit.range.start), place(edit.range["end"])
    if not first or not last or first < behind or last < first then
      return nil, text
    end
    table.insert(found, { first = first, last = last, new = edit.newText })
    vim.list_extend(parts, { text:sub(behind + 1, first), edit.newText })
    behind = last
  end
  return found, table.concat(parts) .. text:sub(behind + 1)
end

---Break the undo block: what follows is a step of its own (:help undo-break).
---@param buffer integer
local function break_undo(buffer)
  vim.api.nvim_buf_call(buffer, function()
    vim.cmd("let &l:undolevels = &l:undolevels")
  end)
end

local asked = 0
---@type table<integer, integer> Buffers changed for what was asked, and their `changedtick` after that.
local changed = {}

---What the daemon changes from now on, until what is returned is called, is one undo step in each buffer: the user
---asked for it as one, though it may be of several proposals.
---@return fun()
function M.together()
  asked = asked + 1
  changed = asked == 1 and {} or changed
  return function()
    asked = asked - 1
  end
end

---Begin an undo step, or go on with that of `together`.
---@param buffer integer
local function begin_undo(buffer)
  if asked > 0 and changed[buffer] == vim.api.nvim_buf_get_changedtick(buffer) then
    vim.api.nvim_buf_call(buffer, function()
      pcall(vim.cmd.undojoin)
    end)
  else
    break_undo(buffer)
  end
end

---Replace the lines in which old and new text differ, edit by edit from the last, so that cursor, marks and folds
---elsewhere stay.
---@param buffer integer
---@param text string
---@param edits amanu.ByteEdit[]
---@param line_end string
local function change(buffer, text, edits, line_end)
  local starts = line_starts(text, line_end)
  local count = vim.api.nvim_buf_line_count(buffer)
  local function position(byte)
    local low, high = 1, #starts
    while low < high do
      local middle = math.ceil((low + high) / 2)
      if starts[middle] <= byte then
        low = middle
      else
        high = middle - 1
      end
    end
    if low > count then -- after the line end of the last line
      return count - 1, #vim.api.nvim_buf_get_lines(buffer, count - 1, count, true)[1], true
    end
    return low - 1, byte - starts[low], false
  end
  for at = #edits, 1, -1 do
    local edit = edits[at]
    local row, column, behind = position(edit.first)
    local end_row, end_column, end_behind = position(edit.last)
    local new = vim.split(edit.new, line_end, { plain = true })
    if behind then
      table.insert(new, 1, "")
      if new[#new] == "" then
        table.remove(new)
      end
    elseif end_behind and new[#new] == "" and #new > 1 then
      table.remove(new)
    elseif end_behind and edit.new == "" and column == 0 and row > 0 then -- whole last lines go
      row, column = row - 1, #vim.api.nvim_buf_get_lines(buffer, row - 1, row, true)[1]
      new = { "" }
    end
    vim.api.nvim_buf_set_text(buffer, row, column, end_row, end_column, new)
  end
end

---@param buffer integer
---@param text string
---@param line_end string
local function set_all(buffer, text, line_end)
  local lines = vim.split(text, line_end, { plain = true })
  vim.bo[buffer].eol = #lines > 1 and lines[#lines] == ""
  if vim.bo[buffer].eol then
    table.remove(lines)
  end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, #lines > 0 and lines or { "" })
end

---@param buffer integer
---@param before string
---@return string? why
local function not_as_on_disk(buffer, before)
  local file = io.open(vim.api.nvim_buf_get_name(buffer), "rb")
  if not file then
    return "the file is not on disk"
  end
  local bytes = file:read("*a")
  file:close()
  local encoding = vim.bo[buffer].fileencoding
  if encoding ~= "" and encoding ~= "utf-8" then
    before = vim.iconv(before, "utf-8", encoding)
  elseif vim.bo[buffer].bomb then
    before = "\239\187\191" .. before
  end
  return bytes ~= before and "the file on disk is not what the buffer was read from" or nil
end

---@param buffer integer
---@return string? why
local function save(buffer)
  local fix = vim.bo[buffer].fixeol
  vim.bo[buffer].fixeol = false -- no final line end that nobody asked for
  local ok, why = pcall(vim.api.nvim_buf_call, buffer, function()
    vim.cmd("silent write!") -- looked at above; a question here would stop everything
  end)
  vim.bo[buffer].fixeol = fix
  return not ok and tostring(why) or nil
end

---@param params amanu.EditorApplyParams
---@param told fun(buffer: integer) The server hears of the change.
---@return amanu.EditorApplyResult
local function apply(params, told)
  local buffer = M.find(params.path)
  local name = vim.fs.basename(params.path)
  if not buffer then
    return { status = "notOpen", message = name .. " is not open." }
  elseif not vim.bo[buffer].modifiable or vim.bo[buffer].readonly then
    return { status = "error", message = name .. " is read-only in Neovim." }
  end
  local before = M.text(buffer)
  if vim.fn.sha256(before) ~= params.expectedSha256 then
    return { status = "conflict", message = name .. " was changed meanwhile." }
  end
  local line_end = ENDS[vim.bo[buffer].fileformat]
  local edits, after = in_bytes(before, params.edits, line_end)
  if not edits then
    return { status = "error", message = "An edit lies outside the text of " .. name .. "." }
  end
  local unsaved = params.save and not_as_on_disk(buffer, before) or nil
  local eol = vim.bo[buffer].eol
  begin_undo(buffer)
  local ok, why = pcall(change, buffer, before, edits, line_end)
  if not ok or M.text(buffer) ~= after then -- what small steps cannot say: all lines
    ok, why = pcall(set_all, buffer, after, line_end)
  end
  if not ok or M.text(buffer) ~= after then
    pcall(set_all, buffer, before, line_end)
    break_undo(buffer)
    return { status = "error", message = ok and "its line ends do not allow that change" or tostring(why) }
  end
  break_undo(buffer)
  told(buffer)
  local now, version = M.text(buffer), vim.lsp.util.buf_versions[buffer] -- a formatter may change it on save
  if vim.bo[buffer].eol ~= eol then -- vim.lsp does not notice: it watches lines
    require("amanu.wire.client").reopen(buffer)
  end
  if params.save and not unsaved then
    unsaved = save(buffer)
  end
  changed[buffer] = vim.api.nvim_buf_get_changedtick(buffer)
  return {
    status = "success",
    sha256 = vim.fn.sha256(now),
    version = version,
    saved = params.save and unsaved == nil,
    message = unsaved and ("Not saved: " .. unsaved) or nil,
  }
end

---Whether the user is in the middle of something in that buffer: typing, or a command line, whose preview may
---show a text that is not there.
---@param buffer integer?
---@return boolean
local function busy(buffer)
  local mode = vim.api.nvim_get_mode().mode
  if mode:find("^[iR]") or mode:find("^no") then
    return vim.api.nvim_get_current_buf() == buffer
  end
  return mode:find("^c") ~= nil or vim.fn.getcmdwintype() ~= ""
end

---Answer the daemon. Runs in a coroutine of vim.lsp's, which takes what is returned as the reply.
---@param params amanu.EditorApplyParams
---@param told fun(buffer: integer)
---@return amanu.EditorApplyResult
function M.handle(params, told)
  if busy(M.find(params.path)) then
    local waiting = coroutine.running()
    local group = vim.api.nvim_create_augroup("amanu.apply." .. vim.uv.hrtime(), {})
    local timer = assert(vim.uv.new_timer())
    local over = false
    local function go_on(late)
      if over or (not late and busy(M.find(params.path))) then
        return
      end
      over = true
      timer:stop()
      timer:close()
      vim.api.nvim_del_augroup_by_id(group)
      coroutine.resume(waiting, late)
    end
    vim.api.nvim_create_autocmd({ "ModeChanged", "BufEnter", "CmdwinLeave" }, {
      group = group,
      callback = vim.schedule_wrap(function()
        go_on(false)
      end),
    })
    timer:start(WAIT_MS, 0, vim.schedule_wrap(function()
      go_on(true)
    end))
    if coroutine.yield() then
      local name = vim.fs.basename(params.path)
      return { status = "error", message = "you are typing in " .. name .. "; accept it again when you have left insert mode." }
    end
  end
  return apply(params, told)
end

return M
