---What the daemon says to the user in its own words, ready to be shown: nothing hidden in it, and each line is one line.

local labels = require("amanu.labels")
local visible = require("amanu.visible")

local M = {}

local CLIENT = "Neovim"
local LONG = 4000 -- characters; the daemon's own limits are narrower

---@param text string
---@return string
function M.line(text)
  return visible.line((text:gsub("\n", "␊")), LONG)
end

---@param lines? amanu.Line[]
---@return string[]
function M.lines(lines)
  return vim.tbl_map(function(line)
    return M.line(line.text)
  end, lines or {})
end

---The first of the lines that says why something cannot be.
---@param lines amanu.Line[]
---@return string
function M.problem(lines)
  for _, line in ipairs(lines) do
    if line.tone == "bad" then
      return M.line(line.text)
    end
  end
  return ""
end

---By whom or by which rule a call was decided, and what held it; "" where there is nothing to tell.
---@param call amanu.ToolCall
---@return string
function M.settled(call)
  local parts, decision, sandbox = {}, call.decision, call.sandbox
  if decision then
    local elsewhere = (decision.client or "") ~= "" and decision.client ~= CLIENT
    table.insert(parts, (decision.summary or decision.outcome) .. (elsewhere and (" (%s)"):format(decision.client) or ""))
  end
  if sandbox then
    table.insert(parts, sandbox.brief or labels.SANDBOX[sandbox.tier])
  end
  return M.line(table.concat(parts, " · "))
end

return M
