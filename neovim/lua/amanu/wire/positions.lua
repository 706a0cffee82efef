---Characters of a line, as the daemon and language servers count them: each client of vim.lsp in an encoding of its own.

local M = {}

---The encoding that `initialize` settled with the daemon.
---@return string
function M.encoding()
  local client = require("amanu.wire.client").get()
  return client and client.offset_encoding or "utf-16"
end

---Bytes before that character; nil where the line is shorter.
---@param line string
---@param character integer
---@param encoding string
---@return integer?
function M.byte(line, character, encoding)
  if encoding == "utf-8" then
    return character <= #line and character or nil
  end
  local byte = encoding == "utf-32" and vim.fn.byteidxcomp(line, character)
    or vim.fn.byteidxcomp(line, character, true)
  return byte >= 0 and byte or nil
end

---@param line string
---@param character integer Past the end of the line it is the end.
---@param from string
---@param to string
---@return integer character
function M.converted(line, character, from, to)
  if from == to then
    return character
  end
  local before = line:sub(1, M.byte(line, character, from))
  if to == "utf-8" then
    return #before
  end
  return to == "utf-32" and vim.fn.strchars(before) or vim.fn.strutf16len(before)
end

return M
