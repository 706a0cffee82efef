import { mkdtempSync, readdirSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import type { Memento } from "vscode";
import { RememberedSession } from "../src/sessions/rememberedSession";

/** Processes that are gone, as no machine counts that far; the last one lives. */
const [ONE, TWO, THREE] = [900_000_001, 900_000_002, 900_000_003];
const LIVES = process.ppid;

let storage = "";
let kept: Record<string, unknown> = {};

beforeEach(() => {
  storage = mkdtempSync(join(tmpdir(), "amanu-"));
  kept = {};
});

function shown(pid: number, roots = ["/w"]): RememberedSession {
  const memento = { get: (key: string) => kept[key], update: async () => undefined };
  return new RememberedSession(storage, roots, memento as unknown as Memento, pid);
}

/** That window showed something, and went so many hours ago. */
function went(pid: number, sessionId: string | undefined, hours: number): void {
  shown(pid).set(sessionId);
  const time = new Date(Date.now() - hours * 3_600_000);
  utimesSync(join(folder(), String(pid)), time, time);
}

function folder(): string {
  return join(storage, "shown", ...readdirSync(join(storage, "shown")).slice(0, 1));
}

test("what was shown is there at once for the process that comes next", () => {
  shown(ONE).set("s1");
  expect(shown(TWO).get()).toBe("s1");
});

test("a clean sheet stays one", () => {
  kept = { "amanu.session": "s0" };
  shown(ONE).set("s1");
  shown(ONE).set(undefined);
  expect(shown(ONE).get()).toBeUndefined();
  expect(shown(TWO).get()).toBeUndefined();
});

test("other folders have their own, in whatever order they are", () => {
  shown(ONE, ["/w", "/v"]).set("s1");
  expect(shown(TWO, ["/w"]).get()).toBeUndefined();
  expect(shown(TWO, ["/v", "/w"]).get()).toBe("s1");
});

test("the window that went last counts, and two that come at once do not get the same", () => {
  went(ONE, "s1", 1);
  went(TWO, "s2", 2);
  const [first, second] = [shown(LIVES), shown(THREE)];
  expect([first.get(), second.get()]).toEqual(["s1", "s2"]);
  expect([first.get(), second.get()]).toEqual(["s1", "s2"]); // asked again: the line was made anew
});

test("closing is what counts, not what was said last", () => {
  const early = shown(ONE);
  early.set("s1");
  went(ONE, "s1", 2);
  went(TWO, "s2", 1);
  early.dispose();
  expect(shown(THREE).get()).toBe("s1");
});

test("what living windows show comes last, and is not taken from them", () => {
  shown(LIVES).set("s1");
  expect(shown(ONE).get()).toBe("s1");
  went(TWO, "s2", 1);
  expect(shown(THREE).get()).toBe("s2");
  expect(shown(LIVES).get()).toBe("s1");
});

test("windows that went long before the last one are forgotten", () => {
  went(ONE, "s1", 50);
  expect(shown(TWO).get()).toBe("s1");
  went(TWO, "s2", 50);
  went(ONE, "s1", 1);
  expect(shown(THREE).get()).toBe("s1");
  expect(readdirSync(folder())).toEqual([String(THREE)]);
});

test("without our own place it is what VS Code remembers", () => {
  kept = { "amanu.session": "s0" };
  expect(shown(ONE).get()).toBe("s0");
  const nowhere = new RememberedSession("/dev/null", ["/w"], {
    get: () => "s0",
    update: async () => undefined,
  } as never);
  nowhere.set("s1");
  nowhere.dispose();
  expect(nowhere.get()).toBe("s0");
});
