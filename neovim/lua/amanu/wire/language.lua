---Answers to the daemon's questions about code, from the other language servers of this Neovim: `amanu/editor/
---diagnostics`, `definition`, `references`, `symbols`, `hover`, `callHierarchy`, `rename`. No buffer is loaded for it (that
---would run autocommands and modelines): a file nobody has open is shown to a server only while it is asked.
---
---Each of them runs in a coroutine of vim.lsp's, which takes what is returned as the reply.

local apply = require("amanu.wire.apply")
local positions = require("amanu.wire.positions")

local M = {}

local WAIT_MS = 4000 -- the daemon waits ten seconds (frontends/lsp/editor_queries.py, ANSWER), and asks those again that are starting
local MOST = 500 -- more than a model is shown
local STARTING = { [-32002] = true, [-32801] = true, [-32802] = true } -- not initialized, content modified, cancelled

---@class amanu.Subject What is asked about.
---@field path string
---@field buffer? integer The loaded buffer that shows it.
---@field uri string
---@field lines string[]

---A method of a client: 0.10 has them without `self`.
---@param client vim.lsp.Client
---@param name string
local function call(client, name, ...)
  if vim.fn.has("nvim-0.11") == 1 then
    return client[name](client, ...)
  end
  return client[name](...)
end

---Clients other than the daemon's.
---@param filter table
---@return vim.lsp.Client[]
local function others(filter)
  return vim.tbl_filter(function(client)
    return client.id ~= require("amanu.wire.client").id and not call(client, "is_stopped")
  end, vim.lsp.get_clients(filter))
end

---@param path string
---@return amanu.Subject?
local function subject(path)
  local buffer = apply.find(path)
  if buffer then
    local lines = vim.api.nvim_buf_get_lines(buffer, 0, -1, true)
    return { path = path, buffer = buffer, uri = vim.uri_from_bufnr(buffer), lines = lines }
  end
  local file = io.open(path, "rb")
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text and { path = path, uri = vim.uri_from_fname(path), lines = vim.split(text, "\r?\n") } or nil
end

---Whether a client that runs would take care of a file that is not open.
---@param client vim.lsp.Client
---@param path string
---@param filetype string
local function fits(client, path, filetype)
  local roots = vim.tbl_map(function(folder)
    return vim.uri_to_fname(folder.uri)
  end, client.workspace_folders or {})
  local inside = #roots == 0
  for _, root in ipairs(roots) do
    inside = inside or require("amanu.wire.client").inside(apply.real(path), apply.real(root))
  end
  if not inside then
    return false
  end
  if vim.list_contains(client.config.filetypes or {}, filetype) then
    return true
  end
  for buffer in pairs(client.attached_buffers) do
    if vim.api.nvim_buf_is_valid(buffer) and vim.bo[buffer].filetype == filetype then
      return true
    end
  end
  return false
end

---The clients that can be asked, and whether others are only starting.
---@param about amanu.Subject
---@param method? string
---@return vim.lsp.Client[] clients
---@return boolean starting
local function clients_for(about, method)
  if about.buffer then
    local starting = vim.tbl_filter(function(client)
      return not client.initialized
    end, others({ bufnr = about.buffer, _uninitialized = true }))
    return others({ bufnr = about.buffer, method = method }), #starting > 0
  end
  local filetype = vim.filetype.match({ filename = about.path, contents = about.lines }) or ""
  return vim.tbl_filter(function(client)
    return fits(client, about.path, filetype)
  end, others({ method = method })), false
end

---How many questions have a file shown to a client that nobody has open there: two calls of one step may ask about the
---same one.
---@type table<string, integer> By the client's id and the URI.
local users = {}

---Show a file that is not open to the servers while they are asked: the first question opens it, the last closes it.
---@param about amanu.Subject
---@param clients vim.lsp.Client[]
---@return fun() over
local function shown(about, clients)
  if about.buffer then
    return function() end
  end
  local filetype = vim.filetype.match({ filename = about.path, contents = about.lines }) or ""
  local function key(client)
    return client.id .. " " .. about.uri
  end
  for _, client in ipairs(clients) do
    users[key(client)] = (users[key(client)] or 0) + 1
    if users[key(client)] == 1 then
      local ok, language = pcall(client.get_language_id, 0, filetype)
      local document = {
        uri = about.uri,
        languageId = ok and language or filetype,
        version = 0,
        text = table.concat(about.lines, "\n"),
      }
      call(client, "notify", "textDocument/didOpen", { textDocument = document })
    end
  end
  return function()
    local opened = apply.find(about.path) -- by the user, meanwhile: it stays open
    for _, client in ipairs(clients) do
      local left = users[key(client)] - 1
      users[key(client)] = left > 0 and left or nil
      if left == 0 and not (opened and client.attached_buffers[opened]) then
        call(client, "notify", "textDocument/didClose", { textDocument = { uri = about.uri } })
      end
    end
  end
end

---Ask all of them at once, and wait for their answers.
---@param clients vim.lsp.Client[]
---@param method string
---@param params fun(client: vim.lsp.Client): table
---@param buffer? integer
---@return { client: vim.lsp.Client, result: any }[] answers
---@return amanu.EditorStatus status
---@return string? message
local function ask(clients, method, params, buffer)
  local waiting = assert(coroutine.running())
  local answers, pending, over = {}, {}, false
  local status, message = "success", nil
  local timer = assert(vim.uv.new_timer())
  local function go_on()
    if not over then
      over = true
      timer:stop()
      timer:close()
      vim.schedule(function() -- a server in this process answers before we wait
        coroutine.resume(waiting)
      end)
    end
  end
  local function answered(client, fault, result)
    pending[client.id] = nil
    if fault then
      status = STARTING[fault.code] and "starting" or "error"
      message = ("%s: %s"):format(client.name, tostring(fault.message))
    else
      table.insert(answers, { client = client, result = result ~= vim.NIL and result or {} })
    end
    if vim.tbl_isempty(pending) then
      go_on()
    end
  end
  for _, client in ipairs(clients) do
    pending[client.id] = true
  end
  for _, client in ipairs(clients) do
    local sent, id = call(client, "request", method, params(client), function(fault, result)
      if pending[client.id] then
        answered(client, fault, result)
      end
    end, buffer)
    if not sent then
      answered(client, { message = "it has ended" })
    elseif pending[client.id] then
      pending[client.id] = id
    end
  end
  timer:start(WAIT_MS, 0, vim.schedule_wrap(go_on))
  coroutine.yield()
  for id, request in pairs(pending) do
    local client = vim.lsp.get_client_by_id(id)
    if client then
      call(client, "cancel_request", request)
    end
    status = "starting"
  end
  return answers, #answers > 0 and "success" or status, message
end

---Whether one of them is still at work: reading the project, say.
---@param clients vim.lsp.Client[]
local function at_work(clients)
  return vim.iter(clients):any(function(client)
    return not vim.tbl_isempty(vim.tbl_get(client, "progress", "pending") or {})
  end)
end

---Nothing found is no answer yet while a server is at work.
---@param found table[]
---@param clients vim.lsp.Client[]
---@param status amanu.EditorStatus
---@return amanu.EditorStatus
local function judged(found, clients, status)
  return status == "success" and #found == 0 and at_work(clients) and "starting" or status
end

---@param uri string
---@return string
local function path_of(uri)
  return vim.startswith(uri, "file:") and vim.uri_to_fname(uri) or uri
end

---The lines with both positions.
---@param first amanu.Position
---@param last amanu.Position
---@return amanu.LineRange
local function lines_of(first, last)
  return { start = first.line, ["end"] = math.max(first.line, last.line) + 1 }
end

---A position, counted in another encoding.
---@param lines string[]
---@param position amanu.Position
---@param from string
---@param to string
---@return amanu.Position
local function converted(lines, position, from, to)
  local line = lines[position.line + 1] or ""
  return { line = position.line, character = positions.converted(line, position.character, from, to) }
end

---@class amanu.PlaceAnswers
---@field clients vim.lsp.Client[]
---@field answers { client: vim.lsp.Client, result: any }[]
---@field status amanu.EditorStatus
---@field message? string
---@field about amanu.Subject
---@field over fun() To be called when nothing more is asked about the file.

---Ask about a place in a file. Nothing, and what is to be said instead, when there is nobody to ask.
---@param params amanu.EditorPositionParams
---@param method string
---@param more? table
---@return amanu.PlaceAnswers?
---@return { status: amanu.EditorStatus, message?: string }
local function ask_at(params, method, more)
  local about = subject(params.path)
  if not about then
    return nil, { status = "error", message = vim.fs.basename(params.path) .. " cannot be read." }
  end
  local clients, starting = clients_for(about, method)
  if #clients == 0 then
    return nil, { status = starting and "starting" or "noServer" }
  end
  for _, client in ipairs(clients) do -- with a request vim.lsp sends only what was typed in its own buffer
    require("amanu.wire.client").flush_to(client)
  end
  local over = shown(about, clients)
  local answers, status, message = ask(clients, method, function(client)
    return vim.tbl_extend("error", {
      textDocument = { uri = about.uri },
      position = converted(about.lines, params.position, positions.encoding(), client.offset_encoding),
    }, more or {})
  end, about.buffer)
  local result = { status = status, message = message }
  return vim.tbl_extend("error", result, { clients = clients, answers = answers, about = about, over = over }), result
end

---@param method string
---@param more? table
---@return fun(_: any, params: amanu.EditorPositionParams): amanu.EditorLocationsResult
local function places(method, more)
  return function(_, params)
    local asked, instead = ask_at(params, method, more)
    if not asked then
      return instead
    end
    asked.over()
    local found, seen = {}, {}
    for _, answer in ipairs(asked.answers) do
      local list = vim.islist(answer.result) and answer.result or { answer.result }
      for _, each in ipairs(list) do
        local range = each.targetSelectionRange or each.targetRange or each.range
        local path = path_of(each.targetUri or each.uri)
        local key = ("%s:%d"):format(path, range.start.line)
        if not seen[key] and #found < MOST then
          seen[key] = true
          table.insert(found, { path = path, lines = lines_of(range.start, range["end"]) })
        end
      end
    end
    return { status = judged(found, asked.clients, asked.status), locations = found, message = asked.message }
  end
end

---@param each table DocumentSymbol or SymbolInformation
---@param path string
---@param container string
---@param into amanu.Symbol[]
local function add_symbol(each, path, container, into)
  if #into >= MOST then
    return
  end
  local range = each.range or vim.tbl_get(each, "location", "range")
  if type(range) ~= "table" then -- a WorkspaceSymbol may leave it to be asked for
    range = { start = { line = 0 }, ["end"] = { line = 0 } }
  end
  local inside = type(each.containerName) == "string" and each.containerName or container
  table.insert(into, {
    name = each.name,
    kind = (vim.lsp.protocol.SymbolKind[each.kind] or "symbol"):lower(),
    path = each.location and path_of(each.location.uri) or path,
    lines = lines_of(range.start, range["end"]),
    container = inside,
  })
  for _, child in ipairs(type(each.children) == "table" and each.children or {}) do
    add_symbol(child, path, container == "" and each.name or container .. "." .. each.name, into)
  end
end

---@param answers { result: any }[]
---@param path string
---@return amanu.Symbol[]
local function symbols(answers, path)
  local found = {}
  for _, answer in ipairs(answers) do
    for _, each in ipairs(answer.result) do
      add_symbol(each, path, "", found)
    end
  end
  return found
end

---@param path string
---@return amanu.EditorSymbolsResult
local function symbols_of(path)
  local method = "textDocument/documentSymbol"
  local about = subject(path)
  if not about then
    return { status = "error", message = vim.fs.basename(path) .. " cannot be read." }
  end
  local clients, starting = clients_for(about, method)
  if #clients == 0 then
    return { status = starting and "starting" or "noServer" }
  end
  local over = shown(about, clients)
  local answers, status, message = ask(clients, method, function()
    return { textDocument = { uri = about.uri } }
  end, about.buffer)
  over()
  local found = symbols(answers, path)
  return { status = judged(found, clients, status), symbols = found, message = message }
end

---@param query string
---@return amanu.EditorSymbolsResult
local function symbols_like(query)
  local method = "workspace/symbol"
  local clients = others({ method = method })
  if #clients == 0 then
    local starting = vim.iter(others({ _uninitialized = true })):any(function(client)
      return not client.initialized
    end)
    return { status = starting and "starting" or "noServer" }
  end
  local answers, status, message = ask(clients, method, function()
    return { query = query }
  end)
  local found = symbols(answers, "")
  return { status = judged(found, clients, status), symbols = found, message = message }
end

---@param edits { path: string, edit: table }[]
---@param moves table<string, string> New paths by the old ones.
---@param encoding string Of the edits.
---@return amanu.RenamedFile[]
local function by_file(edits, moves, encoding)
  local files, known, old, lines = {}, {}, {}, {}
  local function at(path, position)
    if encoding == positions.encoding() then
      return position
    end
    lines[path] = lines[path] or (subject(path) or { lines = {} }).lines
    return converted(lines[path], position, encoding, positions.encoding())
  end
  local function file(path)
    if not known[path] then
      local buffer = apply.find(path)
      known[path] = { path = path, sha256 = buffer and vim.fn.sha256(apply.text(buffer)), edits = {} }
      table.insert(files, known[path])
    end
    return known[path]
  end
  for from, to in pairs(moves) do
    old[to] = from
    file(from).newPath = to
  end
  for _, each in ipairs(edits) do
    local path = old[each.path] or each.path
    local range = { start = at(path, each.edit.range.start), ["end"] = at(path, each.edit.range["end"]) }
    table.insert(file(path).edits, { range = range, newText = each.edit.newText })
  end
  return files
end

---What a WorkspaceEdit changes, by file; nothing when it creates or deletes some.
---@param edit table
---@param encoding string
---@return amanu.RenamedFile[]?
local function renamed_files(edit, encoding)
  local edits, moves = {}, {}
  local function add(uri, list)
    for _, each in ipairs(list) do
      table.insert(edits, { path = path_of(uri), edit = each })
    end
  end
  if type(edit.documentChanges) ~= "table" then
    for uri, list in pairs(type(edit.changes) == "table" and edit.changes or {}) do
      add(uri, list)
    end
    return by_file(edits, moves, encoding)
  end
  for _, change in ipairs(edit.documentChanges) do
    if change.kind == "rename" then
      moves[path_of(change.oldUri)] = path_of(change.newUri)
    elseif change.kind then
      return nil
    else
      add(change.textDocument.uri, change.edits)
    end
  end
  return by_file(edits, moves, encoding)
end

---A buffer that is not loaded: findings may be known of it all the same.
---@param path string
---@return integer?
local function named(path)
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buffer)
    return vim.api.nvim_buf_get_name(buffer) == path
  end)
end

---@param _ any
---@param params amanu.EditorDiagnosticsParams
---@return amanu.EditorDiagnosticsResult
function M.diagnostics(_, params)
  local context = require("amanu.wire.context")
  local function with_findings(files)
    return vim.tbl_filter(function(file)
      return #file.findings > 0
    end, files)
  end
  if #(params.paths or {}) == 0 then
    local files = with_findings(context.findings())
    return { status = (#files > 0 or #others({}) > 0) and "success" or "noServer", files = files }
  end
  local files, status, message = {}, nil, nil
  for _, path in ipairs(params.paths) do
    local buffer = apply.find(path) or named(path)
    local findings = buffer and context.findings_of(buffer) or {}
    local clients, starting = {}, false
    if buffer and vim.api.nvim_buf_is_loaded(buffer) then
      clients, starting = clients_for({ path = path, buffer = buffer, uri = "", lines = {} })
    end
    if #findings > 0 then
      table.insert(files, { path = path, findings = findings })
      status = "success"
    elseif #clients > 0 then
      status = "success"
    elseif starting then
      status = status or "starting"
    elseif not buffer or not vim.api.nvim_buf_is_loaded(buffer) then
      message = vim.fs.basename(path) .. " is not open in Neovim, and only open files are checked there."
      status = status or "error"
    end
  end
  return { status = status or "noServer", files = files, message = message }
end

M.definition = places("textDocument/definition")
M.references = places("textDocument/references", { context = { includeDeclaration = true } })

---@param _ any
---@param params amanu.EditorPositionParams
---@return amanu.EditorHoverResult
function M.hover(_, params)
  local asked, instead = ask_at(params, "textDocument/hover")
  if not asked then
    return instead
  end
  asked.over()
  local parts = {}
  for _, answer in ipairs(asked.answers) do
    local lines = answer.result.contents and vim.lsp.util.convert_input_to_markdown_lines(answer.result.contents) or {}
    local text = vim.trim(table.concat(lines, "\n"))
    if text ~= "" then
      table.insert(parts, text)
    end
  end
  local status = judged(parts, asked.clients, asked.status)
  return { status = status, text = table.concat(parts, "\n\n"), message = asked.message }
end

---@param _ any
---@param params amanu.EditorCallHierarchyParams
---@return amanu.EditorCallHierarchyResult
function M.call_hierarchy(_, params)
  local asked, instead = ask_at(params, "textDocument/prepareCallHierarchy")
  if not asked then
    return instead
  end
  local incoming = params.direction == "incoming"
  local method = incoming and "callHierarchy/incomingCalls" or "callHierarchy/outgoingCalls"
  local calls, status, message = {}, asked.status, asked.message
  for _, prepared in ipairs(asked.answers) do
    for _, item in ipairs(prepared.result) do
      local answers, how, why = ask({ prepared.client }, method, function()
        return { item = item }
      end, asked.about.buffer)
      status, message = how, why
      for _, each in ipairs(answers[1] and answers[1].result or {}) do
        local other, lines = incoming and each.from or each.to, {}
        for _, range in ipairs(each.fromRanges) do
          if lines[#lines] ~= range.start.line then
            table.insert(lines, range.start.line)
          end
        end
        if #calls < MOST then
          local symbol = {
            name = other.name,
            kind = (vim.lsp.protocol.SymbolKind[other.kind] or "symbol"):lower(),
            path = path_of(other.uri),
            lines = lines_of(other.selectionRange.start, other.range["end"]),
          }
          table.insert(calls, { symbol = symbol, lines = lines })
        end
      end
    end
  end
  asked.over()
  return { status = judged(calls, asked.clients, status), calls = calls, message = message }
end

---Nothing is changed here: the daemon proposes the edits.
---@param _ any
---@param params amanu.EditorRenameParams
---@return amanu.EditorRenameResult
function M.rename(_, params)
  require("amanu.wire.client").flush() -- what is typed from here on makes the answer one about older text
  local asked, instead = ask_at(params, "textDocument/rename", { newName = params.newName })
  if not asked then
    return instead
  end
  asked.over()
  for _, answer in ipairs(asked.answers) do -- one renames; of two the edits would be made twice
    local files = renamed_files(answer.result, answer.client.offset_encoding)
    if not files then
      return { status = "error", message = "The rename would also create or delete files." }
    elseif #files > 0 then
      return { status = "success", files = files }
    end
  end
  return { status = judged({}, asked.clients, asked.status), files = {}, message = asked.message }
end

---@param _ any
---@param params amanu.EditorSymbolsParams
---@return amanu.EditorSymbolsResult
function M.symbols(_, params)
  return type(params.path) == "string" and symbols_of(params.path) or symbols_like(params.query or "")
end

return M
