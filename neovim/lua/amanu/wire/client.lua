---The line to the daemon, through vim.lsp: started on first use, started again when the daemon died.

local apply = require("amanu.wire.apply")
local config = require("amanu.config")
local null = require("amanu.wire.null")
local protocol = require("amanu.protocol")

local M = {}

local TRIES = 5
local FIRST_DELAY_MS = 200
local OTHER_VERSION = "the daemon and this plugin speak different versions of the protocol; update both"

---@type integer?
M.id = nil
---@type string[] Real paths of the folders whose files the daemon is shown.
M.roots = {}
---@type string? Of the daemon, once it answered.
M.version = nil
---@type fun(message: amanu.EventMessage)
M.on_event = function() end
---@type fun() The line was lost, and (`on_back`) is there again.
M.on_lost = function() end
M.on_back = function() end
---@type fun(buffer: integer)
M.on_attach = function() end
---@type fun() The daemon is there, or is shown another folder.
M.on_shown = function() end

local ready = false
local is_other_version = false
local tries = 0
---@type (fun(why?: string))[]
local waiting = {}
---@type table<fun(why?: string, result?: table, kind?: string), true> Callbacks of requests: vim.lsp forgets them when the connection is lost.
local unanswered = {}

---@param path string
---@param folder string
function M.inside(path, folder)
  return path == folder or vim.startswith(path, folder:gsub("/$", "") .. "/")
end

---The checkout that this plugin is part of, also where links lead to it.
local checkout = vim.fn.fnamemodify(apply.real(debug.getinfo(1, "S").source:sub(2)), ":h:h:h:h:h")
---The daemon that `make` builds there.
M.built = checkout .. "/.venv/bin/amanu"

---@param program string
---@param root string
local function in_workspace(program, root)
  for _, folder in ipairs({ apply.real(root), apply.real(vim.fn.getcwd()) }) do
    if M.inside(apply.real(program), folder) or M.inside(vim.fs.normalize(program), folder) then
      return true
    end
  end
  return false
end

---The daemon's command, never a program of the workspace. The one that was built in this checkout comes before one on
---PATH: it speaks this plugin's version of the protocol.
---@param root string
---@return string[]? command
---@return string? why there is none
function M.command(root)
  local given = config.now.cmd
  if given then
    if not vim.startswith(given[1] or "", "/") then
      return nil, "cmd must begin with an absolute path: " .. tostring(given[1])
    elseif vim.fn.executable(given[1]) == 0 then
      return nil, given[1] .. " is not there, or cannot be executed"
    end
    return given
  end
  local refused
  for _, found in ipairs({ M.built, vim.fn.exepath("amanu") }) do
    if vim.fn.executable(found) == 1 then
      if not in_workspace(found, root) then
        return { found, "serve" }
      end
      refused = refused or found
    end
  end
  if refused then
    return nil, refused .. " lies in the workspace, so it is not run; if it is yours, name it with cmd in setup()"
  end
  local make = vim.uv.fs_stat(checkout .. "/Makefile") and "run `make` in %s (it needs Python 3.11 or newer), or put amanu on PATH"
  return nil, "no amanu program was found: " .. (make and make:format(checkout) or "put it on PATH")
    .. ', or name it: require("amanu").setup({ cmd = { "/path/to/amanu", "serve" } })'
end

---@return vim.lsp.Client?
function M.get()
  return M.id and vim.lsp.get_client_by_id(M.id) or nil
end

---@param why? string
local function told(why)
  local calls = waiting
  waiting = {}
  for _, call in ipairs(calls) do
    call(why)
  end
end

---Whether the buffer is of a file that is not there, and nothing was typed into it: it says nothing of that file yet.
---@param buffer integer
---@param path string
---@return boolean
local function is_blank(buffer, path)
  local lines = vim.api.nvim_buf_get_lines(buffer, 0, 2, false)
  return not vim.bo[buffer].modified and #lines == 1 and lines[1] == "" and not vim.uv.fs_stat(path)
end

---@type table<integer, boolean> Buffers that show what was in a file before we deleted it.
local gone = {}

---@type string[] Plans: files outside the roots that the user edits, too.
local documents = {}

---@param real string
---@return boolean
local function is_shown(real)
  for _, place in ipairs(vim.list_extend(vim.list_slice(M.roots), documents)) do
    if M.inside(real, place) then
      return true
    end
  end
  return false
end

---@param buffer integer
local function attach(buffer)
  local client = M.get()
  local name = vim.api.nvim_buf_get_name(buffer)
  if not client or not ready or not vim.api.nvim_buf_is_loaded(buffer) or vim.bo[buffer].buftype ~= "" or name == "" then
    return
  end
  if not is_shown(apply.real(name)) then
    return
  end
  gone[buffer] = gone[buffer] and not vim.bo[buffer].modified and not vim.uv.fs_stat(name) or nil
  if gone[buffer] or is_blank(buffer, name) then
    vim.api.nvim_create_autocmd({ "TextChanged", "TextChangedI", "BufModifiedSet" }, {
      group = vim.api.nvim_create_augroup("amanu.blank." .. buffer, {}),
      buffer = buffer,
      once = true,
      callback = function()
        attach(buffer)
      end,
    })
  elseif not vim.lsp.buf_is_attached(buffer, client.id) then
    vim.lsp.buf_attach_client(buffer, client.id)
  end
  M.on_attach(buffer)
end

---Show the daemon the files of that folder.
---@param root string
function M.add_root(root)
  root = apply.real(root)
  if not vim.list_contains(M.roots, root) then
    table.insert(M.roots, root)
  end
  vim.tbl_map(attach, vim.api.nvim_list_bufs())
  M.on_shown()
end

---Show the daemon that file, wherever it is.
---@param path string
function M.add_document(path)
  path = apply.real(path)
  if not vim.list_contains(documents, path) then
    table.insert(documents, path)
  end
  vim.tbl_map(attach, vim.api.nvim_list_bufs())
end

---The buffer's file was deleted: what it shows is in no file any more, until the user types or writes it.
---@param buffer integer
function M.forget(buffer)
  if M.id and not gone[buffer] and vim.lsp.buf_is_attached(buffer, M.id) then
    gone[buffer] = true
    vim.lsp.buf_detach_client(buffer, M.id)
    attach(buffer)
  end
end

---Close and open the document again, where the server cannot have heard of a change.
---@param buffer integer
function M.reopen(buffer)
  if M.id and vim.lsp.buf_is_attached(buffer, M.id) then
    vim.lsp.buf_detach_client(buffer, M.id)
    attach(buffer)
  end
end

---Send a client what was typed and not sent yet: vim.lsp waits up to 150 ms.
---@param client vim.lsp.Client
---@param buffer? integer
function M.flush_to(client, buffer)
  local ok, tracking = pcall(require, "vim.lsp._changetracking")
  for _, each in ipairs(ok and (buffer and { buffer } or vim.tbl_keys(client.attached_buffers)) or {}) do
    pcall(tracking.flush, client, each)
  end
end

---The same for the daemon.
---@param buffer? integer
function M.flush(buffer)
  local client = M.get()
  if client then
    M.flush_to(client, buffer)
  end
end

local function on_exit(code)
  local lost = ready or M.id ~= nil
  M.id, ready = nil, false
  if vim.v.exiting ~= vim.NIL then
    return
  end
  for _, answer in ipairs(vim.tbl_keys(unanswered)) do
    answer("the connection to the daemon was lost", nil, "disconnected")
  end
  if is_other_version then
    return told(OTHER_VERSION)
  end
  if lost then
    M.on_lost()
  end
  tries = tries + 1
  if tries > TRIES then
    told(("the daemon ended (exit code %s) and did not come back; see :checkhealth amanu and `amanu logs`"):format(code))
    return
  end
  vim.defer_fn(function()
    M.start(M.roots[1] or vim.fn.getcwd(), function(why)
      if not why then
        M.on_back()
      end
    end)
  end, FIRST_DELAY_MS * 2 ^ (tries - 1))
end

---@param client vim.lsp.Client
local function on_init(client)
  local answer = vim.tbl_get(client.server_capabilities, "experimental", "amanu") or {}
  if answer.protocol ~= protocol.VERSION then
    is_other_version = true
    told(OTHER_VERSION)
    return vim.schedule(function()
      if vim.fn.has("nvim-0.11") == 1 then
        client:stop()
      else
        client.stop()
      end
    end)
  end
  ready = true
  M.version = answer.version
  vim.tbl_map(attach, vim.api.nvim_list_bufs())
  M.on_shown()
  told()
end

---Start the daemon's line unless it is there.
---@param root string
---@param done fun(why?: string)
function M.start(root, done)
  if ready and M.get() then
    return done()
  end
  table.insert(waiting, done)
  if M.id then
    return
  end
  local command, why = M.command(root)
  if not command then
    return told(why)
  end
  is_other_version = false
  local language = require("amanu.wire.language")
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  local editor = { "apply", "diagnostics", "definition", "references", "symbols", "hover", "callHierarchy", "rename" }
  local amanu = { protocol = { protocol.VERSION }, editor = editor }
  if #config.now.trusted_roots > 0 then
    amanu.trustedRoots = config.now.trusted_roots
  end
  capabilities.experimental = { amanu = amanu }
  local settings = {
    name = "amanu",
    cmd = command,
    cmd_cwd = "/", -- nothing of the workspace is looked at while starting
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = root } },
    capabilities = capabilities,
    on_init = on_init,
    on_exit = vim.schedule_wrap(on_exit),
    handlers = {
      [protocol.methods.event] = function(_, message)
        M.on_event(message)
      end,
      [protocol.methods.session_list_changed] = function() end,
      [protocol.methods.editor_diagnostics] = language.diagnostics,
      [protocol.methods.editor_definition] = language.definition,
      [protocol.methods.editor_references] = language.references,
      [protocol.methods.editor_symbols] = language.symbols,
      [protocol.methods.editor_hover] = language.hover,
      [protocol.methods.editor_call_hierarchy] = language.call_hierarchy,
      [protocol.methods.editor_rename] = language.rename,
      [protocol.methods.editor_apply] = function(_, params)
        return apply.handle(params, M.flush)
      end,
    },
  }
  for method, handler in pairs(settings.handlers) do
    settings.handlers[method] = function(fault, params, ...)
      return handler(fault, null.drop(params), ...)
    end
  end
  if vim.fn.has("nvim-0.11") == 1 then
    M.id = vim.lsp.start(settings, { attach = false })
  else
    M.id = vim.lsp.start_client(settings)
  end
  if not M.id then
    told("the daemon could not be started: " .. table.concat(command, " "))
  end
end

---Ask the daemon and wait, as completion must. nil: no answer.
---@param method string
---@param params table
---@param timeout integer Milliseconds.
---@return table? result
function M.request_sync(method, params, timeout)
  local client = M.get()
  if not client or not ready then
    return nil
  end
  local answer
  if vim.fn.has("nvim-0.11") == 1 then
    answer = client:request_sync(method, params, timeout)
  else
    answer = client.request_sync(method, params, timeout)
  end
  return answer and answer.result and null.drop(answer.result)
end

---Ask the daemon. `done` hears why not, as a sentence, or the result; the third is the kind of the error.
---@param method string
---@param params table
---@param done? fun(why?: string, result?: table, kind?: string)
function M.request(method, params, done)
  done = done or function() end
  local client = M.get()
  if not client or not ready then
    return done("the daemon is not connected", nil, "disconnected")
  end
  local function answer(...)
    if unanswered[answer] then
      unanswered[answer] = nil
      done(...)
    end
  end
  unanswered[answer] = true
  local function handler(fault, result)
    tries = 0 -- not before: the line answers `initialize` in the name of a daemon that may never start
    fault, result = null.drop(fault), null.drop(result)
    if fault then
      local hint = vim.tbl_get(fault, "data", "hint")
      return answer(fault.message .. (hint and " " .. hint or ""), nil, vim.tbl_get(fault, "data", "kind"))
    end
    answer(nil, result)
  end
  if vim.tbl_isempty(params) then
    params = vim.empty_dict()
  end
  if vim.fn.has("nvim-0.11") == 1 then
    client:request(method, params, handler)
  else
    client.request(method, params, handler)
  end
end

---@param method string
---@param params table
---@return boolean sent
function M.notify(method, params)
  local client = M.get()
  if not (client and ready) then
    return false
  elseif vim.fn.has("nvim-0.11") == 1 then
    return client:notify(method, params)
  end
  return client.notify(method, params)
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost", "BufWritePost" }, {
  group = vim.api.nvim_create_augroup("amanu.client", {}),
  callback = function(given)
    attach(given.buf)
  end,
})

return M
