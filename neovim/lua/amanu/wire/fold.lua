---The one way a session changes: `fold`, as `protocol/amanu_protocol/state.py` has it; `protocol/fixtures/*.json`
---specify it. JSON's null is nil here.

local protocol = require("amanu.protocol")

local M = {}

---@type table<amanu.SessionState, table<string, integer>> Places of a state's items.
local places = setmetatable({}, { __mode = "k" })

local KNOWN = {}
for _, kind in pairs(protocol.items) do
  KNOWN[kind] = true
end

---@param state amanu.SessionState
local function index(state)
  local found = places[state]
  if not found then
    found = {}
    for at, item in ipairs(state.items) do
      found[item.itemId] = at
    end
    places[state] = found
  end
  return found
end

---@param state amanu.SessionState
---@param item_id string
---@return amanu.Item?
function M.item(state, item_id)
  local at = index(state)[item_id]
  return at and state.items[at]
end

---@param state amanu.SessionState
---@param items amanu.Item[] Earlier ones, in order.
---@param has_earlier boolean
function M.prepend(state, items, has_earlier)
  state.items = vim.list_extend(vim.list_slice(items), state.items)
  state.hasEarlier = has_earlier
  places[state] = nil
end

---@param state amanu.SessionState
---@param todos? amanu.Todo[]
---@param summary? string
local function set_todos(state, todos, summary)
  state.todos = todos or {}
  state.todosSummary = summary or ""
end

---@param todos amanu.Todo[]
---@return boolean
local function finished(todos)
  return vim.iter(todos):all(function(todo)
    return todo.status == "done" or todo.status == "cancelled"
  end)
end

---@param state amanu.SessionState
---@param item amanu.Item
local function put(state, item)
  if not KNOWN[item.kind] then
    return
  end
  if item.kind == "question" then
    state.questions = vim.tbl_filter(function(question)
      return question.itemId ~= item.itemId
    end, state.questions)
    if item.state == "open" then
      table.insert(state.questions, item)
    end
  end
  local at = index(state)[item.itemId]
  if not at then
    at = #state.items + 1
    index(state)[item.itemId] = at
  end
  state.items[at] = item
  if item.kind == "todoList" then
    set_todos(state, item.todos, item.summary)
  end
end

---@param state amanu.SessionState
---@param item_ids string[]
local function remove(state, item_ids)
  local gone = {}
  for _, id in ipairs(item_ids) do
    gone[id] = true
  end
  state.items = vim.tbl_filter(function(item)
    return not gone[item.itemId]
  end, state.items)
  places[state] = nil
end

---@generic T
---@param list T[]
---@param key string
---@param value string
---@return T[]
local function without(list, key, value)
  return vim.tbl_filter(function(each)
    return each[key] ~= value
  end, list)
end

---@param state amanu.SessionState
---@param proposal amanu.Proposal
local function put_proposal(state, proposal)
  for at, known in ipairs(state.proposals) do
    if known.proposalId == proposal.proposalId then
      local bases = {}
      for _, file in ipairs(known.files) do
        bases[file.path] = file
      end
      for _, file in ipairs(proposal.files) do
        local was = bases[file.path]
        if was and was.baseBlob == file.baseBlob then
          file.baseText = file.baseText or was.baseText
        end
      end
      state.proposals[at] = proposal
      return
    end
  end
  table.insert(state.proposals, proposal)
end

---Background commands that a session keeps.
local MAX_JOBS = 20

---Replace the job of the same id in its place, or append; then forget the first that ended, if there are many.
---@param state amanu.SessionState
---@param job amanu.Job
local function put_job(state, job)
  for at, known in ipairs(state.jobs) do
    if known.jobId == job.jobId then
      state.jobs[at] = job
      return
    end
  end
  table.insert(state.jobs, job)
  for at, known in ipairs(#state.jobs > MAX_JOBS and state.jobs or {}) do
    if known.state ~= "running" then
      table.remove(state.jobs, at)
      return
    end
  end
end

---Sub-agents that a session keeps.
local MAX_AGENTS = 20

---@param agent amanu.SubAgent
---@return boolean
local function works(agent)
  return agent.state == "waiting" or agent.state == "running"
end

---As `put_job`.
---@param state amanu.SessionState
---@param agent amanu.SubAgent
local function put_agent(state, agent)
  state.agents = state.agents or {}
  for at, known in ipairs(state.agents) do
    if known.agentId == agent.agentId then
      state.agents[at] = agent
      return
    end
  end
  table.insert(state.agents, agent)
  for at, known in ipairs(#state.agents > MAX_AGENTS and state.agents or {}) do
    if not works(known) then
      table.remove(state.agents, at)
      return
    end
  end
end

---Whether a sub-agent in the background asks: it goes on without the turn.
---@param state amanu.SessionState
---@param agent_id? string
---@return boolean
local function outlives_turn(state, agent_id)
  return vim.iter(state.agents or {}):any(function(agent)
    return agent.agentId == agent_id and agent.background and works(agent)
  end)
end

---@type table<string, fun(state: amanu.SessionState, event: table)>
local SESSION_KEYS = {
  "roots",
  "title",
  "mode",
  "modelId",
  "effort",
  "serviceTier",
  "trusted",
  "trustChanged",
  "sandbox",
  "plan",
  "parentSessionId",
  "agent",
  "purpose",
  "closed",
}

local on = {
  sessionRewound = function(state, event)
    local at = index(state)[event.itemId]
    state.items = at and vim.list_slice(state.items, 1, at - 1) or event.items or {}
    state.lastTurn = nil
    set_todos(state, event.todos, event.todosSummary)
    state.plan = event.plan or state.plan
    state.questions = vim.tbl_filter(function(question)
      return not vim.list_contains(event.turnIds, question.turnId)
    end, state.questions)
    places[state] = nil
  end,
  itemDelta = function(state, event)
    local item = M.item(state, event.itemId)
    if item and (item.kind == "thought" or item.kind == "answer") then
      item.text = item.text .. event.text
    elseif item and item.kind == "toolCall" then
      item.output = item.output .. event.text
    end
  end,
  itemStarted = function(state, event)
    put(state, event.item)
  end,
  itemsWithdrawn = function(state, event)
    remove(state, event.itemIds)
    state.questions = vim.tbl_filter(function(question)
      return not vim.list_contains(event.itemIds, question.itemId)
    end, state.questions)
  end,
  itemsReplaced = function(state, event)
    remove(state, event.withdrawn)
    for _, item in ipairs(event.items) do
      put(state, item)
    end
  end,
  approvalRequested = function(state, event)
    state.approvals = without(state.approvals, "toolCallId", event.approval.toolCallId)
    table.insert(state.approvals, event.approval)
  end,
  approvalResolved = function(state, event)
    state.approvals = without(state.approvals, "toolCallId", event.toolCallId)
  end,
  proposalChanged = function(state, event)
    put_proposal(state, event.proposal)
  end,
  turnStarted = function(state, event)
    state.turn = { turnId = event.turnId, modelId = event.modelId, steps = 0 }
    state.lastTurn = nil
  end,
  turnRouted = function(state, event)
    if state.turn and state.turn.turnId == event.turnId then
      state.turn.modelId = event.modelId
      state.turn.routed = event.reason
    end
  end,
  stepEnded = function(state, event)
    if state.turn and state.turn.turnId == event.turnId then
      state.turn.steps = event.step
    end
  end,
  turnEnded = function(state, event)
    state.turn = nil
    state.lastTurn = event
    state.approvals = vim.tbl_filter(function(approval)
      return outlives_turn(state, approval.agentId)
    end, state.approvals)
    state.retry = nil
    if finished(state.todos or {}) then
      set_todos(state)
    end
  end,
  promptQueued = function(state, event)
    state.queue = vim.list_extend(vim.list_slice(state.queue), { event.prompt })
  end,
  promptUnqueued = function(state, event)
    state.queue = without(state.queue, "promptId", event.promptId)
  end,
  retryChanged = function(state, event)
    state.retry = event.retry
  end,
  usageChanged = function(state, event)
    state.usage = event.usage
  end,
  jobChanged = function(state, event)
    put_job(state, event.job)
  end,
  jobProgress = function(state, event)
    for _, job in ipairs(state.jobs) do
      if job.jobId == event.jobId then
        job.lastLine, job.outputSize = event.lastLine, event.outputSize
      end
    end
  end,
  agentChanged = function(state, event)
    put_agent(state, event.agent)
  end,
  sessionChanged = function(state, event)
    for _, key in ipairs(SESSION_KEYS) do
      if event[key] ~= nil then
        state[key] = event[key]
      end
    end
  end,
}
on.itemChanged = on.itemStarted
on.itemCompleted = on.itemStarted

---Apply one event in place. Never fails for what is unknown: it changes nothing.
---@param state amanu.SessionState
---@param event table
function M.fold(state, event)
  local change = on[event.kind]
  if change then
    change(state, event)
  end
end

return M
