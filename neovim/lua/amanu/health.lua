---`:checkhealth amanu`.

local visible = require("amanu.visible")

local M = {}

local ANSWER_MS = 10000 -- a daemon that has just started imports much

local WHENCE = { signIn = "signed in", endedSignIn = "the sign-in has ended: :Amanu /login" }

---@param root string
local function check_daemon(root)
  local client, config = require("amanu.wire.client"), require("amanu.config")
  local command, why = client.command(root)
  if not command then
    return vim.health.error(why or "")
  end
  local origin = config.now.cmd and "from setup" or command[1] == client.built and "built in the plugin's checkout" or "from PATH"
  vim.health.ok(("daemon: %s (%s)"):format(table.concat(command, " "), origin))
  local done = vim.system({ command[1], "--version" }, { cwd = "/", timeout = 10000 }):wait()
  if done.code ~= 0 then
    vim.health.error(command[1] .. " --version failed: " .. visible.text(vim.trim(done.stderr or "")))
  else
    vim.health.ok(vim.trim(done.stdout))
  end
end

local function check_session()
  local client, session = require("amanu.wire.client"), require("amanu.session")
  if not client.get() then
    return vim.health.info("not connected; the first :Amanu connects")
  end
  vim.health.ok("connected to the daemon, version " .. tostring(client.version))
  vim.health.info("shown to the daemon: files in " .. table.concat(client.roots, ", "))
  local answer
  client.request(require("amanu.protocol").methods.auth_status, {}, function(why, result)
    answer = { why = why, vendors = result and result.vendors or {} }
  end)
  vim.wait(ANSWER_MS, function()
    return answer ~= nil
  end)
  if not answer or answer.why then
    vim.health.error("the daemon does not answer: " .. (answer and answer.why or "nothing within ten seconds"))
    return
  end
  local keys = {}
  for _, each in ipairs(answer.vendors) do
    if each.source ~= "none" then
      table.insert(keys, ("%s (%s)"):format(each.vendor, each.variable or WHENCE[each.source] or each.source))
    end
  end
  if #keys == 0 then
    vim.health.warn("no key for any vendor", { "In a terminal: amanu auth set anthropic", "or sign in with ChatGPT: :Amanu /login", "or export ANTHROPIC_API_KEY before starting Neovim" })
  else
    vim.health.ok("keys: " .. table.concat(keys, ", "))
  end
  if session.state then
    local trust = session.state.trusted and "trusted"
      or (session.state.trustChanged and "changed since you trusted it" or "not trusted") .. " (:Amanu /trust)"
    vim.health.info(("session “%s”, mode %s, workspace %s"):format(visible.line(session.state.title), session.state.mode, trust))
    local sandbox = session.state.sandbox
    if sandbox and sandbox.tier == "none" then
      vim.health.warn(visible.line(sandbox.summary, 1000), { "In a terminal: amanu doctor" })
    elseif sandbox then
      vim.health.ok(visible.line(sandbox.summary, 1000))
    end
  end
end

function M.check()
  vim.health.start("amanu")
  if vim.fn.has("nvim-0.10") == 0 then
    return vim.health.error("Neovim 0.10 or newer is needed")
  end
  vim.health.ok("Neovim " .. tostring(vim.version()))
  check_daemon(require("amanu.session").root())
  check_session()
  vim.health.info("to report a problem, in a terminal: amanu doctor --report")
end

return M
