import { beforeEach, expect, test, vi } from "vitest";
import type * as vscode from "vscode";
import type { Notification } from "../src/chat/chat";
import type { OpenChats } from "../src/chat/openChats";
import type { Daemon } from "../src/daemon/client";
import type { Proposal } from "../src/protocol";
import { targets } from "../src/review/changes";
import { Edits } from "../src/review/edits";
import { Places } from "../src/review/places";
import { Proposals, proposedUri } from "../src/review/proposals";
import { Texts } from "../src/review/texts";
import type { Sessions } from "../src/sessions/sessions";
import { file, hunk, proposal } from "./edits";
import { state } from "./states";
import { typed, Uri, workspace } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => workspace.textDocuments.splice(0));

const BASE = "one\ntwo\nthree\n";
const TEXT = "one\nzwei\nthree\n";
const version = (number: number): Proposal => ({
  ...proposal("p", "t", [file("/w/a", BASE, [hunk("h", 2, "two\n", "zwei\n")])]),
  version: number,
});

/** An editor of what is proposed, and a daemon that has one text of it after another. */
function editor() {
  const asked: [string, object][] = [];
  const told: string[] = [];
  const sessions = { states: [state({ proposals: [version(1)] })], get: () => undefined };
  const { hunks = [] } = version(1).files[0] ?? {};
  const daemon = { version: 1, text: TEXT, outside: false, hunks, previews: 0, isDown: false };
  const request = async (method: string, params: Record<string, unknown>) => {
    const name = method.replace("amanu/proposal/", "");
    if (name !== "preview") asked.push([name, params]);
    if (name === "revise" && "seenText" in params && params.seenText !== null) throw new Error("they meet");
    if (name === "revise") return { proposal: version((daemon.version += 1)), outside: daemon.outside };
    if (name !== "preview") return { status: "resolved", proposal: version(daemon.version) };
    daemon.previews += 1;
    if (daemon.isDown) throw new Error("The daemon is not running.");
    const previewed = daemon.hunks.map((each) => ({ hunk: each, contextBefore: [], contextAfter: [] }));
    const shown = { proposalId: "p", path: "/w/a", version: daemon.version, text: daemon.text, base: BASE };
    return { files: [{ ...shown, hunks: previewed }] };
  };
  const server = { request } as unknown as Daemon;
  const openChats = { tell: ({ text }: Notification) => void told.push(text) } as unknown as OpenChats;
  const edits = new Edits(sessions, openChats, server, () => undefined);
  const proposals = new Proposals(sessions as unknown as Sessions, openChats, edits, new Texts(server));
  const target = () => targets(sessions.states)[0]!;
  const uri = proposedUri(target()) as unknown as Uri & vscode.Uri;
  const document = {
    uri,
    version: 1,
    isDirty: false,
    text: "",
    getText: () => document.text,
    save: async () => true,
  };
  const read = async () =>
    (document.text = Buffer.from(await proposals.readFile(uri))
      .toString()
      .slice(1));
  /** The user types instead of those lines. */
  const type = (start: number, end: number, text: string) => {
    const lines = document.text.split("\n");
    lines.splice(start, end - start, ...text.split("\n").slice(0, -1));
    Object.assign(document, { text: lines.join("\n"), isDirty: true, version: document.version + 1 });
    const range = { start: { line: start, character: 0 }, end: { line: end, character: 0 } };
    typed.fire({ document, contentChanges: [{ range, text }] });
  };
  const changed = (now: Proposal) => {
    sessions.states = [state({ proposals: [now] })];
    proposals.changed({ event: { kind: "proposalChanged", proposal: now } });
  };
  workspace.textDocuments.push(document);
  const places = new Places(proposals);
  const lines = () => places.in(document as never).map(({ start, lines }) => [start, start + lines]);
  return { asked, told, daemon, sessions, proposals, target, uri, document, read, type, changed, lines };
}

test("both sides are asked of the daemon, and asked again when the proposal has changed", async () => {
  const { daemon, proposals, uri, read, changed } = editor();
  expect(await read()).toBe(TEXT);
  const base = async () => Buffer.from(await proposals.readFile(uri.with({ scheme: "amanu-base" }) as never));
  expect((await base()).toString().slice(1)).toBe(BASE);
  Object.assign(daemon, { text: "other\n", version: 2 });
  expect(await read()).toBe(TEXT); // nobody has told of another
  changed(version(2));
  expect(await read()).toBe("other\n");
});

test("places follow what is typed, and begin anew with a text that is read", async () => {
  const { document, read, type, lines } = editor();
  await read();
  expect(lines()).toEqual([[1, 2]]);
  type(0, 0, "zero\n");
  type(2, 2, "more\n");
  expect(lines()).toEqual([[3, 4]]);
  type(3, 4, "zwei\nund mehr\n");
  expect(lines()).toEqual([[3, 5]]);
  Object.assign(document, { isDirty: false });
  typed.fire({ document, contentChanges: [] });
  expect(lines()).toEqual([[1, 2]]);
});

test("a change that is another one by now is not offered where the old text is shown", async () => {
  const { read, changed, lines } = editor();
  await read();
  const now = version(2);
  changed({ ...now, files: [file("/w/a", BASE, [hunk("h", 2, "two\n", "deux\n")])] });
  expect(lines()).toEqual([]);
});

test.each([false, true])(
  "unsaved edits go first, and the decision names their version; outside: %s",
  async (outside) => {
    const { asked, told, daemon, proposals, target, read, type } = editor();
    Object.assign(daemon, { outside });
    await read();
    type(1, 2, "deux\n");
    await proposals.settle([target()], () => true, true);
    expect(asked).toEqual([
      [
        "revise",
        {
          ...{ sessionId: "s1", proposalId: "p", version: 1, path: "/w/a" },
          ...{ newText: "one\ndeux\nthree\n", seenText: null },
        },
      ],
      ...(outside
        ? [] // a yes would not write all that is shown
        : [
            [
              "resolve",
              {
                sessionId: "s1",
                proposalId: "p",
                version: 2,
                hunks: [{ hunkId: "h", decision: "accept" }],
                rows: [],
              },
            ],
          ]),
    ]);
    expect(told.map((text) => /^Edits outside/.test(text))).toEqual(outside ? [true] : []);
  },
);

test("edits of a text that is another one by now are not taken, nor is anything decided with them", async () => {
  const { asked, told, daemon, proposals, target, uri, read, type } = editor();
  await read();
  type(1, 2, "deux\n");
  Object.assign(daemon, { text: "other\n", version: 2 });
  await proposals.settle([target()], () => true, true);
  await expect(proposals.writeFile(uri, Buffer.from("deux\n"))).rejects.toThrow("has changed since");
  expect(asked.map(([, params]) => params)).toEqual([
    expect.objectContaining({ seenText: TEXT, newText: TEXT.replace("zwei", "deux") }),
    expect.objectContaining({ seenText: TEXT, newText: "deux\n" }),
  ]);
  expect(told).toEqual([expect.stringContaining("has changed since")]);
});

test("what a file is compared with is read again in every session when one changes it", () => {
  const { proposals, sessions } = editor();
  sessions.states = [state({ proposals: [version(1)] }), state({ sessionId: "s2" })];
  const touched: string[] = [];
  proposals.onDidChangeFile((changes) => touched.push(...changes.map(({ uri }) => uri.toString())));
  proposals.changed({ event: { kind: "proposalChanged", proposal: version(2) } });
  expect(touched.filter((uri) => uri.startsWith("amanu-base://"))).toEqual([
    "amanu-base://unreviewed/w/a?",
    "amanu-base://session/w/a?s1",
    "amanu-base://session/w/a?s2",
  ]);
});

test("both sides of all files of an editor are asked for at once", async () => {
  const { daemon, proposals, target, uri, read, changed } = editor();
  proposals.readAhead("s1", [target()]);
  expect(await read()).toBe(TEXT);
  expect(Buffer.from(await proposals.readFile(uri.with({ scheme: "amanu-base" }) as never)).length).toBe(
    BASE.length + 3,
  );
  expect(daemon.previews).toBe(1);
  Object.assign(daemon, { text: "other\n", version: 2 });
  changed(version(2));
  expect(await read()).toBe("other\n");
});

test("a text that could not be had ahead is asked for when it is read", async () => {
  const { daemon, proposals, target, read } = editor();
  daemon.isDown = true;
  proposals.readAhead("s1", [target()]);
  daemon.isDown = false;
  expect(await read()).toBe(TEXT);
});

test("nothing is asked ahead of a file in which nothing waits", async () => {
  const { daemon, proposals, target, read } = editor();
  proposals.readAhead("s1", [{ ...target(), file: { ...target().file, hunks: [] } }]);
  await read();
  expect(daemon.previews).toBe(2);
});

test("only what is another one than before is read again, and where the user types", () => {
  const { proposals, sessions } = editor();
  const touched: string[] = [];
  proposals.onDidChangeFile((changes) =>
    touched.push(
      ...changes.filter(({ uri }) => uri.authority === "").map(({ uri }) => uri.scheme + uri.path),
    ),
  );
  const news = (act: () => void) => {
    touched.length = 0;
    act();
    return touched;
  };
  const tell = () => proposals.changed({ event: { kind: "proposalChanged", proposal: version(1) } });
  sessions.states = [state({ proposals: [version(1)] })];
  expect(news(tell)).toEqual(["amanu-proposal/a", "amanu-base/a"]);
  expect(news(tell)).toEqual([]);
  expect(news(() => proposals.typed("/w/b"))).toEqual([]);
  expect(news(() => proposals.typed("/w/a"))).toEqual(["amanu-proposal/a", "amanu-base/a"]);
});

test("a text that nobody told of is read after the first edit that does not fit it, and can be edited", async () => {
  const { asked, daemon, proposals, uri, read } = editor();
  const touched: string[] = [];
  proposals.onDidChangeFile((changes) => touched.push(...changes.map(({ uri: { scheme } }) => scheme)));
  await read();
  Object.assign(daemon, { text: `zero\n${TEXT}`, version: 2 });
  await expect(proposals.writeFile(uri, Buffer.from("deux\n"))).rejects.toThrow("has changed since");
  expect(touched).toEqual(["amanu-proposal", "amanu-base"]);
  expect(await read()).toBe(`zero\n${TEXT}`);
  await proposals.writeFile(uri, Buffer.from("zero\none\ndeux\nthree\n"));
  expect(asked.map(([, params]) => "seenText" in params && params.seenText)).toEqual([TEXT, null]);
});

test("who types on while the text is saved is heard each time", async () => {
  const { asked, proposals, uri, document, read, type } = editor();
  await read();
  for (const text of ["d\n", "de\n", "deux\n"]) {
    type(1, 2, text);
    await proposals.writeFile(uri, Buffer.from(document.text));
  }
  expect(asked.map(([, params]) => "newText" in params && params.newText)).toEqual(
    ["d", "de", "deux"].map((text) => TEXT.replace("zwei", text)),
  );
});

test.each(["the diff is saved", "the change is accepted"])(
  "what is typed while %s moves places once",
  async (how) => {
    const { daemon, proposals, target, uri, document, read, type, changed, lines } = editor();
    await read();
    type(1, 1, "before\n");
    Object.assign(daemon, {
      hunks: daemon.hunks.map((each) => ({ ...each, proposedLines: { start: 2, end: 3 } })),
    });
    const done = /saved/.test(how)
      ? proposals.writeFile(uri, Buffer.from(document.text))
      : proposals.settle([target()], () => true, true);
    type(0, 0, "typed meanwhile\n");
    await done;
    expect(lines()).toEqual([[3, 4]]);
    changed(version(2));
    await read();
    Object.assign(document, { isDirty: false });
    typed.fire({ document, contentChanges: [] });
    type(0, 0, "first\n");
    expect(lines()).toEqual([[3, 4]]);
  },
);
