---Choosing: sessions, modes, models, queued prompts.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local config = require("amanu.config")
local labels = require("amanu.labels")
local protocol = require("amanu.protocol")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local methods = protocol.methods
local M = {}

local TOUR = "scripted:tour"
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
      require("amanu.chat.prompt").show()
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

---@param summary amanu.SessionSummary
---@return string
local function standing(summary)
  return summary.changes > 0 and summary.changes .. " to review" or summary.status
end

---Say that, and whether there is something to review in other sessions of this folder.
---@param text string
function M.say_others(text)
  local own = session.state and session.state.sessionId
  client.request(methods.session_list, { root = session.root() }, function(_, result)
    local others = vim.tbl_filter(function(each)
      return each.changes > 0 and each.sessionId ~= own
    end, result and result.sessions or {})
    local more = #others == 1 and "; in “" .. visible.line(others[1].title, 30) .. "” there is" or ("; in %d others there is"):format(#others)
    say.aside(text .. (#others > 0 and more .. ": /sessions" or ""))
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
      return ("%s%s  %-13s %s"):format(here, when, standing(each), visible.line(each.title, 50))
    end, act)
  end)
end

function M.new()
  require("amanu.chat.prompt").show()
  session.create()
end

---@param given string
---@param failed? fun(why: string)
function M.mode(given, failed)
  local function set(mode)
    session.set(methods.session_set_mode, { mode = mode }, failed)
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
---@param failed? fun(why: string)
function M.effort(given, failed)
  local function set(effort)
    session.set(methods.session_set_effort, { effort = effort }, failed)
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

---Show what is missing for models that cannot be used now: a line for each vendor and reason.
---@param models amanu.ModelInfo[]
---@param vendors table<string, string>
local function show_missing(models, vendors)
  local texts, counts = {}, {}
  for _, each in ipairs(models) do
    local vendor = each.modelId:match("^[^:]*")
    local text = { vendors[vendor] or vendor, each.unavailable or "not available" }
    local key = table.concat(text, "\0")
    if not counts[key] then
      table.insert(texts, { key = key, text = text })
    end
    counts[key] = (counts[key] or 0) + 1
  end
  local lines = vim.tbl_map(function(each)
    local count = counts[each.key] == 1 and "1 model" or counts[each.key] .. " models"
    return visible.line(("%s: %s · %s"):format(each.text[1], count, each.text[2]))
  end, texts)
  vim.list_extend(lines, { "", "/model VENDOR:MODEL chooses one that is not listed. /tour needs no model." })
  require("amanu.chat.page").open("models", lines)
end

---@param result amanu.ModelListResult
---@param chosen fun(model_id: string)
local function choose_model(result, chosen)
  local function usable(model)
    return model.available
  end
  local choices = vim.tbl_filter(usable, result.models)
  local missing = vim.tbl_filter(function(model)
    return not usable(model)
  end, result.models)
  if #choices == 0 then
    return show_missing(missing, result.vendors or {})
  elseif #missing > 0 then
    table.insert(choices, missing)
  end
  local now = session.state and session.state.modelId or result.defaultModelId or "none"
  select(choices, "Model (now " .. visible.line(now) .. ")", function(each)
    if each == missing then
      return #missing .. " more, which need a key or a server …"
    end
    local price = each.inputPrice and ("$%g/$%g"):format(each.inputPrice, each.outputPrice or 0) or ""
    local text = ("%-40s %6dk  %-10s %s"):format(each.modelId, each.contextWindow / 1000, price, each.factsFrom)
    return visible.line(text, math.max(60, vim.o.columns - 6)) -- one row each, where they are numbered
  end, function(each)
    if each == missing then
      return show_missing(missing, result.vendors or {})
    end
    chosen(each.modelId)
  end)
end

---@param given string
---@param failed? fun(why: string)
function M.model(given, failed)
  local function set(model_id)
    session.set(methods.session_set_model, { modelId = model_id }, failed)
  end
  if given ~= "" then
    return set(given)
  end
  with_models(function(result)
    choose_model(result, set)
  end)
end

---Show in a new session how Amanu works: a script plays the model.
function M.tour()
  require("amanu.chat.prompt").show()
  session.begin(methods.session_create, { mode = "ask", modelId = TOUR }, function()
    session.prompt("Show me how you work.", {})
  end)
end

---Whether the session is that of the tour, which has ended.
---@return boolean
function M.toured()
  local state = session.state
  return state ~= nil and state.modelId == TOUR and state.lastTurn ~= nil and not state.turn
end

---Look whether there is a model for the first prompt.
function M.look_for_model()
  if session.state or config.now.model then
    return
  end
  with_models(function(result)
    local needed = not session.state and not result.defaultModelId
    if needed ~= session.needs_model then
      session.needs_model = needed
      session.changed()
    end
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
      require("amanu.chat.prompt").give_back(each.text, each.attachments)
    end)
  end)
end

return M
