---Untrusted text as it is shown: nothing hidden in it.

local M = {}

local HIDDEN = require("amanu.hidden")

---@type table<string, string|false> Character → what is shown instead; false: itself. Filled as characters come.
local shown = setmetatable({}, {
  __index = function(self, character)
    local code = vim.fn.char2nr(character, true)
    local found = false
    for _, range in ipairs(HIDDEN) do
      if code >= range[1] and code <= range[2] then
        found = ("<U+%04X>"):format(code)
        break
      end
    end
    rawset(self, character, found)
    return found
  end,
})

---Control characters, bidirectional marks and characters of no width as their code point. Tabs, line feeds and
---carriage returns before them stay.
---@param text string
---@return string
function M.text(text)
  text = text:gsub("\r\n", "\n"):gsub("[%z\1-\8\11-\31\127]", function(byte)
    return ("<U+%04X>"):format(byte:byte())
  end)
  if text:find("[\194-\244]") then
    text = text:gsub("[\194-\244][\128-\191]+", shown)
  end
  return text
end

---Like `text`, for prose: the sign that asks for an emoji's coloured form is left out rather than named.
---@param text string
---@return string
function M.prose(text)
  return M.text((text:gsub("\239\184\143", "")))
end

---Like `text`, on one line.
---@param text string
---@param width? integer Characters at most; 200 if not given.
---@return string
function M.line(text, width)
  width = width or 200
  text = M.text(text:sub(1, width * 8)):gsub("\n", " "):gsub("\t", " ")
  if vim.fn.strchars(text) > width then
    text = vim.fn.strcharpart(text, 0, width - 1) .. "…"
  end
  return text
end

---Lines of a text; none for "", and no empty last one for a final line feed.
---@param text string
---@return string[]
function M.lines(text)
  if text == "" then
    return {}
  end
  return vim.split((text:gsub("\n$", "")), "\n", { plain = true })
end

---Columns there are for text, where it is shown: virtual lines do not break by themselves, and what nobody saw nobody
---can accept.
---@param buffer integer
---@return integer
function M.room(buffer)
  local least = vim.o.columns
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    local signs = 2 -- the column may come only with what is drawn now
    local width = vim.api.nvim_win_get_width(window) - math.max(vim.fn.getwininfo(window)[1].textoff, signs)
    least = math.min(least, width)
  end
  return math.max(least, 20)
end

---@param parts string[]
---@param between string What stands between two of them on a line.
---@param width integer
---@return string[]
function M.broken(parts, between, width)
  local lines = {}
  for _, part in ipairs(parts) do
    local longer = #lines > 0 and lines[#lines] .. between .. part
    if longer and vim.fn.strdisplaywidth(longer) <= width then
      lines[#lines] = longer
    else
      table.insert(lines, part)
    end
  end
  return lines
end

return M
