---Sub-agents: which one is meant, how each stands, a list of them, and the work of one in a window of its own.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

local NAME, WORDS = 30, 60 -- characters

---Its name with the number by which it is stopped and opened: two agents may have one name.
---@param name string
---@param agent_id string
---@return string
function M.name(name, agent_id)
  return visible.line(name, NAME) .. " " .. visible.line((agent_id:gsub("^agent%-", "")), NAME)
end

---@param state amanu.SessionState
---@param agent_id string
---@return amanu.SubAgent?
function M.find(state, agent_id)
  for _, agent in ipairs(state.agents or {}) do
    if agent.agentId == agent_id then
      return agent
    end
  end
end

---The agent that a call of `run_agent` started.
---@param state amanu.SessionState
---@param call_id string
---@return amanu.SubAgent?
function M.of_call(state, call_id)
  for _, agent in ipairs(state.agents or {}) do
    if agent.toolCallId == call_id then
      return agent
    end
  end
end

---Whose work it is, as what stands before its title: "looker 1: "; "" for the session's own.
---@param state amanu.SessionState
---@param of { agentId?: string } An item, an approval.
---@return string
function M.owner(state, of)
  local agent = of.agentId and M.find(state, of.agentId)
  if agent then
    return M.name(agent.name, agent.agentId) .. ": "
  end
  return of.agentId and visible.line(of.agentId, NAME) .. ": " or ""
end

---@param agent amanu.SubAgent
---@return boolean
function M.works(agent)
  return agent.state == "running" or agent.state == "waiting"
end

---@param agent amanu.SubAgent
---@return string
function M.label(agent)
  local parts = { M.name(agent.name, agent.agentId) .. ": " .. visible.line(agent.description, WORDS) }
  if agent.background then
    table.insert(parts, "in the background")
  end
  table.insert(parts, visible.line(agent.summary, WORDS))
  if agent.state == "running" and agent.activity ~= "" then
    table.insert(parts, visible.line(agent.activity, WORDS))
  end
  return table.concat(parts, " · ")
end

---The line of its card: what it took comes first, because the line of a closed fold ends with the window.
---@param agent amanu.SubAgent
---@return string
function M.head(agent)
  local took = visible.line((agent.summary:gsub("^%a+: ", "")), WORDS)
  local parts = { ("%s · %s: %s"):format(M.name(agent.name, agent.agentId), took, visible.line(agent.description, WORDS)) }
  if agent.background then
    table.insert(parts, "in the background")
  end
  if agent.state == "running" and agent.activity ~= "" then
    table.insert(parts, visible.line(agent.activity, WORDS))
  end
  return table.concat(parts, " · ")
end

---For the status line; nil when none works.
---@param state amanu.SessionState
---@return string?
function M.running(state)
  local count = #vim.tbl_filter(M.works, state.agents or {})
  return count > 0 and (count == 1 and "1 agent" or count .. " agents") or nil
end

---Show all that its own session holds, as it stands now.
---@param agent amanu.SubAgent
function M.open(agent)
  client.request(methods.session_attach, { sessionId = agent.sessionId }, function(why, result)
    if why then
      return say.error(why)
    end
    client.request(methods.session_detach, { sessionId = agent.sessionId })
    local lines = {}
    for _, item in ipairs(result.state.items) do
      vim.list_extend(lines, require("amanu.chat.blocks").lines(item, result.state))
    end
    table.insert(lines, "┆ " .. M.label(agent))
    local window = require("amanu.chat.page").open(agent.sessionId, lines)
    vim.bo[vim.api.nvim_win_get_buf(window)].filetype = "amanu"
  end)
end

---@param agent amanu.SubAgent
function M.stop(agent)
  session.ask(methods.agent_stop, { agentId = agent.agentId }, function(result)
    say.now(M.label(result.agent))
  end)
end

---What can be done about these.
---@param agents amanu.SubAgent[]
---@return { label: string, run: fun() }[]
function M.choices(agents)
  local found = {}
  for _, agent in ipairs(agents) do
    local label = M.label(agent)
    table.insert(found, { label = "Open " .. label, run = function() M.open(agent) end }) -- stylua: ignore
    if M.works(agent) then
      table.insert(found, { label = "Stop " .. label, run = function() M.stop(agent) end }) -- stylua: ignore
    end
  end
  return found
end

---`/agents`, `/agents stop ID`, `/agents open ID`.
---@param rest string
function M.run(rest)
  local agents = session.state and session.state.agents or {}
  if #agents == 0 then
    return say.now("no agents")
  end
  local verb, wanted = rest:match("^(%S+)%s+(%S+)$")
  if verb == "stop" or verb == "open" then
    local agent = M.find(session.state, wanted) or M.find(session.state, "agent-" .. wanted)
    if not agent then
      return say.now("there is no agent " .. visible.line(wanted, 40))
    end
    return verb == "stop" and M.stop(agent) or M.open(agent)
  elseif rest ~= "" then
    return say.now("name one: /agents stop ID, /agents open ID")
  end
  ask.choose(M.choices(agents), "Agents")
end

return M
