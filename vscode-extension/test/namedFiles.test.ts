// @vitest-environment happy-dom
import { beforeEach, expect, test, vi } from "vitest";
import type { ToHost } from "../src/chat/messages";
import { host } from "../src/chat/view/host";
import { Markdown } from "../src/chat/view/markdown";
import { namedFiles } from "../src/chat/view/namedFiles";
import { workspacePictures } from "../src/chat/view/workspacePictures";

const said: ToHost[] = [];
host.post = (message) => said.push(message);
vi.useFakeTimers();

beforeEach(() => void said.splice(0));

function drawn(text: string): HTMLElement {
  const markdown = new Markdown();
  document.body.replaceChildren(markdown.element);
  markdown.update(text);
  return markdown.element;
}

function asked(): string[] {
  vi.runAllTimers();
  return said.splice(0).flatMap((message) => (message.type === "namedFiles" ? message.paths : []));
}

test.each<[string, string[]]>([
  ["It is in src/flask/ctx.py:12, see there.", ["src/flask/ctx.py"]],
  ["`cli.py` and CHANGES.rst do.", ["cli.py", "CHANGES.rst"]],
  ["Below ./docs/guide or a/b#L3-L9 it is.", ["./docs/guide", "a/b"]],
  ["See https://e.test/a/b.html, mail me@e.test or /etc/passwd, ../up.py, C:\\\\x.py now.", []],
  ["[here.py](src/a.py), `src/b.py` and `src/c.py:3` lead there already.", []],
  ["Version 1.2.3 is 3.5 GB.", []],
  ["```\nsrc/in/code.py is not\n```", []],
  ["$a/b$ is a formula.", []],
  ["and a/n.py b/n.py at the end", ["a/n.py", "b/n.py"]],
])("names that may be files are asked about: %s", (text, paths) => {
  drawn(text);
  expect(asked()).toEqual(paths);
});

test("what is there becomes a link, what is not stays text and is asked about again after the turn", () => {
  const element = drawn("Look at src/one.py:7 and src/two.py now.\n\nAlso `one.py` does.");
  expect(element.querySelectorAll("a")).toHaveLength(0);
  expect(asked()).toEqual(["src/one.py", "src/two.py", "one.py"]);
  namedFiles.found(["src/one.py", "src/two.py", "one.py"], ["src/one.py", "one.py"]);
  const links = () =>
    [...element.querySelectorAll<HTMLElement>("a.file")].map(
      ({ textContent, dataset }) => [textContent, dataset["path"], dataset["line"]] as const,
    );
  expect(links()).toEqual([
    ["src/one.py:7", "src/one.py", "7"],
    ["one.py", "one.py", ""],
  ]);
  expect(element.textContent).toContain("Look at src/one.py:7 and src/two.py now.");
  drawn("src/one.py is known, and src/two.py too.");
  expect(asked()).toEqual([]);
  namedFiles.lookAgain();
  expect(asked()).toEqual(["src/two.py"]);
});

test("what may grow is asked about when the turn has ended", () => {
  drawn("It is in lib/par");
  expect(asked()).toEqual([]);
  namedFiles.lookAgain();
  expect(asked()).toEqual(["lib/par"]);
});

test("a picture of the workspace is asked for once, and drawn again without", () => {
  const markdown = new Markdown();
  document.body.replaceChildren(markdown.element);
  const source = () => markdown.element.querySelector("img")?.getAttribute("src");
  markdown.update("![plan](docs/plan.png) shows");
  markdown.update("![plan](docs/plan.png) shows it");
  expect(said).toEqual([{ type: "workspacePicture", path: "docs/plan.png" }]);
  expect(source()).toBeNull();
  workspacePictures.found("docs/plan.png", "data:image/png;base64,AA==");
  expect(source()).toBe("data:image/png;base64,AA==");
  markdown.update("![plan](docs/plan.png) shows it all");
  expect(source()).toBe("data:image/png;base64,AA==");
  expect(said).toHaveLength(1);
});
