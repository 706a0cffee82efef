---Settings of the plugin: what `setup` may be given, with defaults.

---@class amanu.Keys
---@field next string|false Next hunk. In files of the workspace, like the others; false: no key.
---@field previous string|false
---@field next_file string|false Next file with something to review.
---@field previous_file string|false
---@field accept string|false Accept a hunk; keep one that a rule applied.
---@field reject string|false Reject a hunk; take back one that a rule applied.
---@field edit string|false Open the hunk's new text; `:w` accepts it as you changed it.
---@field accept_file string|false
---@field reject_file string|false
---@field undo string|false Take back the hunk under the cursor, or else the last turn: shown first.
---@field redo string|false
---@field retry string|false Ask the model again for what is in conflict.
---@field old string|false Show what applied hunks replaced.
---@field why string|false The hunk and its reason, beside the cursor.
---@field comment string|false Comment on the line or selection.
---@field rewrite string|false Rewrite the line or selection as you say.
---@field diff string|false
---@field approve string|false Answer the waiting question. In chat and prompt, too.

---@class amanu.Config
---@field cmd? string[] The daemon, e.g. { "/path/to/amanu", "serve" }, absolute. Else the one built in this checkout, or `amanu` on PATH.
---@field root? fun(): string The workspace folder. Default: the nearest folder with `.git`, else the current one.
---@field trusted_roots string[] Workspace folders you declare trusted, absolute. Their own rules then count.
---@field mode? amanu.Mode Of new sessions.
---@field model? string Of new sessions, `vendor:model`.
---@field width number Of the chat: columns, or a part of the screen below 1.
---@field prompt_height integer Lines.
---@field keys amanu.Keys

local M = {}

---@type amanu.Config
local defaults = {
  trusted_roots = {},
  width = 0.42,
  prompt_height = 5,
  keys = {
    next = "]a",
    previous = "[a",
    accept = "<leader>aa",
    reject = "<leader>ar",
    edit = "<leader>ae",
    accept_file = "<leader>aA",
    reject_file = "<leader>aR",
    next_file = "]A",
    previous_file = "[A",
    undo = "<leader>au",
    redo = "<leader>aU",
    retry = "<leader>at",
    old = "<leader>ao",
    why = "<leader>aw",
    comment = "<leader>ac",
    rewrite = "<leader>ai",
    diff = "<leader>ad",
    approve = "<leader>ap",
  },
}

---@type amanu.Config
M.now = vim.deepcopy(defaults)

---@param options? table
function M.set(options)
  M.now = vim.tbl_deep_extend("force", vim.deepcopy(defaults), options or {})
end

---A key as the user has to press it: with their own leader. "" if they want none.
---@param name string Of `keys`.
---@return string
function M.key(name)
  return ((M.now.keys[name] or ""):gsub("<(%a+)>", function(word)
    word = word:lower()
    return (word == "leader" or word == "localleader") and vim.fn.keytrans(vim.g["map" .. word] or "\\") or nil
  end))
end

---Keys and what they do, for the user: " · <Space>aa accept · <Space>ar reject".
---@param names string[][] Pairs: a name in `keys`, and the word that is shown.
---@param short? boolean Without the words.
---@return string
function M.help(names, short)
  local text = ""
  for _, each in ipairs(names) do
    local key = M.key(each[1])
    text = text .. (key ~= "" and (short and " %s" or " · %s %s"):format(key, each[2]) or "")
  end
  return text
end

return M
