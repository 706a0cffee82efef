---What the user has before them, told to the daemon as it changes: active file, open files, findings. Of files in the
---workspace only, and only what differs from what was told last.

local apply = require("amanu.wire.apply")
local client = require("amanu.wire.client")
local protocol = require("amanu.protocol")

local M = {}

local DEBOUNCE_MS = 200
local MAX_SELECTION = 4000 -- bytes: the daemon shows the model up to 2000 characters, and must see that it is more

local SEVERITIES = { "error", "warning", "information", "hint" }
local GROUP = vim.api.nvim_create_augroup("amanu.context", {})

---@type integer? The client that was told.
local told_to = nil
local told_active, told_open = nil, nil
---@type table<string, amanu.Finding[]> By path, those that are not empty.
local told_findings = {}
---@type table<integer, true> Buffers whose findings changed since.
local changed = {}
---@type integer? The window of a file the user was in last.
local window = nil
local timer = assert(vim.uv.new_timer())

---The path of a file of the workspace, or nil.
---@param buffer integer
---@return string?
local function path_of(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if name == "" or vim.bo[buffer].buftype ~= "" or name:find("^%w[%w+.-]+://") then
    return nil
  end
  local real = apply.real(name)
  for _, root in ipairs(client.roots) do
    if client.inside(real, root) then
      return name
    end
  end
end

---The window of a file the user is in, or was in last.
---@return integer?
local function file_window()
  local here = vim.api.nvim_get_current_win()
  for _, each in ipairs({ here, window or here, unpack(vim.api.nvim_tabpage_list_wins(0)) }) do
    if vim.api.nvim_win_is_valid(each) then
      local buffer = vim.api.nvim_win_get_buf(each)
      if vim.bo[buffer].buftype == "" and vim.api.nvim_buf_get_name(buffer) ~= "" then
        return each
      end
    end
  end
end

M.file_window = file_window

---@return amanu.ActiveEditor
local function active()
  window = file_window()
  local path = window and path_of(vim.api.nvim_win_get_buf(window))
  if not window or not path then
    return vim.empty_dict()
  end
  local line = vim.api.nvim_win_get_cursor(window)[1]
  local mode = vim.api.nvim_get_mode().mode:sub(1, 1)
  if window ~= vim.api.nvim_get_current_win() or not vim.list_contains({ "v", "V", "\22" }, mode) then
    return { path = path, lines = { start = line - 1, ["end"] = line } }
  end
  local from, to = vim.fn.getpos("v"), vim.fn.getpos(".")
  local text = table.concat(vim.fn.getregion(from, to, { type = mode }), "\n")
  if #text > MAX_SELECTION then
    text = text:sub(1, MAX_SELECTION + vim.str_utf_start(text, MAX_SELECTION + 1) - 1)
  end
  return {
    path = path,
    lines = { start = math.min(from[2], to[2]) - 1, ["end"] = math.max(from[2], to[2]) },
    selectedText = text,
  }
end

---@return string[]
local function open_files()
  local paths = {}
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    local path = vim.bo[buffer].buflisted and path_of(buffer)
    if path then
      table.insert(paths, path)
    end
  end
  return paths
end

---What language servers and linters find in a buffer, Amanu itself left out.
---@param buffer integer
---@return amanu.Finding[]
function M.findings_of(buffer)
  local spaces, found = vim.diagnostic.get_namespaces(), {}
  for _, each in ipairs(vim.diagnostic.get(buffer)) do
    local space = each.namespace and spaces[each.namespace]
    local name = space and space.name or ""
    if not (name:find("^amanu") or name:find("^vim%.lsp%.amanu%.") or each.source == "amanu") then
      table.insert(found, {
        lines = { start = each.lnum, ["end"] = math.max(each.end_lnum or 0, each.lnum) + 1 },
        severity = SEVERITIES[each.severity] or "hint",
        message = each.message,
        source = each.source or "",
        code = each.code and tostring(each.code) or "",
      })
    end
  end
  table.sort(found, function(a, b) -- Neovim gives them by namespace, in no order
    if a.lines.start ~= b.lines.start then
      return a.lines.start < b.lines.start
    end
    return a.message < b.message
  end)
  return found
end

---Findings of files, by buffer or (nil) of all.
---@param buffers? integer[]
---@return amanu.FileFindings[] Those without findings too.
function M.findings(buffers)
  local files = {}
  for _, buffer in ipairs(buffers or vim.api.nvim_list_bufs()) do
    local path = vim.api.nvim_buf_is_valid(buffer) and path_of(buffer)
    if path then
      table.insert(files, { path = path, findings = M.findings_of(buffer) })
    end
  end
  return files
end

---@return amanu.FileFindings[]? Files whose findings are others than told.
local function news()
  local files = vim.tbl_filter(function(file)
    return not vim.deep_equal(file.findings, told_findings[file.path] or {})
  end, M.findings(vim.tbl_keys(changed)))
  changed = {}
  for _, file in ipairs(files) do
    told_findings[file.path] = #file.findings > 0 and file.findings or nil
  end
  return #files > 0 and files or nil
end

---Tell the daemon now what has changed.
function M.send()
  timer:stop()
  if not client.get() then
    return
  end
  if told_to ~= client.id then -- another daemon, which knows nothing
    told_to, told_active, told_open, told_findings = client.id, nil, nil, {}
    for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
      changed[buffer] = true
    end
  end
  local delta = {}
  local now_active, now_open = active(), open_files()
  if not vim.deep_equal(now_active, told_active) then
    told_active, delta.active = now_active, now_active
  end
  if not vim.deep_equal(now_open, told_open) then
    told_open, delta.openFiles = now_open, now_open
  end
  delta.findings = news()
  if not vim.tbl_isempty(delta) then
    client.notify(protocol.methods.editor_context_changed, delta)
  end
end

local function soon()
  timer:start(DEBOUNCE_MS, 0, vim.schedule_wrap(M.send))
end

---Tell it from now on. Called when the daemon is there, and when it is shown another folder.
function M.begin()
  told_to = nil
  vim.api.nvim_clear_autocmds({ group = GROUP })
  vim.api.nvim_create_autocmd({
    "BufAdd", "BufDelete", "BufEnter", "BufFilePost", "BufWipeout", "CursorMoved", "CursorMovedI", "ModeChanged",
    "TabEnter", "WinEnter",
  }, { group = GROUP, callback = soon }) -- stylua: ignore
  vim.api.nvim_create_autocmd("DiagnosticChanged", {
    group = GROUP,
    callback = function(given)
      changed[given.buf] = true
      soon()
    end,
  })
  soon()
end

return M
