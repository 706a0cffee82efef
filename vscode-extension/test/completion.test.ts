// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { Completion } from "../src/chat/view/completion";
import { Mentioned } from "../src/chat/view/mentioned";

test.each([
  ["see @sho", "@sho", "@shop.py", "see @shop.py "],
  ["see @sr", "@sr", "@src/", "see @src/"],
  ['see @"a ca', '@"a ca', '@"a cart.md"', 'see @"a cart.md" '],
  ["see @sy", "@sy", "@symbol:", "see @symbol:"],
  ["see #pro", "#pro", "@problems", "see @problems "],
])("what the daemon offers for %j is put in its place", (text, typed, item, after) => {
  const input = document.createElement("textarea");
  const asked: string[] = [];
  const completion = new Completion(
    input,
    (before) => asked.push(before),
    () => undefined,
  );
  input.value = text;
  input.setSelectionRange(text.length, text.length);
  input.dispatchEvent(new Event("input"));
  expect(asked).toEqual([text]);
  const found = (name: string) => ({
    typed,
    incomplete: false,
    items: [{ text: name, detail: "", kind: "file" as const }],
  });
  completion.mentions("an earlier text", found("@wrong"));
  expect(completion.element.hidden).toBe(true);
  completion.mentions(text, found(item));
  completion.key(new KeyboardEvent("keydown", { key: "Tab" }));
  expect(input.value).toBe(after);
});

test("while the files are read it is asked again, and what was chosen stays so", () => {
  vi.useFakeTimers();
  const input = document.createElement("textarea");
  const asked: string[] = [];
  const completion = new Completion(
    input,
    (before) => asked.push(before),
    () => undefined,
  );
  const answer = (incomplete: boolean, ...names: string[]) =>
    completion.mentions("@b", {
      typed: "@b",
      incomplete,
      items: names.map((text) => ({ text, detail: "", kind: "file" })),
    });
  const shown = () => [...completion.element.children].map((row) => row.textContent);
  input.value = "@b";
  input.setSelectionRange(2, 2);
  input.dispatchEvent(new Event("input"));
  answer(true);
  expect(shown()).toEqual(["Reading the files…"]);
  expect(completion.key(new KeyboardEvent("keydown", { key: "Enter" }))).toBe(false);
  vi.runOnlyPendingTimers();
  answer(true, "@b.py", "@bar.py");
  expect(shown()).toEqual(["@b.py", "@bar.py", "Reading the files…"]);
  completion.key(new KeyboardEvent("keydown", { key: "ArrowDown" }));
  vi.runOnlyPendingTimers();
  expect(asked).toEqual(["@b", "@b", "@b"]);
  answer(false, "@b.py", "@src/b.py", "@bar.py");
  expect(shown()).toEqual(["@b.py", "@src/b.py", "@bar.py"]);
  completion.key(new KeyboardEvent("keydown", { key: "Tab" }));
  expect(input.value).toBe("@bar.py ");
  vi.runOnlyPendingTimers();
  expect(asked).toEqual(["@b", "@b", "@b"]);
  vi.useRealTimers();
});

test("what was chosen is a chip of its kind while it stands in the prompt", () => {
  const input = document.createElement("textarea");
  const mentioned = new Mentioned(input);
  const type = (text: string) => {
    input.value = text;
    input.dispatchEvent(new Event("input"));
  };
  const chips = () =>
    [...mentioned.element.children].map((chip) => [chip.getAttribute("data-kind"), chip.textContent]);
  mentioned.add({ text: "@src/a.py", detail: "", kind: "file" });
  mentioned.add({ text: "@problems", detail: "", kind: "problems" });
  mentioned.add({ text: "@symbol:", detail: "", kind: "symbol" });
  type("See @src/a.py, @problems and @symbol: ");
  expect(chips()).toEqual([
    ["file", "a.py×"],
    ["problems", "Problems×"],
  ]);
  mentioned.element.querySelector("button")?.click();
  expect(input.value).toBe("See , @problems and @symbol: ");
  type("See @problemsolver");
  expect(chips()).toEqual([]);
  type("");
  type("@problems");
  expect(chips()).toEqual([]);
});
