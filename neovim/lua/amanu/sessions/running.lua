---Everything that runs for the session: agents, background commands, MCP servers.

local agents = require("amanu.sessions.agents")
local ask = require("amanu.ask")
local jobs = require("amanu.sessions.jobs")
local mcp = require("amanu.sessions.mcp")
local say = require("amanu.say")
local session = require("amanu.session")

local M = {}

---A list to choose from: what runs, and what can be done about it.
function M.list()
  mcp.with_list(function(result)
    local state = session.state or {}
    local choices = agents.choices(vim.tbl_filter(agents.works, state.agents or {}))
    local function running(job)
      return job.state == "running"
    end
    local function up(server)
      return server.state == "starting" or server.state == "ready"
    end
    vim.list_extend(choices, jobs.choices(vim.tbl_filter(running, state.jobs or {})))
    vim.list_extend(choices, mcp.choices(vim.tbl_filter(up, result.servers)))
    if #choices == 0 then
      return say.now("nothing is running")
    end
    ask.choose(choices, "Running")
  end)
end

return M
