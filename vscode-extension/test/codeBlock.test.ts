// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { editor, host } from "../src/chat/view/host";
import { Markdown } from "../src/chat/view/markdown";
import { makeCard } from "../src/chat/view/cards";
import type { ChatView } from "../src/chat/view/chatView";
import type { UserMessage } from "../src/protocol";
import { Folded } from "../src/sessions/fold";
import { state } from "./states";

vi.mock("vscode", () => import("./vscode"));

let told: ToHost[] = [];

beforeEach(() => {
  told = [];
  host.post = (message) => void told.push(message);
  editor.path = "/w/open.py";
});

function draw(text: string): HTMLElement {
  const markdown = new Markdown();
  markdown.update(text);
  return markdown.element.querySelector(".code") as HTMLElement;
}

/** The buttons of a block, as they are told. */
function buttons(code: HTMLElement): string[] {
  return [...code.querySelectorAll<HTMLElement>(".head button")]
    .filter((each) => !each.hidden)
    .map((each) => each.getAttribute("aria-label") ?? "");
}

function press(code: HTMLElement, words: string): void {
  const found = [...code.querySelectorAll<HTMLElement>(".head button")];
  found.find((each) => each.getAttribute("aria-label")?.startsWith(words))?.click();
}

const INSERT = "Insert at the cursor of the editor";
const RUN = "Run it as a command of this session; your rules decide";
const TERMINAL = "Type it into the terminal; Enter runs it";

test.each([
  ["```py\nx = 1\n```", ["Apply to /w/open.py", INSERT, "Copy the code"]],
  ["```py src/a.py\nx = 1\n```", ["Apply to src/a.py", INSERT, "Copy the code"]],
  ["**`src/a.py`**:\n\n```py\nx = 1\n```", ["Apply to src/a.py", INSERT, "Copy the code"]],
  ["Change\n`a.py`:\n```py\nx = 1\n```", ["Apply to a.py", INSERT, "Copy the code"]],
  ["Node.js:\n\n```js\nx = 1\n```", ["Apply to /w/open.py", INSERT, "Copy the code"]],
  ["See `a.py`:\n\n```js\nx = 1\n```", ["Apply to /w/open.py", INSERT, "Copy the code"]],
  ["```bash\nmake\n```", [RUN, TERMINAL, INSERT, "Copy the code"]],
  ["```powershell\nls\n```", [TERMINAL, INSERT, "Copy the code"]],
  ["```sh bin/go.sh\nmake\n```", [RUN, TERMINAL, "Apply to bin/go.sh", INSERT, "Copy the code"]],
])("what can be done with a block: %s", (text, expected) => {
  expect(buttons(draw(text))).toEqual(expected);
});

test("a block's buttons say what it holds, and to which file it goes", () => {
  press(draw("```py src/a.py\nx = 1\n```"), "Apply");
  press(draw("```py\nx = 1\n```"), "Apply");
  press(draw("```console\n$ make\n```"), "Run");
  expect(told.filter(({ type }) => type !== "paint")).toEqual([
    { type: "applyCode", text: "x = 1", language: "py", path: "src/a.py" },
    { type: "applyCode", text: "x = 1", language: "py", path: null },
    { type: "runCode", text: "$ make", language: "console" },
  ]);
});

test("which file is in the editor is said when it is asked for", () => {
  const code = draw("```py\nx = 1\n```");
  editor.path = null;
  code.querySelector(".head button[aria-label^=Apply]")?.dispatchEvent(new Event("focus"));
  expect(buttons(code)[0]).toBe("Apply to the file in the editor");
});

test("what is still written offers nothing to be applied or run, and what is folded is shown before it runs", () => {
  expect(draw("```bash\nmake").className).toBe("code open"); // the style hides `.whole` there
  const code = draw(`\`\`\`bash\n${"make\n".repeat(60)}\`\`\``);
  press(code, "Run");
  expect([code.className, told.filter(({ type }) => type === "runCode")]).toEqual(["code", []]);
  press(code, "Run");
  expect(told.filter(({ type }) => type === "runCode")).toHaveLength(1);
});

function prompt(text: string): { show(): HTMLElement; drawn(): string | undefined } {
  const view: ChatView = { session: new Folded(state()), client: "VS Code", post: () => undefined };
  const item: UserMessage = {
    kind: "userMessage",
    itemId: "p",
    turnId: "t",
    text,
    attachments: [],
    steer: false,
  };
  const card = makeCard(item, view);
  const show = () => {
    card.update(item);
    return card.element;
  };
  return { show, drawn: () => show().querySelector(".text")?.textContent ?? undefined };
}

test("a prompt that applies a block is drawn without it", () => {
  expect(prompt("/apply src/a.py\n\n```py\nx = 1\n```").drawn()).toBe("/apply src/a.py");
  expect(prompt("/apply it\nto all").drawn()).toBe("/apply it\nto all");
});

test.each<[string, string, string | undefined]>([
  ["thirty lines", "x\n".repeat(29), undefined],
  ["a long log", "line\n".repeat(2_999) + "end", "Show all 3000 lines"],
  ["one long line", "word ".repeat(2_000), "Show all 10000 characters"],
])("a pasted text is folded until the user wants it: %s", (_, text, label) => {
  const { show, drawn } = prompt(text);
  const all = show().querySelector<HTMLButtonElement>("button.link");
  expect(all?.textContent).toBe(label);
  expect((drawn() ?? "").length).toBeLessThanOrEqual(3_002);
  show().querySelector<HTMLButtonElement>("button.link")?.click();
  expect([drawn(), show().querySelector("button.link")]).toEqual([text, null]);
});
