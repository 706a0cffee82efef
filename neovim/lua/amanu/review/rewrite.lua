---Lines that Amanu rewrites as the user says, in one reply: proposed and reviewed like any other change.

local apply = require("amanu.wire.apply")
local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local config = require("amanu.config")
local lines = require("amanu.chat.lines")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")

local M = {}

local SEVERITIES = { "error", "warning", "information", "hint" }

---@param buffer integer
---@param first integer
---@param last integer
---@return amanu.Finding[]
local function findings(buffer, first, last)
  local found = {}
  for _, each in ipairs(vim.diagnostic.get(buffer)) do
    local from, to = each.lnum + 1, math.max(each.end_lnum or 0, each.lnum) + 1
    if from <= last and to >= first then
      table.insert(found, {
        lines = { start = from - 1, ["end"] = to },
        severity = SEVERITIES[each.severity] or "error",
        message = each.message,
        source = each.source or "",
        code = tostring(each.code or ""),
      })
    end
  end
  return found
end

---Ask for what the user wants, unless they said it.
---@param text? string
---@param prompt string
---@param done fun(text: string)
local function instructed(text, prompt, done)
  if text and vim.trim(text) ~= "" then
    return done(vim.trim(text))
  end
  ask.input({ prompt = prompt }, function(said)
    if said and vim.trim(said) ~= "" then
      done(vim.trim(said))
    end
  end)
end

---@param text? string Asked for when it is not given.
---@param range? integer[] First and last line; else the selection, or the cursor's line.
function M.start(text, range)
  local buffer = vim.api.nvim_get_current_buf()
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == "" or vim.bo[buffer].buftype ~= "" then
    return say.now("only lines of a file can be rewritten")
  end
  local first, last = unpack(range or { lines.selected() })
  local where = first == last and "line " .. first or ("lines %d-%d"):format(first, last)
  instructed(text, ("Edit %s: "):format(where), function(instruction)
    session.connect(function()
      client.flush()
      session.begin(methods.rewrite_start, {
        promptId = session.new_id(),
        path = apply.real(name),
        lines = { start = first - 1, ["end"] = last },
        instruction = instruction,
        findings = findings(buffer, first, last),
        modelId = config.now.model,
      })
    end)
  end)
end

---Say what the last rewrite lacks.
---@param text? string
---@param failed? fun(why: string)
function M.refine(text, failed)
  failed = failed or say.error
  if not session.state or session.state.purpose ~= "rewrite" then
    return failed("there is no rewrite to refine; :AmanuEdit makes one")
  end
  instructed(text, "What should be different? ", function(instruction)
    client.flush()
    session.ask(methods.rewrite_refine, { promptId = session.new_id(), instruction = instruction }, nil, function(why)
      failed(why)
      return true
    end)
  end)
end

return M
