// A client of ACP agents, made of the official TypeScript SDK, which reads every message with its own schema. It starts
// the agent once to work with it and once more to load the session, approves the first option of whatever it is asked,
// and prints one line of JSON about it all.
//
//     node acp_peer.mjs FOLDER-OF-NODE-MODULES ROOT COMMAND…

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules, root, ...command] = process.argv.slice(2);
const main = createRequire(join(modules, "_.js")).resolve("@agentclientprotocol/sdk");
const acp = await import(pathToFileURL(main).href);
const parsers = await import(pathToFileURL(join(modules, "@agentclientprotocol/sdk/dist/v1/schema/zod.gen.js")).href);
const { agent: ours, client: theirs, protocol } = acp.methods;

// The types of what the agent sends, by the method: its requests and notifications, and the results of ours.
const SENT = {
  [theirs.session.update]: "SessionNotification",
  [theirs.session.requestPermission]: "RequestPermissionRequest",
  [theirs.elicitation.create]: "CreateElicitationRequest",
  [theirs.fs.readTextFile]: "ReadTextFileRequest",
  [theirs.fs.writeTextFile]: "WriteTextFileRequest",
  [protocol.cancelRequest]: "CancelRequestNotification",
};
const RESULTS = {
  [ours.initialize]: "InitializeResponse",
  [ours.session.new]: "NewSessionResponse",
  [ours.session.load]: "LoadSessionResponse",
  [ours.session.list]: "ListSessionsResponse",
  [ours.session.prompt]: "PromptResponse",
  [ours.session.setMode]: "SetSessionModeResponse",
  [ours.session.setConfigOption]: "SetSessionConfigOptionResponse",
  [ours.session.close]: "CloseSessionResponse",
  [ours.session.delete]: "DeleteSessionResponse",
};

const report = {
  problems: [],
  permissions: [],
  withdrawn: [],
  forms: [],
  read: [],
  written: [],
  prompts: [],
  codes: [],
};
console.error = (...words) => report.problems.push(words.map((word) => JSON.stringify(word) ?? "").join(" "));

// What was sent and is not in what the schema made of it: the SDK drops what it does not know, and takes a default for
// what is malformed.
function lost(sent, parsed, path) {
  if (sent === null || typeof sent !== "object") return Object.is(sent, parsed) ? [] : [path];
  return Object.keys(sent).flatMap((key) => lost(sent[key], parsed?.[key], `${path}.${key}`));
}

function check(name, value) {
  const { success, data, error } = parsers[`z${name}`].safeParse(value);
  if (!success) report.problems.push(`${name}: ${error.message}`);
  else report.problems.push(...lost(value, data, name).map((path) => `${path} is lost`));
}

// The stream of a connection, each message checked as it passes.
function checked({ readable, writable }) {
  const methods = new Map();
  const incoming = new TransformStream({
    transform(message, controller) {
      if (message.method !== undefined) check(SENT[message.method], message.params);
      else if (message.result !== undefined) check(RESULTS[methods.get(message.id)], message.result);
      controller.enqueue(message);
    },
  });
  const outgoing = new TransformStream({
    transform(message, controller) {
      if (message.method !== undefined && "id" in message) methods.set(message.id, message.method);
      controller.enqueue(message);
    },
  });
  outgoing.readable.pipeTo(writable).catch(() => {});
  return { readable: readable.pipeThrough(incoming), writable: outgoing.writable };
}

// Start the agent, do `work` with it, and close its standard input; its exit code.
async function connected(app, work) {
  const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"], cwd: root });
  const ended = new Promise((resolve) => agent.once("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  await app.connectWith(checked(stream), work);
  agent.stdin.end();
  return ended;
}

function initialize(context) {
  return context.request(ours.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientInfo: { name: "peer", version: "1" },
    clientCapabilities: {
      fs: { readTextFile: true, writeTextFile: true },
      terminal: true,
      session: { configOptions: { boolean: {} } },
      auth: { terminal: true },
      elicitation: { form: {} },
    },
  });
}

let updates = {};
let heard = () => {};
let cancelsWhenAsked = false;

const app = acp
  .client({ name: "peer" })
  .onNotification(theirs.session.update, ({ params: { update } }) => {
    updates[update.sessionUpdate] = (updates[update.sessionUpdate] ?? 0) + 1;
    heard(update);
  })
  .onRequest(theirs.session.requestPermission, async ({ params, signal, agent }) => {
    report.permissions.push(params.toolCall.title);
    if (!cancelsWhenAsked) return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
    const withdrawn = once(signal, "abort");
    await agent.notify(ours.session.cancel, { sessionId: params.sessionId });
    await withdrawn;
    report.withdrawn.push(params.toolCall.title);
    return { outcome: { outcome: "cancelled" } };
  })
  .onRequest(theirs.fs.readTextFile, async ({ params }) => {
    report.read.push(params.path);
    return { content: await readFile(params.path, "utf8") };
  })
  .onRequest(theirs.fs.writeTextFile, async ({ params }) => {
    report.written.push(params.path);
    await writeFile(params.path, params.content);
    return {};
  })
  .onRequest(theirs.elicitation.create, ({ params }) => {
    report.forms.push(params.message);
    const choices = Object.entries(params.requestedSchema.properties).filter(([, field]) => field.oneOf);
    const first = choices.map(([name, field]) => [name, field.oneOf[0].const]);
    return { action: "accept", content: Object.fromEntries(first) };
  });

async function prompt(context, sessionId, text) {
  updates = {};
  const { stopReason } = await context.request(ours.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  report.prompts.push({ stopReason, updates });
}

async function work(context) {
  const { agentInfo } = await initialize(context);
  report.agent = agentInfo.name;
  const where = { cwd: root, mcpServers: [] };
  const { sessionId, modes, configOptions } = await context.request(ours.session.new, where);
  report.modes = modes.availableModes.map(({ id }) => id);
  report.options = configOptions.map(({ id }) => id);
  await prompt(context, sessionId, "do it all");

  // Cancelled while the words come, and while a permission is asked for.
  heard = async ({ sessionUpdate }) => {
    if (sessionUpdate !== "agent_message_chunk") return;
    heard = () => {};
    await context.notify(ours.session.cancel, { sessionId });
  };
  await prompt(context, sessionId, "talk");
  cancelsWhenAsked = true;
  await prompt(context, sessionId, "run a command");
  cancelsWhenAsked = false;

  const code = await connected(app, async (other) => {
    await initialize(other);
    const { sessions } = await other.request(ours.session.list, { cwd: root });
    report.listed = sessions.map((each) => each.sessionId === sessionId && each.cwd === root);
    updates = {};
    const loaded = await other.request(ours.session.load, { ...where, sessionId });
    report.replayed = { ...updates };
    report.loadedMode = loaded.modes.currentModeId;
    await other.request(ours.session.close, { sessionId });
  });
  report.codes.push(code);

  await context.request(ours.session.setMode, { sessionId, modeId: "plan" });
  const change = { sessionId, configId: "effort", value: "high" };
  const changed = await context.request(ours.session.setConfigOption, change);
  report.values = Object.fromEntries(changed.configOptions.map(({ id, currentValue }) => [id, currentValue]));
  await context.request(ours.session.close, { sessionId });
  await context.request(ours.session.delete, { sessionId });
  report.left = (await context.request(ours.session.list, {})).sessions.length;
}

try {
  report.codes.push(await connected(app, work));
} catch (error) {
  report.problems.push(String(error.stack ?? error));
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit());
