---What fills the model's window, and what the session has cost.

local labels = require("amanu.labels")
local session = require("amanu.session")
local say = require("amanu.say")

local M = {}

local BAR = 40 -- characters

---In the order they are sent; together they are the window.
local PARTS = {
  { "system", "█" },
  { "tools", "▓" },
  { "memory", "▒" },
  { "conversation", "█" },
  { "toolOutput", "▓" },
  { "free", "·" },
  { "reserved", "░" },
}
---Groups every colour scheme has, told apart by the characters of the bar as well.
local GROUPS = {
  system = "Statement",
  tools = "Identifier",
  memory = "String",
  conversation = "Function",
  toolOutput = "Constant",
  free = "NonText",
  reserved = "NonText",
}

---@param context amanu.ContextUse
---@return integer
local function in_use(context)
  return context.system + context.tools + context.memory + context.conversation + context.toolOutput
end

---@param number integer
---@return string
local function exactly(number)
  local text = tostring(number):reverse():gsub("(%d%d%d)", "%1,"):reverse()
  return (text:gsub("^,", ""))
end

---Each part at least a character wide, so that none is lost.
---@param context amanu.ContextUse
---@return [string, string][] chunks
local function bar(context)
  local window = in_use(context) + context.free + context.reserved
  local chunks = {}
  for _, part in ipairs(PARTS) do
    local count = context[part[1]]
    if count > 0 then
      local width = math.max(1, math.floor(BAR * count / window + 0.5))
      table.insert(chunks, { part[2]:rep(width), GROUPS[part[1]] })
    end
  end
  return chunks
end

---Lines of chunks, as `nvim_echo` takes them.
---@param state amanu.SessionState
---@return [string, string?][][]
function M.lines(state)
  local usage = state.usage
  if not usage then
    return { { { "Nothing has been sent to a model yet." } } }
  end
  local context = usage.context
  local tier = context and labels.CONTEXT_TIERS[context.tier]
  local head = { { usage.percent and ("Context %s%% full"):format(usage.percent) or "Context: size not known" } }
  if tier and tier.name ~= "" then
    table.insert(head, { ", " .. tier.name, "WarningMsg" })
  end
  local lines = { head }
  if context then
    table.insert(lines, bar(context))
    for _, part in ipairs(PARTS) do
      local count = context[part[1]]
      if count > 0 or part[1] == "free" then
        table.insert(lines, { { part[2] .. " ", GROUPS[part[1]] }, { ("%-20s %10s"):format(labels.CONTEXT_PARTS[part[1]], exactly(count)) } })
      end
      for _, server in ipairs(part[1] == "tools" and context.servers or {}) do
        table.insert(lines, { { ("    %-18s %10s"):format(server.name, exactly(server.tokens)), "Comment" } })
      end
    end
    table.insert(lines, { { ("  %-20s %10s"):format("Window", exactly(usage.contextWindow)) } })
  end
  if tier and tier.meaning ~= "" then
    table.insert(lines, { { tier.meaning, "WarningMsg" } })
  end
  table.insert(lines, { { "Session    " .. usage.summary } })
  if state.lastTurn and state.lastTurn.usage then
    table.insert(lines, { { "Last turn  " .. state.lastTurn.usage.summary } })
  end
  if context then
    table.insert(lines, { { "/compact [what must not be lost] makes room", "Comment" } })
  end
  return lines
end

function M.show()
  if not session.state then
    return say.now("there is no session yet; say something first")
  end
  local chunks = {}
  for at, line in ipairs(M.lines(session.state)) do
    vim.list_extend(chunks, at > 1 and { { "\n" } } or {})
    vim.list_extend(chunks, line)
  end
  vim.api.nvim_echo(chunks, false, {})
end

return M
