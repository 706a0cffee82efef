// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { Completion } from "../src/chat/view/completion";

test.each([
  ["see @sho", "@sho", "@shop.py", "see @shop.py "],
  ["see @sr", "@sr", "@src/", "see @src/"],
  ['see @"a ca', '@"a ca', '@"a cart.md"', 'see @"a cart.md" '],
  ["see @sy", "@sy", "@symbol:", "see @symbol:"],
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
  completion.mentions("an earlier text", typed, [{ text: "@wrong", detail: "" }]);
  expect(completion.element.hidden).toBe(true);
  completion.mentions(text, typed, [{ text: item, detail: "" }]);
  completion.key(new KeyboardEvent("keydown", { key: "Tab" }));
  expect(input.value).toBe(after);
});
