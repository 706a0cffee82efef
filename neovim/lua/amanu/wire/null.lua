---JSON's null, which Neovim 0.12 hands on as `vim.NIL` and older ones as nothing. Here it is nothing.

local M = {}

---@generic T
---@param value T Changed in place.
---@return T
function M.drop(value)
  if type(value) == "table" then
    for key, each in pairs(value) do
      if each == vim.NIL and type(key) == "string" then
        value[key] = nil
      else
        M.drop(each)
      end
    end
  end
  return value
end

return M
