import { expect, test } from "vitest";
import { announcement } from "../src/chat/view/announce";
import { spoken } from "../src/review/navigation";
import { file, hunk, proposal } from "./edits";

const target = { sessionId: "s1", proposal: proposal("p", "t", []), file: file("/w/src/a.txt", "", []) };

test.each([
  ["line 9\n", "line 9!\n", "a.txt, line 9. Removed: line 9. Added: line 9!."],
  ["line 9\n", "", "a.txt, line 9. Removed: line 9."],
  ["", "new\n", "a.txt, line 9. Added: new."],
])("a screen reader hears where a change is, what goes and what comes: %j", (before, after, words) => {
  expect(spoken({ target, hunk: hunk("h", 9, before, after), start: 8 })).toBe(words);
});

test("a screen reader hears why a turn ended, in words", () => {
  const ended = { kind: "turnEnded", turnId: "t", message: "", canContinue: false, usage: null } as const;
  expect(announcement({ ...ended, reason: "cancelled" })).toBe("Stopped.");
  expect(announcement({ ...ended, reason: "stepLimit" })).toBe("Stopped: step limit reached.");
  expect(announcement({ ...ended, reason: "hook" })).toBe("Stopped by a hook.");
});
