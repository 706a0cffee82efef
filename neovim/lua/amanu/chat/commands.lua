---The commands of the prompt and of `:Amanu`: the words of `amanu chat`, and a few of the editor.

local client = require("amanu.wire.client")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@class amanu.OwnCommand
---@field what string
---@field words? string[] That may follow.
---@field run fun(rest: string, lines?: integer[], failed?: fun(why: string)) `lines`: first and last of the command's range.

local VENDORS = { "anthropic", "gemini", "openai", "openrouter" }
local SCOPES = { "hunk", "file", "turn", "session" }

---@param verb "accept"|"reject"|"keep"|"redo"
---@param what string
---@return amanu.OwnCommand
local function decision(verb, what)
  return { what = what, words = SCOPES, run = function(rest) require("amanu.review.decide").decide(verb, rest) end } -- stylua: ignore
end

---@type table<string, amanu.OwnCommand>
M.all = {
  ["/approve"] = { what = "answer the question that waits", run = function() require("amanu.approve.approvals").ask() end },
  ["/stop"] = { what = "stop the turn", run = function() session.stop() end },
  ["/queue"] = { what = "TEXT: say it after the running turn (plain text goes into it)", run = function(rest)
    if rest == "" then
      return say.now("what should wait? /queue TEXT")
    end
    session.prompt(rest, {}, true)
  end },
  ["/unqueue"] = { what = "take a queued prompt back", run = function() require("amanu.sessions.sessions").unqueue() end },
  ["/diff"] = { what = "proposed changes side by side; turn, session: what was applied", words = { "turn", "session" }, run = function(rest)
    if rest == "" then
      return require("amanu.review.diff").open()
    end
    require("amanu.review.changes").show(rest)
  end },
  ["/hunks"] = { what = "what is to review, in the quickfix list", run = function() require("amanu.review.quickfix").open() end },
  ["/why"] = { what = "the hunk under the cursor, and its reason", run = function() require("amanu.review.why").show() end },
  ["/accept"] = decision("accept", "accept what is open: hunk, file, turn, session"),
  ["/reject"] = decision("reject", "reject what is open"),
  ["/keep"] = decision("keep", "keep what a rule applied"),
  ["/redo"] = decision("redo", "bring back what was taken back"),
  ["/retry"] = { what = "ask the model again for what is in conflict: hunk, file, turn, session", words = SCOPES, run = function(rest)
    require("amanu.review.decide").retry(rest)
  end },
  ["/review"] = { what = "before: accept, then it is applied; after: applied, then keep or undo", words = { "before", "after" }, run = function(rest)
    require("amanu.review.decide").review(rest)
  end },
  ["/undo"] = { what = "take back what was applied: hunk, file, turn, session; shown first", words = SCOPES, run = function(rest)
    require("amanu.review.decide").undo(rest)
  end },
  ["/checkpoints"] = { what = "go back to before a turn: files, or the conversation too", run = function() require("amanu.sessions.checkpoints").list() end },
  ["/comment"] = { what = "TEXT: a comment on the line or range, sent with the next prompt", run = function(rest, lines)
    require("amanu.review.comments").add(rest, lines)
  end },
  ["/edit"] = { what = "TEXT: rewrite the line or range so, as a proposal", run = function(rest, lines)
    require("amanu.review.rewrite").start(rest, lines)
  end },
  ["/refine"] = { what = "TEXT: what the last rewrite lacks", run = function(rest, _, failed)
    require("amanu.review.rewrite").refine(rest, failed)
  end },
  ["/comments"] = { what = "your comments that were not sent", run = function() require("amanu.review.comments").list() end },
  ["/send-comments"] = { what = "send them now", run = function() require("amanu.review.comments").send() end },
  ["/finish"] = { what = "end the review; undecided hunks stay open", run = function() require("amanu.approve.approvals").finish() end },
  ["/sessions"] = { what = "sessions of this folder: resume, rename, delete", run = function() require("amanu.sessions.sessions").list() end },
  ["/rename"] = { what = "TITLE: name this session", run = function(rest) require("amanu.sessions.sessions").rename(rest) end },
  ["/new"] = { what = "a new session", run = function() require("amanu.sessions.sessions").new() end },
  ["/mode"] = { what = "plan, ask, acceptEdits, draft or auto", run = function(rest, _, failed)
    require("amanu.sessions.sessions").mode(rest, failed)
  end },
  ["/effort"] = { what = "how much the model thinks", run = function(rest, _, failed)
    require("amanu.sessions.sessions").effort(rest, failed)
  end },
  ["/model"] = { what = "choose a model", run = function(rest, _, failed) require("amanu.sessions.sessions").model(rest, failed) end },
  ["/tour"] = { what = "see how Amanu works, without a key: a script plays the model", run = function()
    require("amanu.sessions.sessions").tour()
  end },
  ["/key"] = { what = "VENDOR: store an API key, typed in a terminal below", words = VENDORS, run = function(rest)
    if rest == "" then
      return say.now("which vendor? /key " .. table.concat(VENDORS, ", ") .. " …")
    end
    require("amanu.sessions.login").open("set", rest)
  end },
  ["/login"] = { what = "sign in with ChatGPT: OpenAI's models count towards your plan", run = function()
    require("amanu.sessions.login").open("login", "openai")
  end },
  ["/logout"] = { what = "sign out of ChatGPT", run = function() require("amanu.sessions.login").open("logout", "openai") end },
  ["/trust"] = { what = "what trusting this folder enables, and trust it", run = function() require("amanu.approve.trust").ask() end },
  ["/untrust"] = { what = "stop trusting this folder", run = function() require("amanu.approve.trust").withdraw() end },
  ["/audit"] = { what = "how the call under the cursor was decided, and what was done; session: all", words = { "session" }, run = function(rest)
    require("amanu.chat.audit").show(rest)
  end },
  ["/context"] = { what = "what fills the model's window, and the cost", run = function() require("amanu.chat.usage").show() end },
  ["/agents"] = { what = "sub-agents: open or stop one; stop ID, open ID", words = { "stop", "open" }, run = function(rest)
    require("amanu.sessions.agents").run(rest)
  end },
  ["/mcp"] = { what = "MCP servers: approve one, see its tools, off, restart, sign in", run = function(rest)
    require("amanu.sessions.mcp").run(rest)
  end },
  ["/running"] = { what = "everything that runs: agents, background commands, MCP servers", run = function() require("amanu.sessions.running").list() end },
  ["/jobs"] = { what = "background commands: their output; stop ID, output ID", words = { "stop", "output" }, run = function(rest)
    require("amanu.sessions.jobs").run(rest)
  end },
  ["/output"] = { what = "the whole output of the tool call under the cursor", run = function() require("amanu.chat.output").open() end },
  ["/earlier"] = { what = "show earlier items of a long session", run = function() session.earlier() end },
  ["/hide"] = { what = "close chat and prompt; everything goes on", run = function() require("amanu.chat.prompt").hide() end },
  ["/help"] = { what = "this", run = function() M.help() end },
} -- stylua: ignore
M.all["/cancel"] = M.all["/stop"]

---@type amanu.Command[] What the daemon knows besides: a prompt that begins with one is said, and means something there.
M.theirs = {}

---Ask what there is now: they are files, which come and go.
---@param done? fun()
function M.fetch(done)
  local params = { sessionId = session.state and session.state.sessionId }
  client.request(methods.command_list, params, function(why, result)
    M.theirs = not why and result.commands or M.theirs
    if done then
      done()
    end
  end)
end

local WHOSE = {
  workspace = " (of this workspace)",
  user = " (yours)",
  skill = " (skill)",
  plugin = " (of a plug-in)",
}

---@return { name: string, what: string }[]
function M.list()
  local found = {}
  for name, command in pairs(M.all) do
    table.insert(found, { name = name, what = command.what })
  end
  for _, each in ipairs(M.theirs) do
    local name = "/" .. each.name
    if not M.all[name] then
      local hint = each.argumentHint ~= "" and visible.line(each.argumentHint, 30) .. ": " or ""
      local whose = WHOSE[each.source] or ""
      table.insert(found, { name = name, what = hint .. visible.line(each.description, 60) .. whose })
    end
  end
  table.sort(found, function(one, other)
    return one.name < other.name
  end)
  return found
end

function M.help()
  M.fetch(function()
    local lines = vim.tbl_map(function(each)
      return ("%-14s %s"):format(each.name, each.what)
    end, M.list())
    vim.api.nvim_echo({ { table.concat(lines, "\n") .. "\n:help amanu says more" } }, false, {})
  end)
end

---Run one of ours, or have a prompt said that begins with one of the daemon's.
---@param line string
---@param say_it fun()
---@param failed? fun(why: string) It was neither, or could not be sent. Else that is said.
---@param lines? integer[] First and last line of the command's range.
function M.run(line, say_it, failed, lines)
  session.forget_refusal()
  local word, rest = line:match("^(%S+)%s*(.*)$")
  local command = M.all[word]
  if command then
    local function go()
      command.run(vim.trim(rest), lines, failed)
    end
    if session.state or word == "/help" or word == "/hide" then
      return go()
    end
    return session.connect(go, failed)
  elseif not word:find("^/[%w_-]+$") then
    return say_it() -- a path, most likely
  end
  local function look()
    M.fetch(function()
      for _, each in ipairs(M.theirs) do
        if "/" .. each.name == word then
          return say_it()
        end
      end
      (failed or say.error)(word .. " is not a command; /help lists them")
    end)
  end
  session.connect(function()
    if session.state then
      look()
    else
      session.create(look, failed) -- a workspace's commands are its sessions'
    end
  end, failed)
end

return M
