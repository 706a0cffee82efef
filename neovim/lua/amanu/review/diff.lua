---A proposed file side by side, in a tab of its own: left as it was approved, right as it would be, with the keys of
---the hunks.

local ask = require("amanu.ask")
local bases = require("amanu.review.bases")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local row_list = require("amanu.review.row_list")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@class amanu.DiffView
---@field proposal_id string
---@field path string
---@field left integer
---@field right integer

---@type table<integer, amanu.DiffView> By both of its buffers.
local views = {}

---@param hunk amanu.Hunk
local function proposed(hunk)
  return hunks.applied(hunk) or hunks.open(hunk)
end

---@param view amanu.DiffView
---@return amanu.ProposedFile?
---@return amanu.Proposal?
local function find(view)
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    for _, file in ipairs(proposal.proposalId == view.proposal_id and proposal.files or {}) do
      if file.path == view.path then
        return file, proposal
      end
    end
  end
end

---@param buffer integer
---@param lines string[]
local function fill(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

---@param view amanu.DiffView
local function draw(view)
  local file = find(view)
  if not file then
    return
  end
  if not bases.text(file) then -- the base has changed since it was loaded
    return bases.load(session.state.sessionId, file, function(why)
      if why then
        say.now(why)
      elseif views[view.right] then
        draw(view)
      end
    end)
  end
  fill(view.left, hunks.text(file, hunks.kept))
  fill(view.right, hunks.text(file, proposed))
  local open = #vim.tbl_filter(hunks.to_review, file.hunks)
  local moved = file.newPath and " · renamed to " .. visible.line(vim.fn.fnamemodify(file.newPath, ":."), 60) or ""
  local gone = file.change == "delete" and " · deleted" or ""
  local help = ("%s accept · %s reject · %s edit · %s %s hunks · q closes"):format(
    config.key("accept"), config.key("reject"), config.key("edit"), config.key("previous"), config.key("next")
  ):gsub("%%", "%%%%") -- stylua: ignore
  for buffer, title in pairs({ [view.left] = "before", [view.right] = open .. " to review" .. (moved .. gone):gsub("%%", "%%%%") .. " · " .. help .. "%<" }) do
    for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
      local name = visible.line(vim.fn.fnamemodify(view.path, ":."), 60)
      vim.wo[window].winbar = " " .. name:gsub("%%", "%%%%") .. " · " .. title
    end
    require("amanu.review.comments").draw(buffer)
  end
  vim.cmd("diffupdate")
end

---@param view amanu.DiffView
---@param side "left"|"right"
---@return integer
local function make_buffer(view, side)
  local buffer = vim.api.nvim_create_buf(false, true)
  local name = ("amanu://%s/%s"):format(side == "left" and "now" or "proposed", vim.fs.basename(view.path))
  pcall(vim.api.nvim_buf_set_name, buffer, name) -- a second view has none
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].syntax = vim.filetype.match({ filename = view.path }) or "" -- no filetype: language servers stay away
  vim.keymap.set("n", "q", "<Cmd>tabclose<CR>", { buffer = buffer, nowait = true, desc = "Amanu: close the diff" })
  views[buffer] = view
  view[side] = buffer
  require("amanu.review.marks").keys(buffer)
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      views[buffer] = nil
    end,
  })
  return buffer
end

---@param proposal amanu.Proposal
---@param file amanu.ProposedFile
local function open_view(proposal, file)
  local view = { proposal_id = proposal.proposalId, path = file.path }
  vim.cmd("tab split")
  vim.api.nvim_win_set_buf(0, make_buffer(view, "left"))
  local left = vim.api.nvim_get_current_win()
  local right = vim.api.nvim_open_win(make_buffer(view, "right"), true, { split = "right", win = left })
  draw(view)
  for _, window in ipairs({ left, right }) do
    vim.api.nvim_win_call(window, function()
      vim.cmd("diffthis")
    end)
  end
  local first = M.rows(view.right)[1]
  if first then
    vim.api.nvim_win_set_cursor(right, { math.min(first + 1, vim.api.nvim_buf_line_count(view.right)), 0 })
  end
end

---@param proposal amanu.Proposal
---@param file amanu.ProposedFile
local function show(proposal, file)
  bases.load(session.state.sessionId, file, function(why)
    if why then
      return say.now(why)
    end
    open_view(proposal, file)
  end)
end

---The files of a proposal, and its rows as one more choice.
---@param proposal amanu.Proposal
---@return { label: string, run: fun() }[]
local function choices(proposal)
  local found = vim.tbl_map(function(file)
    local name, open = visible.line(vim.fn.fnamemodify(file.path, ":.")), #vim.tbl_filter(hunks.to_review, file.hunks)
    return {
      label = ("%s  +%d -%d, %d to review"):format(name, file.added, file.removed, open),
      run = function()
        show(proposal, file)
      end,
    }
  end, proposal.files)
  local others = proposal.rows or {}
  if #others > 0 then
    local first = vim.iter(others):find(hunks.to_review) or others[1]
    table.insert(found, {
      label = ("%d other change%s"):format(#others, #others == 1 and "" or "s"),
      run = function()
        row_list.show(first.rowId)
      end,
    })
  end
  return found
end

---Show a proposal: that one, or the one for the file before the user, or the last with something open, or the last.
---@param proposal_id? string
---@param path? string Of its file.
function M.open(proposal_id, path)
  local name = vim.bo.buftype == "" and vim.api.nvim_buf_get_name(0) or ""
  local here = not proposal_id and name ~= "" and require("amanu.review.marks").current()
    or hunks.all(require("amanu.wire.apply").real(name))[1]
  if not proposal_id and name ~= "" and here then
    proposal_id, path = here.proposal.proposalId, here.file.path
  end
  local found
  for _, proposal in ipairs(session.state and session.state.proposals or {}) do
    if proposal.proposalId == proposal_id then
      found = proposal
      break
    elseif not proposal_id and (proposal.state == "pending" or not found or found.state ~= "pending") then
      found = proposal
    end
  end
  if not found then
    return say.now("nothing is proposed")
  end
  for _, file in ipairs(path and found.files or {}) do
    if file.path == path then
      return show(found, file)
    end
  end
  local offered = choices(found)
  if #offered == 1 then
    return offered[1].run()
  end
  ask.choose(offered, "Which file?")
end

function M.refresh()
  for buffer, view in pairs(views) do
    if buffer == view.right then
      draw(view)
    end
  end
end

---Rows of the hunks to review in a buffer of a diff view; nil for other buffers.
---@param buffer integer
---@param which? amanu.Which Those instead.
---@return integer[]?
function M.rows(buffer, which)
  local view = views[buffer]
  local file = view and find(view)
  if not file then
    return nil
  end
  local firsts = hunks.rows(file, buffer == view.right and proposed or hunks.kept)
  return vim.tbl_map(function(hunk)
    return firsts[hunk.hunkId]
  end, vim.tbl_filter(which or hunks.to_review, file.hunks))
end

---@param buffer integer
---@return string?
function M.path(buffer)
  return views[buffer] and views[buffer].path
end

---The side of a diff view that buffer is.
---@param buffer integer
---@return string? path
---@return string? proposal_id Of the right side.
function M.side(buffer)
  local view = views[buffer]
  if view then
    return view.path, buffer == view.right and view.proposal_id or nil
  end
end

---The hunk under the cursor; false when there is none here, nil when this is no diff view.
---@param which? amanu.Which Of those to review, if not given.
---@return amanu.Place|false|nil
---@return integer? first Row of it here.
---@return integer? last Exclusive.
function M.current(which)
  local buffer = vim.api.nvim_get_current_buf()
  local view = views[buffer]
  if not view then
    return nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local firsts = M.rows(buffer, which) or {}
  local at = 0
  for _, open in ipairs(hunks.all(nil, which)) do
    if open.proposal.proposalId == view.proposal_id and open.file.path == view.path then
      at = at + 1
      local count = buffer == view.right and #hunks.lines(open.hunk.newText) or open.hunk.oldLines
      local first = firsts[at] or 0
      if (line >= first and line < first + count) or (count == 0 and (line == first or line == first - 1)) then
        return open, first, first + count
      end
    end
  end
  return false
end

return M
