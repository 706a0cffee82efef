---The lines the user means.

local M = {}

---The lines of the selection, which ends; else the cursor's line.
---@return integer first
---@return integer last
function M.selected()
  local mode = vim.api.nvim_get_mode().mode:sub(1, 1)
  local line = vim.fn.line(".")
  if not vim.list_contains({ "v", "V", "\22" }, mode) then
    return line, line
  end
  local other = vim.fn.line("v")
  vim.api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  return math.min(line, other), math.max(line, other)
end

return M
