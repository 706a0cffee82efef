---Hunks of the session. The daemon says what waits, what may be done and where it stands, in lines from 0.

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

---@param verb amanu.Verb
---@return amanu.Which
function M.may(verb)
  return function(decided)
    return vim.list_contains(decided.verbs, verb)
  end
end

---@param decided amanu.Decided
---@return boolean
function M.open(decided)
  return decided.waits == "decision"
end

---Applied by a rule: it waits to be kept or undone.
---@param decided amanu.Decided
---@return boolean
function M.unreviewed(decided)
  return decided.waits == "review"
end

---A change that the user has not said yes or no to.
---@param decided amanu.Decided
---@return boolean
function M.to_review(decided)
  return decided.waits ~= ""
end

---@param decided amanu.Decided
---@return boolean
function M.applied(decided)
  return decided.state == "applied"
end

---@param decided amanu.Decided
---@return boolean
function M.undone(decided)
  return decided.state == "reverted"
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

---The order in which they stand in the file, which several proposals may be about.
---@param places amanu.Place[] Of one file.
---@return amanu.Place[]
local function sorted(places)
  local known = {}
  for at, place in ipairs(places) do
    known[place] = at
  end
  table.sort(places, function(one, other)
    local first, second = one.hunk.lines.start, other.hunk.lines.start
    return first < second or (first == second and known[one] < known[other])
  end)
  return places
end

---@param path? string Only of that file.
---@param which? amanu.Which Those to review, if not given.
---@return amanu.Place[] Files as they come in the proposals, all of one file together, from its beginning.
function M.all(path, which)
  local of, order = {}, {}
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, file in ipairs(proposal.files) do
      local here = file.presentPath
      if not path or here == path then
        if not of[here] then
          of[here] = {}
          table.insert(order, here)
        end
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
          })
        end
      end
    end
  end
  return vim.iter(order):map(function(each)
    return sorted(of[each])
  end):flatten():totable()
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

return M
