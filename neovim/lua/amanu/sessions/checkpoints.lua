---Going back to before a turn: chosen from a list, shown, then done; files alone, or the conversation too.

local ask = require("amanu.ask")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@param checkpoint amanu.Checkpoint
---@return string
local function label(checkpoint)
  local added, removed, open, undone = 0, 0, 0, 0
  for _, file in ipairs(checkpoint.files) do
    added, removed, open = added + file.added, removed + file.removed, open + file.open
    undone = undone + file.undone
  end
  local parts = { os.date("%H:%M", math.floor(checkpoint.at / 1000)), visible.line(checkpoint.text, 50) }
  if #checkpoint.files > 0 then
    local many = #checkpoint.files == 1 and "1 file" or #checkpoint.files .. " files"
    table.insert(parts, ("%s +%d -%d"):format(many, added, removed))
  end
  if undone > 0 then
    table.insert(parts, undone .. " taken back")
  end
  if open > 0 then
    table.insert(parts, open .. " open")
  end
  if #checkpoint.commands > 0 then
    table.insert(parts, #checkpoint.commands == 1 and "1 command" or #checkpoint.commands .. " commands")
  end
  return table.concat(parts, " · ")
end

---@param checkpoint amanu.Checkpoint
---@param files boolean
---@param conversation boolean
local function restore(checkpoint, files, conversation)
  local params = { turnId = checkpoint.turnId, files = files, conversation = conversation }
  require("amanu.review.decide").as_one(methods.checkpoint_restore, params, function(result)
    if files then
      require("amanu.review.decide").say_undone(result.files)
    end
    if result.text then
      require("amanu.chat.prompt").show()
      require("amanu.chat.prompt").give_back(result.text, result.attachments)
    end
  end)
end

---@param checkpoint amanu.Checkpoint
local function preview(checkpoint)
  session.ask(methods.checkpoint_preview, { turnId = checkpoint.turnId }, function(result)
    local title = "Back to before “" .. visible.line(checkpoint.text, 50) .. "”"
    local turns = result.turns == 1 and "and its turn" or ("and %d turns"):format(result.turns)
    require("amanu.chat.preview").undo(title, result.files, result.commands, {
      { key = "f", what = "files", run = function() restore(checkpoint, true, false) end },
      { key = "a", what = "files " .. turns .. " of the conversation", run = function() restore(checkpoint, true, true) end },
    }) -- stylua: ignore
  end)
end

function M.list()
  require("amanu.wire.client").flush()
  session.ask(methods.checkpoint_list, {}, function(result)
    if #result.checkpoints == 0 then
      return say.now("there is nothing to go back to: no turn proposed edits or ran a command")
    end
    local newest = vim.iter(result.checkpoints):rev():totable()
    ask.select(newest, { prompt = "Back to before which turn?", format = label }, function(checkpoint)
      if checkpoint then
        preview(checkpoint)
      end
    end)
  end)
end

return M
