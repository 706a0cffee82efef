import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Gutter } from "../src/review/gutter";
import type { HunkState } from "../src/protocol";
import { file, hunk, proposal } from "./edits";
import { EventEmitter, extensions, typed, Uri } from "./vscode";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** The gutter of a file with a change in that state. */
function gutter(state: HunkState) {
  const touched: string[] = [];
  const target = {
    sessionId: "s1",
    proposal: proposal("p", "t", []),
    file: file("/w/a", "one\n", [hunk("h", 1, "one\n", "eins\n", state)]),
  };
  const proposals = { waiting: [target], typed: (path: string) => void touched.push(path) };
  const never = new EventEmitter<never>().event;
  const sessions = { onReset: never, onLeft: never, onEvent: never };
  return { touched, gutter: new Gutter(sessions as never, proposals) };
}

const type = (path: string, contentChanges: unknown[] = [{}]) =>
  typed.fire({ document: { uri: Uri.file(path) }, contentChanges });

test.each<[string, HunkState, () => void, string[]]>([
  ["typed", "applied", () => type("/w/a"), ["/w/a"]],
  ["typed on", "applied", () => ["o", "k"].forEach(() => type("/w/a")), ["/w/a"]],
  ["saved", "applied", () => type("/w/a", []), []],
  ["in two files", "pending", () => ["/w/a", "/w/b"].forEach((path) => type(path)), ["/w/a", "/w/b"]],
])("what a file is compared with is asked for again after a rest: %s", (_, state, act, expected) => {
  const shown = gutter(state);
  act();
  expect(shown.touched).toEqual([]);
  vi.runAllTimers();
  expect(shown.touched).toEqual(expected);
  type("/w/a");
  shown.gutter.dispose();
  vi.runAllTimers();
  expect(shown.touched).toEqual(expected);
});

test.each([false, true])(
  "git that starts when the gutter is gone is not listened to; gone: %s",
  async (gone) => {
    let listeners = 0;
    const api = {
      onDidOpenRepository: () => {
        listeners += 1;
        return { dispose: () => (listeners -= 1) };
      },
    };
    let start = (_: unknown): void => undefined;
    const started = new Promise((resolve) => (start = resolve));
    vi.spyOn(extensions, "getExtension").mockReturnValue({ activate: () => started });
    const shown = gutter("applied");
    if (gone) shown.gutter.dispose();
    start({ getAPI: () => api });
    await started;
    await Promise.resolve();
    expect(listeners).toBe(gone ? 0 : 1);
    shown.gutter.dispose();
    expect(listeners).toBe(0);
  },
);
