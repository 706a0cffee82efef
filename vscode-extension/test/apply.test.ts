import { afterEach, expect, test, vi } from "vitest";
import { apply, sha256 } from "../src/editor/apply";
import * as stub from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const workspace = stub.workspace as unknown as Record<string, unknown>;
const api = stub as unknown as Record<string, unknown>;

/** A document that moves what is outside into the text, as VS Code does. */
function open(text: string, more: object = {}): void {
  const lines = text.split("\n");
  const inside = ({ line, character }: stub.Position): stub.Position => {
    const length = lines[line]?.length ?? 0;
    return line < lines.length && character <= length
      ? new stub.Position(line, character)
      : new stub.Position(Math.min(line, lines.length - 1), length);
  };
  workspace.textDocuments = [
    {
      uri: { scheme: "file", fsPath: "/w/a.ts" },
      isClosed: false,
      version: 2,
      getText: () => text,
      validateRange: ({ start, end }: stub.Range) => {
        const [first, last] = [inside(start), inside(end)];
        const isEqual = (other: stub.Range) =>
          JSON.stringify(other) === JSON.stringify({ start: first, end: last });
        return { start: first, end: last, isEqual };
      },
      ...more,
    },
  ];
}

afterEach(() => {
  delete workspace.textDocuments;
});

test.each([
  [[0, 2, 0, 3], "success"],
  [[0, 0, 1, 0], "success"],
  [[1, 0, 1, 0], "success"],
  [[0, 2, 0, 5], "error"],
  [[1, 0, 2, 0], "error"],
  [[7, 0, 7, 1], "error"],
] as const)("an edit at %j: %s", async ([line, character, endLine, endCharacter], status) => {
  open("𝄞x\n");
  const made: unknown[] = [];
  api.WorkspaceEdit = class {
    replace(_: unknown, range: unknown, newText: string): void {
      made.push([range, newText]);
    }
  };
  const applied = vi.fn(async () => true);
  workspace.applyEdit = applied;
  const range = { start: { line, character }, end: { line: endLine, character: endCharacter } };
  const edits = [{ range, newText: "y" }];
  const result = await apply({ path: "/w/a.ts", expectedSha256: sha256("𝄞x\n"), edits, save: false });
  expect(result.status).toBe(status);
  expect(applied).toHaveBeenCalledTimes(status === "success" ? 1 : 0);
  if (status === "success")
    expect(made).toEqual([[new stub.Range(line, character, endLine, endCharacter), "y"]]);
});

test("the version is that of the text that was asked for, whatever a formatter does on save", async () => {
  open("x\n", {
    async save(this: { version: number }) {
      this.version += 1;
      return true;
    },
  });
  api.WorkspaceEdit = class {
    replace(): void {}
  };
  workspace.applyEdit = async () => true;
  const result = await apply({ path: "/w/a.ts", expectedSha256: sha256("x\n"), edits: [], save: true });
  expect(result).toMatchObject({ status: "success", version: 2, saved: true });
});
