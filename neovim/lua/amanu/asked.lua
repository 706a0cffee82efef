---What is asked of a person and what came of it, in words: those of `server/amanu/text/wording.py`. Each line is one line:
---nothing in it can look like another one of ours.

local labels = require("amanu.labels")
local visible = require("amanu.visible")

local M = {}

M.CANNOT_SAVE = "It does not cover what is asked here, so it cannot be saved for it."

local NOT_SANDBOXED = "not sandboxed"
local SIGNS = { allow = "✓", ask = "?", deny = "✗" }
local WANTED = { network = "network access", unsandboxed = "access that the sandbox denies" }
local WRITES = { nothing = "writes nothing", workspace = "writes the workspace", everything = "writes everything" }
local ENABLED = {
  memory = "instructions to the agent",
  rules = "rules of its own, that deny or ask",
  command = "a command",
}
local STATES = { same = "as you trusted it", new = "new", changed = "changed", gone = "gone" }
local EARLIER = 5 -- questions that are named
local PART = 200 -- characters that are shown of a command of a line: the whole line stands above
local LONG = 4000 -- characters; the daemon's own limits are narrower

---@param text string
---@param most? integer
---@return string
local function said(text, most)
  return visible.line((text:gsub("\n", "␊")), most or LONG)
end

---@param parts string[]
---@param between string
---@return string
local function join(parts, between)
  return table.concat(
    vim.tbl_filter(function(each)
      return each ~= ""
    end, parts),
    between
  )
end

-- Before ----------------------------------------------------------------------------------------------

---@param walls amanu.Walls
---@return string
function M.walls(walls)
  local alone = walls.tier == "none"
  local words = alone and NOT_SANDBOXED or ("sandboxed (%s)"):format(walls.tier)
  local known = vim.startswith(walls.summary:lower(), words)
  return (alone and "! " or "") .. (known and "" or words .. ": ") .. said(walls.summary)
end

---@param approval amanu.Approval
---@return boolean
local function rememberable(approval)
  return vim.iter(approval.scopes):any(function(offer)
    return offer.scope ~= "once"
  end)
end

---Its rule says what nothing else does: not the rule of all questions, nor that of all that only looks.
---@param part amanu.CommandPart
---@param approval amanu.Approval
---@return boolean
local function telling(part, approval)
  if part.decision == "allow" then
    return not vim.startswith(part.rule, "built in: ")
  end
  return part.decision == "deny" or part.rule ~= approval.rule
end

---All that is to be known besides title and detail: each command of a line, what holds them, the rule that asks.
---@param approval amanu.Approval
---@return string[]
function M.question(approval)
  local lines = {}
  local parts = approval.parts or {}
  for _, part in ipairs(parts) do
    -- It stands above, alone or as a part of it.
    local alone = #parts == 1 and vim.startswith(approval.detail .. "\n", vim.trim(part.text) .. "\n")
    local named = part.rule ~= "" and telling(part, approval)
    local why = join({ said(part.why), named and "(" .. said(part.rule) .. ")" or "" }, " ")
    table.insert(lines, SIGNS[part.decision] .. " " .. join({ alone and "" or said(part.text, PART), why }, " — "))
  end
  if approval.walls then
    table.insert(lines, M.walls(approval.walls))
  end
  local wanted = vim.tbl_map(function(each)
    return WANTED[each]
  end, approval.wants or {})
  if #wanted > 0 then
    table.insert(lines, "probably needs " .. table.concat(wanted, " and "))
  end
  table.insert(lines, "asked because: " .. said(approval.rule))
  if not rememberable(approval) then
    table.insert(lines, "cannot be remembered: it is asked every time")
  end
  return lines
end

---What a yes for this once may grant, the likeliest first: what the call will hardly work without.
---@param approval amanu.Approval
---@return amanu.Grant[][]
function M.ways(approval)
  local grants, wants = approval.grants or {}, approval.wants or {}
  local found = { vim.tbl_filter(function(each)
    return vim.list_contains(grants, each)
  end, wants) }
  local others = vim.list_extend(
    { {} },
    vim.tbl_map(function(each)
      return { each }
    end, grants)
  )
  for _, way in ipairs(others) do
    if not vim.iter(found):any(function(each)
      return vim.deep_equal(each, way)
    end) then
      table.insert(found, way)
    end
  end
  return found
end

---" with network access"; "" for nothing.
---@param grants amanu.Grant[]
---@return string
function M.granting(grants)
  local words = vim.tbl_map(function(each)
    return labels.GRANTS[each].name
  end, grants)
  return #words > 0 and " " .. table.concat(words, " and ") or ""
end

---A yes of `ways` as words; a plain one says what it does without, where something is wanted.
---@param grants amanu.Grant[]
---@param approval amanu.Approval
---@return string
function M.way(grants, approval)
  if #grants > 0 or #(approval.wants or {}) == 0 then
    return M.granting(grants)
  end
  return vim.deep_equal(approval.wants, { "network" }) and " without network access" or " in the sandbox"
end

---@param preview amanu.RulePreviewResult
---@return boolean
function M.can_save(preview)
  return preview.valid and preview.covers ~= false
end

---What a rule would do: what it allows, whether it answers the question, what it would have answered before.
---@param preview amanu.RulePreviewResult
---@return string[]
function M.previewed(preview)
  if not preview.valid then
    return { said(preview.explanation) }
  end
  local lines = preview.explanation ~= "" and { said(preview.explanation) } or {}
  if preview.covers == false then
    table.insert(lines, M.CANNOT_SAVE)
  end
  local count = preview.coveredCount or 0
  if count > 0 then
    table.insert(lines, ("would have covered %s:"):format(count == 1 and "1 earlier ask" or count .. " earlier asks"))
    local named = vim.list_slice(preview.covered or {}, 1, EARLIER)
    for _, title in ipairs(named) do
      table.insert(lines, "  " .. said(title))
    end
    if count > #named then
      table.insert(lines, ("  … and %d more"):format(count - #named))
    end
  elseif preview.covers ~= nil then
    table.insert(lines, "would have covered no earlier ask")
  end
  return lines
end

-- After -----------------------------------------------------------------------------------------------

---By whom or by which rule a call was decided.
---@param decision? amanu.Decision
---@return string
local function decided(decision)
  if not decision then
    return ""
  elseif decision.by == "rule" then
    return ("%s by %s"):format(decision.outcome, said(decision.rule or "a rule"))
  end
  local where = decision.client and decision.client ~= "" and " in " .. said(decision.client) or ""
  local kept = decision.outcome == "allowed" and decision.scope ~= "once" and decision.scope
  local scope = kept and " " .. labels.SCOPES[kept] or ""
  local rule = kept and decision.rule and ": " .. said(decision.rule) or ""
  local why = decision.reason and ": “" .. said(decision.reason) .. "”" or ""
  return decision.outcome .. scope .. M.granting(decision.grants or {}) .. " by you" .. where .. rule .. why
end

---That, and the walls that held it; "" where there is nothing to tell.
---@param call amanu.ToolCall
---@return string
function M.settled(call)
  local walls, held = call.walls, ""
  if walls and walls.tier == "none" then
    held = NOT_SANDBOXED
  elseif walls then
    held = ("in %s: %s, %s"):format(walls.tier, WRITES[walls.writes], walls.network and "network" or "no network")
  end
  return join({ decided(call.decision), held }, " · ")
end

---Entries of the audit log, oldest first, and whether its chain holds.
---@param found amanu.AuditQueryResult
---@return string[]
function M.audited(found)
  local lines = vim.tbl_map(function(each)
    local when = os.date("%Y-%m-%d %H:%M:%S", math.floor(each.at / 1000))
    return ("%s  %-7s  %s"):format(when, each.kind, said(each.text))
  end, found.entries)
  if #lines == 0 then
    table.insert(lines, "Nothing is on record about that.")
  end
  table.insert(lines, (found.intact and "" or "✗ ") .. said(found.message))
  return lines
end

-- Trust -----------------------------------------------------------------------------------------------

M.CHANGED = "You trusted this folder, but what it enables has changed since. It counts as not trusted until you look."

local HEADS = {
  untrusted = "This folder is not trusted: its files are read as plain text only. Its instructions to the agent, its "
    .. "rules and its settings are ignored, and nothing in it is run without your yes.",
  changed = M.CHANGED,
  trusted = "This folder is trusted.",
}

---What trusting a folder means now, with the diffs of all that is not as the person trusted it.
---@param found amanu.TrustGetResult
---@return string[]
function M.trust(found)
  local lines = { HEADS[found.state] }
  if #found.enables == 0 then
    table.insert(lines, "It holds nothing yet that trust would enable.")
    return lines
  end
  table.insert(lines, found.state == "trusted" and "Trust enables:" or "Trust would enable:")
  for _, each in ipairs(found.enables) do
    table.insert(lines, ("  %s — %s (%s)"):format(said(each.path), ENABLED[each.what] or each.what, STATES[each.state]))
  end
  for _, each in ipairs(found.enables) do
    if each.state ~= "same" and each.diff and each.diff ~= "" then
      table.insert(lines, "")
      for _, line in ipairs(visible.lines(visible.text(each.diff))) do
        table.insert(lines, "│ " .. line)
      end
    end
  end
  return lines
end

return M
