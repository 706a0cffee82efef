// @vitest-environment happy-dom
import { expect, test } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { Welcome } from "../src/chat/view/welcome";
import { Folded } from "../src/sessions/fold";
import type { Item, SessionSummary } from "../src/protocol";
import { state } from "./states";

function welcome() {
  const posted: ToHost[] = [];
  const view = { session: new Folded(state()), client: "", post: (message: ToHost) => posted.push(message) };
  const made = new Welcome(view);
  made.update(false);
  const texts = (selector: string) =>
    [...made.element.querySelectorAll<HTMLButtonElement>(selector)].map((each) => each.textContent);
  const press = (selector: string) => made.element.querySelector<HTMLButtonElement>(selector)?.click();
  return { made, posted, view, texts, press };
}

test.each<[string | null, number, number, string[]]>([
  [null, 0, 0, ["Explain this project"]],
  [null, 0, 2, ["Review my uncommitted changes", "Explain this project"]],
  ["/w/a.py", 0, 0, ["Write tests for a.py", "Explain a.py", "Explain this project"]],
  [
    "/w/a.py",
    2,
    1,
    ["Fix 2 problems in a.py", "Review my uncommitted changes", "Write tests for a.py", "Explain a.py"],
  ],
])("with %s, %i problems and %i changes there is to do", (file, problems, changes, expected) => {
  const { made, texts } = welcome();
  made.offer({ type: "starters", file, problems, changes });
  expect(texts(".starters button")).toEqual(expected);
});

test("a suggestion is said at once, with its file", () => {
  const { made, press, posted } = welcome();
  made.offer({ type: "starters", file: "/w/a.py", problems: 1, changes: 0 });
  press(".starters button");
  const attachments = [{ kind: "file", path: "/w/a.py" }];
  expect(posted).toEqual([{ type: "prompt", text: "Fix 1 problem in a.py.", attachments, how: "send" }]);
});

test("the last three other sessions are a click away", () => {
  const { made, press, posted, texts } = welcome();
  const session = (sessionId: string) =>
    ({ sessionId, title: sessionId, updatedAt: Date.now() }) as SessionSummary;
  made.recent(["here", "a", "b", "c", "d"].map(session), "here");
  expect(texts(".recents .name")).toEqual(["a", "b", "c"]);
  press(".recents button");
  expect(posted).toEqual([{ type: "open", sessionId: "a" }]);
});

test("it leaves with the first prompt; before a model is there, that comes first", () => {
  const { made, view } = welcome();
  made.update(true);
  expect([made.element.hidden, made.element.querySelector<HTMLElement>(".ready")?.hidden]).toEqual([
    false,
    true,
  ]);
  const item: Item = {
    kind: "userMessage",
    itemId: "u",
    turnId: "t",
    text: "x",
    attachments: [],
    steer: false,
  };
  view.session.fold({ kind: "itemCompleted", item });
  made.update(false);
  expect(made.element.hidden).toBe(true);
});
