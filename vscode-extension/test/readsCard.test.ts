// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { List, SHOWN } from "../src/chat/view/list";
import { Rows } from "../src/chat/view/rows";
import { settlement } from "../src/chat/view/tool";
import { Folded } from "../src/sessions/fold";
import type { HunkState, Item, SessionState, ToolCall } from "../src/protocol";
import { APPROVAL, CALL, state } from "./states";

/** A call that looks: "r" reads, "g" searches, "l" lists; what follows is the file. */
function look(itemId: string, tool: string, path: string, given: Partial<ToolCall> = {}): ToolCall {
  const title = `${tool} ${path}`;
  return { ...CALL, itemId, tool, title, effect: "read", arguments: { path }, state: "succeeded", ...given };
}
const read = (itemId: string, path: string, given?: Partial<ToolCall>) =>
  look(itemId, "read_file", path, given);
const thought = (itemId: string): Item => ({
  kind: "thought",
  itemId,
  turnId: "t1",
  subject: "",
  text: "hm",
});
const answer = (itemId: string, turnId = "t1"): Item => ({
  kind: "answer",
  agentId: null,
  itemId,
  turnId,
  text: "so",
});

function show(given: Partial<SessionState>) {
  const posted: ToHost[] = [];
  const view = {
    session: new Folded(state(given)),
    client: "",
    post: (message: ToHost) => posted.push(message),
  };
  const list = new List(view);
  document.body.replaceChildren(list.element);
  list.reset();
  const line = () =>
    [...list.element.querySelectorAll(".looked > details:not([hidden]) > summary")].map(
      (each) => each.textContent,
    );
  const add = (item: Item) => {
    view.session.fold({ kind: "itemChanged", item });
    list.update(new Set([item.itemId]));
  };
  const unfold = () => {
    const details = list.element.querySelector<HTMLDetailsElement>(".looked > details");
    if (details) details.open = true;
    details?.dispatchEvent(new Event("toggle"));
    return [...list.element.querySelectorAll(".looked .items .tool summary")].map((each) => each.textContent);
  };
  return { list, view, posted, line, add, unfold };
}

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  ),
);

const OTHER = { ...CALL, itemId: "x", state: "succeeded" as const };
test.each<[string, Item[], string[][]]>([
  ["reads in a row", [read("a", "1"), look("b", "grep", ""), read("c", "2")], [["a", "b", "c"]]],
  ["with thoughts between", [read("a", "1"), thought("b"), read("c", "2")], [["a", "b", "c"]]],
  ["a thought before or behind them", [thought("a"), read("b", "1"), thought("c")], [["a"], ["b"], ["c"]]],
  ["what it says between", [read("a", "1"), answer("b"), read("c", "2")], [["a"], ["b"], ["c"]]],
  ["another call between", [read("a", "1"), OTHER, read("c", "2")], [["a"], ["x"], ["c"]]],
  ["of two turns", [read("a", "1"), read("b", "2", { turnId: "t2" })], [["a"], ["b"]]],
])("rows: %s", (_, items, expected) => {
  const found = new Map(items.map((item) => [item.itemId, item]));
  const ids: string[] = [];
  const rows = new Rows((id) => found.get(id));
  for (const item of items) {
    ids.push(item.itemId);
    rows.follow(ids); // one by one, as they come
  }
  expect(rows.slice(0).map(({ members }) => members)).toEqual(expected);
  rows.follow([...ids]); // and at once
  expect(rows.slice(0).map(({ members }) => members)).toEqual(expected);
  for (const [place, members] of expected.entries())
    for (const id of members) expect(rows.placeOf(id)).toBe(place);
});

test.each<[string, Item[], string]>([
  ["files once each", [read("a", "src/a.py"), read("b", "src/b.py"), read("c", "src/a.py")], "Read 2 files"],
  ["one file", [read("a", "src/a.py"), read("b", "src/a.py")], "Read a.py"],
  [
    "several kinds",
    [
      read("a", "1"),
      read("b", "2"),
      look("c", "grep", ""),
      look("d", "glob", ""),
      look("e", "list_directory", "s"),
    ],
    "Read 2 files, searched 2×, listed 1 folder",
  ],
  ["a failure", [look("a", "grep", ""), read("b", "1", { state: "failed" })], "Searched1 failed"],
  ["what runs", [read("a", "1"), read("b", "2", { state: "executing" })], "read_file 2"],
])("on one line: %s", (_, items, expected) => {
  expect(show({ items }).line()).toEqual([expected]);
});

test("one alone is a row like any other, and joins the next", () => {
  const { line, add, list, unfold } = show({ items: [read("a", "1", { state: "executing" })] });
  expect([line(), list.element.querySelectorAll(".tool").length]).toEqual([[], 1]);
  add(read("a", "1", { summary: "lines 3–9" }));
  expect(list.element.querySelector(".tool .went")?.textContent).toBe("lines 3–9");
  add(read("b", "2", { state: "executing" }));
  expect([line(), list.element.querySelectorAll(".tool").length]).toEqual([["read_file 2"], 0]);
  add(read("b", "2"));
  expect(line()).toEqual(["Read 2 files"]);
  expect(unfold()).toEqual(["read_file 1lines 3–9", "read_file 2"]);
});

test("one that asks stands in the open, and folds away when it is answered", () => {
  const asks = read("b", "secret", { state: "awaitingApproval" });
  const { list, view, line, add, unfold } = show({
    items: [read("a", "1"), asks, read("c", "2")],
    approvals: [{ ...APPROVAL, toolCallId: "b" }],
  });
  expect(list.element.querySelector(".looked > .open .approval")).not.toBeNull();
  expect(list.show("b")).toBe(true);
  unfold();
  view.session.fold({ kind: "approvalResolved", toolCallId: "b", decision: null as never });
  add(read("b", "secret"));
  expect([line(), list.element.querySelector(".looked > .open")?.childElementCount]).toEqual([
    ["Read 3 files"],
    0,
  ]);
  expect(unfold()).toEqual(["read_file 1", "read_file secret", "read_file 2"]);
});

test("what a retry takes back is not counted", () => {
  const { view, list, line } = show({ items: [read("a", "1"), read("b", "2"), read("c", "3")] });
  view.session.fold({ kind: "itemsWithdrawn", itemIds: ["c"], reason: "" });
  list.update(new Set());
  expect(line()).toEqual(["Read 2 files"]);
});

test("a name is a link to the lines that were read", () => {
  const { posted, list } = show({
    items: [{ ...read("a", "src/a.py"), arguments: { path: "src/a.py", start_line: 7 } }],
  });
  list.element.querySelector<HTMLButtonElement>(".title .file")?.click();
  expect(posted).toEqual([{ type: "openFile", path: "src/a.py", line: 7 }]);
});

test("thousands of reads are one row of a bounded number", () => {
  const items = Array.from({ length: 2000 }, (_, at) => read(`r${at}`, `${at}.py`));
  const { list, line, view } = show({ items: [...items, answer("end")] });
  expect([list.count, line()]).toEqual([2, ["Read 2000 files"]]);
  for (let at = 0; at < SHOWN; at++) view.session.fold({ kind: "itemCompleted", item: answer(`a${at}`) });
  list.update(new Set());
  expect(list.count).toBe(SHOWN);
});

test.each<[HunkState[], string]>([
  [["applied", "applied"], "applied"],
  [["rejected"], "rejected"],
  [["reverted", "reverted"], "undone"],
  [["applied", "rejected", "applied"], "accepted 2 of 3"],
  [["pending"], ""],
])("how an edit went: %j", (states, expected) => {
  const hunks = states.map((each) => ({ state: each })) as never;
  expect(settlement({ files: [{ hunks }] } as never)).toBe(expected);
});

test("what a rule applied is one row, kept or undone there", () => {
  const hunk = {
    hunkId: "h",
    state: "applied",
    waits: "review",
    lines: { start: 0, end: 1 },
    verbs: ["keep", "undo"],
    reviewed: false,
    oldText: "a",
    newText: "b",
    explanation: "",
  };
  const file = { path: "/w/a.py", change: "edit", hunks: [hunk], checks: [], added: 1, removed: 1 };
  const proposal = { proposalId: "p", version: 3, turnId: "t1", toolCallIds: ["e"], files: [file] };
  const call = { ...CALL, itemId: "e", tool: "edit_file", title: "Edit a.py", arguments: { path: "a.py" } };
  const { list, posted } = show({
    items: [{ ...call, effect: "write", state: "succeeded", proposalId: "p" }],
    proposals: [proposal as never],
  });
  const row = list.element.querySelector(".tool");
  expect(row?.querySelector("summary")?.textContent).toBe("Edit a.py+1 −1applied");
  expect(row?.querySelector<HTMLElement>(".proposed")?.hidden).toBe(true);
  for (const each of row?.querySelectorAll<HTMLButtonElement>(".title .file, .keeping button") ?? [])
    each.click();
  expect(posted).toEqual([
    { type: "openDiff", proposalId: "p", path: "/w/a.py" },
    { type: "decide", scope: { proposalId: "p" }, decision: "keep", seen: [{ proposalId: "p", version: 3 }] },
    { type: "undo", scope: { proposalId: "p" } },
  ]);
});

test("below a turn its answer is copied and its prompt sent again", async () => {
  const copied: string[] = [];
  vi.stubGlobal("navigator", { clipboard: { writeText: async (text: string) => copied.push(text) } });
  const { list, posted, view } = show({ items: [answer("a"), { ...answer("b"), text: "**so**" } as Item] });
  for (const each of list.element.querySelectorAll<HTMLButtonElement>(".turn .icon")) each.click();
  expect([copied, posted]).toEqual([["**so**"], [{ type: "retry", turnId: "t1" }]]);
  view.session.fold({ kind: "turnStarted", turnId: "t1", promptId: "p", modelId: "m" });
  list.update(new Set(["b"]));
  expect(list.element.querySelector(".turn")).toBeNull();
});
