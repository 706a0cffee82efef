import { expect, test } from "vitest";
import { lastTurn, entries, title, turnEdits, undoing, within } from "../src/review/changes";
import { attachment } from "../src/review/comments";
import { altered } from "../src/review/hunks";
import type { Check, Hunk, HunkState, Proposal, UndoneFile, UserMessage } from "../src/protocol";
import { summary } from "../src/review/list";
import { verdict } from "../src/review/verdict";
import { reasons } from "../src/review/why";
import { file, hunk, proposal, type BaseHunk } from "./edits";

const BASE = "one\ntwo\nthree\nfour\nfive\nsix\n";

function two(at: HunkState, reviewed = false): BaseHunk {
  return hunk("a", 2, "two\n", "zwei\nund mehr\n", at, reviewed);
}
function five(at: HunkState, reviewed = false): BaseHunk {
  return hunk("b", 5, "five\n", "fünf\n", at, reviewed);
}

const P: Proposal[] = [
  proposal("p", "t1", [
    file("/w/a.py", BASE, [two("applied", true), five("pending")]),
    file("/w/b.py", BASE, [two("applied")]),
    file("/w/done.py", BASE, [two("rejected"), five("applied", true)]),
  ]),
  proposal("q", "t2", [file("/w/a.py", BASE, [five("conflicted")])]),
];

/** A session that proposes so. */
function proposing(proposals: Proposal[], sessionId = "s1") {
  return { sessionId, proposals };
}

test("the list of what waits: a row for each file, whichever proposals it is in", () => {
  expect(entries([proposing(P)]).map((entry) => [entry.path, entry.targets.length, summary(entry)])).toEqual([
    ["/w/a.py", 2, "+2 −2, 1 to decide, 1 conflict"],
    ["/w/b.py", 1, "+2 −1, 1 to keep or undo"],
  ]);
  expect(entries([])).toEqual([]);
});

test("a file that several sessions change has one row, and each change keeps its session", () => {
  const other = proposal("r", "t3", [file("/w/b.py", BASE, [five("pending")])]);
  const found = entries([proposing(P), proposing([other], "s2")]);
  expect(found.map((entry) => [entry.path, entry.targets.map(({ sessionId }) => sessionId)])).toEqual([
    ["/w/a.py", ["s1", "s1"]],
    ["/w/b.py", ["s1", "s2"]],
  ]);
});

test("what a turn's edits came to", () => {
  const [open, applied, undone] = [1, 3, 0];
  expect(turnEdits(P, "t1")).toEqual({ extent: "3 files", added: 6, removed: 4, open, applied, undone });
  expect(turnEdits(P, "nowhere")).toBeUndefined();
  const gone = [proposal("p", "t", [file("/w/a", BASE, [two("reverted"), five("rejected")])])];
  expect(turnEdits(gone, "t")).toMatchObject({ added: 0, removed: 0, applied: 0, undone: 1 });
});

test("of a renamed file that was changed a little, that little counts", () => {
  const whole = hunk("c", 1, BASE, BASE.replace("two\n", "zwei\nund mehr\n"), "applied");
  const moved = { ...file("/w/a.py", BASE, [whole]), change: "rename" as const, newPath: "/w/b.py" };
  const little = { ...moved, added: 1, removed: 1 };
  expect(turnEdits([proposal("p", "t", [little])], "t")).toMatchObject({ added: 1, removed: 1 });
  expect(turnEdits([proposal("p", "t", [little])], "t", "/w/a.py")).toBeUndefined(); // the plan
  expect(entries([proposing([proposal("p", "t", [little])])])).toMatchObject([{ added: 1, removed: 1 }]);
  const mere = { ...moved, hunks: [hunk("c", 1, BASE, BASE, "applied")], added: 9, removed: 9 };
  expect(turnEdits([proposal("p", "t", [mere])], "t")).toMatchObject({ added: 0, removed: 0 });
});

test("the turn that is undone by itself is the last that has something to undo", () => {
  expect(lastTurn(P, (each) => each.state === "applied")).toBe("t1");
  expect(lastTurn(P, (each) => each.state === "reverted")).toBeUndefined();
});

test.each([
  [{}, ["p", "q"]],
  [{ turnId: "t2" }, ["q"]],
  [{ path: "/w/b.py" }, ["p"]],
  [{ proposalId: "q", path: "/w/b.py" }, []],
])("the proposals of the scope %j", (scope, expected) => {
  expect(within(P, scope).map((each) => each.proposalId)).toEqual(expected);
});

test("a file that is to be renamed has both names", () => {
  const hunks = [hunk("r", 1, BASE, BASE)];
  const renamed = file("/w/old.py", BASE, hunks, { change: "rename", newPath: "/w/new.py" });
  expect(title({ file: renamed })).toBe("old.py → new.py");
});

const undone: UndoneFile = {
  path: "/w/a.py",
  newPath: null,
  action: "edit",
  diff: "",
  undone: [{ proposalId: "p", hunkId: "a" }],
  skipped: [],
};
test.each<[Partial<UndoneFile>, string]>([
  [{}, "takes back 1 change"],
  [{ action: "delete" }, "removes it: Amanu made it"],
  [{ action: "rename", newPath: "/w/old.py" }, "gives it back its name, old.py"],
  [
    { skipped: [{ proposalId: "p", hunkId: "b", reason: "You changed these lines." }] },
    "takes back 1 change · 1 change cannot be taken back: You changed these lines.",
  ],
])("what undoing does: %j", (given, words) => {
  expect(undoing({ ...undone, ...given })).toBe(words);
});

const finding = (severity: "error" | "warning", line: number) => ({
  lines: { start: line - 1, end: line },
  severity,
  message: "no\nsuch name",
  source: "",
  code: "",
});
const check: Check = {
  checker: "pyright",
  about: "proposed",
  state: "done",
  added: [],
  fixed: 0,
  message: null,
  summary: "nothing new",
};
test.each<[Partial<Check>, string[]]>([
  [{}, ["pyright: nothing new"]],
  [
    {
      added: [finding("error", 3), finding("error", 99), finding("warning", 99)],
      summary: "adds 2 errors\u202e",
    },
    ["pyright: adds 2 errors<U+202E>", "  line 3: no such name"],
  ],
])("what a checker says: %j", (given, lines) => {
  expect(verdict({ ...check, ...given }, 2, 4)).toEqual(lines);
});

test.each<[Partial<Hunk>, string]>([
  [{}, ""],
  [{ editedByUser: true }, ", with your changes"],
  [{ editedByUser: true, appliedText: "two\n" }, ", changed in the file since"],
])("whose text it is by now: %j", (given, said) => {
  expect(altered({ ...two("applied"), ...given })).toBe(said);
});

test("why a change is there", () => {
  const given = { ...two("applied"), explanation: "Two is **German** now.", editedByUser: true };
  const changed = proposal("p", "t1", [file("/w/a.py", BASE, [given], { checks: [check] })]);
  const [at] = changed.files;
  const said: UserMessage = {
    kind: "userMessage",
    itemId: "u",
    turnId: "t1",
    text: "In\nGerman",
    attachments: [],
    steer: false,
  };
  const place = { hunk: given, start: 1, lines: 2 };
  expect(at && reasons([said], { proposal: changed, file: at }, place)).toEqual([
    "Amanu: applied by a rule, to be reviewed, with your changes",
    "Two is **German** now.",
    "pyright: nothing new",
    "Asked for: “In German”",
  ]);
});

const range = (start: number, end: number) => ({
  start: { line: start, character: 0 },
  end: { line: end, character: 0 },
});
test.each([
  [
    "lines of a file",
    { scheme: "file", path: "/w/a.py", query: "" },
    range(1, 2),
    [2, 3, "two\nthree\n", null],
  ],
  [
    "of a proposal",
    { scheme: "amanu-proposal", path: "/a.py", query: "p /w/a.py" },
    range(5, 5),
    [6, 6, "six\n", "p"],
  ],
  ["the whole", { scheme: "file", path: "/w/a.py", query: "" }, undefined, [1, 6, BASE, null]],
] as const)("a comment on %s", (_, uri, at, [startLine, endLine, text, proposalId]) => {
  expect(attachment(uri, at, BASE, "Why?")).toEqual({
    kind: "comment",
    path: "/w/a.py",
    lines: { start: startLine - 1, end: endLine },
    text,
    comment: "Why?",
    proposalId,
  });
});
