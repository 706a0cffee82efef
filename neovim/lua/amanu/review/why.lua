---Why a hunk: what it is for, what checkers say of it, why it does not fit; beside the cursor.

local hunks = require("amanu.review.hunks")
local say = require("amanu.say")
local visible = require("amanu.visible")

local M = {}

---What checkers say of a file's change, on one line; "" when none looked.
---@param file amanu.ProposedFile
---@param about "proposed"|"applied"
---@return string
function M.verdict(file, about)
  local parts = {}
  for _, check in ipairs(file.checks or {}) do
    if check.about == about then
      table.insert(parts, visible.line(check.checker, 20) .. " " .. visible.line(check.summary, 100))
    end
  end
  return table.concat(parts, " · ")
end

---@param place amanu.Place
---@return string[]
local function lines(place)
  local hunk, file = place.hunk, place.file
  local name = visible.line(vim.fn.fnamemodify(place.path, ":."))
  local state = hunks.unreviewed(hunk) and "applied by a rule, to keep or undo" or hunk.state
  local found = { ("%s · %s"):format(name, state) }
  local function section(text)
    if text and text ~= "" then
      table.insert(found, "")
      vim.list_extend(found, visible.lines(visible.text(text)))
    end
  end
  section(hunk.explanation)
  section(hunk.reason and hunk.state .. ": " .. hunk.reason)
  section(hunks.altered(hunk, "You changed its text.", "It was changed in the file since."))
  section(file.change == "rename" and "Renames the file to " .. vim.fn.fnamemodify(file.newPath or "", ":.") or nil)
  table.insert(found, "")
  for _, piece in ipairs(hunks.pieces(file, hunk)) do
    for _, side in ipairs({ { "-", piece.old }, { "+", piece.new } }) do
      for _, line in ipairs(side[2]) do
        table.insert(found, side[1] .. visible.text(line))
      end
    end
  end
  for _, check in ipairs(file.checks or {}) do
    section(check.checker .. ": " .. check.summary)
    for _, each in ipairs(check.added) do
      local first, last = hunk.proposedLines.start, hunk.proposedLines["end"]
      local mine = each.lines.start < math.max(last, first + 1) and each.lines["end"] > first
      local code = (each.code or "") ~= "" and " (" .. each.code .. ")" or ""
      local line = ("%s line %d %s: %s%s"):format(mine and ">" or " ", each.lines.start + 1, each.severity, each.message, code)
      table.insert(found, visible.line(line))
    end
  end
  return found
end

---For the hunk under the cursor. Shown until the cursor moves or a command is typed; once more goes into it.
function M.show()
  local place = require("amanu.review.marks").current(function(hunk)
    return hunks.open(hunk) or hunks.applied(hunk)
  end)
  if not place then
    return say.now("no hunk under the cursor")
  end
  vim.lsp.util.open_floating_preview(lines(place), "diff", {
    border = "rounded",
    focus_id = "amanu.why",
    max_width = math.min(100, vim.api.nvim_win_get_width(0) - 4), -- not over the window beside it
    close_events = { "CursorMoved", "CursorMovedI", "InsertCharPre", "CmdlineEnter" },
    max_height = math.floor(vim.o.lines / 2),
    wrap = true,
  })
end

return M
