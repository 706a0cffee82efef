// @vitest-environment happy-dom
import { expect, test, vi } from "vitest";

test("formulas are drawn when KaTeX has come, which is loaded for the first one", async () => {
  const { formulaDrawing } = await import("../src/chat/view/formulaDrawing");
  const { Markdown } = await import("../src/chat/view/markdown");
  Object.defineProperty(document, "compatMode", { value: "CSS1Compat" }); // as our page has a doctype
  const { render } = await import("katex");
  formulaDrawing.load = vi.fn();
  const markdown = new Markdown();
  const text = "Of $x^2$ and $\\frac{1$ and $\\href{https://e.test}{x}$\n\n$$\n\\sum_i i\n$$\n\n";
  markdown.update(text);
  const sources = [...markdown.element.querySelectorAll(".formula")].map((each) => each.textContent);
  expect(sources).toEqual(["x^2", "\\frac{1", "\\href{https://e.test}{x}", "\\sum_i i"]);
  expect(formulaDrawing.load).toHaveBeenCalledTimes(1);
  formulaDrawing.use(render);
  const drawn = [...markdown.element.querySelectorAll(".formula")];
  expect(drawn.map((each) => each.querySelector(".katex") !== null)).toEqual([true, false, true, true]);
  expect(drawn[3]?.querySelector(".katex-display")).not.toBeNull();
  expect(markdown.element.querySelector("a")).toBeNull();
  const later = new Markdown();
  later.update(text);
  expect(later.element.innerHTML).toBe(markdown.element.innerHTML);
});
