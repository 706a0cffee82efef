---The keys of a review: what they do with the change under the cursor.

local ask = require("amanu.ask")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local marks = require("amanu.review.marks")
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")
local say = require("amanu.say")
local sight = require("amanu.review.sight")
local steps = require("amanu.review.steps")

local M = {}

local function nothing_here()
  local key = config.key("next")
  say.now("nothing to review under the cursor" .. (key ~= "" and "; " .. key .. " goes to the next" or ""))
end

---@param run fun(change: amanu.Change, first: integer, last: integer)
local function on_current(run)
  local row = row_list.current()
  local change, first, last = marks.change()
  if row and not rows.decidable(row.row) then
    return say.now(row.row.undecidable)
  elseif not change then
    return nothing_here()
  end
  run(change, first, last)
end

---@param change amanu.Change
---@param first integer
local function accept(change, first)
  local done = steps.after(change, first)
  if hunks.unreviewed(change.decided) then
    return require("amanu.review.decide").keep(change, done)
  end
  require("amanu.review.decide").one(change, { decision = "accept" }, done)
end

---@param change amanu.Change Taller than the window.
---@param first integer
local function accept_unseen(change, first)
  local place = change.kind == "hunk" and change --[[@as amanu.Place]] or nil
  local side, yes = "Show it side by side", hunks.unreviewed(change.decided) and "Keep it all the same" or "Accept it all the same"
  local in_diff = require("amanu.review.diff").path(vim.api.nvim_get_current_buf()) ~= nil
  local what = place and ("hunk fits on the screen (+%d -%d)"):format(#hunks.lines(place.hunk.newText), #hunks.lines(place.hunk.oldText))
  ask.select((in_diff or not place) and { yes } or { side, yes }, {
    prompt = ("Not all of this %s."):format(what or "change fits on the screen"),
  }, function(choice)
    if choice == yes then
      accept(change, first)
    elseif place and choice == side then
      require("amanu.review.diff").open(place.proposal.proposalId, place.file.path, function()
        local firsts = require("amanu.review.diff").rows(vim.api.nvim_get_current_buf(), function(hunk)
          return hunk.hunkId == place.hunk.hunkId
        end)
        local count = vim.api.nvim_buf_line_count(0)
        vim.api.nvim_win_set_cursor(0, { math.min((firsts and firsts[1] or 0) + 1, count), 0 })
        steps.arrive()
      end)
    end
  end)
end

---Yes: accept it, or keep what a rule applied. A key says it of what is on the screen.
function M.accept()
  on_current(function(change, first, last)
    if sight.whole(first, last) then
      accept(change, first)
    elseif sight.show(first, last) then
      say.now("part of it was out of sight. Look at it, and press again.")
    else
      accept_unseen(change, first)
    end
  end)
end

---No: reject it, or take back what a rule applied.
function M.reject()
  on_current(function(change, first)
    local done = steps.after(change, first)
    if hunks.unreviewed(change.decided) then
      return require("amanu.review.decide").undo_one(change, done)
    end
    ask.input({ prompt = "Tell the model why (may be empty): " }, function(reason)
      if reason then
        local why = reason ~= "" and reason or nil
        require("amanu.review.decide").one(change, { decision = "reject", reason = why }, done)
      end
    end)
  end)
end

function M.edit()
  local place = marks.current(hunks.open)
  if not place then
    return nothing_here()
  end
  require("amanu.review.edit").open(place)
end

---@return { name: string, what: string, run: fun() }[]
local function actions()
  local decide = require("amanu.review.decide")
  return {
    { name = "next", what = "next hunk", run = function() steps.jump(1) end },
    { name = "previous", what = "hunk before", run = function() steps.jump(-1) end },
    { name = "next_file", what = "next file to review", run = function() steps.jump_file(1) end },
    { name = "previous_file", what = "file before", run = function() steps.jump_file(-1) end },
    { name = "accept", what = "accept or keep the hunk", run = M.accept },
    { name = "reject", what = "reject or undo the hunk", run = M.reject },
    { name = "edit", what = "change the hunk, then accept it", run = M.edit },
    { name = "accept_file", what = "accept or keep the file", run = function() decide.accept_file(steps.say_left) end },
    { name = "reject_file", what = "reject or undo the file", run = function() decide.reject_file(steps.say_left) end },
    { name = "undo", what = "take back what was applied", run = function() decide.undo("") end },
    { name = "redo", what = "bring back what was taken back", run = function() decide.decide("redo", "") end },
    { name = "retry", what = "ask the model again for what is in conflict", run = function() decide.retry("") end },
    { name = "old", what = "show what was replaced", run = marks.old },
    { name = "why", what = "the hunk and its reason", run = function() require("amanu.review.why").show() end },
    { name = "comment", what = "comment to the agent", run = function() require("amanu.review.comments").add() end },
    { name = "rewrite", what = "rewrite the line or selection", run = function() require("amanu.review.rewrite").start() end },
    { name = "diff", what = "side by side", run = function() require("amanu.review.diff").open() end },
    { name = "approve", what = "answer the question", run = function() require("amanu.approve.approvals").ask() end },
  } -- stylua: ignore
end

---Give the buffer our keys, whether it has hunks or not, and for good: a key that is not there when the user presses
---it would do something else, to their text.
---@param buffer integer
function M.give(buffer)
  for _, action in ipairs(actions()) do
    local key = config.now.keys[action.name]
    if key then
      local modes = (action.name == "comment" or action.name == "rewrite") and { "n", "x" } or "n"
      vim.keymap.set(modes, key, action.run, { buffer = buffer, desc = "Amanu: " .. action.what })
    end
  end
end

return M
