// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { HunksBox, stat } from "../src/chat/view/hunks";
import { Folded } from "../src/sessions/fold";
import type { ToHost } from "../src/chat/messages";
import type { Approval, Check, Proposal, Row } from "../src/protocol";
import { file, hunk, proposal, row, version, type BaseHunk } from "./edits";
import { state } from "./states";

const ASKED = { toolCallId: "c" } as Approval;

function shown(hunks: BaseHunk[], checks: Check[] = []) {
  const box = new HunksBox({ session: new Folded(state({})), client: "here", post: () => undefined });
  document.body.replaceChildren(box.element);
  const of = (now: Check[]) => proposal("p", "t", [file("/w/a.py", "", hunks, { checks: now })]);
  box.update(of(checks), ASKED);
  return { box, of };
}

test("a checker's verdict comes while the question stands, and leaves the user where they are", () => {
  const { box, of } = shown([hunk("a", 1, "a\n", "b\n"), hunk("b", 5, "c\n", "d\n")]);
  const pressed = box.element.querySelector<HTMLElement>("button.accept");
  pressed?.focus();
  const error = {
    lines: { start: 0, end: 1 },
    severity: "error",
    message: "no\nhelp: x",
    source: "",
    code: "",
  };
  const check = {
    checker: "ruff",
    about: "proposed",
    state: "done",
    added: [error],
    fixed: 2,
    message: null,
    summary: "adds 1 error, fixes 2",
  };
  box.update(of([check as Check]), ASKED);
  expect(box.element.querySelector(".checks")?.textContent).toBe("ruff: adds 1 error, fixes 2\n  line 1: no");
  expect(document.activeElement).toBe(pressed);
});

test("what it is for is said once, and one change alone is asked about once", () => {
  const why = { explanation: "Because." };
  const { box } = shown([
    { ...hunk("a", 1, "a\n", "b\n"), ...why },
    { ...hunk("b", 5, "c\n", "d\n"), ...why },
  ]);
  expect(box.element.querySelectorAll(".explanation").length).toBe(1);
  expect(box.element.querySelectorAll("button.accept").length).toBe(2);
  expect(shown([hunk("a", 1, "a\n", "b\n")]).box.element.querySelectorAll("button.accept").length).toBe(0);
});

test("a mere rename changes no line; lines between changes are shown as they are", () => {
  const same = [hunk("a", 1, "x\n", "x\n")];
  expect(stat([file("/w/a", "x\n", same, { change: "rename", added: 1, removed: 1 })])).toBe("");
  expect(shown(same).box.element.querySelector(".where")).toBeNull();
  const { box } = shown([hunk("a", 1, "a\nsame\nb\n", "A\nsame\nB\n")]);
  expect([...box.element.querySelectorAll("pre span")].map((line) => line.textContent)).toEqual([
    "− a\n",
    "+ A\n",
    "  same\n",
    "− b\n",
    "+ B\n",
  ]);
});

test("of many changes the first is drawn; all of them, or those of a file, when one wants to see them", () => {
  const session = new Folded(state({}));
  const box = new HunksBox({ session, client: "here", post: () => undefined });
  document.body.replaceChildren(box.element);
  const many = (path: string, count: number) =>
    file(
      path,
      "",
      Array.from({ length: count }, (_, at) => hunk(`${path}${at}`, at * 9 + 1, "a\n", "b\n")),
    );
  box.update(proposal("p", "t", [many("/w/a", 12), many("/w/b", 13)]), ASKED);
  const drawn = () => box.element.querySelectorAll("[data-hunk]").length;
  const press = (label: string) =>
    [...box.element.querySelectorAll("button")].find((each) => each.textContent === label)?.click();
  expect(drawn()).toBe(1);
  const other = box.element.querySelectorAll("details")[1];
  other?.setAttribute("open", "");
  other?.dispatchEvent(new Event("toggle"));
  expect(drawn()).toBe(1 + 13);
  press("Show all 25 changes");
  expect(drawn()).toBe(25);
  expect(document.activeElement?.getAttribute("data-hunk")).toBe("/w/a0");
});

function drawn(given: Proposal, asked = false) {
  const posted: ToHost[] = [];
  const session = new Folded(state({}));
  const box = new HunksBox({ session, client: "here", post: (message) => posted.push(message) });
  document.body.replaceChildren(box.element);
  box.update(given, asked ? ASKED : undefined);
  return { box, posted };
}

const rows = (...given: Row[]) => proposal("p", "t", [], given);
const buttons = (element: Element) => [...element.querySelectorAll<HTMLButtonElement>("button")];
const seen = [{ proposalId: "p", version: 1 }];
const scope = { proposalId: "p", rowIds: ["r"] };
const said = (decision: string): ToHost => ({
  type: "hunks",
  proposalId: "p",
  version: 1,
  hunks: [],
  rows: [{ rowId: "r", decision }],
});

test.each<[string, Partial<Row>, string, ToHost[]]>([
  ["is open", {}, "AcceptReject", [said("accept"), said("reject")]],
  [
    "needs others",
    { needs: ["h1", "s"] },
    "AcceptRejectwith 2 changes it needs",
    [said("accept"), said("reject")],
  ],
  [
    "is in conflict",
    { state: "conflicted", reason: "It has changed.\u202e" },
    "Try againAsk Amanu to redo this changeRejectconflict: It has changed.<U+202E>",
    [said("accept"), { type: "retryChange", version: 1, scope }, said("reject")],
  ],
  ["was rejected", { state: "rejected", reason: "Not that." }, "rejected: Not that.", []],
  [
    "was applied by a rule",
    { state: "applied" },
    "KeepUndoapplied",
    [
      { type: "decide", scope, decision: "keep", seen },
      { type: "undo", scope },
    ],
  ],
  ["was kept", { state: "applied", reviewed: true }, "applied", []],
  ["is being undone", { state: "undoing" }, "being undone", []],
  [
    "was undone",
    { state: "reverted" },
    "Redoundone by you",
    [{ type: "decide", scope, decision: "redo", seen }],
  ],
  ["cannot be decided", { undecidable: "Amanu was stopped.\u202e" }, "Amanu was stopped.<U+202E>", []],
])("a row that %s offers what can be done with it", (_, more, words, messages) => {
  const { box, posted } = drawn(rows(row("r", "/w/pic.bin", more)));
  const answers = box.element.querySelector(".hunk > .row");
  expect(answers?.textContent).toBe(words);
  for (const each of answers ? buttons(answers) : []) each.click();
  expect(posted).toEqual(messages);
});

test("a row says what it is, and its lines in their tones; the file that is there can be opened", () => {
  const lines = [
    { tone: "plain", text: "Fix the sum" },
    { tone: "bad", text: "leads \u202eout" },
  ] as Row["lines"];
  const { box, posted } = drawn(rows(row("r", "/w/pic.bin", { lines })));
  const line = box.element.querySelector("summary");
  expect(line?.textContent).toBe("pic.binbinary file, 4,096 bytesOpen");
  expect(line?.querySelector(".codicon")?.className).toContain("codicon-file-binary");
  const told = [...box.element.querySelectorAll(".reasons li")];
  expect(told.map((each) => [each.className, each.textContent])).toEqual([
    ["plain", "Fix the sum"],
    ["bad", "leads <U+202E>out"],
  ]);
  line?.querySelector("button")?.click();
  expect(posted).toEqual([{ type: "openFile", path: "/w/pic.bin", line: null }]);
});

test.each<[string, Partial<Row>, string[]]>([
  ["before and after", { before: picture("b1"), after: picture("b2") }, ["b1 Before", "b2 After"]],
  ["a new one", { before: null, after: picture("b2") }, ["b2 After"]],
  ["none that can be drawn", {}, []],
])("pictures stand side by side: %s", (_, more, expected) => {
  const { box, posted } = drawn(rows(row("r", "/w/p.png", more)));
  const figures = [...box.element.querySelectorAll("figure")].map(
    (each) => `${each.querySelector("img")?.dataset.blob} ${each.textContent}`,
  );
  expect(figures).toEqual(expected);
  expect(posted).toEqual(
    expected.map((each) => ({ type: "picture", blobId: each.slice(0, 2), mediaType: "image/png" })),
  );
});

function picture(blobId: string) {
  return version({ picture: { blobId, size: 9 }, mediaType: "image/png" });
}

test("bits stand below the file they are of, and count among many changes", () => {
  const bits = row("r", "/w/b", { kind: "mode", title: "becomes executable" });
  const many = ["/w/a", "/w/b", "/w/c", "/w/d"].map((path) => file(path, "", [hunk(path, 1, "a\n", "b\n")]));
  const few = drawn(proposal("p", "t", many.slice(0, 2), [row("s", "/w/x"), bits]));
  const drawnIn = (element: Element) =>
    [...element.querySelectorAll<HTMLElement>("[data-hunk]")].map((each) => each.dataset.hunk);
  expect(drawnIn(few.box.element)).toEqual(["/w/a", "/w/b", "r", "s"]);
  const { box } = drawn(proposal("p", "t", many, [bits]));
  expect(drawnIn(box.element)).toEqual(["/w/a"]);
  const folded = box.element.querySelectorAll("details")[2];
  folded?.dispatchEvent(new Event("toggle"));
  expect(drawnIn(box.element)).toEqual(["/w/a", "r"]);
  buttons(box.element)
    .find((each) => each.textContent === "Show all 5 changes")
    ?.click();
  expect(drawnIn(box.element)).toEqual(["/w/a", "/w/b", "r", "/w/c", "/w/d"]);
});

test("a row alone is asked about once", () => {
  const { box } = drawn(rows(row("r", "/w/x")), true);
  expect(box.element.querySelectorAll("button.accept").length).toBe(0);
});
