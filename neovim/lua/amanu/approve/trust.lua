---Trusting the folder: what that enables is shown first, and an approval is for what was shown.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local labels = require("amanu.labels")
local methods = require("amanu.protocol").methods
local page = require("amanu.chat.page")
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")
local worded = require("amanu.chat.worded")

local M = {}

---@param root string
---@param trusted boolean
---@param digest? string Of what the user was shown.
local function set(root, trusted, digest)
  client.request(methods.trust_set, { root = root, trusted = trusted, digest = digest }, function(why)
    if why then
      return say.error(why)
    end
    say.now(root .. (trusted and " is trusted now" or " is not trusted any more"))
  end)
end

---What trusting a folder means now, with the diffs of all that is not as the user trusted it.
---@param found amanu.TrustGetResult
---@return string[]
local function lines(found)
  local all = worded.lines(found.lines)
  for _, item in ipairs(found.enables) do
    if item.state ~= "same" and (item.diff or "") ~= "" then
      table.insert(all, "")
      for _, line in ipairs(visible.lines(visible.text(item.diff))) do
        table.insert(all, "│ " .. line)
      end
    end
  end
  return all
end

---Show what trust enables, and ask.
function M.ask()
  local root = session.root()
  client.request(methods.trust_get, { root = root }, function(why, found)
    if why then
      return say.error(why)
    end
    local window = page.open("trust", lines(found))
    if found.state == "trusted" then
      return
    end
    vim.cmd.redraw() -- what is asked about is to be seen below the question
    ask.select({ labels.BUTTONS.notNow, labels.BUTTONS.trust }, { prompt = "Trust " .. root .. "?" }, function(answer)
      if answer == labels.BUTTONS.trust then
        set(root, true, found.digest)
        pcall(vim.api.nvim_win_close, window, true)
      end
    end)
  end)
end

function M.withdraw()
  set(session.root(), false)
end

return M
