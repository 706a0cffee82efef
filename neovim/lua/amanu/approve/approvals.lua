---The waiting question, answered through `vim.ui.select`, when the user asks for it.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local config = require("amanu.config")
local labels = require("amanu.labels")
local protocol = require("amanu.protocol")
local say = require("amanu.say")
local session = require("amanu.session")
local view = require("amanu.chat.view")
local visible = require("amanu.visible")
local worded = require("amanu.chat.worded")

local M = {}

---What is asked of that call now.
---@param approval amanu.Approval
---@return amanu.Approval?
local function now(approval)
  for _, each in ipairs(session.state and session.state.approvals or {}) do
    if each.toolCallId == approval.toolCallId then
      return each
    end
  end
end

local put ---@type fun(approval: amanu.Approval)

local STALE_MS = 2000 -- in which the question comes anew

---@param approval amanu.Approval
---@return boolean The plan that is asked about is what the user has before them, typed a moment ago.
local function is_as_typed(approval)
  local buffer = approval.document and vim.fn.bufadd(approval.document)
  local text = buffer and table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, true), "\n") or ""
  return vim.trim(text) ~= "" and vim.trim(text) == vim.trim(approval.detail)
end

---Put the question again, once it is there as it is now.
---@param approval amanu.Approval
---@param answer_again fun(found: amanu.Approval) Where the user need not be asked again.
local function again(approval, answer_again)
  local function changed()
    local found = now(approval)
    return not found or found.digest ~= approval.digest
  end
  vim.wait(STALE_MS, changed, 20)
  local found = now(approval)
  if found and found.digest ~= approval.digest and is_as_typed(found) then
    return answer_again(found)
  end
  say.now(labels.IGNORED.stale)
  if found then
    put(found)
  end
end

---@param approval amanu.Approval As the user saw it.
---@param answer table
---@param done? fun() It counted.
local function resolve(approval, answer, done)
  local found = now(approval)
  if not found then
    return say.now(labels.IGNORED.settled)
  elseif found.digest ~= approval.digest and answer.decision == "allow" and not approval.document then
    say.now(labels.IGNORED.stale)
    return put(found)
  end
  client.flush()
  answer.toolCallId = approval.toolCallId
  answer.digest = approval.document and found.digest or approval.digest -- a plan is read in its document
  session.ask(protocol.methods.approval_resolve, answer, function(result)
    if result.status == "tooSoon" then
      return say.now(labels.IGNORED.tooSoon)
    elseif result.status == "stale" then
      return vim.schedule(function()
        again(found, function(asked)
          resolve(asked, answer, done)
        end)
      end)
    elseif result.status == "alreadyResolved" then
      say.now(result.summary)
    end
    if done then
      done()
    end
  end)
end

---@param approval amanu.Approval
local function reject(approval)
  local prompt = approval.document and "What should change in the plan? (may be empty) " or "Tell the model why (may be empty): "
  ask.input({ prompt = prompt }, function(reason)
    if not reason then
      return say.now("nothing decided")
    end
    resolve(approval, { decision = "reject", reason = reason ~= "" and reason or nil })
  end)
end

---Of each proposal that waits the oldest question, where they are several: those of one step. No command is among them.
---@return amanu.Approval[]?
---@return integer? files
local function step()
  local edits, asked_about, paths = {}, {}, {}
  for _, each in ipairs(session.state and session.state.approvals or {}) do
    if each.proposalId and not asked_about[each.proposalId] then
      table.insert(edits, each)
      asked_about[each.proposalId] = true
    end
  end
  if vim.tbl_count(asked_about) < 2 then
    return nil
  end
  for _, proposal in ipairs(session.state.proposals) do
    for _, places in ipairs(asked_about[proposal.proposalId] and { proposal.files, proposal.rows or {} } or {}) do
      for _, place in ipairs(places) do
        paths[place.path] = true
      end
    end
  end
  return edits, vim.tbl_count(paths)
end

---@type table<string, integer> The window that was opened for a plan, by its path.
local plans = {}

---Open the plan that is asked about in a window of its own, where the user edits it and comments on it: above the file
---they are in, so that the chat with the question keeps its height.
---@param approval amanu.Approval
---@param stay? boolean The cursor stays where it is.
function M.open_plan(approval, stay)
  local buffer = vim.fn.bufadd(approval.document)
  vim.bo[buffer].buflisted = true
  local window = vim.fn.win_findbuf(buffer)[1]
  if not window then
    local beside = require("amanu.wire.context").file_window()
    vim.api.nvim_win_call(beside or vim.api.nvim_get_current_win(), function()
      vim.cmd.split({ mods = { split = beside and "aboveleft" or "topleft", keepalt = true } })
      window = vim.api.nvim_get_current_win()
      vim.api.nvim_win_set_buf(window, buffer)
    end)
    vim.bo[buffer].autoread = true
    vim.wo[window].linebreak = true
    plans[approval.document] = window
  end
  client.add_document(approval.document)
  local key = config.key("approve")
  local answer = key ~= "" and key or ":Amanu /approve"
  vim.wo[window].winbar = (" Plan: edit it, /comment on it, answer: %s"):format(answer):gsub("%%", "%%%%") .. "%<"
  if not stay then
    vim.api.nvim_set_current_win(window)
  end
end

---The question about that plan is settled. An approved one is carried out: what the user changed in it is saved, and
---its window closed. One that is sent back stays, and is revised there.
---@param document string
---@param approved boolean
function M.close_plan(document, approved)
  local buffer = vim.fn.bufadd(document)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.wo[window].winbar = ""
  end
  local window = plans[document]
  if not approved or not window then
    return
  end
  plans[document] = nil
  vim.api.nvim_buf_call(buffer, function()
    vim.cmd("silent! update")
  end)
  local ours = vim.api.nvim_win_is_valid(window) and vim.api.nvim_win_get_buf(window) == buffer
  if ours and not vim.bo[buffer].modified then
    pcall(vim.api.nvim_win_close, window, false) -- the last window stays
  end
end

---@param answer amanu.ApprovalAnswer
---@param own? table What the user wrote for it.
---@return table
local function sent(answer, own)
  local fields = {
    decision = answer.action == "editCommand" and "allow" or answer.action,
    scope = answer.scope,
    grants = answer.grants,
    mode = answer.mode,
    freshContext = answer.freshContext,
  }
  return vim.tbl_extend("force", fields, own or {})
end

---@param approval amanu.Approval
---@param answer amanu.ApprovalAnswer
local function choose(approval, answer)
  if answer.action == "review" then
    require("amanu.review.diff").open(approval.proposalId)
  elseif answer.asks == "command" then
    require("amanu.chat.command").open(approval, answer, function(command, done)
      resolve(approval, sent(answer, { command = command }), done)
    end)
  elseif answer.asks == "reason" then
    reject(approval)
  elseif answer.rule ~= "" then
    require("amanu.approve.rule").open(approval, answer, function(rule, done)
      resolve(approval, sent(answer, { rule = rule }), done)
    end)
  else
    resolve(approval, sent(answer))
  end
end

---Whether the list has it: nothing that is rarely wanted, and a refusal is always one that may have a reason.
---@param answer amanu.ApprovalAnswer
---@return boolean
local function is_listed(answer)
  return not answer.further and (answer.action ~= "reject" or answer.asks == "reason")
end

---@param approval amanu.Approval
---@return { label: string, run: fun() }[]
local function choices(approval)
  local found = {}
  for _, answer in ipairs(vim.tbl_filter(is_listed, approval.answers)) do
    local rule = answer.rule ~= "" and ": " .. visible.line(answer.rule, 60) or ""
    local more = answer.action == "finish" and ": " .. visible.line(answer.explanation:gsub("%.$", "")):lower() or ""
    table.insert(found, {
      label = visible.line(answer.label) .. rule .. more,
      run = function()
        choose(approval, answer)
      end,
    })
  end
  local edits, files = step()
  if approval.proposalId and edits then
    table.insert(found, 2, {
      label = ("Accept all of this step (%d files)"):format(files),
      run = function()
        for _, each in ipairs(edits) do -- each as it was asked
          resolve(each, { decision = "allow" })
        end
      end,
    })
  end
  if approval.document then
    table.insert(found, #found, {
      label = "Open the plan",
      run = function()
        M.open_plan(approval)
      end,
    })
  end
  return found
end

function put(approval)
  view.show() -- the whole of it stands in the chat
  local is_command = approval.effect == "run" and approval.sandbox -- not what one changed, nor a tool of an MCP server
  local run = is_command and "Run " .. visible.line(approval.detail, 160)
  local alone = approval.sandbox and approval.sandbox.tier == "none" and " — " .. labels.SANDBOX.none:upper() or ""
  local why = ""
  for _, line in ipairs(worded.lines(approval.lines)) do
    if vim.startswith(line, labels.OPENINGS.rule .. ":") then -- not where the user is always asked, and it is no news
      why = " — " .. visible.line(line:sub(1, 1):lower() .. line:sub(2), 100)
    end
  end
  local who = vim.trim(require("amanu.sessions.agents").owner(session.state, approval)):gsub(":$", "")
  local prompt = ("%s asks: %s%s%s"):format(who ~= "" and who or "Amanu", run or visible.line(approval.title, 120), alone, why)
  ask.select(choices(approval), {
    prompt = prompt,
    kind = "amanu-approval",
    format = function(choice)
      return choice.label
    end,
  }, function(choice)
    if choice then
      choice.run()
    end
  end)
end

---Put the oldest waiting question to the user.
function M.ask()
  local waiting = session.state and session.state.approvals or {}
  local question = session.state and session.state.questions[1]
  if #waiting == 0 and question then
    return require("amanu.approve.questions").ask(question)
  elseif #waiting == 0 then
    return say.now("nothing is asked")
  end
  put(waiting[1])
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
