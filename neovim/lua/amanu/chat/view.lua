---The chat: one buffer that shows the session, changed only where the session changed. It follows its end unless the
---user looks at something further up, and never takes the focus by itself.

local agents = require("amanu.sessions.agents")
local blocks = require("amanu.chat.blocks")
local config = require("amanu.config")
local fold = require("amanu.wire.fold")
local hunks = require("amanu.review.hunks")
local session = require("amanu.session")
local status = require("amanu.chat.status")
local visible = require("amanu.visible")

local M = {}

---@type integer?
M.buffer = nil

---@type { id: string, count: integer, folded?: boolean }[] What stands in the buffer, in order.
local shown = {}
---@type table<string, boolean> Items that still grow.
local live = {}

local function exists()
  return M.buffer and vim.api.nvim_buf_is_loaded(M.buffer)
end

---@return integer[]
function M.windows()
  return exists() and vim.fn.win_findbuf(M.buffer) or {}
end

---Lines were folded away by the change that goes on, or more than one came.
local jumped = false

---Scroll the window so that the end of the chat is at its bottom; else it would stand in the middle or at the top.
---@param window integer
local function end_below(window)
  vim.api.nvim_win_call(window, function()
    local before = vim.fn.winsaveview()
    if vim.fn.line("w0") > 1 then
      vim.cmd.normal({ "zb", bang = true })
      if vim.fn.line("w$") < vim.fn.line("$") then
        vim.fn.winrestview(before) -- a paragraph is taller than the window: its end was shown
      end
    end
  end)
end

---Scroll the windows of this tab that are at the end, as what stands below the text is no text.
local function follow()
  for _, window in ipairs(M.windows()) do
    local here = vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage()
    if here and vim.api.nvim_win_get_cursor(window)[1] == vim.api.nvim_buf_line_count(M.buffer) then
      end_below(window)
    end
  end
end

---Change the buffer, then keep windows that were at its end there.
---@param change fun(buffer: integer)
local function with_buffer(change)
  if not exists() then
    return
  end
  local following = {}
  for _, window in ipairs(M.windows()) do
    following[window] = vim.api.nvim_win_get_cursor(window)[1] >= vim.api.nvim_buf_line_count(M.buffer)
  end
  vim.bo[M.buffer].modifiable = true
  jumped = false
  local count = vim.api.nvim_buf_line_count(M.buffer)
  change(M.buffer)
  jumped = jumped or vim.api.nvim_buf_line_count(M.buffer) > count + 1
  vim.bo[M.buffer].modifiable = false
  vim.bo[M.buffer].modified = false
  for window, follows in pairs(following) do
    if follows then
      pcall(vim.api.nvim_win_set_cursor, window, { vim.api.nvim_buf_line_count(M.buffer), 0 })
      if jumped then
        end_below(window)
      end
    end
  end
end

---First row of a block. Counted from the end, where things happen.
---@param at integer
---@return integer
local function row(at)
  local found = vim.api.nvim_buf_line_count(M.buffer) - 1 -- the last line is an empty one of ours
  for each = at, #shown do
    found = found - shown[each].count
  end
  return found
end

---@param id string
---@return integer?
local function place(id)
  for at = #shown, 1, -1 do
    if shown[at].id == id then
      return at
    end
  end
end

---Fold what a block folds away, in those windows. By hand: Neovim finds no folds while the user is in insert mode,
---and in the prompt they are.
---@param at integer
---@param windows integer[]
local function fold_away(at, windows)
  local first = row(at)
  local from, to = blocks.fold(vim.api.nvim_buf_get_lines(M.buffer, first, first + shown[at].count, true))
  shown[at].folded = from ~= nil
  if not from then
    return
  end
  jumped = agents.of_call(session.state, shown[at].id) ~= nil -- that of a thought is not worth a jump
  for _, window in ipairs(windows) do
    vim.api.nvim_win_call(window, function()
      vim.cmd(("silent %d,%dfold"):format(first + from, first + to))
    end)
  end
end

---@param windows integer[]
local function fold_all(windows)
  for _, window in ipairs(windows) do
    vim.api.nvim_win_call(window, function()
      vim.cmd.normal({ "zE", bang = true }) -- folds of lines that were replaced are still there
    end)
  end
  for at = 1, #shown do
    fold_away(at, windows)
  end
end

---Whether an item stands for itself. What a sub-agent does stands on the card of its call, but for what the user reviews.
---@param item amanu.Item
---@return boolean
local function has_card(item)
  local agent = item.agentId and agents.find(session.state, item.agentId)
  return not agent or agent.toolCallId == item.itemId or blocks.is_reviewed(item)
end

local NEEDS_MODEL = {
  "┆ Amanu needs a model: /key anthropic stores an API key (or gemini, openai …), /login uses your ChatGPT plan, "
    .. "/model lists what there is.",
  "┆ :Amanu /tour shows how Amanu works, without a key.",
  "",
}
local AFTER_TOUR = "To go on with a real model: /key anthropic (or gemini, openai …) or /login; then /new"

local function render_all()
  with_buffer(function(buffer)
    shown = {}
    local lines = {}
    local state = session.state
    if state and state.hasEarlier then
      vim.list_extend(lines, { "┆ there is more before this: :Amanu /earlier", "" })
    elseif not state then
      vim.list_extend(lines, { "┆ Say something below; :Amanu /help lists the commands.", "" })
      vim.list_extend(lines, session.needs_model and NEEDS_MODEL or {})
    end
    for _, item in ipairs(vim.tbl_filter(has_card, state and state.items or {})) do
      local found = blocks.lines(item, state)
      table.insert(shown, { id = item.itemId, count = #found })
      vim.list_extend(lines, found)
    end
    table.insert(lines, "")
    vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
    fold_all(M.windows())
  end)
end

---@param id string
local function take_out(id)
  local at = place(id)
  live[id] = nil
  if at then
    with_buffer(function(buffer)
      local first = row(at)
      vim.api.nvim_buf_set_lines(buffer, first, first + shown[at].count, true, {})
      table.remove(shown, at)
    end)
  end
end

---@param id string
local function render(id)
  local item = session.state and fold.item(session.state, id)
  if not item or not exists() then
    return
  end
  local agent = item.agentId and agents.find(session.state, item.agentId)
  if agent and agent.toolCallId ~= id then
    render(agent.toolCallId)
  end
  if not has_card(item) then
    return take_out(id)
  end
  with_buffer(function(buffer)
    local lines = blocks.lines(item, session.state, live[id])
    local at = place(id)
    if at then
      local first = row(at)
      local count = shown[at].count
      local same = 0 -- lines that stay are not touched, and folds the user opened stay open
      local before = vim.api.nvim_buf_get_lines(buffer, first, first + count, true)
      while same < #lines and same < count and lines[same + 1] == before[same + 1] do
        same = same + 1
      end
      vim.api.nvim_buf_set_lines(buffer, first + same, first + count, true, vim.list_slice(lines, same + 1))
      shown[at].count = #lines
    else
      local last = vim.api.nvim_buf_line_count(buffer) - 1
      vim.api.nvim_buf_set_lines(buffer, last, last, true, lines)
      table.insert(shown, { id = id, count = #lines })
      at = #shown
    end
    if not (shown[at].folded and blocks.fold(lines)) then
      fold_away(at, M.windows())
    end
  end)
end

---The cards of that call's proposal: which of them shows its hunks depends on which of them wait.
---@param call_id string
local function render_together(call_id)
  local cards = { call_id }
  for _, proposal in ipairs(session.state.proposals) do
    cards = vim.list_contains(proposal.toolCallIds, call_id) and proposal.toolCallIds or cards
  end
  vim.tbl_map(render, cards)
end

---A delta of a thought or an answer: only its characters go in.
---@param event amanu.ItemDelta
local function append(event)
  local at = place(event.itemId)
  local item = fold.item(session.state, event.itemId)
  if not at or not item then
    return
  elseif item.kind == "toolCall" or shown[at].count == 1 then
    return render(event.itemId)
  end
  with_buffer(function(buffer)
    local first = row(at)
    local last = first + shown[at].count - 2
    local width = #vim.api.nvim_buf_get_lines(buffer, last, last + 1, true)[1]
    local text = item.kind == "thought" and visible.text(event.text) or blocks.prose(event.text, width > 0)
    local lines = vim.split(text, "\n", { plain = true })
    if item.kind == "thought" then
      if shown[at].count == 2 then -- only the header yet
        table.insert(lines, 1, "")
      end
      for each = 2, #lines do
        lines[each] = "┆ " .. lines[each]
      end
    end
    vim.api.nvim_buf_set_text(buffer, last, width, last, width, lines)
    shown[at].count = shown[at].count + #lines - 1
    if item.kind == "thought" and event.text:find("*", 1, true) then -- its subject may be known now
      local header = blocks.lines(item, session.state, true)[1]
      if header ~= vim.api.nvim_buf_get_lines(buffer, first, first + 1, true)[1] then
        vim.api.nvim_buf_set_lines(buffer, first, first + 1, true, { header })
      end
    end
  end)
end

M.status = status.line

local NAME = 15 -- columns that the session's title has at least

---Which session it is, and what it does.
function M.head()
  local title = session.state and session.state.title ~= "" and session.state.title or "Amanu"
  for _, window in ipairs(M.windows()) do
    local width = vim.api.nvim_win_get_width(window) - 4
    local text = status.line(width - math.min(NAME, vim.fn.strdisplaywidth(title)))
    local name = visible.line(title, math.max(NAME, width - vim.fn.strdisplaywidth(text)))
    vim.wo[window].winbar = (" " .. name .. " · " .. text):gsub("%%", "%%%%")
  end
end

local TAIL = vim.api.nvim_create_namespace("amanu.tail")

---Below everything else: how far the to-dos are, and what waits to be sent or for its turn; no item yet, so no text of
---the buffer.
local function tail()
  vim.api.nvim_buf_clear_namespace(M.buffer, TAIL, 0, -1)
  local state = session.state or {}
  local lines = {}
  ---@param text string
  ---@param color? string
  local function add(text, color)
    for _, line in ipairs(visible.broken(vim.split(text, " "), " ", visible.room(M.buffer) - 2)) do
      table.insert(lines, { { "┆ " .. line, color or "Comment" } })
    end
  end
  if #(state.todos or {}) > 0 then
    add("to-dos: " .. visible.line(state.todosSummary, 120))
  end
  for _, prompt in ipairs(state.queue or {}) do
    add("queued: " .. visible.line(prompt.text, 120))
  end
  if #(state.queue or {}) > 0 then
    add("/unqueue takes one back")
  end
  for _, prompt in ipairs(session.unsent) do
    add("sent as soon as Amanu is there: " .. visible.line(prompt.text, 120))
  end
  if require("amanu.sessions.sessions").toured() then
    add(AFTER_TOUR)
  end
  if session.refused then
    add("not sent: " .. visible.line(session.refused, 1000), "DiagnosticError")
  end
  if #lines > 0 then
    local last = vim.api.nvim_buf_line_count(M.buffer) - 1
    vim.api.nvim_buf_set_extmark(M.buffer, TAIL, last, 0, { virt_lines = lines, virt_lines_above = true })
  end
end

local TURNS = vim.api.nvim_create_namespace("amanu.turns")

---What a turn did to files, in a few words each; nil when nothing.
---@param proposals amanu.Proposal[]
---@param last boolean No later turn did something: the commands are about this one.
---@return string[]?
local function did(proposals, last)
  local files, added, removed, review, undone = {}, 0, 0, 0, 0
  local plan = session.state.plan and session.state.plan.path -- none of the user's files
  ---@param path string
  ---@param decided amanu.Decided
  local function add(path, decided)
    files[path] = files[path] or hunks.applied(decided) or nil
    review = review + (hunks.to_review(decided) and 1 or 0)
    undone = undone + (hunks.undone(decided) and 1 or 0)
  end
  for _, proposal in ipairs(proposals) do
    for _, file in ipairs(proposal.files) do
      for _, hunk in ipairs(file.path ~= plan and file.hunks or {}) do
        add(file.path, hunk)
        for _, piece in ipairs(hunks.applied(hunk) and hunks.pieces(file, hunk) or {}) do
          added, removed = added + #piece.new, removed + #piece.old
        end
      end
    end
    for _, each in ipairs(proposal.rows or {}) do
      add(each.path, each)
    end
  end
  local count = vim.tbl_count(files)
  if count + review + undone == 0 then
    return nil
  end
  local parts = {}
  if count > 0 then
    local lines = added + removed > 0 and (" +%d -%d"):format(added, removed) or ""
    table.insert(parts, (count == 1 and "1 file" or count .. " files") .. lines)
  end
  if review > 0 then
    table.insert(parts, review .. " to review: /hunks")
  end
  if undone > 0 then
    table.insert(parts, undone .. " taken back" .. (last and ": /redo turn" or ""))
  end
  if count > 0 then
    table.insert(parts, last and ":Amanu /undo turn" or "/checkpoints")
  end
  return parts
end

---Below each turn that ended: what it did to files.
local function turns()
  vim.api.nvim_buf_clear_namespace(M.buffer, TURNS, 0, -1)
  local state = session.state
  if not state or #state.proposals == 0 then
    return
  end
  local of, last = {}, nil
  for _, proposal in ipairs(state.proposals) do
    of[proposal.turnId] = of[proposal.turnId] or {}
    table.insert(of[proposal.turnId], proposal)
    last = proposal.turnId
  end
  local below = vim.api.nvim_buf_line_count(M.buffer) - 1
  for at = #shown, 1, -1 do
    local item = fold.item(state, shown[at].id)
    local turn_id = item and item.turnId
    local done = turn_id and of[turn_id]
    if done and not (state.turn and state.turn.turnId == turn_id) then
      local words = did(done, turn_id == last)
      if words then
        local text = vim.tbl_map(function(line)
          return { { "┆ " .. line, "Comment" } }
        end, visible.broken(words, " · ", visible.room(M.buffer) - 2))
        table.insert(text, { { "", "Comment" } })
        vim.api.nvim_buf_set_extmark(M.buffer, TURNS, below - 1, 0, { virt_lines = text })
      end
    end
    if turn_id then
      of[turn_id] = nil -- said below the last item of the turn
    end
    below = below - shown[at].count
  end
end

local ticking = false

---Count the seconds to a retry.
local function tick()
  if ticking or not (session.state and session.state.retry) then
    return
  end
  ticking = true
  vim.defer_fn(function()
    ticking = false
    M.head()
    tick()
  end, 1000)
end

---Events after which something else may stand below the chat; `""`: of ours.
local BELOW = { "", "promptQueued", "promptUnqueued", "turnStarted", "turnEnded", "sessionRewound" }

---@param event? table As in `session.changed`.
function M.update(event)
  if not exists() then
    return
  end
  local kind = event and event.kind
  if not event or kind == "sessionRewound" then
    render_all()
  elseif kind == "itemsWithdrawn" then
    vim.tbl_map(take_out, event.itemIds)
  elseif kind == "itemsReplaced" then
    vim.tbl_map(take_out, event.withdrawn)
    for _, item in ipairs(event.items) do
      render(item.itemId)
    end
  elseif kind == "itemDelta" then
    return append(event)
  elseif kind == "itemStarted" or kind == "itemChanged" or kind == "itemCompleted" then
    live[event.item.itemId] = kind ~= "itemCompleted" or nil
    render(event.item.itemId)
  elseif kind == "approvalRequested" then
    render_together(event.approval.toolCallId)
  elseif kind == "approvalResolved" then
    render_together(event.toolCallId)
  elseif kind == "proposalChanged" then
    vim.tbl_map(render, event.proposal.toolCallIds)
  elseif kind == "agentChanged" then
    render(event.agent.toolCallId)
  end
  local list = event and event.item and event.item.kind == "todoList"
  if not event or list or vim.list_contains(BELOW, kind) then
    tail()
  end
  if not event or vim.list_contains({ "proposalChanged", "turnStarted", "turnEnded", "sessionRewound" }, kind) then
    turns()
    follow()
  end
  M.head()
  tick()
end

local function make_buffer()
  M.buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(M.buffer, "amanu://chat")
  vim.bo[M.buffer].filetype = "amanu"
  vim.bo[M.buffer].undolevels = -1
  vim.bo[M.buffer].formatlistpat = [[^\([│┆]\|\s*\%([-*+]\|\d\+[.)]\)\)\s\+]]
  local function map(key, what, run)
    if key then
      vim.keymap.set("n", key, run, { buffer = M.buffer, desc = "Amanu: " .. what, nowait = true })
    end
  end
  map(config.now.keys.approve, "answer the question", function()
    require("amanu.approve.approvals").ask()
  end)
  map("<Tab>", "open or close the fold", function()
    pcall(vim.cmd.normal, { "za", bang = true })
  end)
  map("i", "to the prompt", function()
    require("amanu.chat.prompt").focus()
  end)
  map("<C-c>", "stop the turn", session.stop)
  render_all()
end

---Show the chat, on the right. The focus stays where it is.
---@return integer window
function M.show()
  if not exists() then
    make_buffer()
  end
  for _, window in ipairs(M.windows()) do
    if vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage() then
      return window
    end
  end
  local width = config.now.width
  width = math.floor(width < 1 and vim.o.columns * width or width)
  local window = vim.api.nvim_open_win(M.buffer, false, { split = "right", win = -1, width = math.max(30, width) })
  for name, value in pairs({
    wrap = true,
    smoothscroll = true, -- a window can begin in mid-line: without it a paragraph taller than the window is not drawn
    linebreak = true,
    breakindent = true,
    breakindentopt = "list:-1", -- long lines of lists, output and diffs stay below their text
    number = false,
    relativenumber = false,
    signcolumn = "no",
    foldcolumn = "0",
    list = false,
    spell = false,
    winfixwidth = true,
    foldmethod = "manual",
    foldtext = "",
    foldlevel = 0,
    foldenable = true,
    fillchars = "fold: ,eob: ",
  }) do
    vim.wo[window][0][name] = value
  end
  fold_all({ window })
  vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(M.buffer), 0 })
  M.head()
  return window
end

vim.api.nvim_create_autocmd("TabEnter", { -- windows of other tabs are not scrolled along
  group = vim.api.nvim_create_augroup("amanu.view", {}),
  callback = follow,
})

---The item the cursor of the chat is on.
---@return amanu.Item?
function M.item()
  local line = M.windows()[1] and vim.api.nvim_win_get_cursor(M.windows()[1])[1] or 0
  for at, block in ipairs(shown) do
    if row(at) < line and line <= row(at) + block.count then
      return fold.item(session.state, block.id)
    end
  end
end

function M.visible()
  for _, window in ipairs(M.windows()) do
    if vim.api.nvim_win_get_tabpage(window) == vim.api.nvim_get_current_tabpage() then
      return true
    end
  end
  return false
end

function M.hide()
  for _, window in ipairs(M.windows()) do
    pcall(vim.api.nvim_win_close, window, true)
  end
end

return M
