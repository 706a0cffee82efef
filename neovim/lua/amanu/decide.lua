---What the user says about edits: accept and reject what is open, keep what a rule applied, take back what is
---applied, and bring that again; by hunk, file, turn or session.

local client = require("amanu.client")
local context = require("amanu.context")
local hunks = require("amanu.hunks")
local BUTTONS = require("amanu.labels").BUTTONS
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@type table<string, amanu.Which> What a word is about.
local ABOUT = {
  accept = hunks.open,
  reject = hunks.open,
  keep = hunks.unreviewed,
  undo = hunks.applied,
  redo = hunks.undone,
}

M.SCOPES = { "hunk", "file", "turn", "session" }

-- Of what ---------------------------------------------------------------------------------------------

---@class amanu.Target
---@field scope amanu.EditScope
---@field name string For the user.
---@field places amanu.Place[]

---The file the user looks at, or looked at last; also in the diff view.
---@return string? path
---@return integer? window
local function file()
  local diff = require("amanu.diff").path(vim.api.nvim_get_current_buf())
  if diff then
    return diff, vim.api.nvim_get_current_win()
  end
  local window = context.file_window()
  if window then
    return require("amanu.apply").real(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window))), window
  end
end

---The hunk under the cursor of that file.
---@param which amanu.Which
---@return amanu.Place?
local function hunk(which)
  local _, window = file()
  return window and vim.api.nvim_win_call(window, function()
    return require("amanu.review").current(which)
  end) or nil
end

---@param turn_id string
---@return string
local function prompt_of(turn_id)
  for _, item in ipairs(session.state.items) do
    if item.kind == "userMessage" and item.turnId == turn_id then
      return "“" .. visible.line(item.text, 40) .. "”"
    end
  end
  return "an earlier one"
end

---@param place amanu.Place
---@return amanu.Target
local function of_hunk(place)
  return {
    scope = { proposalId = place.proposal.proposalId, hunkIds = { place.hunk.hunkId } },
    name = "the hunk at line " .. place.row + 1 .. " of " .. vim.fs.basename(place.path),
    places = { place },
  }
end

---What there is of it; says why when there is nothing.
---@param verb string
---@param word string Of `SCOPES`; "" is the hunk under the cursor, or, for what is shown first or can be shown no more,
---the last turn.
---@return amanu.Target?
local function find(verb, word)
  local which = ABOUT[verb]
  local nothing = "nothing to " .. verb
  if word == "hunk" or word == "" then
    local place = hunk(which)
    if place then
      return of_hunk(place)
    elseif word == "hunk" then
      return say.now(nothing .. " under the cursor")
    elseif (verb == "accept" or verb == "reject" or verb == "keep") and #hunks.all(nil, which) > 0 then
      return say.now(("%s under the cursor; /%s turn is for all"):format(nothing, verb)) -- not by a line too far
    end
  elseif word == "file" then
    local path = file()
    local places = path and hunks.all(path, which) or {}
    if #places == 0 then
      return say.now(nothing .. " in " .. (path and vim.fs.basename(path) or "no file"))
    end
    return { scope = { path = places[1].file.path }, name = vim.fs.basename(path), places = places }
  elseif word ~= "turn" and word ~= "session" and word ~= "all" then
    return say.now(("/%s %s: there are %s"):format(verb, word, table.concat(M.SCOPES, ", ")))
  end
  local places = hunks.all(nil, which)
  if #places == 0 then
    return say.now(nothing)
  elseif word == "session" or word == "all" then
    return { scope = vim.empty_dict(), name = "the whole session", places = places }
  end
  local turn_id ---@type string
  for _, proposal in ipairs(session.state.proposals) do
    for _, place in ipairs(places) do
      turn_id = place.proposal == proposal and proposal.turnId or turn_id
    end
  end
  places = vim.tbl_filter(function(place)
    return place.proposal.turnId == turn_id
  end, places)
  return { scope = { turnId = turn_id }, name = "the turn " .. prompt_of(turn_id), places = places }
end

---@param places amanu.Place[]
---@return amanu.Proposal[]
local function proposals(places)
  local found = {}
  for _, place in ipairs(places) do
    if not vim.list_contains(found, place.proposal) then
      table.insert(found, place.proposal)
    end
  end
  return found
end

-- Asking ----------------------------------------------------------------------------------------------

---Ask for something that is one undo step in each buffer.
---@param method string
---@param params table
---@param done fun(result: table)
---@param failed? fun(why: string, kind?: string): boolean?
function M.as_one(method, params, done, failed)
  local over = require("amanu.apply").together()
  session.ask(method, params, function(result)
    over()
    done(result)
  end, function(why, kind)
    over()
    return failed and failed(why, kind)
  end)
end

---Where and what the hunks are.
---@param seen amanu.Proposal[]
---@param ids table<string, boolean>
---@return table<string, any>
local function texts(seen, ids)
  local found = {}
  for _, proposal in ipairs(seen) do
    for _, each in ipairs(proposal.files) do
      for _, one in ipairs(each.hunks) do
        if ids[one.hunkId] then
          found[one.hunkId] = { each.path, one.oldText, one.newText }
        end
      end
    end
  end
  return found
end

---The proposals as they are now: each new version comes before the refusal of what was decided on an old one.
---@param seen amanu.Proposal[]
---@return amanu.Proposal[]
local function latest(seen)
  local now = {}
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    now[proposal.proposalId] = proposal
  end
  return vim.tbl_map(function(proposal)
    return now[proposal.proposalId] or proposal
  end, seen)
end

---Decide. When a proposal has another version by now, but those hunks are the same, perhaps at other lines, once more.
---@param seen amanu.Proposal[] As the user saw them.
---@param ids table<string, boolean> The hunks that are decided.
---@param ask fun(seen: amanu.Proposal[], done: fun(result: table), failed: fun(why: string, kind?: string): boolean?)
---@param done? fun()
---@param again? boolean
local function insist(seen, ids, ask, done, again)
  client.flush() -- what was typed counts
  ask(seen, function(result)
    if result.status == "tooSoon" then
      return say.now(require("amanu.labels").IGNORED.tooSoon)
    end
    for _, proposal in ipairs(result.proposals or { result.proposal }) do
      for _, each in ipairs(proposal.files) do
        for _, one in ipairs(each.hunks) do
          if ids[one.hunkId] and one.state == "conflicted" then
            say.aside(("not applied to %s: %s"):format(vim.fs.basename(each.path), one.reason or ""), vim.log.levels.WARN)
          end
        end
      end
    end
    if done then
      done()
    end
  end, function(_, kind)
    if kind ~= "proposalConflict" or again then
      return false
    end
    local now = latest(seen)
    local will_do = vim.deep_equal(texts(seen, ids), texts(now, ids))
    insist(will_do and now or seen, ids, ask, done, true)
    return true
  end)
end

---Decide hunks of a proposal, with the user's own text or reason.
---@param seen amanu.Proposal
---@param decisions amanu.HunkDecision[]
---@param done? fun()
function M.hunks(seen, decisions, done)
  local ids = {}
  for _, each in ipairs(decisions) do
    ids[each.hunkId] = true
  end
  insist({ seen }, ids, function(now, succeeded, failed)
    local params = { proposalId = seen.proposalId, version = now[1].version, hunks = decisions }
    session.ask(methods.proposal_resolve, params, succeeded, failed)
  end, done)
end

---Change the text of an open hunk, without deciding it.
---@param place amanu.Place
---@param text string
---@param done? fun()
function M.revise(place, text, done)
  insist({ place.proposal }, { [place.hunk.hunkId] = true }, function(now, succeeded, failed)
    local params = { proposalId = now[1].proposalId, version = now[1].version, hunkId = place.hunk.hunkId, newText = text }
    session.ask(methods.proposal_revise, params, succeeded, failed)
  end, done)
end

---@param decision "accept"|"reject"|"keep"|"redo"
---@param target amanu.Target
local function decide(decision, target)
  local ids = {}
  for _, place in ipairs(target.places) do
    ids[place.hunk.hunkId] = true
  end
  insist(proposals(target.places), ids, function(now, succeeded, failed)
    local seen = vim.tbl_map(function(proposal)
      return { proposalId = proposal.proposalId, version = proposal.version }
    end, now)
    M.as_one(methods.proposal_decide, { scope = target.scope, decision = decision, seen = seen }, succeeded, failed)
  end)
end

---@param files amanu.UndoneFile[]
---@param note string? What else the daemon has to say.
function M.say_undone(files, note)
  local undone, changed, left, why = 0, 0, 0, nil
  for _, each in ipairs(files) do
    undone, left = undone + #each.undone, left + #each.skipped
    changed = changed + (#each.undone > 0 and 1 or 0)
    why = why or (each.skipped[1] and each.skipped[1].reason)
  end
  local text = ("undid %d hunk%s in %d file%s"):format(undone, undone == 1 and "" or "s", changed, changed == 1 and "" or "s")
  if left > 0 then
    text = ("%s; %d left: %s"):format(text, left, why)
  else
    text = ("%s; /redo applies %s again"):format(text, undone == 1 and "it" or "them")
  end
  if note and note ~= "" then
    text = text:gsub("%.$", "") .. ". " .. visible.line(note)
  end
  say.now(text, left > 0 and vim.log.levels.WARN or nil)
end

---@param target amanu.Target
local function undo(target)
  client.flush()
  M.as_one(methods.proposal_undo, { scope = target.scope }, function(result)
    M.say_undone(result.files, result.note)
  end)
end

-- Verbs -----------------------------------------------------------------------------------------------

---What no hunk shows is named before it is accepted with the rest.
---@param decision "accept"|"reject"|"keep"|"redo"
---@param word string Of `SCOPES`, or "".
function M.decide(decision, word)
  local target = find(decision, word)
  if not target then
    return
  end
  local is_draft = vim.iter(target.places):any(function(place)
    return place.proposal.draft
  end)
  local is_all = not target.scope.hunkIds and not target.scope.path
  local besides = decision == "accept" and is_draft and is_all and hunks.besides() or ""
  if besides == "" then
    return decide(decision, target)
  end
  require("amanu.ask").choose({
    { label = BUTTONS.acceptAll, run = function() decide(decision, target) end },
    { label = BUTTONS.notNow, run = function() end },
  }, besides) -- stylua: ignore
end

---Show what would be taken back; then, if the user agrees, do it.
---@param word string
function M.undo(word)
  local target = find("undo", word)
  if not target then
    return
  end
  client.flush()
  session.ask(methods.proposal_undo, { scope = target.scope, dryRun = true }, function(result)
    require("amanu.preview").undo("Take back " .. target.name .. "?", result.files, {}, {
      { key = "y", what = "take it back", run = function() undo(target) end },
    }) -- stylua: ignore
  end)
end

---Whether to say yes before or after: `after` applies what is open, to be kept or undone; `before` takes back what
---was applied and not kept yet, to be accepted or rejected.
---@param word string
function M.review(word)
  if word ~= "before" and word ~= "after" then
    return say.now("/review before: nothing is written until you accept it · /review after: applied now, then keep or undo")
  end
  local places = hunks.all(nil, word == "after" and hunks.open or hunks.unreviewed)
  if #places == 0 then
    return say.now(word == "after" and "nothing waits to be applied" or "nothing applied waits for you")
  end
  local waiting = proposals(places)
  local function next_one()
    local proposal = table.remove(waiting, 1)
    if not proposal then
      return
    end
    local ids = {}
    for _, place in ipairs(places) do
      ids[place.hunk.hunkId] = place.proposal == proposal or nil
    end
    insist({ proposal }, ids, function(now, succeeded, failed)
      local params = { proposalId = now[1].proposalId, version = now[1].version, review = word }
      session.ask(methods.proposal_set_review, params, succeeded, failed)
    end, next_one)
  end
  next_one()
end

---Take back that hunk: it is before the user's eyes.
---@param place amanu.Place
function M.undo_hunk(place)
  undo(of_hunk(place))
end

---@param place amanu.Place
---@param decision "accept"|"reject"|"keep"|"redo"
function M.hunk(place, decision)
  decide(decision, of_hunk(place))
end

---Yes to all of the file: accept what is open, keep what is applied.
function M.accept_file()
  local path = file()
  if path and #hunks.all(path, hunks.open) > 0 then
    M.decide("accept", "file")
  else
    M.decide("keep", "file")
  end
end

---No to all of the file: reject what is open; without that, take back what is applied.
function M.reject_file()
  local path = file()
  if path and #hunks.all(path, hunks.open) > 0 then
    M.decide("reject", "file")
  else
    M.undo("file")
  end
end

return M
