---What is to review, in the quickfix list; kept up to date while that list is there.

local hunks = require("amanu.hunks")
local say = require("amanu.say")

local M = {}

---@type integer? Id of our list.
local list = nil

---@return table[]
local function items()
  local found = vim.tbl_map(function(place)
    local waits = place.hunk.state == "pending" and "" or (place.hunk.state == "conflicted" and "conflict " or "applied ")
    return {
      filename = place.path,
      lnum = require("amanu.review").line(place),
      text = waits .. hunks.title(place),
    }
  end, hunks.all())
  local besides = hunks.besides()
  if #found > 0 and besides ~= "" then
    table.insert(found, { text = besides })
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
