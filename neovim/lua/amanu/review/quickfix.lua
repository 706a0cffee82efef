---What is to review, in the quickfix list; kept up to date while that list is there.

local hunks = require("amanu.review.hunks")
local row_list = require("amanu.review.row_list")
local rows = require("amanu.review.rows")
local say = require("amanu.say")

local M = {}

---@type integer? Id of our list.
local list = nil

local WAITS = { conflicted = "conflict ", applied = "applied " }

---@return table[]
local function items()
  local found = vim.tbl_map(function(place)
    return {
      filename = place.path,
      lnum = require("amanu.review.marks").line(place),
      text = (WAITS[place.hunk.state] or "") .. hunks.title(place),
    }
  end, hunks.all())
  for _, place in ipairs(rows.all()) do
    local buffer, line = row_list.place(place)
    table.insert(found, {
      bufnr = buffer,
      lnum = line,
      module = rows.name(place.row), -- shown in the place of the buffer's name
      text = (WAITS[place.row.state] or "") .. rows.title(place.row),
    })
  end
  return found
end

function M.open()
  local found = items()
  if #found == 0 then
    return say.now("nothing to review")
  end
  vim.fn.setqflist({}, " ", { title = "Amanu: to review", items = found })
  list = vim.fn.getqflist({ id = 0 }).id
  vim.cmd("botright copen")
end

function M.refresh()
  local now = list and vim.fn.getqflist({ id = list, idx = 0, size = 0 })
  if not now or now.id == 0 then
    list = nil
    return
  end
  local found = items()
  vim.fn.setqflist({}, "r", { id = list, items = found })
  if #found > 0 then
    vim.fn.setqflist({}, "a", { id = list, idx = math.max(1, math.min(now.idx, #found)) })
  end
end

return M
