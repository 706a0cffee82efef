---The command that is asked about, in a window of its own: change it, `:w` runs it as it is then, `:q` leaves it
---undecided.

local visible = require("amanu.visible")

local M = {}

---@param approval amanu.Approval
---@param answer amanu.ApprovalAnswer
---@param run fun(command: string, done: fun()) Approves that command; `done` when that counted.
function M.open(approval, answer, run)
  local buffer = vim.api.nvim_create_buf(false, false)
  pcall(vim.api.nvim_buf_set_name, buffer, "amanu://command/" .. approval.toolCallId)
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].syntax = "sh"
  local lines = vim.split(approval.command, "\n", { plain = true })
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modified = false
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buffer,
    callback = function()
      run(table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n"), function()
        if vim.api.nvim_buf_is_valid(buffer) then
          vim.api.nvim_buf_delete(buffer, { force = true })
        end
      end)
    end,
  })
  local window = vim.api.nvim_open_win(buffer, true, { split = "below", win = 0, height = math.min(#lines + 2, 15) })
  local meaning = visible.line("runs it. " .. answer.explanation)
  vim.wo[window][0].winbar = (" :w %s · :q leaves it undecided%%<"):format((vim.trim(meaning):gsub("%%", "%%%%")))
end

return M
