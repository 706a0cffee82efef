---The session that is looked at: its state, folded from events, and what the user asks of it.

local client = require("amanu.wire.client")
local config = require("amanu.config")
local fold = require("amanu.wire.fold")
local protocol = require("amanu.protocol")
local say = require("amanu.say")

local methods = protocol.methods

local M = {}

local ACK_MS = 100

---@type amanu.SessionState?
M.state = nil
---@type boolean The line to the daemon is lost.
M.lost = false
---@type boolean The daemon is being started, or asked for the first time.
M.starting = false

---@class amanu.Prompt
---@field text string
---@field attachments amanu.AttachmentInput[]
---@field queue? boolean Wait for the running turn's end.

---@type amanu.Prompt[] What the user said, and what is sent, in this order, as soon as there is a session.
M.unsent = {}
---@type string? Why what the user sent last was not sent: it is their draft again.
M.refused = nil
---@type boolean There is no key, and no model is named in `setup`.
M.needs_model = false

---@type fun(event?: table) Called after each event; without one when everything is new.
M.changed = function() end

local epoch, seq = 0, 0
local ack_due = false

---@return string
function M.new_id()
  local bytes = assert(vim.uv.random(16))
  return (bytes:gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

---The workspace folder of new sessions.
---@return string
function M.root()
  local given = config.now.root and config.now.root()
  if not given and M.state then
    return M.state.roots[1]
  end
  local here = vim.bo.buftype == "" and vim.fs.root(0, ".git") or nil
  return vim.fs.normalize(given or here or vim.fn.getcwd())
end

local function acknowledge()
  if ack_due then
    return
  end
  ack_due = true
  vim.defer_fn(function()
    ack_due = false
    if M.state then
      client.notify(methods.event_ack, { sessionId = M.state.sessionId, seq = seq })
    end
  end, ACK_MS)
end

---@param event table
local function fold_one(event)
  fold.fold(M.state, event)
  M.changed(event)
end

---@param state amanu.SessionState
local function take(state)
  M.state = state
  M.needs_model = false
  for _, root in ipairs(state.roots) do
    client.add_root(root)
  end
  M.changed()
end

---@param session_id string
---@param done? fun(why?: string)
function M.attach(session_id, done)
  local known = M.state and M.state.sessionId == session_id
  local left = M.state and not known and M.state.sessionId
  local params = { sessionId = session_id, epoch = known and epoch or nil, sinceSeq = known and seq or nil }
  client.request(methods.session_attach, params, function(why, result)
    if why then
      say.error(why)
      return done and done(why)
    end
    if left then
      client.request(methods.session_detach, { sessionId = left })
    end
    M.lost = false
    if result.state then
      epoch, seq = result.epoch, result.fromSeq - 1
      take(result.state)
    else
      for _, message in ipairs(result.events or {}) do
        seq = message.seq
        fold_one(message.event)
      end
    end
    if done then
      done()
    end
  end)
end

client.on_event = function(message)
  if not M.state or message.sessionId ~= M.state.sessionId then
    return
  elseif message.epoch > epoch then
    return M.attach(M.state.sessionId) -- the conversation went back to an earlier turn
  elseif message.epoch < epoch or message.seq <= seq then
    return
  end
  if (message.event.replacesFrom or message.seq) > seq + 1 then
    return M.attach(M.state.sessionId) -- something is missing
  end
  seq = message.seq
  fold_one(message.event)
  acknowledge()
end

client.on_lost = function()
  M.lost = true
  M.changed({ kind = "" })
end

client.on_back = function()
  if M.state then
    M.attach(M.state.sessionId)
  end
end

---Be connected, and attached to the session that runs in this folder, if one does.
---@param done fun()
---@param failed? fun(why: string) Else it is said why.
function M.connect(done, failed)
  local root = M.root()
  local function started()
    M.starting = false
    M.changed({ kind = "" })
  end
  M.starting = not M.state
  M.changed({ kind = "" })
  client.start(root, function(why)
    if why then
      started()
      return (failed or say.error)(why)
    end
    client.add_root(root)
    if M.state then
      started()
      return done()
    end
    client.request(methods.session_list, { root = root }, function(list_why, result, kind)
      if kind == "disconnected" then
        return M.connect(done, failed) -- the line is there before the daemon, which may take longer than the line waits
      end
      started()
      for _, each in ipairs(not list_why and result.sessions or {}) do
        if not M.state and (each.status == "running" or each.status == "waiting") then
          return M.attach(each.sessionId, function()
            done()
          end)
        end
      end
      done()
    end)
  end)
end

---A new session. The one before stays in the daemon.
---@param done? fun()
---@param failed? fun(why: string)
function M.create(done, failed)
  M.begin(methods.session_create, { mode = config.now.mode, modelId = config.now.model }, done, failed)
end

---Change a setting. Where there is no session yet, one is made that has it.
---@param method string
---@param setting { mode?: string, modelId?: string, effort?: string }
---@param failed? fun(why: string)
function M.set(method, setting, failed)
  if M.state then
    return M.ask(method, setting, nil, function(why)
      (failed or say.error)(why)
      return true
    end)
  end
  require("amanu.chat.prompt").show()
  local settings = vim.tbl_extend("force", { mode = config.now.mode, modelId = config.now.model }, setting)
  M.begin(methods.session_create, settings, nil, failed)
end

---A session that begins with this request.
---@param method string
---@param params table
---@param done? fun()
---@param failed? fun(why: string) Else it is said why.
function M.begin(method, params, done, failed)
  local left = M.state and M.state.sessionId
  params = vim.tbl_extend("error", params, { sessionId = M.new_id(), roots = { M.root() } })
  client.request(method, params, function(why, result)
    if why then
      return (failed or say.error)(why)
    end
    if left then
      client.request(methods.session_detach, { sessionId = left })
    end
    epoch, seq = result.epoch, result.fromSeq - 1
    take(result.state)
    if done then
      done()
    end
  end)
end

local BEGIN_MS = 60000 -- between two notifications that the user types; the daemon ignores more frequent ones
local begun = -BEGIN_MS

---Tell the daemon that the user types: it reopens the connection to the model's service if that was closed.
function M.begin_prompt()
  local now = vim.uv.now()
  local params = vim.empty_dict()
  if M.state then
    params.sessionId = M.state.sessionId
  else
    params.modelId = config.now.model
  end
  if now - begun >= BEGIN_MS and client.notify(methods.prompt_begin, params) then
    begun = now
  end
end

---A request about the session; what is wrong is said.
---@param method string
---@param params table
---@param done? fun(result: table)
---@param failed? fun(why: string, kind?: string): boolean? True: it is dealt with.
function M.ask(method, params, done, failed)
  if not M.state then
    return say.now("there is no session yet; say something first")
  end
  params.sessionId = M.state.sessionId
  client.request(method, params, function(why, result, kind)
    if why then
      if not (failed and failed(why, kind)) then
        say.error(why)
      end
    elseif done then
      done(result)
    end
  end)
end

---Forget why the last prompt was not sent: the user goes on.
function M.forget_refusal()
  if M.refused then
    M.refused = nil
    M.changed({ kind = "" })
  end
end

---@type { text: string, id: string }? A prompt that the daemon may have heard before the line to it was lost.
local in_doubt

---@param prompt amanu.Prompt
---@param why? string
local function give_back(prompt, why)
  require("amanu.chat.prompt").give_back(prompt.text, prompt.attachments, why)
end

---To the session that there is.
---@param prompt amanu.Prompt
local function send(prompt)
  client.flush()
  require("amanu.wire.context").send()
  local comments = require("amanu.review.comments")
  local taken = comments.take()
  local with = vim.list_extend(vim.list_slice(prompt.attachments), comments.attachments(taken))
  local id = in_doubt and in_doubt.text == prompt.text and in_doubt.id or M.new_id() -- the same is not heard twice
  local params = { promptId = id, text = prompt.text, attachments = with }
  in_doubt = nil
  local function sent()
    comments.sent(taken)
  end
  local function lost(why, kind)
    in_doubt = kind == "disconnected" and { text = prompt.text, id = id } or nil
    comments.give_back(taken)
    give_back(prompt, why)
    return true
  end
  if not M.state.turn or prompt.queue then
    return M.ask(methods.prompt_send, params, sent, lost)
  end
  local steering = vim.tbl_extend("error", params, { turnId = M.state.turn.turnId })
  M.ask(methods.prompt_steer, steering, sent, function(why, kind)
    if kind ~= "staleTurn" then
      return lost(why, kind)
    end
    M.ask(methods.prompt_send, params, sent, lost)
    return true
  end)
end

---@return amanu.Prompt[]
local function take_unsent()
  local prompts = M.unsent
  M.unsent = {}
  M.changed({ kind = "" })
  return prompts
end

local function send_all()
  vim.tbl_map(send, take_unsent())
end

---@param why string
local function give_all_back(why)
  local prompts = take_unsent()
  for at = #prompts, 1, -1 do
    give_back(prompts[at], why) -- before what is there
  end
end

---Say something: a prompt, or, while a turn runs, into that turn. Until there is a session it waits, in sight; what
---cannot be sent is the user's draft again.
---@param text string
---@param attachments amanu.AttachmentInput[]
---@param queue? boolean Wait for the running turn's end instead.
function M.prompt(text, attachments, queue)
  M.forget_refusal()
  table.insert(M.unsent, { text = text, attachments = attachments, queue = queue })
  if #M.unsent > 1 then
    return M.changed({ kind = "" }) -- it goes with the first
  end
  M.connect(function()
    if M.state then
      send_all()
    else
      M.create(send_all, give_all_back)
    end
  end, give_all_back)
end

function M.stop()
  local turn = M.state and M.state.turn
  if not turn then
    return say.now("nothing runs")
  end
  M.ask(methods.turn_cancel, { turnId = turn.turnId })
end

function M.earlier()
  local first = M.state and M.state.items[1]
  if not first or not M.state.hasEarlier then
    return say.now("there is nothing earlier")
  end
  M.ask(methods.history_page, { beforeItemId = first.itemId }, function(result)
    fold.prepend(M.state, result.items, result.hasEarlier)
    M.changed()
  end)
end

---Forget the session here, after it was deleted.
function M.forget()
  M.state = nil
  M.changed()
end

return M
