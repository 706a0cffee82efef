---The new text of one hunk in a window of its own: change it, `:w` accepts it, `<C-s>` only changes what is proposed,
---`:q` leaves it as it is.

local decide = require("amanu.review.decide")
local say = require("amanu.say")

local M = {}

---@param open amanu.Place
function M.open(open)
  local buffer = vim.api.nvim_create_buf(false, false)
  local name = vim.fs.basename(open.file.path)
  vim.api.nvim_buf_set_name(buffer, ("amanu://hunk/%s/%s"):format(open.hunk.hunkId, name))
  vim.bo[buffer].buftype = "acwrite"
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].swapfile = false
  local text = open.hunk.newText
  local line_end = text:find("\r\n", 1, true) and "\r\n" or "\n"
  local ended = text == "" or vim.endswith(text, line_end)
  local lines = vim.split(text, line_end, { plain = true })
  if ended then
    table.remove(lines)
  end
  local undo = vim.bo[buffer].undolevels
  vim.bo[buffer].undolevels = -1 -- undo does not go behind what was proposed
  vim.api.nvim_buf_set_lines(buffer, 0, -1, true, lines)
  vim.bo[buffer].undolevels = undo
  vim.bo[buffer].modified = false
  vim.bo[buffer].syntax = vim.filetype.match({ filename = open.file.path }) or "" -- no filetype: language servers stay away
  local function written()
    local now = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
    local new = table.concat(now, line_end)
    return (new ~= "" or #now > 1) and new .. (ended and line_end or "") or new
  end
  local function done(what)
    return function()
      say.now(what)
      if vim.api.nvim_buf_is_valid(buffer) then
        vim.api.nvim_buf_delete(buffer, { force = true })
      end
    end
  end
  vim.api.nvim_create_autocmd("BufWriteCmd", {
    buffer = buffer,
    callback = function()
      decide.one(open, { decision = "accept", newText = written() }, done("accepted as you changed it"))
    end,
  })
  vim.keymap.set({ "n", "i" }, "<C-s>", function()
    vim.cmd.stopinsert()
    decide.revise(open, written(), done("changed, still to be decided"))
  end, { buffer = buffer, desc = "Amanu: change what is proposed" })
  local height = math.min(math.max(#lines + 1, 3), math.floor(vim.o.lines / 2))
  local window = vim.api.nvim_open_win(buffer, true, { split = "below", win = 0, height = height })
  vim.wo[window][0].winbar = " :w accepts it like this · <C-s> only changes the proposal · :q leaves it%< · empty: the lines go"
end

return M
