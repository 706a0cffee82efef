---What was applied in a turn or in the session, as one diff.

local hunks = require("amanu.review.hunks")
local methods = require("amanu.protocol").methods
local rows = require("amanu.review.rows")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---The last turn of which something is applied.
---@return string?
local function last_turn()
  local found
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, file in ipairs(proposal.files) do
      found = vim.iter(file.hunks):any(hunks.applied) and proposal.turnId or found
    end
    found = vim.iter(proposal.rows or {}):any(hunks.applied) and proposal.turnId or found
  end
  return found
end

---@param changes amanu.FileChange[]
---@return string[]
local function head(changes)
  return vim.tbl_map(function(each)
    local name = visible.line(vim.fn.fnamemodify(each.path, ":."))
    local to = each.newPath and " → " .. visible.line(vim.fn.fnamemodify(each.newPath, ":.")) or ""
    return ("%s %s%s  +%d -%d"):format(each.change, name, to, each.added, each.removed)
  end, changes)
end

---Applied changes that the diff does not show.
---@param turn_id? string Only of that turn.
---@return string[]
local function no_hunks(turn_id)
  local found = {}
  for _, place in ipairs(rows.all(nil, hunks.applied)) do
    if not turn_id or place.proposal.turnId == turn_id then
      table.insert(found, ("%s: %s"):format(rows.name(place.row), rows.title(place.row)))
    end
  end
  return found
end

---In a tab of its own; `q` closes.
---@param word string `turn`: the last one that changed something; `session`.
function M.show(word)
  local turn_id = last_turn()
  if word ~= "turn" and word ~= "session" then
    return say.now("/diff " .. word .. ": there are turn, session")
  elseif not turn_id then
    return say.now("nothing is applied")
  end
  require("amanu.wire.client").flush()
  local scope = word == "turn" and { turnId = turn_id } or vim.empty_dict()
  session.ask(methods.proposal_diff, { scope = scope }, function(result)
    local buffer = vim.api.nvim_create_buf(false, true)
    pcall(vim.api.nvim_buf_set_name, buffer, "amanu://diff/" .. word)
    vim.bo[buffer].bufhidden = "wipe"
    local lines = vim.list_extend(head(result.files), no_hunks(scope.turnId))
    table.insert(lines, "")
    vim.list_extend(lines, visible.lines(visible.text(result.diff)))
    vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
    vim.bo[buffer].modifiable = false
    vim.cmd("tab split")
    vim.api.nvim_win_set_buf(0, buffer)
    vim.bo[buffer].filetype = "diff"
    vim.wo[0][0].winbar = " what is applied of the " .. word .. " · q closes"
    vim.keymap.set("n", "q", "<Cmd>tabclose<CR>", { buffer = buffer, nowait = true, desc = "Amanu: close the diff" })
  end)
end

return M
