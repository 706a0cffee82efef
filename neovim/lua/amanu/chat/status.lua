---What the session does, on one line.

local agents = require("amanu.sessions.agents")
local labels = require("amanu.labels")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

local SEPARATOR = " · "

---@param state amanu.SessionState
---@return boolean
local function making_room(state)
  local last = state.items[#state.items]
  return last ~= nil and last.kind == "notice" and last.code == "compacting"
end

---What the session does, on one line: for the chat's head, and for a status line.
---@param width? integer Room there is: what matters least is left out.
---@return string
function M.line(width)
  local state = session.state
  if session.starting then
    return "starting"
  elseif not state then
    return "no session"
  elseif session.lost then
    return "connection lost, coming back"
  end
  local parts = {}
  if state.readOnly then
    table.insert(parts, "read-only: open in another daemon")
  end
  local asked = state.approvals[1] or state.questions[1]
  if asked then
    table.insert(parts, "? " .. agents.owner(state, asked) .. visible.line(asked.title, 30))
  elseif state.retry then
    local seconds = math.max(0, math.ceil((state.retry.at - os.time() * 1000) / 1000))
    table.insert(parts, ("attempt %d in %d s: %s"):format(state.retry.attempt, seconds, visible.line(state.retry.reason, 50)))
  elseif state.turn then
    table.insert(parts, making_room(state) and "making room" or "working, step " .. state.turn.steps + 1)
  elseif state.lastTurn and state.lastTurn.reason ~= "completed" then
    table.insert(parts, "ended: " .. visible.line(state.lastTurn.reason))
  end
  if #state.queue > 0 then
    table.insert(parts, #state.queue .. " queued")
  end
  if state.sandbox and state.sandbox.tier == "none" then
    table.insert(parts, labels.SANDBOX.none:lower())
  end
  table.insert(parts, agents.running(state))
  table.insert(parts, require("amanu.sessions.jobs").running(state))
  table.insert(parts, state.mode)
  local model = visible.line(vim.fs.basename((state.turn or state).modelId), 40)
  if state.serviceTier and state.serviceTier ~= "standard" then
    model = model .. " " .. state.serviceTier
  end
  table.insert(parts, model)
  local used = state.usage or {}
  local context = (used.fullness or "") ~= "" and used.fullness or nil
  local cost = used.costUsd and used.cost
  table.insert(parts, context)
  table.insert(parts, cost)
  for _, least in ipairs({ model, cost or false, context or false }) do
    if not width or vim.fn.strdisplaywidth(table.concat(parts, SEPARATOR)) <= width then
      break
    end
    parts = vim.tbl_filter(function(each)
      return each ~= least
    end, parts)
  end
  local line = table.concat(parts, SEPARATOR)
  return width and visible.line(line, math.max(width, 10)) or line
end

return M
