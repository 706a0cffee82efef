---The rules that would answer a question from then on, in a window of their own: change them, see what they would do,
---`:w` saves them and says yes, `:q` leaves it undecided.

local client = require("amanu.wire.client")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")
local worded = require("amanu.chat.worded")

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace("amanu.rule")
local SOON_MS = 200 -- after the last key

---@param buffer integer
---@return string
local function written(buffer)
  local lines = vim.tbl_map(vim.trim, vim.api.nvim_buf_get_lines(buffer, 0, -1, true))
  return table.concat(
    vim.tbl_filter(function(line)
      return line ~= ""
    end, lines),
    "\n"
  )
end

---@param approval amanu.Approval
---@param rule string
---@param done fun(why?: string, preview?: amanu.RulePreviewResult)
local function look(approval, rule, done)
  local params = { rule = rule, sessionId = session.state and session.state.sessionId, toolCallId = approval.toolCallId }
  client.request(methods.rule_preview, params, done)
end

---Say below the rules what they would do.
---@param buffer integer
---@param approval amanu.Approval
local function draw(buffer, approval)
  local rule = written(buffer)
  look(approval, rule, function(why, preview)
    if not vim.api.nvim_buf_is_valid(buffer) or written(buffer) ~= rule then
      return -- gone, or typed on: a later look says it
    end
    local group = (why or not preview.fits) and "DiagnosticError" or "Comment"
    local lines = why and { visible.line(why) } or worded.lines(preview.lines)
    vim.api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
    vim.api.nvim_buf_set_extmark(buffer, NAMESPACE, vim.api.nvim_buf_line_count(buffer) - 1, 0, {
      virt_lines = vim.tbl_map(function(line)
        return { { "  " .. line, group } }
      end, lines),
    })
  end)
end

---@param approval amanu.Approval
---@param answer amanu.ApprovalAnswer
---@param save fun(rule: string, done: fun()) Says yes by that rule; `done` when that counted.
function M.open(approval, answer, save)
  local buffer = vim.api.nvim_create_buf(false, false)
  pcall(vim.api.nvim_buf_set_name, buffer, "amanu://rule/" .. approval.toolCallId)
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].swapfile = false
  local lines = visible.lines(visible.text(answer.rule))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modified = false
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buffer,
    callback = function()
      local rule = written(buffer)
      look(approval, rule, function(why, preview)
        if why or not preview.fits then
          return say.error(why or worded.problem(preview.lines))
        end
        save(rule, function()
          if vim.api.nvim_buf_is_valid(buffer) then
            vim.api.nvim_buf_delete(buffer, { force = true })
          end
        end)
      end)
    end,
  })
  local latest = 0
  vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI" }, {
    buffer = buffer,
    callback = function()
      latest = latest + 1
      local mine = latest
      vim.defer_fn(function()
        if mine == latest and vim.api.nvim_buf_is_valid(buffer) then
          draw(buffer, approval)
        end
      end, SOON_MS)
    end,
  })
  local window = vim.api.nvim_open_win(buffer, true, { split = "below", win = 0, height = #lines + 9 })
  local label = visible.line(answer.label):gsub("%%", "%%%%")
  vim.wo[window][0].winbar = (" :w: %s · :q leaves it undecided%%<"):format(label)
  draw(buffer, approval)
end

return M
