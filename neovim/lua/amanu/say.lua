---What the plugin says outside its own windows.

local visible = require("amanu.visible")

local M = {}

---An answer to what the user did.
---@param text string
---@param level? integer
function M.now(text, level)
  vim.notify("Amanu: " .. visible.text(text), level or vim.log.levels.INFO)
end

---The place the user has come to: shown until the next message, and in no list of them.
---@param text string
function M.brief(text)
  vim.cmd.redraw() -- else it may ask for ENTER where another message is shown
  vim.api.nvim_echo({ { "Amanu: " .. visible.line(text, math.max(20, vim.o.columns - 20)) } }, false, {})
end

---@param text string
function M.error(text)
  M.now(text, vim.log.levels.ERROR)
end

---Something that happened by itself, or is told in full elsewhere: one line that fits, so that no key press goes into a
---"Press ENTER".
---@param text string
---@param level? integer
function M.aside(text, level)
  vim.notify("Amanu: " .. visible.line(text, math.max(20, vim.o.columns - 20)), level or vim.log.levels.INFO)
end

return M
