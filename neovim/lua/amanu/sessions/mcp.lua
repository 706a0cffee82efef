---MCP servers: a list, all there is to know of one, and what the user can do about it. The daemon words them; an approval is
---for what was shown.

local ask = require("amanu.ask")
local client = require("amanu.wire.client")
local methods = require("amanu.protocol").methods
local page = require("amanu.chat.page")
local say = require("amanu.say")
local session = require("amanu.session")
local worded = require("amanu.chat.worded")

local M = {}

---@param use fun(result: amanu.McpListResult)
function M.with_list(use)
  if session.state then
    return session.ask(methods.mcp_list, {}, use)
  end
  session.create(function() -- servers are those of a session's folders
    session.ask(methods.mcp_list, {}, use)
  end)
end

---The line that stands for a server.
---@param server amanu.McpServer
---@return string
function M.label(server)
  return worded.lines(server.lines)[1] or server.name
end

---@param method string
---@param server amanu.McpServer
---@param params? table
local function decide(method, server, params)
  params = vim.tbl_extend("error", { name = server.name }, params or {})
  session.ask(method, params, function(result)
    say.now(vim.split(result.summary, "\n", { plain = true })[1])
  end)
end

---@param server amanu.McpServer
local function sign_in(server)
  session.ask(methods.mcp_sign_in, { name = server.name }, function(result)
    say.now(result.summary)
    if result.url and result.url:find("^https?://") then
      vim.ui.open(result.url)
    end
  end)
end

---@param server amanu.McpServer
---@return { label: string, run: fun() }[]
local function choices(server)
  local found = {}
  local function add(label, run)
    table.insert(found, { label = label, run = run })
  end
  if server.state == "unapproved" or server.state == "off" then
    add("Approve and start", function()
      decide(methods.mcp_approve, server, { digest = server.digest })
    end)
  elseif #server.changedTools > 0 then
    add("Approve the tools as they are now", function()
      decide(methods.mcp_approve_tools, server, { toolsDigest = server.toolsDigest })
    end)
  end
  if server.state == "needsSignIn" then
    add("Sign in", function()
      sign_in(server)
    end)
  end
  if server.state ~= "unapproved" and server.state ~= "off" then
    add("Restart", function()
      decide(methods.mcp_restart, server)
    end)
    add("Turn off", function()
      decide(methods.mcp_turn_off, server)
    end)
  end
  return found
end

---Show all there is to know of it, with the changes of its tools, and ask what to do.
---@param server amanu.McpServer
function M.show(server)
  local window = page.open("mcp-" .. server.name, worded.lines(server.lines))
  vim.cmd.redraw() -- what is asked about is to be seen below the question
  local offered = choices(server)
  for _, choice in ipairs(offered) do
    local run = choice.run
    choice.run = function()
      run()
      pcall(vim.api.nvim_win_close, window, true)
    end
  end
  ask.choose(offered, "MCP server " .. server.name)
end

---@param servers amanu.McpServer[]
---@return { label: string, run: fun() }[]
function M.choices(servers)
  return vim.tbl_map(function(server)
    return {
      label = M.label(server),
      run = function()
        M.show(server)
      end,
    }
  end, servers)
end

---`/mcp`; what follows it is the daemon's.
---@param rest string
function M.run(rest)
  if rest ~= "" then
    return session.prompt("/mcp " .. rest, {})
  end
  M.with_list(function(result)
    if #result.servers == 0 then
      return say.now(result.summary)
    end
    ask.choose(M.choices(result.servers), "MCP servers")
  end)
end

return M
