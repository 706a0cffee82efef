---Hunks of the session, and texts made of them. Rows are 0-based; a hunk's own lines are 1-based.

local bases = require("amanu.review.bases")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@alias amanu.Decided amanu.Hunk|amanu.Row

---A hunk or a row of the session.
---@class amanu.Change
---@field kind "hunk"|"row"
---@field id string
---@field decided amanu.Decided
---@field proposal amanu.Proposal
---@field from string Its path in the proposal.
---@field path string Where the file is now.

---@class amanu.Place: amanu.Change
---@field file amanu.ProposedFile
---@field hunk amanu.Hunk
---@field row integer Where its lines begin in the file as it is now; with no lines there, the row it comes before.
---@field number integer Of those of the file that were asked for.
---@field count integer

---@alias amanu.Which fun(decided: amanu.Decided): boolean

--- Whose text it is by now: `user`'s words for that, or `file`'s, where a formatter may have changed it; or nothing.
---@param hunk amanu.Hunk
---@param user string
---@param file string
---@return string
function M.altered(hunk, user, file)
  if not hunk.editedByUser then
    return ""
  end
  return hunk.appliedText and file or user
end

---@param decided amanu.Decided
---@return boolean
function M.open(decided)
  return decided.state == "pending" or decided.state == "conflicted"
end

---@param decided amanu.Decided
---@return boolean
function M.applied(decided)
  return decided.state == "applied"
end

---Applied by a rule: it waits to be kept or undone.
---@param decided amanu.Decided
---@return boolean
function M.unreviewed(decided)
  return decided.state == "applied" and not decided.reviewed
end

---@param decided amanu.Decided
---@return boolean
function M.kept(decided)
  return decided.state == "applied" and decided.reviewed == true
end

---@param decided amanu.Decided
---@return boolean
function M.undone(decided)
  return decided.state == "reverted"
end

---What the user has not said yes or no to.
---@param decided amanu.Decided
---@return boolean
function M.to_review(decided)
  return M.open(decided) or M.unreviewed(decided)
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

---The lines of a hunk that are in the file now.
---@param hunk amanu.Hunk
---@return string[]
function M.here(hunk)
  return M.lines(M.applied(hunk) and hunk.newText or hunk.oldText)
end

---Where the file is now.
---@param file amanu.ProposedFile
---@return string
function M.path(file)
  return file.newPath and M.applied(file.hunks[1]) and file.newPath or file.path
end

---@param path? string Only of that file.
---@param which? amanu.Which Those to review, if not given.
---@return amanu.Place[] Files as they come in the proposals, all of one file together.
function M.all(path, which)
  local of, order = {}, {}
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, file in ipairs(proposal.files) do
      local here = M.path(file)
      if not path or here == path then
        if not of[here] then
          of[here] = {}
          table.insert(order, here)
        end
        local rows = M.rows(file, M.applied)
        for _, hunk in ipairs(vim.tbl_filter(which or M.to_review, file.hunks)) do
          table.insert(of[here], {
            kind = "hunk",
            id = hunk.hunkId,
            decided = hunk,
            proposal = proposal,
            from = file.path,
            path = here,
            file = file,
            hunk = hunk,
            row = rows[hunk.hunkId],
          })
        end
      end
    end
  end
  local found = {}
  for _, each in ipairs(order) do
    for number, place in ipairs(of[each]) do
      place.number, place.count = number, #of[each]
      table.insert(found, place)
    end
  end
  return found
end

---A hunk as the pieces that are shown: of a whole file that moves, only what differs.
---@param file amanu.ProposedFile
---@param hunk amanu.Hunk
---@return { first: integer, old: string[], new: string[] }[] `first`: lines of the hunk before it.
function M.pieces(file, hunk)
  local old, new = M.lines(hunk.oldText), M.lines(hunk.newText)
  if file.change ~= "rename" then
    return { { first = 0, old = old, new = new } }
  end
  local found = {}
  local diff = (vim.text and vim.text.diff or vim.diff) ---@diagnostic disable-line: deprecated
  for _, each in ipairs(diff(hunk.oldText, hunk.newText, { result_type = "indices" }) --[[@as integer[][] ]]) do
    table.insert(found, {
      first = each[2] > 0 and each[1] - 1 or each[1],
      old = vim.list_slice(old, each[1], each[1] + each[2] - 1),
      new = vim.list_slice(new, each[3], each[3] + each[4] - 1),
    })
  end
  return found
end

---What it is, in a few words: "+2 -1 why".
---@param place amanu.Place
---@return string
function M.title(place)
  local hunk, file = place.hunk, place.file
  local words = ("+%d -%d"):format(#M.lines(hunk.newText), #M.lines(hunk.oldText))
  if file.change == "rename" then
    local to = visible.line(vim.fn.fnamemodify(file.newPath or "", ":."), 60)
    words = file.added + file.removed > 0 and ("rename to %s +%d -%d"):format(to, file.added, file.removed) or "rename to " .. to
  elseif file.change ~= "edit" then
    words = ("%s %s"):format(file.change, words)
  end
  local first = file.change ~= "rename" and (M.lines(hunk.newText)[1] or M.lines(hunk.oldText)[1]) or ""
  local explanation = hunk.explanation or ""
  return vim.trim(words .. " " .. visible.line(vim.trim(explanation ~= "" and explanation or first), 80))
end

---The file's text with those hunks, as lines. Its base is loaded (`bases.lua`).
---@param file amanu.ProposedFile
---@param has fun(hunk: amanu.Hunk): boolean
---@return string[]
function M.text(file, has)
  local base = M.lines(bases.text(file) or "")
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
