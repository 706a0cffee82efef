---Choosing: sessions, modes, models, queued prompts.

local ask = require("amanu.ask")
local client = require("amanu.client")
local labels = require("amanu.labels")
local protocol = require("amanu.protocol")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local methods = protocol.methods
local M = {}

local MODES = { "plan", "ask", "acceptEdits", "draft", "auto" }

---@generic T
---@param items T[]
---@param prompt string
---@param format fun(item: T): string
---@param chosen fun(item: T)
local function select(items, prompt, format, chosen)
  ask.select(items, { prompt = prompt, format = format }, function(item)
    if item then
      chosen(item)
    end
  end)
end

---@param given string
function M.rename(given)
  local function rename(title)
    if title and vim.trim(title) ~= "" then
      session.ask(methods.session_rename, { title = vim.trim(title) })
    end
  end
  if given ~= "" then
    return rename(given)
  end
  ask.input({ prompt = "Title: ", default = session.state and session.state.title }, rename)
end

---@param summary amanu.SessionSummary
local function delete(summary)
  local question = ("Delete “%s” for good?"):format(visible.line(summary.title, 60))
  select({ "No", "Yes, delete it" }, question, tostring, function(answer)
    if answer == "No" then
      return
    end
    client.request(methods.session_delete, { sessionId = summary.sessionId }, function(why)
      if why then
        return say.error(why)
      end
      if session.state and session.state.sessionId == summary.sessionId then
        session.forget()
      end
      say.now("deleted")
    end)
  end)
end

---@param summary amanu.SessionSummary
local function act(summary)
  local title = visible.line(summary.title ~= "" and summary.title or "Untitled", 60)
  select({ "Resume", "Rename", "Delete" }, title, tostring, function(action)
    if action == "Resume" then
      require("amanu.prompt").show()
      session.attach(summary.sessionId)
    elseif action == "Delete" then
      delete(summary)
    else
      ask.input({ prompt = "Title: ", default = summary.title }, function(new)
        if new and vim.trim(new) ~= "" then
          local params = { sessionId = summary.sessionId, title = vim.trim(new) }
          client.request(methods.session_rename, params, function(why)
            if why then
              say.error(why)
            end
          end)
        end
      end)
    end
  end)
end

function M.list()
  client.request(methods.session_list, { root = session.root() }, function(why, result)
    if why then
      return say.error(why)
    elseif #result.sessions == 0 then
      return say.now("no sessions in " .. session.root())
    end
    select(result.sessions, "Sessions of " .. session.root(), function(each)
      local here = session.state and session.state.sessionId == each.sessionId and "* " or "  "
      local when = os.date("%Y-%m-%d %H:%M", math.floor(each.updatedAt / 1000))
      return ("%s%s  %-11s  %s"):format(here, when, each.status, visible.line(each.title, 60))
    end, act)
  end)
end

function M.new()
  require("amanu.prompt").show()
  session.create()
end

---@param given string
function M.mode(given)
  local function set(mode)
    session.ask(methods.session_set_mode, { mode = mode })
  end
  if given ~= "" then
    return set(given)
  end
  local now = session.state and session.state.mode or "ask"
  select(MODES, "Mode (now " .. now .. ")", function(each)
    return ("%-12s %s"):format(labels.MODES[each].name, labels.MODES[each].meaning)
  end, set)
end

---@param use fun(result: amanu.ModelListResult)
local function with_models(use)
  client.request(methods.model_list, {}, function(why, result)
    if why then
      return say.error(why)
    end
    use(result)
  end)
end

---@type amanu.Effort[]
local EFFORTS = { "none", "minimal", "low", "medium", "high", "xhigh", "max" }

---@param given string
function M.effort(given)
  local function set(effort)
    session.ask(methods.session_set_effort, { effort = effort })
  end
  if given ~= "" then
    return set(given)
  end
  with_models(function(result)
    local offered, state = EFFORTS, session.state
    for _, model in ipairs(result.models) do
      if state and model.modelId == state.modelId and #model.efforts > 0 then
        offered = model.efforts
      end
    end
    local now = state and state.effort or "as configured"
    select(offered, "How much the model thinks (now " .. now .. ")", function(each)
      return each
    end, set)
  end)
end

---@param given string
function M.model(given)
  local function set(model_id)
    session.ask(methods.session_set_model, { modelId = model_id })
  end
  if given ~= "" then
    return set(given)
  end
  with_models(function(result)
    local now = session.state and session.state.modelId or result.defaultModelId or "none"
    select(result.models, "Model (now " .. visible.line(now) .. ")", function(each)
      local price = each.inputPrice and ("$%g/$%g"):format(each.inputPrice, each.outputPrice or 0) or ""
      local note = each.available and each.factsFrom or each.unavailable or "not available"
      return visible.line(("%-40s %6dk  %-10s %s"):format(each.modelId, each.contextWindow / 1000, price, note))
    end, function(each)
      set(each.modelId)
    end)
  end)
end

function M.unqueue()
  local queue = session.state and session.state.queue or {}
  if #queue == 0 then
    return say.now("nothing is queued")
  end
  select(queue, "Take back", function(each)
    return visible.line(each.text, 80)
  end, function(each)
    session.ask(methods.prompt_unqueue, { promptId = each.promptId }, function()
      require("amanu.prompt").give_back(each.text, each.attachments)
    end)
  end)
end

return M
