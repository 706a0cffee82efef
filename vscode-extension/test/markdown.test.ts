// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";
import { Markdown } from "../src/chat/view/markdown";
import { parser } from "../src/chat/view/parser";

function draw(text: string): string {
  const markdown = new Markdown();
  markdown.update(text);
  return markdown.element.innerHTML;
}

/** The same numbers in every run. */
function random(seed: number): (below: number) => number {
  let state = seed + 1;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** `AMANU_SEEDS=5000` for more of them. */
const SEEDS = Array.from({ length: Number(process.env["AMANU_SEEDS"] ?? 60) }, (_, seed) => seed);

const WORDS = [
  "plain",
  "*em",
  "em*",
  "**bold**",
  "`code",
  "code`",
  "[x](https://e.test/a)",
  "[one]",
  "[two][one]",
  "`a.py:3`",
];
const SIGNS = [
  "snake_case_name",
  "2 * 3",
  "~~gone~~",
  "\\*not\\*",
  "&amp;",
  "<https://e.test/>",
  "![i](x)",
  "a  \nb",
  "ä\u202ee",
  "|",
];
const MARKUP = [
  "<kbd>Ctrl",
  "</kbd>",
  "<sub>i</sub>",
  "<br>",
  "$x_1$",
  "$5",
  "$$y^2$$",
  "\\(a\\)",
  "\\[b",
  "[^1]",
  "[^no]",
  "![p](a/b.png)",
];
const INDENTS = ["", "", "", " ", "   ", "    ", "> ", "- ", "  - ", "1. ", "> - "];

/** A document of blocks that stand beside, in and upon each other as models write them, and do not. */
function document_(next: (below: number) => number): string {
  const pick = (from: string[]) => from[next(from.length)] ?? "";
  const words = (count: number) =>
    Array.from({ length: 1 + next(count) }, () => pick([...WORDS, ...SIGNS, ...MARKUP])).join(" ");
  const fence = () => {
    const mark = pick(["```", "~~~", "````"]);
    const lines = Array.from({ length: next(5) }, () =>
      pick(["x = 1", "", "  indented", "``", "~~~", "- no item", "\tTab"]),
    );
    return [mark + pick(["", "py", "ts src/a.ts", "sh"]), ...lines, ...(next(4) === 0 ? [] : [mark])];
  };
  const table = () => [
    "| a | b |",
    "|:--|--:|",
    ...Array.from({ length: next(9) }, () => `| ${words(2)} | ${next(9)} |`),
  ];
  const blocks: (() => string[])[] = [
    () => [words(12)],
    () => [words(4), words(4), words(4)],
    () => [`${"#".repeat(1 + next(4))} ${words(3)}`],
    () => [words(3), pick(["===", "---"])],
    () => [pick(["---", "***"])],
    () => [words(3), ...table()],
    table,
    fence,
    () => ["- one", "- [ ] open", "- [x] done", "", `  ${words(3)}`, "- last"],
    () => [
      "1. first",
      "   ```js",
      "   let a;",
      "",
      "   b();",
      "   ```",
      "2. second",
      ...(next(2) ? [""] : []),
      "   - deep",
      "3. third",
    ],
    () => [`[one]: https://e.test/${next(9)}`],
    () => [`[one]: <https://e.test/${next(9)}> "title"`, words(2)],
    () => [`[^1]: ${words(3)}`, ...(next(2) ? [words(2)] : [])],
    () => [
      "<details>",
      "<summary>More</summary>",
      "",
      words(4),
      "",
      "- one",
      ...(next(3) ? ["</details>"] : []),
    ],
    () => ["<details open><summary>Deep</summary>", ...fence(), "</details>", ...(next(2) ? [words(2)] : [])],
    () => ["$$", "\\sum_i", "- i", ...(next(3) ? ["$$"] : [])],
    () => [pick(["$$ x $$", "\\[ x \\]", "$$ x $$ and", "$$ x"])],
    () => ["    indented code", "", "    more"],
    () => ["> quoted", "lazy", "> - in it", ">   more"],
    () => [pick(["2", "2.", "-", "+ ", "=", "```", "|", "#", "&", "[", "\\"])],
  ];
  const lines = Array.from({ length: 2 + next(8) }, () => {
    const indent = pick(INDENTS);
    const drawn = (blocks[next(blocks.length)] ?? table)().map((line) => indent + line);
    return next(5) === 0 ? drawn : [...drawn, ""];
  });
  return lines.flat().join(next(12) === 0 ? "\r\n" : "\n");
}

test.each(SEEDS)("cut anywhere, document %i ends as drawn at once", (seed) => {
  const next = random(seed);
  const text = document_(next);
  const growing = new Markdown();
  const longest = 1 + next(30);
  for (let end = 0; end < text.length; growing.update(text.slice(0, end))) end += 1 + next(longest);
  expect(growing.element.innerHTML).toBe(draw(text));
});

/** Tags and text as they follow each other, without those that only stand in our drawing, or only in the parser's. */
function gist(html: string): string {
  const holder = document.createElement("div");
  holder.innerHTML = html;
  for (const own of holder.querySelectorAll(".head, button.all, input")) own.remove();
  for (const pre of holder.querySelectorAll("pre"))
    pre.textContent = (pre.textContent ?? "").replace(/\n$/, "");
  return holder.innerHTML
    .replaceAll(/<\/?(p|div)( [^>]*)?>/g, " ")
    .replaceAll(/ (class|style|title|role|tabindex|data-\w+)="[^"]*"/g, "")
    .replaceAll(/\[[ x]\] /g, "")
    .replaceAll(/\s+/g, "");
}

test.each(SEEDS)("document %i is drawn as the parser reads it", (seed) => {
  const text = document_(random(seed)).replaceAll("\u202e", "");
  expect(gist(draw(text))).toBe(gist(parser.render(text)));
});

test("a paragraph that is long is drawn in pieces as it would be in one", () => {
  const sentence =
    "It reads **the `till.py:12`** of [the shop](https://e.test/a), then snake_case [note] and 2 * 3. ";
  const text = `${sentence.repeat(50)}\n\n[note]: https://e.test/n`;
  expect(gist(draw(text))).toBe(gist(parser.render(text)));
  const unclosed = `**${sentence.repeat(100)}`;
  const growing = new Markdown();
  for (let end = 0; end < unclosed.length; growing.update(unclosed.slice(0, end))) end += 2_997;
  expect(growing.element.innerHTML).toBe(draw(unclosed));
});

test("what is drawn stays while a block grows", () => {
  const markdown = new Markdown();
  const kept: [string, string][] = [
    ["```py\nx = 1\n", ".line"],
    ["\n```\n\n1. one\n2. two", "li"],
    ["\n\n| a |\n|---|\n| 1 |", "td"],
    [`\n\n${"Many words. ".repeat(400)}`, "p"],
  ];
  let text = "";
  for (const [more, selector] of kept) {
    text += more;
    markdown.update(text);
    const first = [...markdown.element.querySelectorAll(selector)].at(-1)?.firstChild;
    for (let step = 0; step < 20; step++) markdown.update((text += selector === "td" ? " |\n| 2" : " more"));
    expect([selector, markdown.element.contains(first ?? null)]).toEqual([selector, true]);
  }
});

test("a table is not parsed again for each row that comes", () => {
  const rows = Array.from({ length: 300 }, (_, at) => `| ${at} | [note] ${"word ".repeat(6)}|`);
  const text = `Before.\n\n| a | b |\n|:--|--:|\n${rows.join("\n")}\n\n[note]: https://e.test/n\n`;
  const parse = vi.spyOn(parser.block, "parse");
  const markdown = new Markdown();
  for (let at = 0; at <= text.length; at += 20) markdown.update(text.slice(0, at));
  const longest = Math.max(...parse.mock.calls.map(([source]) => source.length));
  parse.mockRestore();
  expect(longest).toBeLessThan(300);
  markdown.update(text);
  expect(markdown.element.innerHTML).toBe(draw(text));
  expect(markdown.element.querySelectorAll("tbody tr a")).toHaveLength(300);
});

test("an address that comes later makes links of what refers to it", () => {
  const markdown = new Markdown();
  const text = "see [the page][p]\n\nand [p]\n\nthen\n\nmore\n\n";
  markdown.update(text);
  expect(markdown.element.querySelectorAll("a")).toHaveLength(0);
  markdown.update(`${text}[p]: https://e.test/a`);
  const links = [...markdown.element.querySelectorAll("a")];
  expect(links.map((link) => link.getAttribute("href"))).toEqual(["https://e.test/a", "https://e.test/a"]);
});

/** Text, and what is drawn of it: the selectors that it matches, with the text of each. */
test.each<[string, Record<string, string[]>]>([
  ["Press <kbd>Ctrl</kbd>+<KBD>C</KBD>", { kbd: ["Ctrl", "C"] }],
  ["H<sub>2</sub>O, x<sup>**2**</sup>", { sub: ["2"], "sup strong": ["2"] }],
  ["a<br>b<br/>c", { br: ["", ""] }],
  ["<kbd>open, <script>x</script>, <sub onclick=x>y</sub>", { "kbd, script, sub": [] }],
  ["`<kbd>x</kbd>`", { kbd: [], code: ["<kbd>x</kbd>"] }],
  [
    "<details>\n<summary>Log of `x`</summary>\n\n- one\n\n</details>\nAfter.",
    { summary: ["Log of x"], "details li": ["one"], "details + p": ["After."] },
  ],
  ["<details>\nno summary", { summary: ["Details"], "details p": ["no summary"] }],
  ["<details onclick=x>", { details: [] }],
  [
    "It is so[^1].\n\n[^1]: See\n  there.",
    { "p > sup.footnote": ["1", "1"], "p.footnote": ["1 See\nthere."] },
  ],
  ["`x` matches [^a-z] and [^2]", { sup: [] }],
  ["$O(n \\log n)$ and \\(x\\)", { "span.formula": ["O(n \\log n)", "x"] }],
  ["$5 and $10, $HOME/$USER, a$b$c, \\$x$", { ".formula": [] }],
  ["$$\n\\sum_i\n- i\n$$", { "div.formula": ["\\sum_i\n- i"], li: [] }],
  ["\\[ x^2 \\]", { "div.formula": ["x^2"] }],
  ["$$ never closed\n\nNext.", { "div.formula": ["$$ never closed"], p: ["Next."] }],
  ["![a plan](docs/plan.png)", { "img.workspace": [""], a: [] }],
  ["![a plan](https://e.test/plan.png)", { img: [], a: ["a plan https://e.test/plan.png"] }],
  ["![up](../../up.png) ![x](file:///etc/x.png) ![d](data:image/png;base64,AA)", { img: [] }],
])("%j is drawn as markup", (text, expected) => {
  const holder = document.createElement("div");
  holder.innerHTML = draw(text);
  const found = Object.keys(expected).map((selector) => [
    selector,
    [...holder.querySelectorAll(selector)].map((each) => each.textContent),
  ]);
  expect(Object.fromEntries(found)).toEqual(expected);
});

test("items of a task list have a box, which shows what is done and cannot be ticked", () => {
  const holder = document.createElement("div");
  holder.innerHTML = draw(
    "- [ ] open\n- [x] done\n- [X] also\n- [y] no task\n- `[ ]` neither\n\n[ ] nor this",
  );
  const boxes = [...holder.querySelectorAll<HTMLInputElement>("input")];
  expect(boxes.map((box) => [box.checked, box.disabled, box.parentElement?.textContent])).toEqual([
    [false, true, "open"],
    [true, true, "done"],
    [true, true, "also"],
  ]);
});

test.each<[string, string, string, string?]>([
  ["```python", "x", "python"],
  ["```ts src/a.ts", "x", "ts", "src/a.ts"],
  ['```ts title="src/a.ts"', "x", "ts", "src/a.ts"],
  ["```ts:src/a.ts", "x", "ts", "src/a.ts"],
  ["```12:20:src/a.ts", "x", "text", "src/a.ts:12"],
  ["```js {1,3-5}", "x", "js"],
  ["```py", "# src/till.py", "py", "src/till.py"],
  ["```ts", "// file: a.ts", "ts", "a.ts"],
  ["```html", "<!-- index.html -->", "html", "index.html"],
  ["```py", "# e.g. this", "py"],
  ["```py", "# /etc/passwd.txt", "py"],
  ["```py ../../up.py", "x", "py"],
  ["```", "x", "text"],
])("a code block says its language and file: %s, %s", (fence, line, language, path) => {
  const holder = document.createElement("div");
  holder.innerHTML = draw(`${fence}\n${line}\ny\nz\n\`\`\``);
  expect(holder.querySelector(".language")?.textContent).toBe(language);
  expect(holder.querySelector("a.file")?.textContent).toBe(path);
});

test("a long block is folded when it is whole, and follows its end before", () => {
  const markdown = new Markdown();
  const text = `\`\`\`\n${"x\n".repeat(60)}`;
  markdown.update(text);
  const code = markdown.element.querySelector(".code") as HTMLElement;
  expect(code.className).toBe("code open");
  markdown.update(`${text}\`\`\`\n`);
  expect(code.className).toBe("code folded");
  const all = code.querySelector<HTMLButtonElement>(".all");
  expect(all?.textContent).toBe("Show all 60 lines");
  all?.click();
  expect([code.className, all?.hidden]).toEqual(["code", true]);
});
