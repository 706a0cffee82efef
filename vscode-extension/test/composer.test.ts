// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { Composer, type Kept } from "../src/chat/view/composer";
import { attachment, pictures } from "../src/chat/view/picture";
import { Folded } from "../src/sessions/fold";
import type { SessionState } from "../src/protocol";
import { state } from "./states";

const COMMANDS = [
  { name: "new-test", description: "Write a test", argumentHint: "FILE", source: "user" as const },
];

let posted: ToHost[];
let kept: Kept[];
let session: Folded;

beforeEach(() => {
  posted = [];
  kept = [];
  vi.useFakeTimers();
});

function compose(given: Partial<SessionState> = {}) {
  session = new Folded(state(given));
  const view = { session, client: "here", post: (m: ToHost) => posted.push(m) };
  const composer = new Composer(view, (each) => kept.push(each), []);
  document.body.replaceChildren(composer.element);
  composer.commands(COMMANDS);
  const input = composer.element.querySelector("textarea") as HTMLTextAreaElement;
  return { composer, input };
}

function type(input: HTMLTextAreaElement, text: string): void {
  input.value = text;
  input.setSelectionRange(text.length, text.length);
  input.dispatchEvent(new Event("input"));
}

function press(input: HTMLTextAreaElement, key: string, more: KeyboardEventInit = {}): void {
  input.dispatchEvent(new KeyboardEvent("keydown", { key, cancelable: true, ...more }));
}

function offered(): string[] {
  return [...document.querySelectorAll(".completion:not([hidden]) li span:first-child")].map(
    (each) => each.textContent ?? "",
  );
}

test.each([
  ["/new", ["/new", "/new-test"]],
  ["/new-", ["/new-test"]],
  ["/mo", ["/model", "/mode"]],
  ["/nothing", []],
  ["see /new", []],
  ["/usr/bin", []],
])("%s offers %j", (typed, expected) => {
  const { input } = compose();
  type(input, typed);
  expect(offered()).toEqual(expected);
});

test("the daemon's commands are asked for when they may be wanted", () => {
  const { input } = compose();
  type(input, "/");
  expect(posted).toEqual([{ type: "commands" }]);
});

test.each([
  ["/new", "Enter", { type: "action", action: "new" }, ""],
  ["/new-t", "Tab", undefined, "/new-test "],
  ["/logs", "Escape", undefined, "/logs"],
])("%s and %s: %j is done, %j stays", (typed, key, done, left) => {
  const { input } = compose();
  type(input, typed);
  press(input, key);
  expect(posted.at(-1)).toEqual(done);
  expect(input.value).toBe(left);
});

test.each([
  ["/stop", { type: "action", action: "stop" }],
  ["/new-test a.py", { type: "prompt", text: "/new-test a.py", attachments: [], how: "send" }],
  ["/stop it", { type: "prompt", text: "/stop it", attachments: [], how: "send" }],
])("%s sent", (typed, expected) => {
  const { input } = compose();
  type(input, typed);
  press(input, "Escape"); // no list in the way
  press(input, "Enter");
  expect(posted.at(-1)).toEqual(expected);
  expect(input.value).toBe("");
});

test("while a turn runs Enter steers and Alt+Enter queues", () => {
  const { input } = compose({ turn: { turnId: "t", modelId: "m", steps: 0, routed: null } });
  type(input, "more");
  press(input, "Enter");
  type(input, "later");
  press(input, "Enter", { altKey: true });
  expect(posted.map((each) => each.type === "prompt" && [each.text, each.how])).toEqual([
    ["more", "steer"],
    ["later", "queue"],
  ]);
});

test("what the user looks at is named, and can be kept back", () => {
  const { composer } = compose();
  const chip = composer.element.querySelector(".looking") as HTMLButtonElement;
  expect(chip.hidden).toBe(true);
  composer.look({ path: "/w/src/cart.py", lines: { start: 2, end: 5 }, selectedText: "x" }, true);
  expect([chip.hidden, chip.textContent, chip.getAttribute("aria-checked")]).toEqual([
    false,
    "cart.py:3–5",
    "true",
  ]);
  chip.click();
  expect(posted).toEqual([{ type: "share", shared: false }]);
  composer.look({ path: "/w/src/cart.py", lines: { start: 2, end: 3 }, selectedText: null }, false);
  expect([chip.textContent, chip.getAttribute("aria-checked")]).toEqual(["cart.py", "false"]);
});

test("a pasted picture becomes an attachment that can be left out", async () => {
  vi.useRealTimers();
  vi.stubGlobal("createImageBitmap", async () => ({ width: 20, height: 10, close: () => undefined }));
  const { composer, input } = compose();
  const file = new File([new Uint8Array([137, 80, 78, 71])], "shot.png", { type: "image/png" });
  expect(pictures([file, new File(["x"], "x.txt", { type: "text/plain" })])).toEqual([file]);
  composer.attach(await attachment(file));
  expect(composer.element.querySelector("img")?.src).toBe("data:image/png;base64,iVBORw==");
  type(input, "what is this?");
  press(input, "Enter");
  expect(posted.at(-1)).toEqual({
    type: "prompt",
    text: "what is this?",
    attachments: [{ kind: "image", name: "shot.png", mediaType: "image/png", data: "iVBORw==" }],
    how: "send",
  });
  composer.attach(await attachment(file));
  (composer.element.querySelector(".chip:not(.looking) button") as HTMLButtonElement).click();
  expect(composer.element.querySelector("img")).toBeNull();
});

test("a prompt waits for the picture that was pasted before it", async () => {
  vi.useRealTimers();
  let decoded = (_: unknown) => undefined as void;
  vi.stubGlobal("createImageBitmap", () => new Promise((resolve) => (decoded = resolve)));
  const { composer, input } = compose();
  composer.attachPicture(new File([new Uint8Array([1])], "shot.png", { type: "image/png" }));
  expect(composer.element.textContent).toContain("Reading the image");
  type(input, "what is this?");
  press(input, "Enter");
  expect(posted).toEqual([]);
  decoded({ width: 2, height: 2, close: () => undefined });
  await vi.waitFor(() => expect(posted).toHaveLength(1));
  expect(posted[0]).toMatchObject({ type: "prompt", attachments: [{ name: "shot.png" }] });
  expect(composer.element.textContent).not.toContain("Reading the image");
});

test.each([
  ["", "first"],
  ["second", "first\n\nsecond"],
])("a refused prompt comes back before %j", (typed, expected) => {
  const { composer, input } = compose();
  type(input, typed);
  composer.attach({ kind: "file", path: "/w/b.py" });
  composer.giveBack({ text: "first", attachments: [{ kind: "file", path: "/w/a.py" }] });
  expect(input.value).toBe(expected);
  expect(
    [...composer.element.querySelectorAll(".chip:not(.looking)")].map((each) => each.textContent),
  ).toEqual(["a.py", "b.py"]);
});

test.each([
  ["what was sent just before the reload", "hello", "", []],
  ["a picture that was sent before its words were kept", "", "", []],
  ["what was not sent", "another", "another", ["a.png"]],
])("after a reload comes back: %s", (_, text, expected, chips) => {
  const { composer, input } = compose();
  composer.restore({
    text,
    attachments: [{ kind: "image", name: "a.png", mediaType: "image/png", data: "" }],
  });
  const sent = {
    kind: "image" as const,
    name: "a.png",
    mediaType: "image/png" as const,
    data: null,
    blob: { blobId: "b", size: 1 },
  };
  const item = {
    kind: "userMessage" as const,
    itemId: "u",
    turnId: "t",
    text: "hello",
    attachments: [sent],
    steer: false,
  };
  session.fold({ kind: "itemCompleted", item });
  composer.update();
  const shown = [...composer.element.querySelectorAll(".chip:not(.looking)")].map((each) => each.textContent);
  expect([input.value, shown]).toEqual([expected, chips]);
});

const earlier = { text: "old", attachments: [{ kind: "file" as const, path: "/w/a.py" }], replaces: "t1" };

test("an earlier prompt is edited and sent in its place; what stood in the box comes back", () => {
  const { composer, input } = compose();
  type(input, "half a thought");
  composer.edit(earlier);
  expect([input.value, composer.element.querySelector(".editing")?.textContent]).toEqual([
    "old",
    "Editing an earlier message",
  ]);
  type(input, "new");
  press(input, "Enter");
  expect(posted.at(-1)).toEqual({ ...earlier, type: "prompt", text: "new", how: "send" });
  expect([input.value, composer.element.querySelector(".editing")]).toEqual(["half a thought", null]);
});

test.each(["Escape", "the button"])("%s lets an earlier prompt be", (how) => {
  const { composer, input } = compose();
  type(input, "mine");
  composer.edit(earlier);
  if (how === "Escape") press(input, how);
  else composer.element.querySelector<HTMLButtonElement>(".editing button")?.click();
  expect([input.value, composer.element.querySelector(".editing")]).toEqual(["mine", null]);
  press(input, "Enter");
  expect(posted).toEqual([{ type: "prompt", text: "mine", attachments: [], how: "send" }]);
});

test("one button sends or stops; with a text while a turn runs both are there", () => {
  const { composer, input } = compose();
  const shown = () =>
    [...composer.element.querySelectorAll<HTMLButtonElement>(".buttons button")]
      .filter((each) => !each.hidden)
      .map((each) => each.getAttribute("aria-label"));
  expect(shown()).toEqual(["Send"]);
  session.fold({ kind: "turnStarted", turnId: "t", promptId: "p", modelId: "m" });
  composer.update();
  expect(shown()).toEqual(["Stop"]);
  type(input, "more");
  expect(shown()).toEqual(["Stop", "Steer"]);
});

test("what is typed is kept once the keys rest, and gone at once when it is sent", () => {
  const { input } = compose();
  for (const text of ["h", "he", "hey"]) type(input, text);
  expect(kept).toEqual([]);
  vi.advanceTimersByTime(1000);
  expect(kept).toEqual([{ text: "hey", attachments: [] }]);
  press(input, "Enter");
  expect(kept.at(-1)).toEqual({ text: "", attachments: [] });
});
