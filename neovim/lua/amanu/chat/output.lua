local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---The whole output of the tool call the chat's cursor is on, in a window of its own.
function M.open()
  local item = require("amanu.chat.view").item()
  if not item or item.kind ~= "toolCall" then
    return say.now("put the cursor of the chat on a tool call first")
  end
  local function show(text)
    local buffer = vim.api.nvim_create_buf(false, true)
    vim.bo[buffer].bufhidden = "wipe"
    vim.api.nvim_buf_set_lines(buffer, 0, -1, true, visible.lines(visible.text(text)))
    vim.bo[buffer].modifiable = false
    vim.api.nvim_open_win(buffer, true, { split = "below", win = 0 })
  end
  if not item.blob then
    return show(item.output)
  end
  local function page(offset, text)
    session.ask(methods.blob_get, { blobId = item.blob.blobId, offset = offset }, function(result)
      text = text .. result.text
      if result.nextOffset then
        return page(result.nextOffset, text)
      end
      show(text)
    end)
  end
  page(0, "")
end

return M
