---What the user says about lines, beside them until it is sent: with the next prompt, or by `/send-comments`.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local lines_of = require("amanu.chat.lines")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

local SPACE = vim.api.nvim_create_namespace("amanu.comments")
vim.api.nvim_set_hl(0, "AmanuComment", { link = "DiagnosticVirtualTextInfo", default = true })

---@class amanu.Comment
---@field attachment amanu.CommentAttachment
---@field buffer? integer Where it is drawn, and by which mark.
---@field mark? integer
---@field sending? boolean

---@type amanu.Comment[]
local comments = {}

---@param buffer integer
---@return string? path
---@return string? proposal_id The buffer shows its text.
local function about(buffer)
  local path, proposal_id = require("amanu.review.diff").side(buffer)
  if path then
    return path, proposal_id
  end
  local name = vim.api.nvim_buf_get_name(buffer)
  if vim.bo[buffer].buftype == "" and name ~= "" then
    return require("amanu.wire.apply").real(name), nil
  end
end

---The lines a comment is about, as they are now: marks move as the user types.
---@param comment amanu.Comment
local function follow(comment)
  local buffer = comment.buffer
  if not buffer or not vim.api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= "" then
    return
  end
  local mark = vim.api.nvim_buf_get_extmark_by_id(buffer, SPACE, comment.mark, { details = true })
  local first, last = mark[1], mark[3] and mark[3].end_row
  if first and last and last > first then -- else those lines are gone: it stays about what they were
    local lines = vim.api.nvim_buf_get_lines(buffer, first, last, false)
    comment.attachment.lines = { start = first, ["end"] = last }
    comment.attachment.text = table.concat(lines, "\n") .. "\n"
  end
end

---@param comment amanu.Comment
---@param buffer integer
local function mark(comment, buffer)
  local count = vim.api.nvim_buf_line_count(buffer)
  local attachment = comment.attachment
  local row = math.min(attachment.lines.start, count - 1)
  comment.buffer = buffer
  comment.mark = vim.api.nvim_buf_set_extmark(buffer, SPACE, row, 0, {
    end_row = math.min(attachment.lines["end"], count),
    end_col = 0,
    right_gravity = false, -- lines that are replaced are still those lines
    end_right_gravity = true,
  })
  vim.api.nvim_buf_set_extmark(buffer, SPACE, row, 0, {
    right_gravity = false,
    sign_text = "»",
    sign_hl_group = "AmanuComment",
    virt_text = { { " » " .. visible.line(attachment.comment, 100), "AmanuComment" } },
  })
end

---Draw a buffer's comments anew.
---@param buffer integer
function M.draw(buffer)
  local path, proposal_id = about(buffer)
  for _, comment in ipairs(comments) do
    follow(comment)
  end
  vim.api.nvim_buf_clear_namespace(buffer, SPACE, 0, -1)
  for _, comment in ipairs(comments) do
    local attachment = comment.attachment
    if not comment.sending and attachment.path == path and attachment.proposalId == proposal_id then
      mark(comment, buffer)
    end
  end
end

local function changed()
  for _, buffer in ipairs(vim.tbl_filter(vim.api.nvim_buf_is_loaded, vim.api.nvim_list_bufs())) do
    M.draw(buffer)
  end
  require("amanu.chat.prompt").head()
end

---@param text? string Asked for when it is not given.
---@param lines? integer[] First and last; else the selection, or the cursor's line.
function M.add(text, lines)
  local buffer = vim.api.nvim_get_current_buf()
  local path, proposal_id = about(buffer)
  if not path then
    return say.now("comments are about lines of a file, or of a proposal side by side")
  end
  local first, last = unpack(lines or { lines_of.selected() })
  local function add(said)
    if not said or vim.trim(said) == "" or not vim.api.nvim_buf_is_loaded(buffer) then
      return
    end
    local about_lines = vim.api.nvim_buf_get_lines(buffer, first - 1, last, false)
    table.insert(comments, {
      attachment = {
        kind = "comment",
        path = path,
        lines = { start = first - 1, ["end"] = last },
        text = table.concat(about_lines, "\n") .. "\n",
        comment = vim.trim(said),
        proposalId = proposal_id,
      },
    })
    changed()
  end
  if text and text ~= "" then
    return add(text)
  end
  local where = first == last and "line " .. first or ("lines %d-%d"):format(first, last)
  ask.input({ prompt = ("Comment on %s: "):format(where) }, add)
end

---@param comment amanu.Comment
local function drop(comment)
  comments = vim.tbl_filter(function(each)
    return each ~= comment
  end, comments)
  changed()
end

---@param comment amanu.Comment
local function act(comment)
  ask.select({ "Go there", "Change", "Delete" }, { prompt = visible.line(comment.attachment.comment, 60) }, function(action)
    if action == "Delete" then
      drop(comment)
    elseif action == "Change" then
      ask.input({ prompt = "Comment: ", default = comment.attachment.comment }, function(said)
        if said and vim.trim(said) ~= "" then
          comment.attachment.comment = vim.trim(said)
          changed()
        end
      end)
    elseif action == "Go there" then
      local window = require("amanu.wire.context").file_window()
      if window then
        vim.api.nvim_set_current_win(window)
      end
      vim.cmd("normal! m'")
      vim.cmd.edit(vim.fn.fnameescape(comment.attachment.path))
      local line = math.min(comment.attachment.lines.start + 1, vim.api.nvim_buf_line_count(0))
      vim.api.nvim_win_set_cursor(0, { line, 0 })
    end
  end)
end

function M.list()
  vim.tbl_map(follow, comments)
  if #comments == 0 then
    return say.now("there are no comments; /comment makes one")
  end
  ask.select(comments, {
    prompt = "Comments not sent yet",
    format = function(comment)
      local at = comment.attachment
      local name = visible.line(vim.fn.fnamemodify(at.path, ":."), 60)
      return ("%s:%d %s"):format(name, at.lines.start + 1, visible.line(at.comment, 80))
    end,
  }, function(comment)
    if comment then
      act(comment)
    end
  end)
end

---@return integer
function M.count()
  return #comments
end

-- Sending ---------------------------------------------------------------------------------------------

---All that wait, for a prompt that goes out now.
---@return amanu.Comment[]
function M.take()
  local taken = {}
  for _, comment in ipairs(comments) do
    if not comment.sending then
      follow(comment)
      comment.sending = true
      table.insert(taken, comment)
    end
  end
  return taken
end

---@param taken amanu.Comment[]
---@return amanu.CommentAttachment[]
function M.attachments(taken)
  return vim.tbl_map(function(comment)
    return comment.attachment
  end, taken)
end

---The daemon has them.
---@param taken amanu.Comment[]
function M.sent(taken)
  if #taken > 0 then
    comments = vim.tbl_filter(function(comment)
      return not vim.list_contains(taken, comment)
    end, comments)
    changed()
  end
end

---It does not: they wait on.
---@param taken amanu.Comment[]
function M.give_back(taken)
  for _, comment in ipairs(taken) do
    comment.sending = nil
  end
  changed()
end

---Now, without a prompt of the user's own.
function M.send()
  if #comments == 0 then
    return say.now("there are no comments; /comment makes one")
  end
  client.flush()
  local text = #comments == 1 and "Please look at my comment." or "Please look at my comments."
  session.prompt(text, {})
end

vim.api.nvim_create_autocmd("BufReadPost", {
  group = vim.api.nvim_create_augroup("amanu.comments", {}),
  callback = function(given)
    if #comments > 0 then
      M.draw(given.buf)
    end
  end,
})

return M
