import { beforeEach, expect, test, vi } from "vitest";
import { Ended } from "../src/sessions/ended";
import type { SessionSummary, TurnEnded } from "../src/protocol";
import { EventEmitter, notifications, window, workspace } from "./vscode";

vi.mock("vscode-languageclient/node", () => ({})); // wants the real VS Code

beforeEach(() => {
  vi.useFakeTimers();
  notifications.splice(0);
  window.state.focused = true;
  return () => vi.useRealTimers();
});

function turn(reason: TurnEnded["reason"], message = ""): TurnEnded {
  return { kind: "turnEnded", turnId: "t", reason, message, canContinue: false, usage: null };
}

function watched({
  after = 30,
  shown = [] as string[],
  last = turn("completed") as TurnEnded | undefined,
} = {}) {
  const changed = new EventEmitter<void>();
  const overview = { sessions: [] as SessionSummary[], onChanged: changed.event };
  const went: string[] = [];
  Object.assign(workspace, { getConfiguration: () => ({ get: () => after }) });
  new Ended(overview, {
    shows: (sessionId) => shown.includes(sessionId),
    lastTurn: () => last,
    show: (sessionId) => void went.push(sessionId),
  });
  const list = (status: SessionSummary["status"], changes = 0) => {
    overview.sessions = [{ sessionId: "a", title: "Mend it", status, changes } as SessionSummary];
    changed.fire();
    return notifications.splice(0);
  };
  /** A turn of so many seconds. */
  const worked = (seconds: number, end: SessionSummary["status"] = "idle", changes = 0) => {
    expect(list("running")).toEqual([]);
    vi.advanceTimersByTime(seconds * 500);
    expect(list("waiting")).toEqual([]);
    vi.advanceTimersByTime(seconds * 500);
    return list(end, changes);
  };
  return { worked, list, went };
}

test("the end of a long turn that nobody sees is told once, and leads there", async () => {
  const { worked, list, went } = watched();
  const [told, ...more] = worked(31);
  expect([told?.text, more]).toEqual(["“Mend it” has finished.", []]);
  told?.press("Show");
  await Promise.resolve();
  expect(went).toEqual(["a"]);
  expect(list("idle")).toEqual([]);
});

test.each<[string, Parameters<typeof watched>[0], boolean, number, number]>([
  ["a short turn", {}, true, 29, 0],
  ["a turn the user looks at", { shown: ["a"] }, true, 31, 0],
  ["one on the screen of a window that has not the focus", { shown: ["a"] }, false, 31, 1],
  ["one the user has stopped", { last: turn("cancelled") }, true, 31, 0],
  ["any, where that is turned off", { after: 0 }, true, 31, 0],
  ["a shorter one, where that is wished", { after: 5 }, true, 6, 1],
])("told of %s", (_, given, focused, seconds, count) => {
  window.state.focused = focused;
  expect(watched(given).worked(seconds)).toHaveLength(count);
});

test.each<[TurnEnded | undefined, SessionSummary["status"], number, string]>([
  [turn("completed"), "idle", 3, "“Mend it” has finished. There are changes to review."],
  [turn("failed", "No quota."), "idle", 0, "“Mend it” stopped: No quota."],
  [undefined, "interrupted", 0, "“Mend it” was interrupted."],
  [undefined, "idle", 0, "“Mend it” has finished."],
])("how it ended: %#", (last, status, changes, words) => {
  expect(
    watched({ last })
      .worked(31, status, changes)
      .map(({ text }) => text),
  ).toEqual([words]);
});
