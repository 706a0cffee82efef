---Asking the user through `vim.ui`. What others wrote is shown with nothing hidden in it, and never as typed keys:
---Neovim takes the default of an input as if the user had typed it, control keys too.

local visible = require("amanu.visible")

local M = {}

---@param options { prompt: string, default?: string }
---@param done fun(typed?: string)
function M.input(options, done)
  local default = options.default and visible.line(options.default, 4000)
  vim.ui.input({ prompt = visible.line(options.prompt, 400), default = default }, done)
end

---@generic T
---@param items T[]
---@param options { prompt: string, format?: (fun(item: T): string), kind?: string }
---@param done fun(item?: T)
function M.select(items, options, done)
  local format = options.format or tostring
  vim.ui.select(items, {
    prompt = visible.line(options.prompt, 400),
    kind = options.kind,
    format_item = function(item)
      return visible.line(format(item))
    end,
  }, done)
end

---Have the user choose one of several things to do, and do it.
---@param choices { label: string, run: fun() }[]
---@param prompt string
function M.choose(choices, prompt)
  local format = function(choice) return choice.label end -- stylua: ignore
  M.select(choices, { prompt = prompt, format = format }, function(choice)
    if choice then
      choice.run()
    end
  end)
end

return M
