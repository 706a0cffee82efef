---Amanu in Neovim: `setup`, and what `:Amanu` does. The plugin decides nothing: it draws what the daemon says and sends
---what the user wants.

local M = {}

---@param options? amanu.Config See :help amanu-setup.
function M.setup(options)
  require("amanu.config").set(options)
end

local wired = false
local plans = {} ---@type table<string, string> By call: the plan that was opened for it.

---@param asked amanu.Approval|amanu.Question
---@return string
local function asks(asked)
  local who = require("amanu.sessions.agents").owner(require("amanu.session").state, asked):gsub(": $", " ")
  return who .. "asks: " .. asked.title .. " (:Amanu /approve)"
end

---@param event? table
local function changed(event)
  local state = require("amanu.session").state
  require("amanu.chat.view").update(event)
  local kind = event and event.kind
  if kind == "itemDelta" then
    return
  end
  if not event or kind == "jobChanged" or kind == "jobProgress" then
    require("amanu.sessions.jobs").on_event(event)
  end
  if kind == "jobChanged" then
    require("amanu.chat.prompt").head()
  elseif kind == "jobProgress" then
    return
  end
  if not event or kind == "proposalChanged" then
    require("amanu.review.marks").refresh(event and event.proposal)
  end
  if not event or vim.list_contains({ "turnStarted", "turnEnded", "approvalRequested", "approvalResolved" }, kind) or (event.item and event.item.kind == "question") then
    require("amanu.chat.prompt").head()
  end
  if kind == "approvalRequested" and not require("amanu.chat.view").visible() then
    require("amanu.say").aside(asks(event.approval))
  end
  if kind == "approvalRequested" and event.approval.document and not plans[event.approval.toolCallId] then
    plans[event.approval.toolCallId] = event.approval.document -- once: what the user closed stays closed
    require("amanu.approve.approvals").open_plan(event.approval, true)
  end
  if kind == "approvalResolved" and plans[event.toolCallId] then
    require("amanu.approve.approvals").close_plan(plans[event.toolCallId], event.decision.outcome == "allowed")
    plans[event.toolCallId] = nil -- asked again, because the plan has changed since, it is opened again
  end
  if kind == "itemStarted" and event.item.kind == "question" and not require("amanu.chat.view").visible() then
    require("amanu.say").aside(asks(event.item))
  end
  if kind == "sessionChanged" and event.trustChanged then
    require("amanu.say").aside(require("amanu.labels").TRUST.changed .. " (:Amanu /trust)", vim.log.levels.WARN)
  end
  if kind == "turnRouted" then
    require("amanu.say").aside(event.reason)
  end
  vim.api.nvim_exec_autocmds("User", { pattern = "AmanuChanged", data = { state = state }, modeline = false })
end

local function wire()
  if wired then
    return
  end
  wired = true
  require("amanu.session").changed = changed
  require("amanu.wire.client").on_attach = require("amanu.review.marks").begin
  require("amanu.wire.client").on_shown = require("amanu.wire.context").begin
end

---One line for a status line; "" while Amanu is not in use. Holds no percent sign: status lines may read one as an
---order, and titles are written by others.
---@return string
function M.status()
  local line = wired and require("amanu.chat.view").status() or ""
  return (line:gsub("%%", "％"))
end

---The selected lines, as they stand in the buffer, saved or not.
---@param first integer
---@param last integer
---@return amanu.SelectionAttachment
local function selection(first, last)
  local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, false)
  return {
    kind = "selection",
    path = vim.api.nvim_buf_get_name(0),
    lines = { start = first - 1, ["end"] = last },
    text = table.concat(lines, "\n") .. "\n",
  }
end

---What `:Amanu` does.
---@param given vim.api.keyset.create_user_command.command_args
function M.command(given)
  wire()
  local session, prompt = require("amanu.session"), require("amanu.chat.prompt")
  local text = vim.trim(given.args)
  local with = given.range > 0 and { selection(given.line1, given.line2) } or {}
  local function say_it()
    prompt.show()
    session.prompt(text, with)
  end
  if vim.startswith(text, "/") then
    local lines = given.range > 0 and { given.line1, given.line2 } or nil
    return require("amanu.chat.commands").run(text, say_it, nil, lines)
  end
  if text ~= "" then
    return say_it()
  end
  prompt.focus()
  session.connect(require("amanu.sessions.sessions").look_for_model)
  vim.tbl_map(prompt.attach, with)
end

---@param text string What to do with the lines; asked for when it is empty.
---@param lines? integer[] First and last; else the cursor's line.
function M.edit(text, lines)
  wire()
  require("amanu.review.rewrite").start(text, lines)
end

return M
