---The commands of the prompt and of `:Amanu`: the words of `amanu chat`, and a few of the editor.

local session = require("amanu.session")
local say = require("amanu.say")

local M = {}

---@type table<string, { what: string, run: fun(rest: string) }>
M.all = {
  ["/approve"] = { what = "answer the question that waits", run = function() require("amanu.approve").ask() end },
  ["/stop"] = { what = "stop the turn", run = function() session.stop() end },
  ["/queue"] = { what = "TEXT: say it after the running turn (plain text goes into it)", run = function(rest)
    if rest == "" then
      return say.now("what should wait? /queue TEXT")
    end
    session.prompt(rest, {}, true)
  end },
  ["/unqueue"] = { what = "take a queued prompt back", run = function() require("amanu.sessions").unqueue() end },
  ["/diff"] = { what = "proposed changes side by side", run = function() require("amanu.diff").open() end },
  ["/hunks"] = { what = "open hunks in the quickfix list", run = function() require("amanu.review").quickfix() end },
  ["/finish"] = { what = "end the review; undecided hunks stay open", run = function() require("amanu.approve").finish() end },
  ["/sessions"] = { what = "sessions of this folder: resume, rename, delete", run = function() require("amanu.sessions").list() end },
  ["/rename"] = { what = "TITLE: name this session", run = function(rest) require("amanu.sessions").rename(rest) end },
  ["/new"] = { what = "a new session", run = function() require("amanu.sessions").new() end },
  ["/mode"] = { what = "plan, ask, acceptEdits or auto", run = function(rest) require("amanu.sessions").mode(rest) end },
  ["/model"] = { what = "choose a model", run = function(rest) require("amanu.sessions").model(rest) end },
  ["/trust"] = { what = "declare this folder trusted, for this user", run = function() require("amanu.sessions").trust(true) end },
  ["/untrust"] = { what = "take that back", run = function() require("amanu.sessions").trust(false) end },
  ["/output"] = { what = "the whole output of the tool call under the cursor", run = function() require("amanu.output").open() end },
  ["/earlier"] = { what = "show earlier items of a long session", run = function() session.earlier() end },
  ["/hide"] = { what = "close chat and prompt; everything goes on", run = function() require("amanu.prompt").hide() end },
  ["/help"] = { what = "this", run = function() M.help() end },
} -- stylua: ignore
M.all["/cancel"] = M.all["/stop"]

function M.help()
  local names = vim.tbl_keys(M.all)
  table.sort(names)
  local lines = vim.tbl_map(function(name)
    return ("%-10s %s"):format(name, M.all[name].what)
  end, names)
  vim.api.nvim_echo({ { table.concat(lines, "\n") .. "\n:help amanu says more" } }, false, {})
end

---@param line string
function M.run(line)
  local word, rest = line:match("^(%S+)%s*(.*)$")
  local command = M.all[word]
  if not command then
    return say.error(word .. " is not a command; /help lists them")
  end
  local function go()
    command.run(vim.trim(rest))
  end
  if session.state or word == "/help" or word == "/hide" then
    return go()
  end
  session.connect(go)
end


return M
