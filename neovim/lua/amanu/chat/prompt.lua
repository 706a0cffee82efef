---Where the user writes: a small buffer below the chat.

local blocks = require("amanu.chat.blocks")
local config = require("amanu.config")
local say = require("amanu.say")
local session = require("amanu.session")
local view = require("amanu.chat.view")

local M = {}

---@type integer?
M.buffer = nil

---@type amanu.AttachmentInput[] What goes with the next prompt.
local attachments = {}
---@type string[]
local history = {}
local back = 0

---@param text string
local function set(text)
  vim.api.nvim_buf_set_lines(M.buffer, 0, -1, true, vim.split(text, "\n", { plain = true }))
end

---@return string
local function text()
  return vim.trim(table.concat(vim.api.nvim_buf_get_lines(M.buffer, 0, -1, true), "\n"))
end

local function head()
  if not M.buffer then
    return
  end
  local parts = vim.tbl_map(blocks.attachment, attachments)
  local comments = require("amanu.review.comments").count()
  if comments > 0 then
    table.insert(parts, comments == 1 and "1 comment goes along" or comments .. " comments go along")
  end
  if session.state and #session.state.approvals + #session.state.questions > 0 then
    local key = config.key("approve")
    table.insert(parts, "? " .. (key ~= "" and "<Esc>" .. key or "/approve") .. " answers it")
  elseif session.state and session.state.turn then
    table.insert(parts, "a turn runs: what you send goes into it, <C-q> queues")
  else
    table.insert(parts, "<C-s> sends · @file · /help")
  end
  for _, window in ipairs(vim.fn.win_findbuf(M.buffer)) do
    vim.wo[window].winbar = (" " .. table.concat(parts, " · ")):gsub("%%", "%%%%") .. "%<" -- cut at its end
  end
end
M.head = head

---Send what is written.
---@param queue boolean After the running turn.
---@param typing? boolean The user was in insert mode, and goes on there.
function M.submit(queue, typing)
  local said = text()
  if said == "" then
    return
  end
  local with = attachments
  attachments = {}
  table.insert(history, said)
  back = 0
  set("")
  head()
  if vim.startswith(said, "/") then
    attachments = with
    require("amanu.chat.commands").run(said, function()
      attachments = {}
      session.prompt(said, with, queue)
      head()
    end, function(why)
      M.give_back(said, {}, why)
    end)
  else
    session.prompt(said, with, queue)
    if typing then
      vim.cmd.startinsert({ bang = true })
    end
  end
  head()
end

---Put a text back into the prompt, before what the user has typed since.
---@param said string
---@param with amanu.AttachmentInput[]
---@param why? string It could not be sent.
function M.give_back(said, with, why)
  if not M.buffer or not vim.api.nvim_buf_is_loaded(M.buffer) then
    M.show() -- it was said on the command line
  end
  attachments = vim.list_extend(vim.list_slice(with), attachments)
  local lines = vim.split(said, "\n", { plain = true })
  if text() ~= "" then
    vim.api.nvim_buf_set_lines(M.buffer, 0, 0, true, lines)
  else
    set(said)
    for _, window in ipairs(vim.fn.win_findbuf(M.buffer)) do
      vim.api.nvim_win_set_cursor(window, { #lines, #lines[#lines] })
    end
  end
  if history[#history] == said then
    table.remove(history)
  end
  head()
  if why then
    session.refused = why
    session.changed({ kind = "" })
    say.aside(why, vim.log.levels.ERROR)
  end
end

---@param step integer
local function recall(step)
  back = math.min(math.max(back + step, 0), #history)
  set(back == 0 and "" or history[#history + 1 - back])
end

local function make_buffer()
  M.buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(M.buffer, "amanu://prompt")
  vim.bo[M.buffer].filetype = "amanu-prompt"
  vim.bo[M.buffer].omnifunc = "v:lua.require'amanu.chat.complete'.omni"
  local function map(modes, key, what, run)
    vim.keymap.set(modes, key, run, { buffer = M.buffer, desc = "Amanu: " .. what })
  end
  for key, queue in pairs({ ["<CR>"] = false, ["<C-s>"] = false, ["<C-q>"] = true }) do
    local what = queue and "send after the running turn" or "send"
    map("n", key, what, function()
      M.submit(queue)
    end)
    if key ~= "<CR>" then
      local run = ("<Esc><Cmd>lua require('amanu.chat.prompt').submit(%s, true)<CR>"):format(queue)
      vim.keymap.set("i", key, run, { buffer = M.buffer, desc = "Amanu: " .. what })
    end
  end
  map("n", "<C-c>", "stop the turn", session.stop)
  map("n", "<C-p>", "earlier prompt", function()
    recall(1)
  end)
  map("n", "<C-n>", "later prompt", function()
    recall(-1)
  end)
  vim.api.nvim_create_autocmd({ "InsertEnter", "TextChangedI" }, { buffer = M.buffer, callback = session.begin_prompt })
  local menu ---@type string? The user's own 'completeopt', which is global, while they write here.
  vim.api.nvim_create_autocmd("InsertEnter", {
    buffer = M.buffer,
    callback = function()
      menu = menu or vim.o.completeopt
      vim.o.completeopt = "menuone,noinsert,noselect" -- a list, and nothing taken from it unasked
      require("amanu.chat.commands").fetch()
    end,
  })
  vim.api.nvim_create_autocmd({ "InsertLeave", "BufLeave" }, {
    buffer = M.buffer,
    callback = function()
      vim.o.completeopt, menu = menu or vim.o.completeopt, nil
    end,
  })
  vim.keymap.set("i", "@", "@<C-x><C-o>", { buffer = M.buffer, desc = "Amanu: complete a file" })
  vim.keymap.set("i", "/", function()
    return vim.deep_equal(vim.api.nvim_win_get_cursor(0), { 1, 0 }) and "/<C-x><C-o>" or "/"
  end, { buffer = M.buffer, expr = true, desc = "Amanu: complete a command" })
  if config.now.keys.approve then
    map("n", config.now.keys.approve, "answer the question", function()
      require("amanu.approve.approvals").ask()
    end)
  end
end

---Show chat and prompt. The focus stays where it is.
---@return integer window
function M.show()
  local chat = view.show()
  if not M.buffer or not vim.api.nvim_buf_is_loaded(M.buffer) then
    make_buffer()
  end
  for _, window in ipairs(vim.fn.win_findbuf(M.buffer)) do
    if vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage() then
      return window
    end
  end
  local height = config.now.prompt_height
  local window = vim.api.nvim_open_win(M.buffer, false, { split = "below", win = chat, height = height })
  for name, value in pairs({ wrap = true, number = false, relativenumber = false, signcolumn = "no", winfixheight = true }) do
    vim.wo[window][0][name] = value
  end
  head()
  return window
end

function M.focus()
  vim.api.nvim_set_current_win(M.show())
  vim.cmd.startinsert({ bang = true })
end

---@param attachment amanu.AttachmentInput
function M.attach(attachment)
  table.insert(attachments, attachment)
  head()
end

function M.hide()
  for _, window in ipairs(M.buffer and vim.fn.win_findbuf(M.buffer) or {}) do
    pcall(vim.api.nvim_win_close, window, true)
  end
  view.hide()
end

return M
