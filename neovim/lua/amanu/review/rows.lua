---Rows of the session (changes that no hunk shows), and their texts.

local hunks = require("amanu.review.hunks")
local session = require("amanu.session")
local visible = require("amanu.visible")
local worded = require("amanu.chat.worded")

local M = {}

---@class amanu.RowPlace: amanu.Change
---@field row amanu.Row

---@param row amanu.Row
---@return boolean
function M.decidable(row)
  return (row.undecidable or "") == ""
end

---Hunks and rows that can be accepted or rejected.
M.open = hunks.may("accept")

---Whether it was taken back or rejected, and can be applied after all.
---@param row amanu.Decided
---@return boolean
function M.can_return(row)
  return hunks.undone(row) or row.state == "rejected"
end

---An `amanu.Which` that every row passes.
---@return boolean
function M.any()
  return true
end

---@param path? string Only rows at that path.
---@param which? amanu.Which If not given, those to review.
---@return amanu.RowPlace[]
function M.all(path, which)
  local found = {}
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, row in ipairs(vim.tbl_filter(which or hunks.to_review, proposal.rows or {})) do
      if not path or row.presentPath == path then
        table.insert(found, {
          kind = "row",
          id = row.rowId,
          decided = row,
          proposal = proposal,
          from = row.path,
          path = row.presentPath,
          row = row,
        })
      end
    end
  end
  return found
end

---@param id string
---@return boolean
function M.has(id)
  return #M.all(nil, function(row)
    return row.rowId == id
  end) > 0
end

---The hunks, then the rows.
---@param path? string
---@param which? amanu.Which
---@return amanu.Change[]
function M.changes(path, which)
  local found = {} ---@type amanu.Change[]
  vim.list_extend(found, hunks.all(path, which))
  return vim.list_extend(found, M.all(path, which))
end

---Places of the changes to review among all of them: "3/12".
---@return table<string, string> by id of the hunk or row
function M.numbers()
  local found, changes = {}, M.changes()
  for number, change in ipairs(changes) do
    found[change.id] = ("%d/%d"):format(number, #changes)
  end
  return found
end

---@param row amanu.Row
---@return string
function M.name(row)
  if row.kind ~= "git" then
    local to = row.newPath and " → " .. visible.line(vim.fn.fnamemodify(row.newPath, ":.")) or ""
    return visible.line(vim.fn.fnamemodify(row.path, ":.")) .. to
  end
  local here = row.path == vim.fn.getcwd()
  return "the git repository" .. (here and "" or " in " .. visible.line(vim.fn.fnamemodify(row.path, ":.")))
end

---@param row amanu.Row
---@return string
function M.title(row)
  return worded.line(row.title)
end

---A sign, and words where the sign does not say it.
local STATES = {
  pending = { "?", "" },
  accepted = { "…", "accepted" },
  applied = { "+", "applied" },
  kept = { "✓", "applied" },
  rejected = { "✗", "rejected" },
  conflicted = { "!", "in conflict" },
  undoing = { "…", "being taken back" },
  reverted = { "✗", "taken back" },
}

---All that a user must know of a row: its state, path and title on one line, then the rest.
---@param row amanu.Row
---@return amanu.Line[]
function M.told(row)
  local sign, words = unpack(STATES[row.state == "applied" and row.waits == "" and "kept" or row.state] or { "…", visible.line(row.state) })
  local head = ("%s %s: %s%s"):format(sign, M.name(row), M.title(row), words ~= "" and " · " .. words or "")
  local found = { { tone = "plain", text = head } }
  ---@param tone amanu.Tone
  ---@param text string
  local function add(tone, text)
    if text ~= "" then
      table.insert(found, { tone = tone, text = "  " .. worded.line(text) })
    end
  end
  for _, line in ipairs(row.lines or {}) do
    add(line.tone, line.text)
  end
  add("warning", row.reason or "")
  add("warning", row.undecidable or "")
  return found
end

return M
