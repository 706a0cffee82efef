---Whether all of a hunk is on the screen, and bringing it there. Its new lines are virtual ones: Neovim draws them below
---a line as far as there is room, and a jump to that line does not care for them. Of the current window.

local M = {}

---Screen lines from a row to another, exclusive, with the virtual lines between them; at the file's end those below it.
---@param from integer
---@param to integer More than `from`.
---@return integer
local function height(from, to)
  local range = { start_row = from, start_vcol = 0 }
  if to < vim.api.nvim_buf_line_count(0) then
    range.end_row, range.end_vcol = to, 0
  end
  return vim.api.nvim_win_text_height(0, range).all
end

---@return integer lines the window has for text
local function room()
  return vim.fn.getwininfo(vim.api.nvim_get_current_win())[1].height
end

---@return vim.fn.winsaveview.ret
local function view()
  vim.fn.line("w0") -- the window as it will be drawn
  return vim.fn.winsaveview()
end

---What comes before the first line is drawn above it.
---@param last integer
---@return integer? screen lines
local function above(last)
  if last == 0 then
    local lines = vim.api.nvim_win_text_height(0, { end_row = 0, end_vcol = 0 }).all
    return lines > 0 and lines or nil -- without: an empty file, where they are below
  end
end

---@param first integer
---@param last integer
---@return integer from
---@return integer to
local function rows(first, last)
  return first < last and first or math.max(first - 1, 0), math.max(last, 1) -- an insertion is drawn below a line
end

---@param first integer Row of the hunk.
---@param last integer Exclusive.
---@return boolean
function M.whole(first, last)
  local now, before = view(), above(last)
  if before then
    return now.topline == 1 and now.topfill >= before
  end
  local from, to = rows(first, last)
  for row = from, to - 1 do
    if vim.fn.foldclosed(row + 1) ~= -1 then
      return false
    end
  end
  local begins = from > now.topline - 1 or (from == now.topline - 1 and now.skipcol == 0)
  return begins and now.topfill + height(now.topline - 1, to) <= room()
end

---Bring it there, with as many lines around it as there is room for.
---@param first integer Row of the hunk.
---@param last integer Exclusive.
---@return boolean it is there: it fits
function M.show(first, last)
  local before = above(last)
  local from, to = rows(first, last)
  vim.cmd(("silent! %d,%dfoldopen!"):format(from + 1, math.min(to, vim.api.nvim_buf_line_count(0))))
  if M.whole(first, last) then
    return true
  elseif before then
    vim.fn.winrestview({ topline = 1, topfill = before })
    return M.whole(first, last)
  end
  local spare = math.max(0, math.floor((room() - height(from, to)) / 2))
  local top = from
  while top > 0 and height(top - 1, from) <= spare do
    top = top - 1
  end
  vim.fn.winrestview({ topline = top + 1, topfill = 0, skipcol = 0 })
  return M.whole(first, last)
end

return M
