import { expect, test, vi } from "vitest";
import { request } from "../src/inline/actions";
import type { Finding } from "../src/protocol";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

const FOUND: Finding = {
  lines: { start: 2, end: 3 },
  severity: "error",
  message: "undefined name\n  x\u202e",
  source: "ruff",
  code: "F821",
};

test.each<[string, Finding[], string]>([
  ["without findings", [], "Find what is wrong with these lines and fix it."],
  [
    "each on its line, with who says it",
    [FOUND, { ...FOUND, severity: "warning", message: "late", source: "", code: "" }],
    "Fix these problems:\n3: error: undefined name x<U+202E> (ruff F821)\n3: warning: late",
  ],
])("what is asked of the model: %s", (_, findings, expected) => expect(request(findings)).toBe(expected));
