---The waiting question, answered through `vim.ui.select`, when the person asks for it.

local client = require("amanu.client")
local protocol = require("amanu.protocol")
local say = require("amanu.say")
local session = require("amanu.session")
local view = require("amanu.view")
local visible = require("amanu.visible")

local M = {}

local FOR = {
  turn = "this turn",
  session = "this session",
  workspace = "this workspace, from now on",
  user = "every workspace of yours, from now on",
}

---@param approval amanu.Approval
---@return boolean
local function pending(approval)
  for _, each in ipairs(session.state and session.state.approvals or {}) do
    if each.toolCallId == approval.toolCallId then
      return true
    end
  end
  return false
end

---@param approval amanu.Approval
---@param answer table
local function resolve(approval, answer)
  if not pending(approval) then
    return say.now("that question is settled already")
  end
  client.flush()
  answer.toolCallId = approval.toolCallId
  session.ask(protocol.methods.approval_resolve, answer, function(result)
    if result.status == "tooSoon" then
      say.now("too soon: the question is less than half a second old. Read it, and answer again.")
    elseif result.status == "alreadyResolved" then
      local by = result.client and result.client ~= "" and " by " .. result.client or ""
      say.now(("already %s%s"):format(result.outcome or "settled", by))
    end
  end)
end

---Let the person see and change the rule before it is saved; what is no rule is explained.
---@param approval amanu.Approval
---@param scope amanu.Scope
---@param rule string
local function remember(approval, scope, rule)
  vim.ui.input({ prompt = ("Allow for %s by this rule: "):format(FOR[scope]), default = rule }, function(edited)
    if not edited or vim.trim(edited) == "" then
      return say.now("nothing decided")
    end
    client.request(protocol.methods.rule_preview, { rule = edited }, function(why, result)
      if why or not result.valid then
        say.error(why or result.explanation)
        return remember(approval, scope, edited)
      end
      resolve(approval, { decision = "allow", scope = scope, rule = edited })
    end)
  end)
end

---@param approval amanu.Approval
local function reject(approval)
  vim.ui.input({ prompt = "Why not? (goes to the model, may be empty) " }, function(reason)
    if not reason then
      return say.now("nothing decided")
    end
    resolve(approval, { decision = "reject", reason = reason ~= "" and reason or nil })
  end)
end

---@param approval amanu.Approval
---@return { label: string, run: fun() }[]
local function choices(approval)
  local found = {}
  local function add(label, run)
    table.insert(found, { label = label, run = run })
  end
  local edit = approval.proposalId ~= nil
  add(edit and "Accept all of it" or "Yes, this once", function()
    resolve(approval, { decision = "allow" })
  end)
  if edit then
    add("Look at it hunk by hunk", function()
      require("amanu.diff").open(approval.proposalId)
    end)
  end
  add("No, and say why", function()
    reject(approval)
  end)
  for _, offer in ipairs(approval.scopes) do
    if FOR[offer.scope] then
      add(("Yes, for %s: %s"):format(FOR[offer.scope], visible.line(offer.rule, 60)), function()
        remember(approval, offer.scope, offer.rule)
      end)
    end
  end
  if edit then
    add("Finish the review: undecided hunks stay open", function()
      resolve(approval, { decision = "finish" })
    end)
  end
  return found
end

---@param approval amanu.Approval
local function ask(approval)
  view.show() -- the whole of it stands in the chat
  local run = approval.effect == "run" and "Run " .. visible.line(approval.detail, 160)
  vim.ui.select(choices(approval), {
    prompt = ("Amanu asks: %s — because: %s"):format(
      run or visible.line(approval.title, 120),
      visible.line(approval.rule, 80)
    ),
    kind = "amanu-approval",
    format_item = function(choice)
      return choice.label
    end,
  }, function(choice)
    if choice then
      choice.run()
    end
  end)
end

---Put the oldest waiting question to the person.
function M.ask()
  local waiting = session.state and session.state.approvals or {}
  if #waiting == 0 then
    return say.now("nothing is asked")
  end
  ask(waiting[1])
end

---End the review of the proposal that waits.
function M.finish()
  for _, approval in ipairs(session.state and session.state.approvals or {}) do
    if approval.proposalId then
      return resolve(approval, { decision = "finish" })
    end
  end
  say.now("no review waits")
end

return M
