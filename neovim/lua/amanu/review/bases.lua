---The base texts of proposed files; a big file's is fetched when a diff shows it.

local client = require("amanu.wire.client")
local methods = require("amanu.protocol").methods

local M = {}

---How many texts are kept: enough for a few open diffs.
local KEPT = 4
---Bytes asked for at once: the most the daemon gives.
local PAGE = 4194304

---@type { blob: string, text: string }[] The last fetched last.
local fetched = {}

---Nil while it has not been loaded.
---@param file amanu.ProposedFile
---@return string?
function M.text(file)
  if not file.baseBlob then
    return file.baseText or ""
  end
  for _, each in ipairs(fetched) do
    if each.blob == file.baseBlob then
      return each.text
    end
  end
end

---@param session_id string
---@param file amanu.ProposedFile
---@param done fun(why?: string) Called with nil once the text is loaded, else with the reason, as a sentence.
function M.load(session_id, file, done)
  if M.text(file) then
    return done()
  end
  local pages = {}
  local function fetch(offset)
    local params = { sessionId = session_id, blobId = file.baseBlob, offset = offset, limit = PAGE }
    client.request(methods.blob_get, params, function(why, page)
      if why or not page then
        return done(why)
      end
      table.insert(pages, page.text)
      if page.nextOffset then
        return fetch(page.nextOffset)
      end
      table.insert(fetched, { blob = file.baseBlob, text = table.concat(pages) })
      if #fetched > KEPT then
        table.remove(fetched, 1)
      end
      done()
    end)
  end
  fetch(0)
end

return M
