---How calls were decided and what was done: the daemon's own record, whose entries cannot be changed unseen.

local methods = require("amanu.protocol").methods
local page = require("amanu.chat.page")
local say = require("amanu.say")
local session = require("amanu.session")
local worded = require("amanu.chat.worded")

local M = {}

---@return string? id Of the call the chat's cursor is on, else of the last one.
local function call()
  local item = require("amanu.chat.view").item()
  if item and item.kind == "toolCall" then
    return item.itemId
  end
  local items = session.state and session.state.items or {}
  for at = #items, 1, -1 do
    if items[at].kind == "toolCall" then
      return items[at].itemId
    end
  end
end

---@param word string `session`: of all its calls; "": of one.
function M.show(word)
  if word ~= "" and word ~= "session" then
    return say.now("/audit " .. word .. ": there is session")
  end
  local one = word == "" and call() or nil
  if word == "" and not one then
    return say.now("there was no tool call yet")
  end
  session.ask(methods.audit_query, { toolCallId = one }, function(found)
    page.open("audit", worded.lines(found.lines))
  end)
end

return M
