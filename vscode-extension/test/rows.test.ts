import { expect, test } from "vitest";
import {
  changesOf,
  entries,
  extent,
  hunksOf,
  lastTurn,
  needing,
  title,
  turnEdits,
  waiting,
  within,
} from "../src/review/changes";
import { Folded } from "../src/sessions/fold";
import { Texts } from "../src/review/texts";
import type { Hunk, HunkState, Proposal, Row } from "../src/protocol";
import { asFile, openable, rowIcon } from "../src/review/rows";
import { spoken } from "../src/review/navigation";
import { summary } from "../src/review/list";
import { file, hunk, proposal, row, version } from "./edits";
import { state } from "./states";

const PICTURE = { blobId: "b1", size: 4096 };
const GIT: Partial<Row> = {
  kind: "git",
  before: null,
  after: null,
  title: "1 commit on main",
  lines: [
    { tone: "plain", text: "Fix the sum" },
    { tone: "bad", text: "moves \u202emain" },
  ],
};
const MODE: Partial<Row> = { kind: "mode", title: "becomes executable" };

function edit(id: string, path: string, at: HunkState = "pending"): Proposal {
  return proposal(id, "t", [file(path, "a\n", [hunk(`${id}1`, 1, "a\n", "b\n", at)])]);
}

test.each<[string, Partial<Row>, string, string]>([
  ["a binary file", {}, "2,048 bytes", "binary file, 4,096 bytes"],
  [
    "a new link",
    {
      kind: "link",
      before: null,
      after: version({ kind: "link", target: "../x\u202e" }),
      title: "link to ../x\u202e",
    },
    "",
    "link to ../x<U+202E>",
  ],
  [
    "a folder that goes",
    { kind: "deletion", before: version({ kind: "folder" }), after: null, title: "deleted" },
    "Folder",
    "deleted",
  ],
  ["git", GIT, "", "1 commit on main\nFix the sum\nmoves <U+202E>main"],
])("a row is described as it was and as it will be: %s", async (_, more, before, after) => {
  const texts = new Texts({ request: () => Promise.reject(new Error("nothing is to be asked")) });
  const shown = async (at: HunkState) => {
    const one = row("r", "/w/x", { ...more, state: at });
    const target = { sessionId: "s", proposal: proposal("p", "t", [], [one]), file: asFile(one), row: one };
    const { base, proposed } = await texts.of(target);
    return [base, proposed];
  };
  expect(await shown("rejected")).toEqual([before, before]);
  for (const at of ["pending", "applied"] as const) expect(await shown(at)).toEqual([before, after]);
});

test("the same row is the same file: who compares them finds it again", () => {
  const one = row("r", "/w/x");
  expect(asFile(one)).toBe(asFile(one));
  expect(asFile({ ...one })).not.toBe(asFile(one));
});

test.each<[string, Partial<Row>, string, string | undefined]>([
  ["a file that is replaced", {}, "file-binary", "/w/x"],
  ["a new one", { before: null }, "file-binary", undefined],
  ["a new one that is there", { before: null, state: "applied" }, "file-binary", "/w/x"],
  ["a picture", { after: version({ picture: PICTURE }) }, "file-media", "/w/x"],
  [
    "a link",
    { kind: "link", before: null, after: version({ kind: "link" }) },
    "file-symlink-file",
    undefined,
  ],
  ["a folder", { kind: "folder", before: null, after: version({ kind: "folder" }) }, "folder", undefined],
  ["bits of a file", MODE, "gear", "/w/x"],
  ["a deletion", { kind: "deletion", after: null }, "trash", "/w/x"],
  ["a deletion that was applied", { kind: "deletion", after: null, state: "applied" }, "trash", undefined],
  ["a rename", { kind: "rename", newPath: "/w/y" }, "arrow-right", "/w/x"],
  ["a rename that was applied", { kind: "rename", newPath: "/w/y", state: "applied" }, "arrow-right", "/w/y"],
  ["git", GIT, "source-control", undefined],
])("the picture of a row, and what of it can be opened: %s", (_, more, icon, path) => {
  const shown = row("r", "/w/x", more);
  expect([rowIcon(shown), openable(shown)]).toEqual([icon, path]);
});

test.each<[string, Proposal, string[]]>([
  ["rows alone", proposal("p", "t", [], [row("r", "/w/x"), row("s", "/w/y")]), ["r", "s"]],
  [
    "each below the file at its path",
    {
      ...proposal("p", "t", [
        file("/w/a", "", [hunk("h", 1, "", "a\n")]),
        file("/w/b", "", [hunk("i", 1, "", "b\n")]),
      ]),
      rows: [row("r", "/w/x"), row("s", "/w/a", MODE)],
    },
    ["h", "s", "i", "r"],
  ],
  ["of a daemon that knows no rows", { ...edit("p", "/w/a"), rows: undefined } as never, ["p1"]],
])("the changes of a proposal, in order: %s", (_, given, expected) => {
  expect(hunksOf(given).map(({ hunkId }) => hunkId)).toEqual(expected);
});

test.each<[string, Proposal[], string[]]>([
  [
    "a row says what it is, and not how many lines",
    [proposal("p", "t", [], [row("r", "/w/pic.png")])],
    ["/w/pic.png: binary file, 4,096 bytes, 1 to decide"],
  ],
  [
    "bits stand below the file, also when another proposal has it",
    [
      proposal("p", "t", [], [row("r", "/w/run.sh", MODE), row("s", "/w/x", { state: "conflicted" })]),
      edit("q", "/w/run.sh"),
    ],
    [
      "/w/run.sh: +1 −1, 1 to decide",
      "/w/run.sh: becomes executable, 1 to decide",
      "/w/x: binary file, 4,096 bytes, 1 conflict",
    ],
  ],
  [
    "what a rule applied and what is done",
    [
      proposal(
        "p",
        "t",
        [],
        [
          row("r", "/w/x", { state: "applied" }),
          row("s", "/w/y", { state: "applied", reviewed: true }),
          row("u", "/w/z", { state: "rejected" }),
        ],
      ),
    ],
    ["/w/x: binary file, 4,096 bytes, 1 to keep or undo"],
  ],
  [
    "a path that two proposals change",
    ["p", "q"].map((id) => proposal(id, "t", [], [row(id, "/w/x")])),
    ["/w/x: binary file, 4,096 bytes, 2 to decide"],
  ],
  [
    "what it needs",
    [proposal("p", "t", [], [row("r", "/w", { ...GIT, needs: ["h1", "r2"] })])],
    ["/w: 1 commit on main, 1 to decide with 2 changes it needs"],
  ],
  [
    "why it cannot be decided",
    [proposal("p", "t", [], [row("r", "/w", { ...GIT, undecidable: "Amanu was stopped." })])],
    ["/w: 1 commit on main, Amanu was stopped."],
  ],
  [
    "a rename is where it brought the file",
    [proposal("p", "t", [], [row("r", "/w/x", { kind: "rename", newPath: "/w/y", state: "applied" })])],
    ["/w/y: binary file, 4,096 bytes, 1 to keep or undo"],
  ],
])("the list of what waits has rows: %s", (_, proposals, expected) => {
  const found = entries([{ sessionId: "s1", proposals }]);
  expect(found.map((entry) => `${entry.path}: ${summary(entry)}`)).toEqual(expected);
});

test.each<[string, Row[], string]>([
  ["nothing else", [], "1 file"],
  ["at the file's path", [row("r", "/w/a", MODE)], "1 file"],
  ["elsewhere", [row("r", "/w/x"), row("s", "/w/y")], "3 files"],
  ["git", [row("r", "/w", GIT)], "1 file and the git repository"],
])("where changes are, with rows: %s", (_, rows, expected) => {
  expect(extent(changesOf({ ...edit("p", "/w/a"), rows }))).toBe(expected);
});

test("git alone is no file", () => {
  const [change] = changesOf(proposal("p", "t", [], [row("r", "/w", GIT)]));
  expect(change && [extent([change]), title(change)]).toEqual([
    "the git repository",
    "the git repository: 1 commit on main",
  ]);
});

test.each<[string, string, string]>([
  ["/w/x", "/w/y", "x → y: renamed"],
  ["/w/x", "/w/img/x", "x → img/x: renamed"],
  ["/w/x", "/w/img/y", "x → y: renamed"],
  ["/w/x", "/w/y\u202e", "x → y<U+202E>: renamed"],
])("a renamed row has both names: %s, %s", (path, newPath, expected) => {
  const [change] = changesOf(
    proposal("p", "t", [], [row("r", path, { kind: "rename", newPath, title: "renamed" })]),
  );
  expect(change && title(change)).toBe(expected);
});

test("nothing is hidden in a title", () => {
  const [change] = changesOf(proposal("p", "t", [], [row("r", "/w/a\u202e", { title: "x\n\u202ey" })]));
  expect(change && title(change)).toBe("a<U+202E>: x <U+202E>y");
});

test.each<[Partial<Row>, string]>([
  [{ needs: [] }, ""],
  [{ needs: ["a"] }, " with 1 change it needs"],
  [{ needs: ["a", "b"], state: "conflicted" }, " with 2 changes it needs"],
  [{ needs: ["a"], state: "applied" }, ""],
])("what a yes takes along: %j", (more, expected) => {
  expect(needing(row("r", "/w/x", more))).toBe(expected);
});

test("rows count among what a turn came to, waits, and can be undone", () => {
  const rows = [row("r", "/w/x", { state: "applied" }), row("s", "/w/y", { state: "reverted" })];
  const P = [edit("p", "/w/a", "rejected"), proposal("q", "u", [], rows)];
  expect(turnEdits(P, "u")).toEqual({
    extent: "2 files",
    added: 0,
    removed: 0,
    open: 0,
    applied: 1,
    undone: 1,
  });
  expect(waiting([{ sessionId: "s1", proposals: P }]).map((each) => each.row?.rowId)).toEqual(["r"]);
  const is = (wanted: HunkState) => (each: Hunk) => each.state === wanted;
  expect([lastTurn(P, is("applied")), lastTurn(P, is("rejected"))]).toEqual(["u", "t"]);
  expect(within(P, { path: "/w/y" }).map(({ proposalId }) => proposalId)).toEqual(["q"]);
});

test("a screen reader hears what a row is", () => {
  const proposed = proposal("p", "t", [], [row("r", "/w", GIT)]);
  const [change] = changesOf(proposed);
  const [shown] = hunksOf(proposed);
  if (change === undefined || shown === undefined) throw new Error("no row");
  const target = { sessionId: "s1", proposal: proposed, ...change };
  expect(spoken({ target, hunk: shown, start: 0 })).toBe(
    "the git repository: 1 commit on main. Fix the sum moves <U+202E>main",
  );
});

test("a proposal's present rows replace the ones before; of its files the text stays known", () => {
  const folded = new Folded(state());
  const tell = (rows: Row[], version: number, baseText: string | null) =>
    folded.fold({
      kind: "proposalChanged",
      proposal: {
        ...proposal("p", "t", [{ ...file("/w/a", "", []), baseText }], rows),
        version,
      },
    });
  tell([row("r", "/w/x"), row("s", "/w/y")], 1, "a\n");
  tell([row("s", "/w/y", { state: "applied", reviewed: true })], 2, null);
  const [now] = folded.state.proposals;
  expect(now?.files[0]?.baseText).toBe("a\n");
  expect(now?.rows.map(({ rowId, state: at }) => [rowId, at])).toEqual([["s", "applied"]]);
});
