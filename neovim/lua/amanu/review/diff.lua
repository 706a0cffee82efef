---A proposed file side by side, in a tab of its own: left without what waits, right as it would be, with the keys of the
---hunks. The daemon has both texts; they are asked for when it is opened, and for each new version.

local apply = require("amanu.wire.apply")
local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local config = require("amanu.config")
local hunks = require("amanu.review.hunks")
local methods = require("amanu.protocol").methods
local row_list = require("amanu.review.row_list")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@class amanu.DiffView
---@field proposal_id string
---@field path string In the proposal.
---@field version integer Of the proposal, whose texts were asked for last.
---@field left integer
---@field right integer
---@field places table<integer, table<string, integer[]>> By buffer and hunk: its first row, and the row behind it.

---@type table<integer, amanu.DiffView> By both of its buffers.
local views = {}

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

---Both sides, of the proposed text: on the left what waits is as it was.
---@param view amanu.DiffView
---@param previewed amanu.PreviewedFile
local function fill_both(view, previewed)
  local right, left, at = hunks.lines(previewed.text or ""), {}, 1
  local places = { [view.left] = {}, [view.right] = {} }
  for _, each in ipairs(previewed.hunks) do
    local hunk = each.hunk
    local first, last = hunk.proposedLines.start, hunk.proposedLines["end"]
    vim.list_extend(left, right, at, first)
    local old = hunks.lines(hunk.oldText)
    places[view.left][hunk.hunkId] = { #left, #left + #old }
    places[view.right][hunk.hunkId] = { first, last }
    vim.list_extend(left, old)
    at = last + 1
  end
  vim.list_extend(left, right, at, #right)
  view.places = places
  view.version = previewed.version
  view.shown = {}
  for _, each in ipairs(previewed.hunks) do
    view.shown[each.hunk.hunkId] = { each.hunk.oldText, each.hunk.newText }
  end
  fill(view.left, left)
  fill(view.right, right)
end

---@param path string
---@return string[]
local function present_lines(path)
  local buffer = apply.find(path)
  if buffer then
    return vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
  end
  return vim.uv.fs_stat(path) and vim.fn.readfile(path) or {}
end

---@param view amanu.DiffView
---@param done fun(previewed?: amanu.PreviewedFile) Nil: nothing of it waits.
local function preview(view, done)
  client.flush()
  local scope = { proposalId = view.proposal_id, path = view.path }
  session.ask(methods.proposal_preview, { scope = scope, texts = true }, function(result)
    done(result.files[1])
  end)
end

---@param view amanu.DiffView
local function label(view)
  local file = find(view)
  if not file then
    return
  end
  local open = #vim.tbl_filter(hunks.to_review, file.hunks)
  local moved = file.newPath and " · renamed to " .. visible.line(vim.fn.fnamemodify(file.newPath, ":."), 60) or ""
  local gone = file.change == "delete" and " · deleted" or ""
  local name = visible.line(vim.fn.fnamemodify(view.path, ":."), 60)
  local steps = config.help({ { "next", "next hunk" }, { "previous", "hunk before" } })
  local answers = config.help({ { "accept", "accept" }, { "reject", "reject" }, { "edit", "edit" } })
  local titles = {
    [view.left] = ("%s · before%s · q closes"):format(name, steps),
    [view.right] = ("%s · %d to review%s%s%s"):format(name, open, moved, gone, answers),
  }
  for buffer, title in pairs(titles) do
    for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
      local room = vim.api.nvim_win_get_width(window) - 2
      local line = visible.broken(vim.split(title, " · ", { plain = true }), " · ", room)[1] -- no key cut in two
      vim.wo[window].winbar = " " .. line:gsub("%%", "%%%%") .. "%<"
    end
  end
end

---The hunk under the cursor of each window.
---@param view amanu.DiffView
---@return table<integer, string> ids by window
local function looked_at(view)
  local found = {}
  for buffer, places in pairs(view.places) do
    for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
      local line = vim.api.nvim_win_get_cursor(window)[1] - 1
      for id, place in pairs(places) do
        found[window] = line >= place[1] and line <= math.max(place[2] - 1, place[1]) and id or found[window]
      end
    end
  end
  return found
end

---@param view amanu.DiffView
---@param previewed? amanu.PreviewedFile Nil: nothing waits, so the right side is what has become of the file.
local function draw(view, previewed)
  local file = find(view)
  if not file or not views[view.right] then
    return
  end
  local looked = looked_at(view)
  if previewed then
    fill_both(view, previewed)
  else
    view.places = {}
    fill(view.right, present_lines(file.presentPath))
  end
  for window, id in pairs(looked) do
    local buffer = vim.api.nvim_win_get_buf(window)
    local place = (view.places[buffer] or {})[id]
    if place then
      vim.api.nvim_win_set_cursor(window, { math.min(place[1] + 1, vim.api.nvim_buf_line_count(buffer)), 0 })
    end
  end
  label(view)
  require("amanu.review.comments").draw(view.left)
  require("amanu.review.comments").draw(view.right)
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
  require("amanu.review.keys").give(buffer)
  vim.api.nvim_create_autocmd("BufWipeout", {
    buffer = buffer,
    callback = function()
      views[buffer] = nil
    end,
  })
  return buffer
end

---@param view amanu.DiffView
---@param previewed amanu.PreviewedFile
local function open_view(view, previewed)
  vim.cmd("tab split")
  vim.api.nvim_win_set_buf(0, make_buffer(view, "left"))
  local left = vim.api.nvim_get_current_win()
  local right = vim.api.nvim_open_win(make_buffer(view, "right"), true, { split = "right", win = left })
  draw(view, previewed)
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
---@param done? fun()
local function show(proposal, file, done)
  local view = { proposal_id = proposal.proposalId, path = file.path, version = proposal.version, places = {} }
  preview(view, function(previewed)
    if not previewed then
      return say.now("nothing to review in " .. vim.fs.basename(file.path) .. "; /diff session shows what is applied")
    end
    open_view(view, previewed)
    if done then
      done()
    end
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
---@param done? fun() It is open.
function M.open(proposal_id, path, done)
  local name = vim.bo.buftype == "" and vim.api.nvim_buf_get_name(0) or ""
  local here = not proposal_id and name ~= "" and require("amanu.review.marks").current()
    or hunks.all(apply.real(name))[1]
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
      return show(found, file, done)
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
    local _, proposal = find(view)
    if buffer == view.right and proposal and proposal.version ~= view.version then
      label(view)
      preview(view, function(previewed)
        draw(view, previewed)
      end)
    end
  end
end

---The changes that wait in a buffer of a diff view, from its beginning; nil for other buffers.
---@param buffer integer
---@param which? amanu.Which Of what waits, if given.
---@return amanu.Place[]?
local function places(buffer, which)
  local view = views[buffer]
  return view and vim.tbl_filter(function(place)
    -- a hunk that has another text by now than is shown here is not to be decided here
    local same = vim.deep_equal((view.shown or {})[place.id], { place.hunk.oldText, place.hunk.newText })
    return same and place.proposal.proposalId == view.proposal_id and (view.places[buffer] or {})[place.id] ~= nil
  end, hunks.all(nil, which))
end

---Rows of the hunks to review in a buffer of a diff view; nil for other buffers.
---@param buffer integer
---@param which? amanu.Which Those instead.
---@return integer[]?
function M.rows(buffer, which)
  local found = places(buffer, which)
  return found and vim.tbl_map(function(place)
    return views[buffer].places[buffer][place.id][1]
  end, found)
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
  local found = places(buffer, which)
  if not found then
    return nil
  end
  local line = vim.api.nvim_win_get_cursor(0)[1] - 1
  for _, place in ipairs(found) do
    local first, last = unpack(views[buffer].places[buffer][place.id])
    if (line >= first and line < last) or (first == last and (line == first or line == first - 1)) then
      return place, first, last
    end
  end
  return false
end

return M
