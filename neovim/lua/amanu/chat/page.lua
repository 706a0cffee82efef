---Lines to be read, in a window of their own below; `q` closes it.

local M = {}

---@param name string Of the buffer.
---@param lines string[] Nothing hidden in them.
---@return integer window
function M.open(name, lines)
  local buffer = vim.api.nvim_create_buf(false, true)
  pcall(vim.api.nvim_buf_set_name, buffer, "amanu://" .. name)
  vim.bo[buffer].bufhidden = "wipe"
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modifiable = false
  local window = vim.api.nvim_open_win(buffer, true, { split = "below", win = 0 })
  for option, value in pairs({ wrap = true, linebreak = true, number = false, relativenumber = false, signcolumn = "no" }) do
    vim.wo[window][0][option] = value
  end
  vim.wo[window][0].winbar = " q closes"
  local rows = vim.api.nvim_win_text_height(window, {}).all + 1 -- with the bar above
  vim.api.nvim_win_set_height(window, math.min(math.max(rows, 3), math.floor(vim.o.lines / 2)))
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buffer, nowait = true, desc = "Amanu: close this" })
  return window
end

return M
