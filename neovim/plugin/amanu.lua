if vim.g.loaded_amanu or vim.fn.has("nvim-0.10") == 0 then
  return
end
vim.g.loaded_amanu = true

vim.api.nvim_create_user_command("Amanu", function(given)
  require("amanu").command(given)
end, {
  nargs = "*",
  range = true,
  desc = "Say something to Amanu, or /command",
  complete = function(...)
    return require("amanu.chat.complete").command_line(...)
  end,
})

vim.api.nvim_create_user_command("AmanuEdit", function(given)
  local lines = given.range > 0 and { given.line1, given.line2 } or nil
  require("amanu").edit(given.args, lines)
end, {
  nargs = "*",
  range = true,
  desc = "Have Amanu rewrite the line or range",
})
