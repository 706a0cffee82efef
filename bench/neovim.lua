---What drawing costs the plugin, for a short session and a long one, without a daemon; milliseconds each.
---    nvim --clean --headless -l bench/neovim.lua

vim.opt.rtp:prepend(vim.fs.dirname(vim.fs.dirname(vim.uv.fs_realpath(arg[0]))) .. "/neovim")
require("amanu").setup({})
local fold, session, view = require("amanu.wire.fold"), require("amanu.session"), require("amanu.chat.view")

---@param count integer
---@return table
local function state(count)
  local items = {}
  local kinds = {
    { kind = "userMessage", text = "Please do that.", attachments = {}, steer = false },
    { kind = "thought", subject = "", text = "**About it**\n\n" .. ("I think so. "):rep(20) .. "\nand on" },
    { kind = "toolCall", title = "Read src/app.py", state = "succeeded", output = ("line of output\n"):rep(20) },
    { kind = "answer", text = ("An answer with `code` and words.\n"):rep(8) },
  }
  for at = 1, count do
    items[at] = vim.tbl_extend("force", kinds[(at - 1) % #kinds + 1], { itemId = "i" .. at, turnId = "t" })
  end
  local turn = { turnId = "t", modelId = "a:b", steps = 0 }
  local empty = { approvals = {}, proposals = {}, queue = {}, questions = {}, jobs = {}, agents = {}, todos = {} }
  return vim.tbl_extend("force", empty, { items = items, turn = turn, mode = "ask", modelId = "a:b" })
end

---@param run fun(time: integer)
---@param times integer
---@return number
local function ms(run, times)
  local start = vim.uv.hrtime()
  for time = 1, times do
    run(time)
  end
  return (vim.uv.hrtime() - start) / 1e6 / times
end

---@param event table
local function take(event)
  fold.fold(session.state, event)
  view.update(event)
end

for _, count in ipairs({ 20, 2000 }) do
  session.state = state(count)
  local opened = ms(function()
    view.show()
    view.update()
    vim.cmd.redraw()
  end, 1)
  take({ kind = "itemStarted", item = { kind = "answer", itemId = "live", turnId = "t", text = "" } })
  local delta = ms(function()
    take({ kind = "itemDelta", itemId = "live", text = "some words of it\n" })
  end, 1000)
  local drawn = ms(function()
    take({ kind = "itemDelta", itemId = "live", text = "some words of it\n" })
    vim.cmd.redraw()
  end, 200)
  local item = ms(function(time)
    take({ kind = "itemStarted", item = { kind = "answer", itemId = "new" .. time, turnId = "t", text = "x" } })
  end, 200)
  local line = "%4d items: open %.0f · delta %.3f, with redraw %.2f · new item %.2f\n"
  io.write(line:format(count, opened, delta, drawn, item))
end

-- A review of 400 changes in 40 files.

local FILES, HUNKS, LINES = 40, 10, 300
local folder = vim.fn.tempname()
vim.fn.mkdir(folder)

---A proposal for a file, which is laid down.
---@param number integer
---@return table
local function proposal(number)
  local path, lines, hunks = vim.uv.fs_realpath(folder) .. ("/part_%02d.lua"):format(number), {}, {}
  for line = 1, LINES do
    lines[line] = ("local part_%d_%d = %d"):format(number, line, line)
  end
  vim.fn.writefile(lines, path)
  for at = 1, HUNKS do
    local line = (at - 1) * LINES / HUNKS + 5
    local place = { start = line - 1, ["end"] = line }
    hunks[at] = {
      hunkId = ("p%d.h%d"):format(number, at),
      oldText = lines[line] .. "\n",
      newText = lines[line] .. " -- changed\n",
      lines = place,
      proposedLines = place,
      state = "pending",
      waits = "decision",
      verbs = { "accept", "reject" },
    }
  end
  local file = { path = path, presentPath = path, change = "edit", hunks = hunks, added = HUNKS, removed = HUNKS }
  return { proposalId = "p" .. number, turnId = "t", toolCallIds = { "c" .. number }, version = 1, files = { file } }
end

local marks = require("amanu.review.marks")
session.state = state(20)
for number = 1, FILES do
  session.state.proposals[number] = proposal(number)
end
vim.cmd.enew()
local function drawing(run)
  return function()
    run()
    vim.cmd.redraw()
  end
end
local function next_change()
  require("amanu.review.steps").jump(1)
end
local opened = ms(drawing(function()
  marks.refresh()
  next_change()
end), 1)
local nearby, far = {}, {}
for _ = 1, FILES - 1 do
  table.insert(nearby, ms(drawing(next_change), HUNKS - 1))
  table.insert(far, ms(drawing(next_change), 1))
end
table.sort(nearby)
table.sort(far)
assert(vim.fn.bufname():find("part_40"), "the review was not gone through")
local told = ms(drawing(function()
  take({ kind = "proposalChanged", proposal = vim.deepcopy(session.state.proposals[FILES]) })
  marks.refresh(session.state.proposals[FILES])
end), 20)
local line = "%d files, %d changes: review opens %.0f · next change %.1f · in the next file %.0f · a new version %.0f\n"
io.write(line:format(FILES, FILES * HUNKS, opened, nearby[FILES / 2], far[FILES / 2], told))
vim.fn.delete(folder, "rf")
