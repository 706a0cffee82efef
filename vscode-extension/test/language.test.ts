import { afterEach, expect, test, vi } from "vitest";
import { sha256 } from "../src/editor/apply";
import { language, renamedFiles } from "../src/editor/language";
import * as stub from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

type Answer = (command: string, ...rest: unknown[]) => Promise<unknown>;
const commands = stub.commands as { executeCommand: Answer };
const workspace = stub.workspace as unknown as Record<string, unknown>;

const at = (path: string) => ({ scheme: "file", fsPath: path, toString: () => `file://${path}` });
const range = (line: number, start: number, end: number) => ({
  start: { line, character: start },
  end: { line, character: end },
});
const told = (line: number, start: number, end: number, newText = "total") => ({
  range: range(line, start, end),
  newText,
});

interface Operation {
  from?: string;
  to?: string;
}

/** As VS Code makes it of what a language server answers. */
function edit(texts: [string, ReturnType<typeof range>[]][], operations: Operation[] = []): never {
  return {
    entries: () =>
      texts.map(([path, ranges]) => [at(path), ranges.map((each) => ({ range: each, newText: "total" }))]),
    _allEntries: () => [
      ...operations.map(({ from, to }) => ({ _type: 1, from: from && at(from), to: to && at(to) })),
      ...texts.map(([path]) => ({ _type: 2, uri: at(path) })),
    ],
  } as never;
}

/** The documents VS Code has, and what its commands answer. */
function open(documents: Record<string, string>, answers: Record<string, unknown> = {}): unknown[][] {
  const asked: unknown[][] = [];
  const documentOf = (path: string) => ({
    uri: at(path),
    languageId: "typescript",
    isClosed: false,
    getText: () => documents[path],
  });
  workspace.textDocuments = Object.keys(documents).map(documentOf);
  workspace.openTextDocument = async (path: string) => documentOf(path);
  commands.executeCommand = async (command, ...rest) => {
    asked.push([command, ...rest]);
    const answer = answers[command];
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return asked;
}

afterEach(() => {
  commands.executeCommand = async () => undefined;
  delete workspace.textDocuments;
});

test.each([
  ["nothing", edit([]), []],
  [
    "two files, one of them open",
    edit([
      ["/w/a.ts", [range(0, 1, 2), range(3, 4, 5)]],
      ["/w/b.ts", [range(0, 0, 1)]],
    ]),
    [
      { path: "/w/a.ts", sha256: sha256("a\n"), edits: [told(0, 1, 2), told(3, 4, 5)] },
      { path: "/w/b.ts", sha256: null, edits: [told(0, 0, 1)] },
    ],
  ],
  [
    "a file that moves, edited under its new name",
    edit([["/w/c.ts", [range(0, 0, 1)]]], [{ from: "/w/b.ts", to: "/w/c.ts" }]),
    [{ path: "/w/b.ts", newPath: "/w/c.ts", sha256: null, edits: [told(0, 0, 1)] }],
  ],
  ["a new file", edit([], [{ to: "/w/c.ts" }]), undefined],
  ["a file that goes", edit([["/w/a.ts", [range(0, 0, 1)]]], [{ from: "/w/b.ts" }]), undefined],
])("a rename that changes %s", (_, change, files) => {
  open({ "/w/a.ts": "a\n" });
  expect(renamedFiles(change)).toEqual(files);
});

const place = { path: "/w/a.ts", position: { line: 0, character: 3 } };

test.each([
  [edit([["/w/a.ts", [range(0, 1, 2)]]]), "success", undefined],
  [edit([["/w/a.ts", [range(0, 1, 2)]]], [{ from: "/w/x.ts" }]), "error", "create or delete files"],
  [undefined, "starting", undefined], // nothing is found at first: its server may come
  [new Error("No result."), "starting", undefined],
])("a rename is answered and not made", async (answer, status, message) => {
  const asked = open({ "/w/a.ts": "𝄞 x\n" }, { "vscode.executeDocumentRenameProvider": answer });
  const result = await language["amanu/editor/rename"]({ ...place, newName: "total" });
  expect(result.status).toBe(status);
  if (message !== undefined) expect(result.message).toContain(message);
  const [[command, , position, name]] = asked as [[string, unknown, stub.Position, string]];
  expect([command, position.character, name]).toEqual(["vscode.executeDocumentRenameProvider", 3, "total"]);
});

test("a hover is one text", async () => {
  const contents = [{ language: "ts", value: "let x: 1" }, "plain", { value: "**bold**" }, " "];
  open({ "/w/a.ts": "x\n" }, { "vscode.executeHoverProvider": [{ contents }] });
  expect(await language["amanu/editor/hover"](place)).toEqual({
    status: "success",
    text: "```ts\nlet x: 1\n```\n\nplain\n\n**bold**",
  });
});

test.each(["incoming", "outgoing"] as const)("%s calls", async (direction) => {
  const item = {
    name: "f",
    kind: 11,
    uri: at("/w/b.ts"),
    range: range(4, 0, 1),
    selectionRange: range(4, 0, 1),
  };
  const call = {
    [direction === "incoming" ? "from" : "to"]: item,
    fromRanges: [range(7, 0, 1), range(7, 4, 5), range(9, 0, 1)],
  };
  const asked = open(
    { "/w/a.ts": "x\n" },
    {
      "vscode.prepareCallHierarchy": [item],
      "vscode.provideIncomingCalls": direction === "incoming" ? [call] : [],
      "vscode.provideOutgoingCalls": direction === "outgoing" ? [call] : [],
    },
  );
  expect(await language["amanu/editor/callHierarchy"]({ ...place, direction })).toEqual({
    status: "success",
    calls: [
      {
        symbol: { name: "f", kind: "function", path: "/w/b.ts", lines: { start: 4, end: 5 } },
        lines: [7, 9],
      },
    ],
  });
  expect(asked.length).toBe(2);
});
