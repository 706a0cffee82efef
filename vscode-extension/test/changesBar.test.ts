// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { ChangesBar } from "../src/chat/view/changesBar";
import { Folded } from "../src/sessions/fold";
import type { HunkState, Proposal, Row } from "../src/protocol";
import { file, hunk, proposal, row } from "./edits";
import { state } from "./states";

function edit(id: string, path: string, at: HunkState, version = 1): Proposal {
  return { ...proposal(id, "t", [file(path, "", [hunk(`${id}1`, 1, "a\n", "b\nc\n", at)])]), version };
}

function bar(proposals: Proposal[]) {
  const posted: ToHost[] = [];
  const session = new Folded(state({ proposals }));
  const shown = new ChangesBar({ session, client: "here", post: (message) => posted.push(message) });
  document.body.replaceChildren(shown.element);
  shown.reset();
  shown.update();
  const press = (label: string) =>
    [...shown.element.querySelectorAll("button")]
      .find((each) => (each.getAttribute("aria-label") ?? each.textContent) === label)
      ?.click();
  return { shown, posted, press, labels: () => labels(shown.element) };
}

/** What one reads on it. */
function labels(element: HTMLElement): string[] {
  const shown = [...element.querySelectorAll("button, .stat")].filter((each) => !each.closest("[hidden]"));
  return shown.map((each) => each.textContent ?? "");
}

test.each<[string, HunkState, string[]]>([
  ["is proposed", "pending", ["1 file", "+2 −1", "Review", "Accept all"]],
  ["was applied by a rule", "applied", ["1 file", "+2 −1", "Review", "Keep all"]],
  ["is decided", "rejected", []],
])("it offers what can be done with what %s", (_, at, expected) => {
  expect(bar([edit("p", "/w/a.py", at)]).labels()).toEqual(expected);
});

test("what is decided leaves it, what comes enters it", () => {
  const { shown, labels } = bar([edit("p", "/w/a.py", "pending"), edit("q", "/w/b.py", "pending")]);
  expect(labels()[0]).toBe("2 files");
  shown.note(edit("p", "/w/a.py", "applied", 2));
  shown.note(edit("q", "/w/b.py", "rejected", 2));
  shown.note(edit("r", "/w/c.py", "pending"));
  shown.update();
  expect(labels().slice(0, 2)).toEqual(["2 files", "+4 −2"]);
  for (const id of ["p", "r"]) shown.note(edit(id, "/w/a.py", "reverted", 3));
  shown.update();
  expect(shown.element.hidden).toBe(true);
});

test("an answer names the files and the versions that were seen", () => {
  const { shown, posted, press } = bar([edit("p", "/w/a.py", "pending", 3), edit("q", "/w/b.py", "pending")]);
  shown.note(edit("q", "/w/b.py", "pending", 7)); // not drawn yet
  press("Accept all");
  const a = { proposalId: "p", version: 3, path: "/w/a.py" };
  const b = { proposalId: "q", version: 1, path: "/w/b.py" };
  expect(posted.splice(0)).toEqual([{ type: "settle", files: [a, b], yes: true, only: null }]);
  shown.update();
  press("Reject b.py");
  expect(posted).toEqual([{ type: "settle", files: [{ ...b, version: 7 }], yes: false, only: "decision" }]);
});

test("its list unfolds, and an answer by keyboard leaves the focus where it can go on", () => {
  const { shown, press } = bar([edit("p", "/w/sub/a.py", "pending"), edit("q", "/w/b.py", "pending")]);
  press("2 files");
  expect(document.activeElement?.tagName).toBe("BODY");
  expect(shown.element.querySelector("ul")?.hidden).toBe(false);
  expect(shown.element.querySelector(".folder")?.textContent).toBe("sub");
  shown.element.querySelector<HTMLElement>('[aria-label="Accept a.py"]')?.focus();
  shown.note(edit("q", "/w/b.py", "pending", 2));
  shown.update();
  expect(document.activeElement?.getAttribute("aria-label")).toBe("Accept a.py");
  shown.note(edit("p", "/w/sub/a.py", "rejected", 2));
  shown.update();
  expect(document.activeElement?.textContent).toBe("1 file");
});

const GIT: Partial<Row> = { kind: "git", before: null, after: null, title: "1 commit on main" };
const MODE: Partial<Row> = { kind: "mode", title: "becomes executable" };

/** A proposal of rows alone. */
function rows(...given: Row[]): Proposal {
  return proposal("p", "t", [], given);
}

test.each<[string, Proposal[], string[]]>([
  ["alone", [rows(row("r", "/w/x"))], ["1 file", "Review", "Accept all"]],
  [
    "beside a file",
    [{ ...edit("p", "/w/a.py", "pending"), rows: [row("r", "/w/x"), row("s", "/w/a.py", MODE)] }],
    ["2 files", "+2 −1", "Review", "Accept all"],
  ],
  [
    "of git",
    [{ ...edit("p", "/w/a.py", "pending"), rows: [row("r", "/w", GIT)] }],
    ["1 file and the git repository", "+2 −1", "Review", "Accept all"],
  ],
  ["of git alone", [rows(row("r", "/w", GIT))], ["The git repository", "Review", "Accept all"]],
  ["applied by a rule", [rows(row("r", "/w/x", { state: "applied" }))], ["1 file", "Review", "Keep all"]],
  ["that are kept", [rows(row("r", "/w/x", { state: "applied", reviewed: true }))], []],
  ["that were rejected", [rows(row("r", "/w/x", { state: "rejected" }))], []],
  [
    "that nobody can decide",
    [rows(row("r", "/w", { ...GIT, undecidable: "Too late." }))],
    ["The git repository", "Review"],
  ],
])("it counts rows %s", (_, proposals, expected) => {
  expect(bar(proposals).labels()).toEqual(expected);
});

test.each<[string, Partial<Row>, string, string[]]>([
  [
    "open",
    {},
    "xbinary file, 4,096 bytes",
    ["Accept x, binary file, 4,096 bytes", "Reject x, binary file, 4,096 bytes"],
  ],
  [
    "in conflict",
    { ...MODE, state: "conflicted" },
    "xbecomes executable1 conflict",
    ["Accept x, becomes executable", "Reject x, becomes executable"],
  ],
  [
    "applied",
    { ...MODE, state: "applied", needs: ["r2"] },
    "xbecomes executable",
    ["Keep x, becomes executable", "Undo x, becomes executable"],
  ],
  [
    "that needs others",
    { ...MODE, needs: ["r2", "r3"] },
    "xwith 2 changes it needs · becomes executable",
    ["Accept x, becomes executable with 2 changes it needs", "Reject x, becomes executable"],
  ],
  [
    "in a folder",
    { ...MODE, path: "/w/sub/x" },
    "xbecomes executable · sub",
    ["Accept x, becomes executable", "Reject x, becomes executable"],
  ],
  ["that cannot be decided", { ...MODE, undecidable: "Too late.\u202e" }, "xToo late.<U+202E>", []],
])("a row %s on a line of the list", (_, more, words, decisions) => {
  const { shown } = bar([rows(row("r", "/w/x", more))]);
  const line = shown.element.querySelector("li");
  expect(line?.textContent).toBe(words);
  const buttons = [...(line?.querySelectorAll("button.icon") ?? [])];
  expect(buttons.map((each) => each.getAttribute("aria-label"))).toEqual(decisions);
});

test("bits stand below the file they are of, and each of the two is decided and shown by itself", () => {
  const { shown, posted, press } = bar([
    { ...edit("p", "/w/run.sh", "pending"), rows: [row("r0", "/w/x"), row("r", "/w/run.sh", MODE)] },
  ]);
  const names = [...shown.element.querySelectorAll("li .path")].map((each) => each.textContent);
  expect(names).toEqual(["run.sh", "run.sh", "x"]);
  press("Accept run.sh");
  press("Reject run.sh, becomes executable");
  press("Show the changes in run.sh, becomes executable");
  press("Show the changes in run.sh");
  const seen = { proposalId: "p", version: 1, path: "/w/run.sh" };
  expect(posted).toEqual([
    { type: "settle", files: [seen], yes: true, only: null },
    { type: "settle", files: [{ ...seen, rowId: "r" }], yes: false, only: "decision" },
    { type: "openDiff", proposalId: "p", path: "/w/run.sh", rowId: "r" },
    { type: "openDiff", proposalId: "p", path: "/w/run.sh" },
  ]);
});

test("what nobody can decide is left out of an answer to all", () => {
  const { posted, press } = bar([
    rows(row("r", "/w", { ...GIT, undecidable: "Too late." }), row("s", "/w/x")),
  ]);
  press("Accept all");
  const seen = { proposalId: "p", version: 1, path: "/w/x", rowId: "s" };
  expect(posted).toEqual([{ type: "settle", files: [seen], yes: true, only: null }]);
});
