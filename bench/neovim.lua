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
