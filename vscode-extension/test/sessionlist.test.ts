// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { facts, grouped, standing } from "../src/chat/view/sessionRow";
import { Sessions } from "../src/chat/view/sessions";
import { Folded } from "../src/sessions/fold";
import type { SessionSummary } from "../src/protocol";
import { state, summary } from "./states";

const NOW = new Date(2026, 1, 3, 12).getTime();
const HOUR = 3_600_000;

function session(sessionId: string, given: Partial<SessionSummary> = {}): SessionSummary {
  return summary({ sessionId, title: `Title of ${sessionId}`, updatedAt: NOW, ...given });
}

const ASKS = { toolCallId: "c", title: "Run make", questionId: null };

test("what waits stands first, then what runs, then the others by their age", () => {
  const sessions = [
    session("old", { updatedAt: NOW - 24 * HOUR }),
    session("new", { updatedAt: NOW - HOUR }),
    session("runs", { status: "running", updatedAt: NOW - 48 * HOUR }),
    session("asks", { status: "waiting", questions: [ASKS] }),
    session("died", { status: "interrupted" }),
  ];
  expect(
    grouped(sessions, NOW).map(({ group, sessions }) => [group, sessions.map((each) => each.sessionId)]),
  ).toEqual([
    ["Waiting for you", ["asks"]],
    ["Running", ["runs"]],
    ["Today", ["new", "died"]],
    ["Earlier", ["old"]],
  ]);
});

test.each<[Partial<SessionSummary>, string]>([
  [{}, ""],
  [{ status: "running" }, "running"],
  [{ status: "interrupted", changes: 2 }, "interrupted · 2 to review"],
  [{ questions: [ASKS] }, "Run make"],
  [{ questions: [ASKS, ASKS, ASKS], changes: 1 }, "Run make (and 2 more) · 1 to review"],
])("how a session stands: %j", (given, expected) => {
  expect(standing(session("a", given)).join(" · ")).toBe(expected);
});

test.each<[Partial<SessionSummary>, string]>([
  [{}, "Opus"],
  [{ files: 1, added: 3, removed: 2, cost: "$0.12" }, "1 file +3 −2 · $0.12 · Opus"],
  [{ files: 2, added: 3 }, "2 files +3 −0 · Opus"],
])("what came of a session: %j", (given, expected) => {
  expect(facts(session("a", given), "Opus").join(" · ")).toBe(expected);
});

beforeEach(() => document.body.replaceChildren());

/** The list before the user, who has only the keyboard. */
function list() {
  const posted: ToHost[] = [];
  const view = { session: new Folded(state()), client: "here", post: (m: ToHost) => posted.push(m) };
  const sessions = new Sessions(
    view,
    (modelId) => modelId,
    () => undefined,
  );
  document.body.append(sessions.element);
  sessions.show();
  posted.splice(0);
  sessions.update([session("b"), session("a", { questions: [ASKS] })], "b");
  const press = (key: string, more: KeyboardEventInit = {}) =>
    document.activeElement?.dispatchEvent(
      new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }),
    );
  const at = () => document.activeElement?.closest("li")?.dataset.session;
  return { sessions, posted, press, at };
}

test("arrows go through the list and back to the search box", () => {
  const { press, at } = list();
  const seen = ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"].map((key) => {
    press(key);
    return at();
  });
  expect(seen).toEqual(["a", "b", "b", "a", undefined]);
  expect(document.activeElement?.getAttribute("type")).toBe("search");
});

test.each<[string, KeyboardEventInit, ToHost]>([
  ["Enter", { ctrlKey: true }, { type: "openInEditor", sessionId: "a" }],
  ["Delete", {}, { type: "delete", sessionId: "a", title: "Title of a" }],
])("%s on a session %j", (key, more, expected) => {
  const { press, posted } = list();
  press("ArrowDown");
  press(key, more);
  expect(posted).toEqual([expected]);
});

test("F2 renames it, and the list stays there", () => {
  const { press, posted, at } = list();
  press("ArrowDown");
  press("F2");
  const input = document.activeElement as HTMLInputElement;
  expect(input.value).toBe("Title of a");
  input.value = "Another";
  press("Enter");
  expect(posted).toEqual([{ type: "rename", sessionId: "a", title: "Another" }]);
  expect(at()).toBe("a");
});

test("Enter in the search box opens what was found first", () => {
  const { sessions, press, posted } = list();
  const search = sessions.element.querySelector("input") as HTMLInputElement;
  search.value = "of b";
  search.dispatchEvent(new Event("input"));
  press("Enter");
  expect(posted).toEqual([{ type: "open", sessionId: "b" }]);
  expect(sessions.element.hidden).toBe(true);
});

test("it opens at the top, wherever it was left", () => {
  const { sessions } = list();
  const groups = sessions.element.querySelector(".groups") as HTMLElement;
  groups.scrollTop = 400;
  sessions.leave();
  sessions.show();
  expect(groups.scrollTop).toBe(0);
});
