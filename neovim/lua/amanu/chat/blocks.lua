---An item of the conversation as lines. The first character tells what a line is, for folds and colours:
---`▸` a thought, `●` a tool call, `│` what is folded away below them, `┆` what is not.

local agents = require("amanu.sessions.agents")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local rows = require("amanu.review.rows")
local visible = require("amanu.visible")
local worded = require("amanu.chat.worded")

local M = {}

local LIVE_LINES = 10 -- of a running tool's output, of an edit that is being written
local LIVE_BYTES = 4000
local DIFF_LINES = 60 -- of a proposal; the rest is in the diff view
local OUTPUT_LINES = 200

---A sign, which stays in sight when the line is long, and words.
local STATES = {
  validating = { "…", "" },
  awaitingApproval = { "?", " · waits for your answer" },
  scheduled = { "…", "" },
  executing = { "…", " · running" },
  succeeded = { "✓", "" },
  failed = { "✗", " · failed" },
  cancelled = { "✗", " · stopped" },
  rejected = { "✗", " · rejected" },
}

---@param call table A tool call.
---@return string[] state Its sign and words.
local function state_of(call)
  if call.warns and call.state == "succeeded" then
    return { "!", "" }
  end
  return STATES[call.state] or { "…", "" }
end

---Text of others, as prose: none of its lines looks like one of ours.
---@param text string
---@param continued? boolean It goes on a line that has begun.
---@return string
function M.prose(text, continued)
  text = (continued and "" or "\n") .. visible.prose(text)
  for _, sign in ipairs({ "▸", "●", "│", "┆" }) do
    text = text:gsub("\n" .. sign, "\n " .. sign)
  end
  return continued and text or text:sub(2)
end

---@param lines string[]
---@param sign string
---@param text string
---@param most? integer
local function add(lines, sign, text, most)
  local found = visible.lines(visible.text(text))
  for at, line in ipairs(found) do
    if most and at > most then
      table.insert(lines, ("%s … %d more lines"):format(sign, #found - most))
      return
    end
    table.insert(lines, sign .. " " .. line)
  end
end

---The end of what a call printed.
---@param lines string[]
---@param output string
local function add_end(lines, output)
  local found = visible.lines(visible.text(output:sub(-LIVE_BYTES)))
  local cut = #output > LIVE_BYTES and #found > 1 and 1 or 0 -- the first line is not whole: its sign is gone
  for at = math.max(1 + cut, #found - LIVE_LINES + 1), #found do
    table.insert(lines, "┆ " .. found[at])
  end
end

---@param text string
---@return string
local function subject(text)
  return visible.line(text:match("%*%*(.-)%*%*") or "", 80)
end

---@param attachment amanu.Attachment
---@return string
function M.attachment(attachment)
  if attachment.kind == "image" then
    return "picture " .. visible.line(attachment.name)
  end
  local plan = (require("amanu.session").state or {}).plan
  local is_plan = plan and plan.path == attachment.path -- which lies beside the session, a long way off
  local name = is_plan and "the plan" or visible.line(vim.fn.fnamemodify(attachment.path, ":."))
  if attachment.lines then
    local first, last = attachment.lines.start + 1, attachment.lines["end"]
    name = name .. (last <= first and (":%d"):format(first) or (":%d-%d"):format(first, last))
  end
  if attachment.kind == "comment" then
    return ("%s “%s”"):format(name, visible.line(attachment.comment))
  end
  return attachment.kind == "selection" and "selection " .. name or name
end

---@param lines string[]
---@param sign string
---@param proposal amanu.Proposal
local function add_diff(lines, sign, proposal)
  local count = 0
  for _, file in ipairs(proposal.files) do
    local name = visible.line(vim.fn.fnamemodify(file.path, ":."))
    if file.newPath then
      name = name .. " → " .. visible.line(vim.fn.fnamemodify(file.newPath, ":."))
    end
    local counts = file.added + file.removed > 0 and ("  +%d -%d"):format(file.added, file.removed) or ""
    table.insert(lines, ("%s %s %s%s"):format(sign, file.change, name, counts))
    for _, hunk in ipairs(file.hunks) do
      local note = hunk.state .. hunks.altered(hunk, ", as you changed it", ", changed in the file since")
      if hunk.reason then
        note = note .. ": " .. visible.line(hunk.reason)
      end
      local where = file.change == "edit" and ("line %d"):format(hunk.lines.start + 1) or "file"
      table.insert(lines, ("%s @@ %s @@ %s"):format(sign, where, note))
      for _, piece in ipairs(hunks.pieces(file, hunk)) do
        for _, side in ipairs({ { "-", piece.old }, { "+", piece.new } }) do
          for _, line in ipairs(side[2]) do
            count = count + 1
            if count <= DIFF_LINES then
              table.insert(lines, ("%s %s%s"):format(sign, side[1], visible.text(line)))
            end
          end
        end
      end
    end
  end
  for _, row in ipairs(proposal.rows or {}) do
    for at, line in ipairs(rows.told(row)) do
      count = count + (at > 1 and 1 or 0)
      if at == 1 or count <= DIFF_LINES then
        table.insert(lines, sign .. " " .. line.text)
      end
    end
  end
  if count > DIFF_LINES then
    table.insert(lines, ("%s … %d more lines: :Amanu /diff"):format(sign, count - DIFF_LINES))
  end
end

---What a yes to changes came to when others of them were rejected before.
---@param proposal amanu.Proposal
---@return string?
local function accepted_part(proposal)
  local decided = vim.list_extend({}, proposal.rows or {}) ---@type amanu.Decided[]
  for _, file in ipairs(proposal.files) do
    vim.list_extend(decided, file.hunks)
  end
  local applied, rejected = 0, 0
  for _, each in ipairs(decided) do
    applied = applied + (each.state == "applied" and 1 or 0)
    rejected = rejected + (each.state == "rejected" and 1 or 0)
  end
  return rejected > 0 and ("accepted %d of %d"):format(applied, #decided) or nil
end

---How a call was decided and what held it, where that is news: not what a mode allows to be read or written.
---@param item amanu.ToolCall
---@param proposal? amanu.Proposal
---@return string
local function settled(item, proposal)
  local decision = item.decision
  if decision and decision.outcome == "allowed" and decision.by == "user" and proposal then
    local summary = accepted_part(proposal) or decision.summary
    item = vim.tbl_extend("force", item, { decision = vim.tbl_extend("force", decision, { summary = summary }) })
  end
  local news = item.effect == "run" or (decision and not (decision.outcome == "allowed" and decision.by == "rule"))
  local how = news and worded.settled(item) or ""
  return how ~= "" and " (" .. visible.line(how) .. ")" or ""
end

---Text that is one line of others.
---@param text string
---@return string
local function first_line(text)
  return visible.line(vim.trim(text):match("^[^\n]*"), 100)
end

---What a sub-agent did, on a line of its card.
---@type table<string, fun(item: table): string>
local nested = {
  toolCall = function(item)
    local line = state_of(item)[1] .. " " .. visible.line(item.title, 100)
    return item.error and line .. " · " .. first_line(item.error) or line
  end,
  answer = function(item)
    return first_line(item.text)
  end,
  notice = function(item)
    return item.level .. ": " .. first_line(item.text)
  end,
  question = function(item)
    return vim.trim("? " .. visible.line(item.title, 100) .. "  " .. visible.line(item.summary, 100))
  end,
}

---A sub-agent, as the card of the call that started it: at work the last things it did; then all of them and its
---result, folded away.
---@param item amanu.ToolCall
---@param agent amanu.SubAgent
---@param state amanu.SessionState
---@return string[]
local function agent_card(item, agent, state)
  local works = agents.works(agent) or item.state == "executing" -- its result is still to come
  local signs = { waiting = "?", running = "…", completed = "✓" }
  local lines = { ("● %s %s"):format(signs[agent.state] or "✗", agents.head(agent)) }
  local found = {}
  for at = #state.items, 1, -1 do
    local each = state.items[at]
    if each.itemId == item.itemId then
      break -- what it did comes later
    elseif each.agentId == agent.agentId and nested[each.kind] then
      table.insert(found, 1, nested[each.kind](each))
    end
  end
  local skipped = works and math.max(0, #found - LIVE_LINES) or 0
  if skipped > 0 then
    table.insert(lines, ("┆ … %d more before"):format(skipped))
  end
  for at = skipped + 1, #found do
    table.insert(lines, (works and "┆ " or "│ ") .. found[at])
  end
  if agent.state == "failed" and item.error then
    table.insert(lines, 2, "┆ " .. first_line(item.error))
  elseif not works and not agent.background then -- whose result comes in a note of its own
    add(lines, "│", item.output, OUTPUT_LINES)
  end
  return lines
end

---Whether an item is something that the user answers or reviews.
---@param item amanu.Item
---@return boolean
function M.is_reviewed(item)
  return item.kind == "question" or item.state == "awaitingApproval" or item.proposalId ~= nil
end

local ELSEWHERE = "┆ Its changes are shown further down."

---The call on whose card a proposal's hunks are shown: the last that waits, else the last of all. Several calls of a step
---may have written one proposal.
---@param proposal amanu.Proposal
---@param state amanu.SessionState
---@return string?
local function card(proposal, state)
  local ids = proposal.toolCallIds
  for at = #ids, 1, -1 do
    for _, approval in ipairs(state.approvals) do
      if approval.toolCallId == ids[at] then
        return ids[at]
      end
    end
  end
  return ids[#ids]
end

---@type table<string, fun(item: table, state: amanu.SessionState, live?: boolean): string[]>
local of = {
  userMessage = function(item)
    local lines = { item.steer and "## You, into the running turn" or "## You" }
    vim.list_extend(lines, visible.lines(M.prose(item.text)))
    for _, attachment in ipairs(item.attachments) do
      table.insert(lines, "┆ with " .. M.attachment(attachment))
    end
    return lines
  end,
  answer = function(item)
    return visible.lines(M.prose(item.text))
  end,
  thought = function(item, _, live)
    local about = item.subject ~= "" and visible.line(item.subject, 80) or subject(item.text)
    local lines = { "▸ Thought" .. (about ~= "" and ": " .. about or "") }
    add(lines, live and "┆" or "│", item.text)
    return lines
  end,
  toolCall = function(item, state)
    local agent = agents.of_call(state, item.itemId)
    if agent then
      return agent_card(item, agent, state)
    end
    local sign, words = unpack(state_of(item))
    local live = item.state == "validating" and item.output ~= ""
    if live then
      words = " · being written"
    end
    local title = agents.owner(state, item) .. visible.line(item.title)
    local proposal
    for _, each in ipairs(state.proposals) do
      proposal = each.proposalId == item.proposalId and each or proposal
    end
    local lines = { ("● %s %s%s%s"):format(sign, title, words, settled(item, proposal)) }
    local elsewhere = proposal and card(proposal, state) ~= item.itemId
    if item.state == "awaitingApproval" and elsewhere then
      table.insert(lines, ELSEWHERE)
    elseif item.state == "awaitingApproval" then
      for _, approval in ipairs(state.approvals) do
        if approval.toolCallId == item.itemId then
          if item.effect == "run" then
            add_end(lines, item.output) -- what it printed before its changes, or what blocked it, are decided on
          end
          if proposal then
            add_diff(lines, "┆", proposal)
          else
            add(lines, "┆", approval.detail)
          end
          for _, line in ipairs(worded.lines(approval.lines)) do
            table.insert(lines, "┆ " .. line)
          end
          local key = config.key("approve")
          table.insert(lines, "┆ answer: :Amanu /approve" .. (key ~= "" and " or " .. key or ""))
        end
      end
    elseif item.state == "executing" or live then
      add_end(lines, item.output)
    else
      local reason = item.decision and item.decision.reason
      if item.error and item.error ~= reason then -- which stands above
        add(lines, "┆", item.error, 10)
      end
      add(lines, "│", item.output, OUTPUT_LINES)
      if elsewhere then
        table.insert(lines, ELSEWHERE)
      elseif proposal then
        add_diff(lines, "│", proposal)
      end
    end
    return lines
  end,
  todoList = function(item)
    local lines = { "● To-dos · " .. visible.line(item.summary) }
    local marks = { pending = "[ ]", inProgress = "[>]", done = "[x]", cancelled = "[-]" }
    for _, todo in ipairs(item.todos) do
      table.insert(lines, ("│ %s %s"):format(marks[todo.status] or "[?]", visible.line(todo.text)))
    end
    return lines
  end,
  notice = function(item)
    local lines = {}
    add(lines, "┆ " .. item.level .. ":", item.text)
    add(lines, "│", item.detail or "")
    return lines
  end,
  question = function(item)
    local asker = item.agentId and agents.name(item.asker, item.agentId) or visible.line(item.asker, 40)
    local mark = ({ open = "?", answered = "✓" })[item.state] or "✗"
    local lines = { ("● %s %s asks: %s"):format(mark, asker, visible.line(item.title)) }
    if item.state ~= "open" then
      add(lines, "┆", item.summary)
      return lines
    end
    for _, field in ipairs(item.fields) do
      add(lines, "┆", (field.header ~= "" and field.header .. ": " or "") .. field.text)
      for _, option in ipairs(field.options) do
        local about = option.description ~= "" and " — " .. option.description or ""
        add(lines, "┆   -", option.label .. about)
      end
    end
    local key = config.key("approve")
    table.insert(lines, "┆ answer: :Amanu /approve" .. (key ~= "" and " or " .. key or ""))
    return lines
  end,
  citations = function(item)
    local lines = { "● Sources" }
    for number, source in ipairs(item.sources) do
      local words = vim.trim(visible.line(source.title) .. " " .. visible.line(source.url, 500))
      table.insert(lines, ("┆ [%d] %s"):format(number, words))
    end
    for number, source in ipairs(item.sources) do
      if source.quote ~= "" then
        add(lines, ("│ [%d]"):format(number), source.quote)
      end
    end
    return lines
  end,
}

---@param item amanu.Item
---@param state amanu.SessionState
---@param live? boolean It is still growing.
---@return string[] lines The last one is empty: blocks stand apart.
function M.lines(item, state, live)
  local lines = of[item.kind](item, state, live)
  table.insert(lines, "")
  return lines
end

---What of a block is folded away below the line before it.
---@param lines string[]
---@return integer? first 1-based: the line that stays, with what follows it
---@return integer? last
function M.fold(lines)
  local first, last
  for at, line in ipairs(lines) do
    if at > 1 and vim.startswith(line, "│") then
      first, last = first or at - 1, at
    end
  end
  return first, last
end

return M
