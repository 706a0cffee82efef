// @vitest-environment happy-dom
import { readFileSync } from "node:fs";
import { beforeEach, expect, test, vi } from "vitest";
import { page } from "../src/chat/page";
import { List } from "../src/chat/view/list";
import { Folded } from "../src/sessions/fold";
import type { Approval, Item, SessionState, Source } from "../src/protocol";
import { plain, straight, visible } from "../src/editor/visible";
import { HOSTILE } from "./hostile";
import { APPROVAL, CALL, approvalAnswer, sandbox, state } from "./states";

/** All that the view itself makes. */
const TAGS =
  /^(ARTICLE|DIV|SPAN|P|PRE|CODE|UL|OL|LI|DETAILS|SUMMARY|BUTTON|SELECT|OPTION|INPUT|TEXTAREA|LABEL|STRONG|EM|H[1-6]|BLOCKQUOTE|TABLE|THEAD|TBODY|TR|TH|TD|A|HR|BR|S|FIGURE|FIGCAPTION)$/;
const ATTRIBUTES =
  /^(class|role|title|href|type|value|hidden|tabindex|open|rows|spellcheck|placeholder|start|colspan|aria-[a-z]+|data-[a-z]+|data-vscode-context|checked|disabled)$/;

/** Every card a session can have, each of its texts the hostile one. */
function items(text: string): Item[] {
  const source: Source = { title: text, url: text, quote: text };
  return [
    {
      kind: "userMessage",
      itemId: "u",
      turnId: "t1",
      text,
      steer: false,
      attachments: [{ kind: "file", path: text, lines: { start: 0, end: 2 } }],
    },
    { kind: "answer", agentId: null, itemId: "a", turnId: "t1", text },
    { kind: "answer", agentId: null, itemId: "a2", turnId: "t1", text: `one\n\n${text}\n\ntwo\n\n${text}` },
    { kind: "thought", itemId: "th", turnId: "t1", subject: text, text },
    { kind: "todoList", itemId: "p", turnId: "t1", todos: [{ text, status: "pending" }], summary: text },
    {
      kind: "notice",
      agentId: null,
      itemId: "n",
      turnId: null,
      level: "info",
      code: text,
      text,
      detail: text,
    },
    { kind: "citations", itemId: "c", turnId: "t1", sources: [source] },
    { ...CALL, title: text, arguments: { command: text, [text]: text }, output: text },
    {
      ...CALL,
      itemId: "done",
      title: text,
      state: "failed",
      output: text,
      error: text,
      sandbox: sandbox("none", text),
      decision: {
        outcome: "rejected",
        by: "user",
        client: text,
        rule: text,
        scope: null,
        reason: text,
        grants: [],
        command: null,
        permittedBy: null,
        mode: null,
        freshContext: false,
        trial: false,
        place: null,
        summary: text,
      },
    },
  ];
}

function asked(text: string): Approval {
  return {
    ...APPROVAL,
    title: text,
    detail: text,
    rule: text,
    scopes: [{ scope: "session", rule: text, explanation: text }],
    parts: [
      { text, decision: "ask", rule: text, reason: text },
      { text: "ls", decision: "allow", rule: text, reason: text },
    ],
    sandbox: sandbox("none", text),
    grants: ["network"],
    agentId: null,
    agent: "",
    likelyGrants: ["network"],
    answers: [
      approvalAnswer(text, "allow", { grants: ["network"], explanation: text }),
      approvalAnswer(text, "allow", { scope: "session", grants: ["network"], rule: text, explanation: text }),
      approvalAnswer(text, "reject"),
    ],
    lines: (["warning", "good", "bad"] as const).map((tone) => ({ tone, text })),
  };
}

function drawn(given: Partial<SessionState>): HTMLElement {
  const list = new List({ session: new Folded(state(given)), client: "here", post: () => undefined });
  document.body.replaceChildren(list.element);
  list.reset();
  for (const details of list.element.querySelectorAll("details")) {
    details.open = true; // what is folded away is drawn when it is opened
    details.dispatchEvent(new Event("toggle"));
  }
  return list.element;
}

beforeEach(() =>
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
    },
  ),
);

test.each(HOSTILE)("nothing is loaded, run or opened by %j", (text) => {
  const element = drawn({ items: items(text), approvals: [asked(text)] });
  for (const each of element.querySelectorAll("*")) {
    expect(each.tagName).toMatch(TAGS);
    for (const { name } of each.attributes) expect(name).toMatch(ATTRIBUTES);
    const href = each.getAttribute("href");
    if (href === null) continue;
    expect(href).toMatch(/^https?:\/\/[^@]*$/);
    expect(each.textContent).toContain(href); // where it leads stands there
  }
  // one question, with one yes
  expect(element.querySelectorAll("button.allow")).toHaveLength(1);
  // nothing in the question is hidden, and nothing anywhere stands in another order
  const question = element.querySelector(".approval");
  expect(visible(question?.textContent ?? "")).toBe(question?.textContent);
  expect(straight(element.textContent ?? "")).toBe(element.textContent);
  for (const title of element.querySelectorAll(".tool .title, .chip"))
    expect(visible(title.textContent ?? "")).toBe(title.textContent);
});

test.each([
  ["[x](https://example.org/a)", "https://example.org/a", "x https://example.org/a"],
  ["<https://example.org/a>", "https://example.org/a", "https://example.org/a"],
  [
    "[https://example.org](https://evil.test)",
    "https://evil.test/",
    "https://example.org https://evil.test/",
  ],
  [
    "[`code` **b**](HTTPS://EXAMPLE.org/ä)",
    "https://example.org/%C3%A4",
    "code b https://example.org/%C3%A4",
  ],
  ["[x](https://аpple.com/)", "https://xn--pple-43d.com/", "x https://xn--pple-43d.com/"],
])("a web link says where it leads: %s", (text, href, said) => {
  const link = drawn({
    items: [{ kind: "answer", agentId: null, itemId: "a", turnId: "t", text }],
  }).querySelector("a");
  expect([link?.getAttribute("href"), link?.getAttribute("title"), link?.textContent]).toEqual([
    href,
    href,
    said,
  ]);
});

test("the document loads nothing but its own script and style", () => {
  const html = page("https://own/main.js", "https://own/chat.css", "https://own");
  const policy = /Content-Security-Policy" content="([^"]*)"/.exec(html)?.[1] ?? "";
  const directives = policy.split(";").map((each) => each.trim().replace(/'nonce-[^']{20,}'/, "NONCE"));
  expect(directives.filter((each) => each !== "").toSorted()).toEqual([
    "base-uri 'none'",
    "default-src 'none'",
    "font-src https://own",
    "form-action 'none'",
    "img-src data:",
    "script-src NONCE",
    "style-src https://own",
  ]);
  expect(page("", "", "").match(/nonce-([^']*)/)?.[1]).not.toBe(html.match(/nonce-([^']*)/)?.[1]);
});

test("what is hidden is the same here and in the daemon", () => {
  const python = readFileSync("../protocol/amanu_protocol/hidden.py", "utf8");
  const ranges = [...python.matchAll(/\(0x(\w+), 0x(\w+)\),/g)].map((found) =>
    found.slice(1).map((code) => parseInt(code, 16)),
  );
  expect(ranges.length).toBeGreaterThan(10);
  for (let point = 0; point < 0x110000; point += point < 0x10000 || point >= 0xe0000 - 1 ? 1 : 0x100) {
    const character = String.fromCodePoint(point);
    const theirs = ranges.some(([first = 0, last = 0]) => first <= point && point <= last);
    if (theirs !== (visible(character) !== character)) expect.fail(`U+${point.toString(16)}`);
  }
  expect(visible("a\r\nb\tc\u202ed")).toBe("a\nb\tc<U+202E>d");
});

test.each([
  ["$(trash) x", "\\$(trash) x"],
  ["a\n\n  b", "a b"],
  ["x".repeat(200), `${"x".repeat(120)}…`],
  ["\u202etxt", "<U+202E>txt"],
])("a label of VS Code's: %j", (text, expected) => expect(plain(text)).toBe(expected));
