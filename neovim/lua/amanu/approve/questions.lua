---What Amanu or a server asks the user: field by field through `vim.ui`; then all answers are sent together.

local agents = require("amanu.sessions.agents")
local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local labels = require("amanu.labels")
local protocol = require("amanu.protocol")
local say = require("amanu.say")
local session = require("amanu.session")
local view = require("amanu.chat.view")
local visible = require("amanu.visible")

local M = {}

---@param question amanu.Question
---@return boolean
local function open(question)
  for _, each in ipairs(session.state and session.state.questions or {}) do
    if each.itemId == question.itemId then
      return true
    end
  end
  return false
end

---@param question amanu.Question
---@param outcome "answered"|"declined"
---@param answers table<string, any>
---@param note? string
local function send(question, outcome, answers, note)
  client.flush()
  session.ask(protocol.methods.question_answer, {
    questionId = question.itemId,
    outcome = outcome,
    answers = next(answers) and answers or vim.empty_dict(),
    note = note or "",
  }, function(result)
    if result.status == "alreadyAnswered" then
      say.now(result.summary)
    end
  end)
end

---@param question amanu.Question
local function decline(question)
  ask.input({ prompt = "Tell the model why, or answer in your own words (may be empty): " }, function(note)
    if not note then
      return say.now("nothing answered")
    end
    send(question, "declined", {}, note)
  end)
end

---@param field amanu.QuestionField
---@return { label: string, value?: any, own?: boolean, done?: boolean, decline?: boolean }[]
local function choices(field)
  local found = {}
  if field.kind == "confirm" then
    found = { { label = labels.BUTTONS.yes, value = true }, { label = labels.BUTTONS.no, value = false } }
  end
  for _, option in ipairs(field.options) do
    local about = option.description ~= "" and " — " .. option.description or ""
    table.insert(found, { label = option.label .. about, value = option.label })
  end
  if field.other then
    table.insert(found, { label = labels.BUTTONS.other, own = true })
  end
  return found
end

---@param question amanu.Question
---@param at integer Of the field that is asked now.
---@param answers table<string, any>
local function put(question, at, answers)
  if not open(question) then
    return say.now(labels.IGNORED.settled)
  end
  local field = question.fields[at]
  if not field then
    return send(question, "answered", answers)
  end
  local prompt = ("%s asks%s: %s"):format(
    question.agentId and agents.name(question.asker, question.agentId) or visible.line(question.asker, 40),
    #question.fields > 1 and (" (%d of %d)"):format(at, #question.fields) or "",
    visible.line(field.text, 200)
  )
  local function answered(value)
    answers[field.fieldId] = value
    put(question, at + 1, answers)
  end
  ---@param done fun(text: string)
  local function own(done)
    ask.input({ prompt = prompt .. " ", default = type(field.default) == "string" and field.default or nil }, function(text)
      if not text then
        return say.now("nothing answered")
      elseif vim.trim(text) == "" and field.required then
        return decline(question)
      end
      done(text)
    end)
  end
  local offered = choices(field)
  if #offered == 0 then
    return own(answered)
  end
  local chosen = {} ---@type string[]
  local function pick()
    local items = vim.list_slice(offered)
    if #chosen > 0 then
      table.insert(items, 1, { label = labels.BUTTONS.send .. ": " .. table.concat(chosen, "; "), done = true })
    end
    table.insert(items, { label = labels.BUTTONS.decline, decline = true })
    ask.select(items, {
      prompt = prompt,
      kind = "amanu-question",
      format = function(item)
        return item.label
      end,
    }, function(item)
      if not item then
        say.now("nothing answered")
      elseif item.decline then
        decline(question)
      elseif item.done then
        answered(chosen)
      elseif field.kind ~= "choices" then
        if item.own then
          own(answered)
        else
          answered(item.value)
        end
      elseif item.own then
        own(function(text)
          table.insert(chosen, text)
          pick()
        end)
      else
        local kept = #chosen
        chosen = vim.tbl_filter(function(each)
          return each ~= item.value
        end, chosen)
        if #chosen == kept then
          table.insert(chosen, item.value)
        end
        pick()
      end
    end)
  end
  pick()
end

---Put that question to the user.
---@param question amanu.Question
function M.ask(question)
  view.show() -- the chat shows it in full
  put(question, 1, {})
end

return M
