---Buffers of files that the daemon itself wrote, moved or deleted.

local apply = require("amanu.wire.apply")
local hunks = require("amanu.review.hunks")

local M = {}

---The file has moved: its windows go along. The buffer of the place it left would bring it back with the next `:w`.
---@param buffer integer
---@param path string
---@return integer buffer
local function follow(buffer, path)
  local other = apply.find(path) or vim.fn.bufadd(vim.fn.fnamemodify(path, ":."))
  vim.bo[other].buflisted = true
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    vim.api.nvim_win_call(window, function()
      local view = vim.fn.winsaveview()
      vim.cmd("silent keepalt buffer " .. other)
      vim.fn.winrestview(view)
    end)
  end
  pcall(vim.api.nvim_buf_delete, buffer, {})
  return other
end

---The daemon may have written, moved or deleted the file itself.
---@param buffer integer
---@param file amanu.ProposedFile
---@return integer buffer The one that shows the file now.
function M.read_again(buffer, file)
  local calm = not vim.bo[buffer].modified and vim.api.nvim_get_mode().mode:find("^n")
  if not calm then
    return buffer
  end
  local here = file.presentPath
  local there = here == file.path and file.newPath or file.path
  if file.change == "rename" and vim.uv.fs_stat(here) and not vim.uv.fs_stat(there) then
    return apply.find(there) == buffer and follow(buffer, here) or buffer
  elseif file.change == "delete" and hunks.applied(file.hunks[1]) and not vim.uv.fs_stat(file.path) then
    require("amanu.wire.client").forget(buffer)
  elseif not vim.o.autoread then
    return buffer
  elseif file.change == "create" and vim.fn.getbufline(buffer, 1, 2)[1] == "" and vim.uv.fs_stat(file.path) then
    vim.api.nvim_buf_call(buffer, function()
      vim.cmd("silent! edit!") -- a file that came into being is not read by itself
    end)
  elseif vim.iter(file.hunks):any(function(hunk)
    return hunks.applied(hunk) or hunks.undone(hunk)
  end) then
    if vim.uv.fs_stat(vim.api.nvim_buf_get_name(buffer)) then
      vim.cmd.checktime({ args = { tostring(buffer) }, mods = { silent = true } })
    end
  end
  return buffer
end

return M
