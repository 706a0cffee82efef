---Open hunks of the session, and texts made of them. Rows are 0-based; a hunk's own lines are 1-based.

local session = require("amanu.session")

local M = {}

---@class amanu.OpenHunk
---@field proposal amanu.Proposal
---@field file amanu.ProposedFile
---@field hunk amanu.Hunk
---@field row integer Where its old lines begin in the file as it is now; for an insertion, the row it comes before.
---@field number integer Of the open hunks of the file.
---@field count integer

---@param hunk amanu.Hunk
---@return boolean
function M.open(hunk)
  return hunk.state == "pending" or hunk.state == "conflicted"
end

---Lines of one side of a hunk, without their line ends.
---@param text string
---@return string[]
function M.lines(text)
  if text == "" then
    return {}
  end
  return vim.split((text:gsub("\r\n", "\n"):gsub("\n$", "")), "\n", { plain = true })
end

---Line numbers of hunks shift by what was applied above them.
---@param file amanu.ProposedFile
---@param counts fun(hunk: amanu.Hunk): boolean Whether it is in the text.
---@return table<string, integer> rows by hunk id
function M.rows(file, counts)
  local rows, shift = {}, 0
  for _, hunk in ipairs(file.hunks) do
    rows[hunk.hunkId] = (hunk.oldLines > 0 and hunk.oldStart - 1 or hunk.oldStart) + shift
    if counts(hunk) then
      shift = shift + #M.lines(hunk.newText) - hunk.oldLines
    end
  end
  return rows
end

---@param hunk amanu.Hunk
function M.applied(hunk)
  return hunk.state == "applied"
end

---@param path? string Only of that file.
---@return amanu.OpenHunk[]
function M.all(path)
  local found = {}
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, file in ipairs(proposal.files) do
      if not path or file.path == path then
        local rows = M.rows(file, M.applied)
        local open = vim.tbl_filter(M.open, file.hunks)
        for number, hunk in ipairs(open) do
          table.insert(found, {
            proposal = proposal,
            file = file,
            hunk = hunk,
            row = rows[hunk.hunkId],
            number = number,
            count = #open,
          })
        end
      end
    end
  end
  return found
end

---The file's text with those hunks, as lines.
---@param file amanu.ProposedFile
---@param has fun(hunk: amanu.Hunk): boolean
---@return string[]
function M.text(file, has)
  local base = M.lines(file.baseText or "")
  local found, at = {}, 1
  for _, hunk in ipairs(file.hunks) do
    local first = hunk.oldLines > 0 and hunk.oldStart or hunk.oldStart + 1
    vim.list_extend(found, base, at, first - 1)
    at = first
    if has(hunk) then
      vim.list_extend(found, M.lines(hunk.newText))
      at = first + hunk.oldLines
    end
  end
  return vim.list_extend(found, base, at, #base)
end

return M
