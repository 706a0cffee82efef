---What the user says about edits: accept and reject what is open, keep what a rule applied, take back what is
---applied, and bring that again; by hunk, file, turn or session.

local client = require("amanu.wire.client")
local context = require("amanu.wire.context")
local hunks = require("amanu.review.hunks")
local methods = require("amanu.protocol").methods
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@type table<string, amanu.Which> What a word is about.
local ABOUT = {
  accept = rows.open,
  reject = rows.open,
  keep = hunks.may("keep"),
  undo = hunks.may("undo"),
  redo = hunks.may("redo"),
  retry = function(decided)
    return decided.state == "conflicted"
  end,
}

M.SCOPES = { "hunk", "file", "turn", "session" }

-- Of what ---------------------------------------------------------------------------------------------

---@class amanu.Target
---@field scope amanu.EditScope
---@field name string For the user.
---@field changes amanu.Change[]

---The file the user looks at, or looked at last; in the diff view and the list of rows, the one shown there.
---@return string? path
---@return integer? window
local function file()
  local row = row_list.current()
  if row then
    return row.path
  end
  local diff = require("amanu.review.diff").path(vim.api.nvim_get_current_buf())
  if diff then
    return diff, vim.api.nvim_get_current_win()
  end
  local window = context.file_window()
  if window then
    return require("amanu.wire.apply").real(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(window))), window
  end
end

---The hunk under the cursor of that file.
---@param which amanu.Which
---@return amanu.Place?
local function hunk(which)
  local _, window = file()
  return window and vim.api.nvim_win_call(window, function()
    return require("amanu.review.marks").current(which)
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

---@param change amanu.Change
---@return amanu.Target
local function of_one(change)
  local id = change.proposal.proposalId
  if change.kind == "row" then
    local row = change.decided --[[@as amanu.Row]]
    return { scope = { proposalId = id, rowIds = { change.id } }, name = rows.name(row), changes = { change } }
  end
  local place = change --[[@as amanu.Place]]
  return {
    scope = { proposalId = id, hunkIds = { change.id } },
    name = "the hunk at line " .. place.hunk.lines.start + 1 .. " of " .. vim.fs.basename(place.path),
    changes = { change },
  }
end

---The row under the cursor, if that verb fits it. In the list, a rejected row can be brought back, too.
---@param verb string
---@return amanu.RowPlace?
local function row_here(verb)
  return (row_list.current(verb == "redo" and rows.can_return or ABOUT[verb]))
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
    local change = row_here(verb) or hunk(which)
    local here = row_list.current()
    if change then
      return of_one(change)
    elseif here and not rows.decidable(here.row) then
      return say.now(here.row.undecidable)
    elseif word == "hunk" then
      return say.now(nothing .. " under the cursor")
    elseif vim.list_contains({ "accept", "reject", "keep", "retry" }, verb) and #rows.changes(nil, which) > 0 then
      return say.now(("%s under the cursor; /%s turn is for all"):format(nothing, verb)) -- not by a line too far
    end
  elseif word == "file" then
    local path = file()
    local changes = path and rows.changes(path, which) or {}
    if #changes == 0 then
      return say.now(nothing .. " in " .. (path and vim.fs.basename(path) or "no file"))
    end
    return { scope = { path = changes[1].from }, name = vim.fs.basename(path), changes = changes }
  elseif word ~= "turn" and word ~= "session" and word ~= "all" then
    return say.now(("/%s %s: there are %s"):format(verb, word, table.concat(M.SCOPES, ", ")))
  end
  local changes = rows.changes(nil, which)
  if #changes == 0 then
    return say.now(nothing)
  elseif word == "session" or word == "all" then
    return { scope = vim.empty_dict(), name = "the whole session", changes = changes }
  end
  local turn_id ---@type string
  for _, proposal in ipairs(session.state.proposals) do
    for _, change in ipairs(changes) do
      turn_id = change.proposal == proposal and proposal.turnId or turn_id
    end
  end
  changes = vim.tbl_filter(function(change)
    return change.proposal.turnId == turn_id
  end, changes)
  return { scope = { turnId = turn_id }, name = "the turn " .. prompt_of(turn_id), changes = changes }
end

---@param changes amanu.Change[]
---@return amanu.Proposal[]
local function proposals(changes)
  local found = {}
  for _, change in ipairs(changes) do
    if not vim.list_contains(found, change.proposal) then
      table.insert(found, change.proposal)
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
  local over = require("amanu.wire.apply").together()
  session.ask(method, params, function(result)
    over()
    done(result)
  end, function(why, kind)
    over()
    return failed and failed(why, kind)
  end)
end

---What two versions are compared by: place and text of the hunks, digest and needs of the rows.
---@param seen amanu.Proposal[]
---@param ids table<string, boolean>
---@return table<string, any>
local function contents(seen, ids)
  local found = {}
  for _, proposal in ipairs(seen) do
    for _, one in ipairs(proposal.rows or {}) do
      if ids[one.rowId] then
        found[one.rowId] = { one.digest, one.needs }
      end
    end
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

---@param name string The name of what is decided, for the user.
---@param decided amanu.Decided
local function say_conflict(name, decided)
  if decided.state == "conflicted" then
    say.aside(("not applied to %s: %s"):format(name, decided.reason or ""), vim.log.levels.WARN)
  end
end

---Decide; and once more if a proposal has another version by now, but those hunks and rows are the same, perhaps at other
---lines.
---@param seen amanu.Proposal[] As the user saw them.
---@param ids table<string, boolean> The hunks and rows that are decided.
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
          if ids[one.hunkId] then
            say_conflict(vim.fs.basename(each.path), one)
          end
        end
      end
      for _, one in ipairs(proposal.rows or {}) do
        if ids[one.rowId] then
          say_conflict(rows.name(one), one)
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
    local will_do = vim.deep_equal(contents(seen, ids), contents(now, ids))
    insist(will_do and now or seen, ids, ask, done, true)
    return true
  end)
end

---Decide a hunk or a row, with the user's own text or reason.
---@param change amanu.Change
---@param decision { decision: string, newText?: string, reason?: string }
---@param done? fun()
function M.one(change, decision, done)
  local is_row = change.kind == "row"
  local one = vim.tbl_extend("error", decision, { [is_row and "rowId" or "hunkId"] = change.id })
  insist({ change.proposal }, { [change.id] = true }, function(now, succeeded, failed)
    local params = { proposalId = now[1].proposalId, version = now[1].version, [is_row and "rows" or "hunks"] = { one } }
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
---@param done? fun()
local function decide(decision, target, done)
  local ids = {}
  for _, change in ipairs(target.changes) do
    ids[change.id] = true
  end
  insist(proposals(target.changes), ids, function(now, succeeded, failed)
    local seen = vim.tbl_map(function(proposal)
      return { proposalId = proposal.proposalId, version = proposal.version }
    end, now)
    M.as_one(methods.proposal_decide, { scope = target.scope, decision = decision, seen = seen }, succeeded, failed)
  end, done)
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
  local text = ("undid %d change%s in %d file%s"):format(undone, undone == 1 and "" or "s", changed, changed == 1 and "" or "s")
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
---@param done? fun()
local function undo(target, done)
  client.flush()
  M.as_one(methods.proposal_undo, { scope = target.scope }, function(result)
    M.say_undone(result.files, result.note)
    if done then
      done()
    end
  end)
end

-- Verbs -----------------------------------------------------------------------------------------------

---@param decision "accept"|"reject"|"keep"|"redo"
---@param word string Of `SCOPES`, or "".
---@param done? fun()
function M.decide(decision, word, done)
  local target = find(decision, word)
  if not target then
    return
  end
  if target.scope.rowIds then
    return M.one(target.changes[1], { decision = decision }, done)
  end
  decide(decision, target, done)
end

---Do it for one proposal after the other: each answer comes before the next is asked for.
---@param changes amanu.Change[]
---@param ask fun(now: amanu.Proposal, ids: table<string, boolean>, done: fun(result: table), failed: fun(why: string, kind?: string): boolean?)
---@param done? fun()
local function one_by_one(changes, ask, done)
  local waiting = proposals(changes)
  local function next_one()
    local proposal = table.remove(waiting, 1)
    if not proposal then
      return done and done()
    end
    local ids = {}
    for _, change in ipairs(changes) do
      ids[change.id] = change.proposal == proposal or nil
    end
    insist({ proposal }, ids, function(now, succeeded, failed)
      ask(now[1], ids, succeeded, failed)
    end, next_one)
  end
  next_one()
end

---Ask the model again for changes that are in conflict, to be made on the files as they are now.
---@param word string Of `SCOPES`, or "".
function M.retry(word)
  local target = find("retry", word)
  if not target then
    return
  end
  one_by_one(target.changes, function(now, ids, succeeded, failed)
    local params = { proposalId = now.proposalId, version = now.version, hunkIds = {}, rowIds = {} }
    for _, change in ipairs(target.changes) do
      if ids[change.id] then
        table.insert(change.kind == "row" and params.rowIds or params.hunkIds, change.id)
      end
    end
    session.ask(methods.proposal_retry, params, succeeded, failed)
  end, function()
    local count = #target.changes
    say.now((count == 1 and "1 change was" or count .. " changes were") .. " asked for again, on the text as it is now")
  end)
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
    require("amanu.chat.preview").undo("Take back " .. target.name .. "?", result.files, {}, {
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
  local changes = rows.changes(nil, word == "after" and ABOUT.accept or hunks.unreviewed)
  if #changes == 0 then
    return say.now(word == "after" and "nothing waits to be applied" or "nothing applied waits for you")
  end
  one_by_one(changes, function(now, _, succeeded, failed)
    local params = { proposalId = now.proposalId, version = now.version, review = word }
    session.ask(methods.proposal_set_review, params, succeeded, failed)
  end)
end

---Take it back without asking: the user sees it.
---@param change amanu.Change
---@param done? fun()
function M.undo_one(change, done)
  undo(of_one(change), done)
end

---@param change amanu.Change
---@param done? fun()
function M.keep(change, done)
  decide("keep", of_one(change), done)
end

---Yes to all of the file: accept what is open, keep what is applied.
---@param done? fun()
function M.accept_file(done)
  local path = file()
  if path and #rows.changes(path, rows.open) > 0 then
    M.decide("accept", "file", done)
  else
    M.decide("keep", "file", done)
  end
end

---No to all of the file: reject what is open; without that, take back what is applied.
---@param done? fun()
function M.reject_file(done)
  local path = file()
  if path and #rows.changes(path, rows.open) > 0 then
    M.decide("reject", "file", done)
  else
    M.undo("file")
  end
end

return M
