// A client of Amanu for Node 20, without packages: it streams, asks, reviews hunk by hunk, undoes, and survives a cut.
// `node minimal_client.mjs PROMPT` needs `amanu` on PATH. docs/protocol.md explains each message.

import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { createInterface } from "node:readline"

const CUT = new Error("The connection was cut.")
const sessionId = randomUUID()
const [requests, drawn] = [new Map(), new Map()] // drawn: of each item, how much is on the screen
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
let daemon = null // the process of the present connection
let state, epoch, seq // the session, and the last event that is in it
let wake = () => {}

async function connect() {
  daemon = spawn("amanu", ["serve"], { stdio: ["pipe", "pipe", "inherit"] })
  daemon.stdin.on("error", () => {}) // the end of its output says the same
  read(daemon.stdout)
  const capabilities = { experimental: { amanu: { protocol: [4] } } }
  await request("initialize", { processId: process.pid, rootUri: null, capabilities })
  send({ method: "initialized", params: {} })
}

async function read(stream) {
  let unread = Buffer.alloc(0)
  for await (const chunk of stream) {
    unread = Buffer.concat([unread, chunk])
    for (let start; (start = unread.indexOf("\r\n\r\n") + 4) > 3; ) {
      const end = start + Number(/Content-Length: *(\d+)/i.exec(unread.subarray(0, start))[1])
      if (unread.length < end) break
      receive(JSON.parse(unread.subarray(start, end)))
      unread = unread.subarray(end)
    }
  }
  daemon = null
  for (const { reject } of requests.values()) reject(CUT)
  requests.clear()
  wake()
}

function receive({ id, method, params, result, error }) {
  if (method) return method === "amanu/event" && take(params)
  const { resolve, reject } = requests.get(id)
  requests.delete(id)
  if (error) return reject(new Error(`${error.message} ${error.data?.hint ?? ""}`))
  if (result?.state) [state, epoch, seq] = [result.state, result.epoch, result.fromSeq - 1]
  for (const message of result?.events ?? []) take(message) // now, before the event behind this reply
  state?.items.forEach(draw)
  resolve(result)
}

function send(message) {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }))
  daemon.stdin.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]))
}

function request(method, params) {
  const id = randomUUID()
  send({ id, method, params })
  return new Promise((resolve, reject) => requests.set(id, { resolve, reject }))
}

const attach = () => request("amanu/session/attach", { sessionId, epoch, sinceSeq: seq })
async function call(method, params) {
  for (let pause = 100; ; pause = Math.min(2 * pause, 10_000))
    try {
      if (daemon === null) await connect().then(() => state && attach())
      return await request(method, { sessionId, ...params }) // after a cut again: a repeat does no harm
    } catch (error) {
      if (error !== CUT) throw error
      await new Promise(resolve => setTimeout(resolve, pause))
    }
}

function take(message) {
  const { event } = message
  if (message.sessionId !== sessionId || (message.epoch === epoch && message.seq <= seq)) return
  if (message.epoch !== epoch || (event.replacesFrom ?? message.seq) > seq + 1) return void attach().catch(() => {})
  seq = message.seq
  const item = event.kind === "itemDelta" && state.items.find(each => each.itemId === event.itemId)
  if (item && item.kind !== "toolCall") item.text += event.text
  if (event.item) put(state.items, "itemId", event.item)
  if (event.kind === "itemsReplaced") event.items.forEach(each => put(state.items, "itemId", each))
  if (event.kind === "approvalRequested") put(state.approvals, "toolCallId", event.approval)
  if (event.kind === "approvalResolved") put(state.approvals, "toolCallId", event, [])
  if (event.kind === "proposalChanged") put(state.proposals, "proposalId", event.proposal)
  if (event.kind === "turnEnded") [state.lastTurn, state.approvals] = [event, []]
  state.items.forEach(draw)
  wake()
}

function put(list, key, one, instead = [one]) {
  const at = list.findIndex(each => each[key] === one[key])
  list.splice(at < 0 ? list.length : at, 1, ...instead)
}

function draw({ kind, itemId, text, title, state, summary }) {
  const used = /succeeded|failed|cancelled|rejected/.test(state) ? `\n${title}: ${state} ${summary}\n` : ""
  const whole = { thought: `\n~ ${text}`, answer: `\n${text}`, notice: `\n! ${text}\n`, toolCall: used }[kind] ?? ""
  say(whole.slice(drawn.get(itemId) ?? 0))
  drawn.set(itemId, whole.length)
}

const say = text => process.stdout.write(text)
const ask = async question => (say(question), (await input.next()).value.trim())
// It may have come too soon, or too late: the state has what is still to be asked.
const decide = (...sent) => call(...sent).then(({ status }) => say(`${status}\n`), error => say(`${error.message}\n`))

async function answer({ title, detail, answers, toolCallId, digest, proposalId }) {
  const buttons = answers.filter(each => !each.further)
  say(`\n${title}\n${detail}\n${buttons.map(({ label }, index) => `${index + 1}. ${label}\n`).join("")}`)
  const chosen = buttons[Number(await ask("which? ")) - 1]
  if (!chosen || chosen.action === "review") return chosen && review(proposalId)
  const asked = chosen.asks && { [chosen.asks]: await ask(`${chosen.asks}? `) }
  const decision = chosen.action === "editCommand" ? "allow" : chosen.action
  await decide("amanu/approval/resolve", { ...chosen, ...asked, decision, toolCallId, digest })
}

async function review(proposalId) {
  const { version, rows } = state.proposals.find(each => each.proposalId === proposalId)
  const { files } = await call("amanu/proposal/preview", { scope: { proposalId } })
  const answers = { hunks: [], rows: [] }
  const accepted = async shown => ((await ask(`\n${shown}accept? [y/n] `)) === "y" ? "accept" : "reject")
  const marked = (mark, text) => text.replace(/^(?=.)/gms, mark)
  const around = lines => lines.map(line => `  ${line}\n`).join("")
  for (const { title, hunks } of files)
    for (const { hunk, contextBefore, contextAfter } of hunks) {
      const change = marked("- ", hunk.oldText) + marked("+ ", hunk.newText)
      const shown = `${title}, line ${hunk.lines.start + 1}\n${around(contextBefore)}${change}${around(contextAfter)}`
      answers.hunks.push({ hunkId: hunk.hunkId, decision: await accepted(shown) })
    }
  for (const { rowId, path, title } of rows.filter(each => each.verbs.includes("accept")))
    answers.rows.push({ rowId, decision: await accepted(`${path}: ${title}\n`) })
  await decide("amanu/proposal/resolve", { proposalId, version, ...answers })
}

await call("amanu/session/create", { roots: [process.cwd()] })
await call("amanu/prompt/send", { promptId: randomUUID(), text: process.argv.slice(2).join(" ") })
while (!state.lastTurn)
  if (daemon === null) await call("amanu/session/list")
  else if (state.approvals.length) await answer(state.approvals[0])
  else await new Promise(resolve => (wake = resolve))
const scope = { turnId: state.lastTurn.turnId }
say(`\n${state.lastTurn.reason}\n${(await call("amanu/proposal/diff", { scope })).diff}`)
const undone = (await ask("undo? [y/n] ")) === "y" ? await call("amanu/proposal/undo", { scope }) : { files: [] }
for (const file of undone.files) say(`${file.path}: ${[file.action, ...file.skipped.map(each => each.reason)]}\n`)
await request("shutdown")
daemon.on("close", code => process.exit(code))
send({ method: "exit" })
