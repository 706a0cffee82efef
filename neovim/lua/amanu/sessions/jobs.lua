---The commands that run in the background: a list, and the output of each in a buffer that follows it.

local ask = require("amanu.ask")
local methods = require("amanu.protocol").methods
local say = require("amanu.say")
local session = require("amanu.session")
local visible = require("amanu.visible")

local M = {}

---@type table<integer, { session: string, job: string, offset: integer, busy: boolean, partial: string }> By buffer.
local shown = {}

---@param ms integer
---@return string
local function duration(ms)
  local seconds = math.max(0, math.floor(ms / 1000))
  return seconds < 60 and seconds .. " s" or ("%d min %d s"):format(math.floor(seconds / 60), seconds % 60)
end

---@param job amanu.Job
---@return string
function M.label(job)
  local parts = { job.jobId, visible.line(job.title, 50), visible.line(job.summary, 60) }
  if job.state == "running" then
    parts[3] = parts[3] .. " for " .. duration(os.time() * 1000 - job.startedAt)
  end
  if job.lastLine ~= "" then
    table.insert(parts, visible.line(job.lastLine, 60))
  end
  return table.concat(parts, " · ")
end

---For the status line; nil when nothing runs.
---@param state amanu.SessionState
---@return string?
function M.running(state)
  local count = 0
  for _, job in ipairs(state.jobs or {}) do
    count = count + (job.state == "running" and 1 or 0)
  end
  return count > 0 and count .. " in the background" or nil
end

---@param buffer integer
---@param text string
local function append(buffer, text)
  local last = vim.api.nvim_buf_line_count(buffer)
  local windows = vim.tbl_filter(function(window)
    return vim.api.nvim_win_get_cursor(window)[1] == last
  end, vim.fn.win_findbuf(buffer))
  local lines = vim.split(shown[buffer].partial .. visible.text(text), "\n", { plain = true })
  shown[buffer].partial = lines[#lines]
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, last - 1, last, true, lines)
  vim.bo[buffer].modifiable = false
  for _, window in ipairs(windows) do -- whoever is at the end stays there
    vim.api.nvim_win_set_cursor(window, { vim.api.nvim_buf_line_count(buffer), 0 })
  end
end

---Add what has been printed since.
---@param buffer integer
local function read(buffer)
  local at = shown[buffer]
  if at.busy or not session.state or session.state.sessionId ~= at.session then
    return
  end
  at.busy = true
  session.ask(methods.job_output, { jobId = at.job, offset = at.offset }, function(result)
    at.busy = false
    if not vim.api.nvim_buf_is_valid(buffer) or result.nextOffset == at.offset then
      return
    end
    at.offset = result.nextOffset
    local gap = result.missing > 0 and ("[… %d bytes left out …]\n"):format(result.missing) or ""
    append(buffer, gap .. result.text)
    read(buffer)
  end, function()
    at.busy = false
  end)
end

---@param job amanu.Job
function M.open(job)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].modifiable = false
  shown[buffer] = { session = session.state.sessionId, job = job.jobId, offset = 0, busy = false, partial = "" }
  vim.api.nvim_create_autocmd("BufWipeout", { buffer = buffer, callback = function() shown[buffer] = nil end }) -- stylua: ignore
  vim.api.nvim_open_win(buffer, true, { split = "below", win = 0 })
  vim.wo.winbar = visible.line(job.jobId .. " · " .. job.title, 80):gsub("%%", "%%%%")
  read(buffer)
end

---@param job amanu.Job
function M.stop(job)
  session.ask(methods.job_stop, { jobId = job.jobId }, function(result)
    say.now(M.label(result.job))
  end)
end

---What has happened: open buffers keep up.
---@param event? table
function M.on_event(event)
  for buffer, at in pairs(shown) do
    if not event or event.jobId == at.job or (event.job and event.job.jobId == at.job) then
      read(buffer)
    end
  end
end

---What can be done about these.
---@param jobs amanu.Job[]
---@return { label: string, run: fun() }[]
function M.choices(jobs)
  local found = {}
  for _, job in ipairs(jobs) do
    table.insert(found, { label = "Output of " .. M.label(job), run = function() M.open(job) end }) -- stylua: ignore
    if job.state == "running" then
      table.insert(found, { label = "Stop " .. M.label(job), run = function() M.stop(job) end }) -- stylua: ignore
    end
  end
  return found
end

---`/jobs`, `/jobs stop ID`, `/jobs output ID`.
---@param rest string
function M.run(rest)
  local jobs = session.state and session.state.jobs or {}
  if #jobs == 0 then
    return say.now("no background commands")
  end
  local verb, wanted = rest:match("^(%S+)%s+(%S+)$")
  if verb == "stop" or verb == "output" then
    for _, job in ipairs(jobs) do
      if job.jobId == wanted or job.jobId == "job-" .. wanted then
        return verb == "stop" and M.stop(job) or M.open(job)
      end
    end
    return say.now("there is no background command " .. visible.line(wanted, 40))
  elseif rest ~= "" then
    return say.now("name one: /jobs stop ID, /jobs output ID")
  end
  ask.choose(M.choices(jobs), "Background commands")
end

return M
