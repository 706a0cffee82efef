---A proposed file side by side, in a tab of its own: left as it is, right as it would be, with the keys of the hunks.

local config = require("amanu.config")
local hunks = require("amanu.hunks")
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
  return hunk.state == "applied" or hunks.open(hunk)
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
  fill(view.left, hunks.text(file, hunks.applied))
  fill(view.right, hunks.text(file, proposed))
  local open = #vim.tbl_filter(hunks.open, file.hunks)
  local help = ("%s accept · %s reject · %s edit · %s %s hunks · q closes"):format(
    config.key("accept"), config.key("reject"), config.key("edit"), config.key("previous"), config.key("next")
  ):gsub("%%", "%%%%") -- stylua: ignore
  for buffer, title in pairs({ [view.left] = "as it is", [view.right] = open .. " open · " .. help .. "%<" }) do
    for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
      local name = visible.line(vim.fn.fnamemodify(view.path, ":."), 60)
      vim.wo[window].winbar = " " .. name:gsub("%%", "%%%%") .. " · " .. title
    end
  end
  vim.cmd("diffupdate")
end

---@param view amanu.DiffView
---@param side "left"|"right"
---@return integer
local function make_buffer(view, side)
  local buffer = vim.api.nvim_create_buf(false, true)
  local name = "amanu://%s/" .. vim.fs.basename(view.path)
  pcall(vim.api.nvim_buf_set_name, buffer, name:format(side == "left" and "now" or "proposed")) -- a second view has none
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].syntax = vim.filetype.match({ filename = view.path }) or "" -- no filetype: language servers stay away
  vim.keymap.set("n", "q", "<Cmd>tabclose<CR>", { buffer = buffer, nowait = true, desc = "Amanu: close the diff" })
  views[buffer] = view
  view[side] = buffer
  require("amanu.review").keys(buffer)
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
local function show(proposal, file)
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

---Show a proposal: that one, or the last with something open, or the last.
---@param proposal_id? string
function M.open(proposal_id)
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
  elseif #found.files == 1 then
    return show(found, found.files[1])
  end
  vim.ui.select(found.files, {
    prompt = "Which file?",
    format_item = function(file)
      local open = #vim.tbl_filter(hunks.open, file.hunks)
      return ("%s  +%d -%d, %d open"):format(visible.line(vim.fn.fnamemodify(file.path, ":.")), file.added, file.removed, open)
    end,
  }, function(file)
    if file then
      show(found, file)
    end
  end)
end

function M.refresh()
  for buffer, view in pairs(views) do
    if buffer == view.right then
      draw(view)
    end
  end
end

---Rows of the open hunks in a buffer of a diff view; nil for other buffers.
---@param buffer integer
---@return integer[]?
function M.rows(buffer)
  local view = views[buffer]
  local file = view and find(view)
  if not file then
    return nil
  end
  local rows = hunks.rows(file, buffer == view.right and proposed or hunks.applied)
  return vim.tbl_map(function(hunk)
    return rows[hunk.hunkId]
  end, vim.tbl_filter(hunks.open, file.hunks))
end

---@param buffer integer
---@return string?
function M.path(buffer)
  return views[buffer] and views[buffer].path
end

---The open hunk under the cursor; false when there is none here, nil when this is no diff view.
---@return amanu.OpenHunk|false|nil
function M.current()
  local buffer = vim.api.nvim_get_current_buf()
  local view = views[buffer]
  if not view then
    return nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  local rows = M.rows(buffer) or {}
  local at = 0
  for _, open in ipairs(hunks.all(view.path)) do
    if open.proposal.proposalId == view.proposal_id then
      at = at + 1
      local count = buffer == view.right and #hunks.lines(open.hunk.newText) or open.hunk.oldLines
      local first = rows[at] or 0
      if (line >= first and line < first + count) or (count == 0 and (line == first or line == first - 1)) then
        return open
      end
    end
  end
  return false
end

return M
