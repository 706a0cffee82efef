// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { List } from "../src/chat/view/list";
import { Folded } from "../src/sessions/fold";
import type { Question, QuestionField } from "../src/protocol";
import { state } from "./states";

beforeEach(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  );
});

const CHOICE: QuestionField = {
  fieldId: "q1",
  kind: "choice",
  header: "Database",
  text: "Which database?",
  options: [
    { label: "SQLite", description: "One file." },
    { label: "Postgres", description: "" },
  ],
  other: true,
  required: true,
  placeholder: "",
  default: null,
};
const CHOICES: QuestionField = { ...CHOICE, kind: "choices" };
const TEXT: QuestionField = { ...CHOICE, fieldId: "q2", kind: "text", header: "", options: [], other: false };
const CONFIRM: QuestionField = { ...TEXT, fieldId: "q3", kind: "confirm" };
const QUESTION: Question = {
  kind: "question",
  agentId: null,
  itemId: "q",
  turnId: "t1",
  toolCallId: "c1",
  asker: "Amanu",
  title: "Which database?",
  fields: [],
  state: "open",
  answers: {},
  note: "",
  client: null,
  summary: "",
};

/** The card of a question with those fields. */
function card(...fields: QuestionField[]) {
  const posted: ToHost[] = [];
  const question = { ...QUESTION, fields };
  const session = new Folded(state({ items: [question], questions: [question] }));
  const list = new List({ session, client: "here", post: (message) => posted.push(message) });
  document.body.replaceChildren(list.element);
  list.reset();
  const find = <E extends HTMLElement>(selector: string) => list.element.querySelector(selector) as E;
  const press = (label: string) => {
    const boxes = [...list.element.querySelectorAll<HTMLElement>("label.option")];
    boxes
      .find((each) => each.querySelector(".label")?.textContent === label)
      ?.querySelector("input")
      ?.click();
  };
  const write = (text: string, at = 0) => {
    const own = list.element.querySelectorAll<HTMLInputElement>("input.own")[at] as HTMLInputElement;
    own.value = text;
    own.dispatchEvent(new Event("input"));
  };
  const fold = (changed: Partial<Question>) => {
    session.fold({ kind: "itemCompleted", item: { ...question, ...changed } });
    list.update(new Set(["q"]));
  };
  return { posted, find, press, write, fold };
}

const answered = (answers: object) => [
  { type: "answer", questionId: "q", outcome: "answered", answers, note: "" },
];

test.each<[string, QuestionField[], (shown: ReturnType<typeof card>) => void, object]>([
  ["an option", [CHOICE], ({ press }) => press("Postgres"), { q1: "Postgres" }],
  [
    "the last option pressed",
    [CHOICE],
    ({ press }) => {
      press("Postgres");
      press("SQLite");
    },
    { q1: "SQLite" },
  ],
  [
    "own words instead of an option",
    [CHOICE],
    ({ press, write }) => {
      press("SQLite");
      write(" Oracle ");
    },
    { q1: "Oracle" },
  ],
  [
    "an option instead of own words",
    [CHOICE],
    ({ press, write }) => {
      write("Oracle");
      press("SQLite");
    },
    { q1: "SQLite" },
  ],
  [
    "several options and own words",
    [CHOICES],
    ({ press, write }) => {
      press("SQLite");
      press("Postgres");
      write("Oracle");
    },
    { q1: ["SQLite", "Postgres", "Oracle"] },
  ],
  [
    "text, and a no",
    [TEXT, CONFIRM],
    ({ press, write }) => {
      write("shop");
      press("No");
    },
    { q2: "shop", q3: false },
  ],
  ["what need not be answered", [{ ...TEXT, required: false }], () => undefined, {}],
  ["a default", [{ ...TEXT, default: "shop" }], () => undefined, { q2: "shop" }],
])("%s is sent", (_, fields, fill, answers) => {
  const shown = card(...fields);
  fill(shown);
  shown.find("button.send").click();
  expect(shown.posted).toEqual(answered(answers));
});

test("nothing is sent before what is needed is answered", () => {
  const { find, press, posted } = card(CHOICE);
  expect(find<HTMLButtonElement>("button.send").disabled).toBe(true);
  find("button.send").click();
  expect(posted).toEqual([]);
  press("SQLite");
  expect(find<HTMLButtonElement>("button.send").disabled).toBe(false);
});

test("one may decline, and say why", () => {
  const { find, posted } = card(CHOICE);
  find<HTMLInputElement>("input.reason").value = "You decide.";
  find("button.decline").click();
  expect(posted).toEqual([
    { type: "answer", questionId: "q", outcome: "declined", answers: {}, note: "You decide." },
  ]);
});

test("who asks, what, and what the options mean is shown as text, with nothing hidden in it", () => {
  const { find } = card({ ...CHOICE, text: "<b>Which\u202e?</b>" });
  expect(find(".why").textContent).toBe("Amanu asks");
  expect(find("legend").textContent).toBe("Database<b>Which<U+202E>?</b>");
  expect(find("label.option").textContent).toBe("SQLiteOne file.");
});

test("what was chosen stays while other things happen; an answer from elsewhere ends it", () => {
  const { find, press, fold } = card(CHOICE);
  press("SQLite");
  fold({});
  expect(find<HTMLInputElement>("label.option input").checked).toBe(true);
  const summary = "Answered in Neovim: Database: Postgres";
  fold({ state: "answered", client: "Neovim", summary, answers: { q1: "Postgres" } });
  expect(find("button.send")).toBeNull();
  expect(find("summary").textContent).toBe(`Amanu asked: Which database?${summary}`);
  expect(find<HTMLDetailsElement>("details").open).toBe(false); // one row; what was asked is behind it
  expect(find("details pre").textContent).toBe(`${CHOICE.text}\nPostgres`);
});
