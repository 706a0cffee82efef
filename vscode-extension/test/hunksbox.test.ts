// @vitest-environment happy-dom
import { expect, test } from "vitest";
import { HunksBox, stat } from "../src/chat/view/hunks";
import { Folded } from "../src/fold";
import type { Approval, Check, Hunk } from "../src/protocol";
import { file, hunk, proposal } from "./edits";
import { state } from "./states";

const ASKED = { toolCallId: "c" } as Approval;

function shown(hunks: Hunk[], checks: Check[] = []) {
  const box = new HunksBox({ session: new Folded(state({})), client: "here", post: () => undefined });
  document.body.replaceChildren(box.element);
  const of = (now: Check[]) => proposal("p", "t", [file("/w/a.py", "", hunks, { checks: now })]);
  box.update(of(checks), ASKED);
  return { box, of };
}

test("a checker's verdict comes while the question stands, and leaves the user where they are", () => {
  const { box, of } = shown([hunk("a", 1, "a\n", "b\n"), hunk("b", 5, "c\n", "d\n")]);
  const pressed = box.element.querySelector<HTMLElement>("button.accept");
  pressed?.focus();
  const error = { startLine: 1, endLine: 1, severity: "error", message: "no\nhelp: x", source: "", code: "" };
  const check = {
    checker: "ruff",
    about: "proposed",
    state: "done",
    added: [error],
    fixed: 2,
    message: null,
    summary: "adds 1 error, fixes 2",
  };
  box.update(of([check as Check]), ASKED);
  expect(box.element.querySelector(".checks")?.textContent).toBe("ruff: adds 1 error, fixes 2\n  line 1: no");
  expect(document.activeElement).toBe(pressed);
});

test("what it is for is said once, and one change alone is asked about once", () => {
  const why = { explanation: "Because." };
  const { box } = shown([
    { ...hunk("a", 1, "a\n", "b\n"), ...why },
    { ...hunk("b", 5, "c\n", "d\n"), ...why },
  ]);
  expect(box.element.querySelectorAll(".explanation").length).toBe(1);
  expect(box.element.querySelectorAll("button.accept").length).toBe(2);
  expect(shown([hunk("a", 1, "a\n", "b\n")]).box.element.querySelectorAll("button.accept").length).toBe(0);
});

test("a mere rename changes no line; lines between changes are shown as they are", () => {
  const moved = file("/w/a", "x\n", [hunk("a", 1, "x\n", "x\n")], { change: "rename", added: 1, removed: 1 });
  expect(stat([moved])).toBe("");
  expect(shown(moved.hunks).box.element.querySelector(".where")).toBeNull();
  const { box } = shown([hunk("a", 1, "a\nsame\nb\n", "A\nsame\nB\n")]);
  expect([...box.element.querySelectorAll("pre span")].map((line) => line.textContent)).toEqual([
    "− a\n",
    "+ A\n",
    "  same\n",
    "− b\n",
    "+ B\n",
  ]);
});

test("of many changes the first is drawn; all of them, or those of a file, when one wants to see them", () => {
  const session = new Folded(state({}));
  const box = new HunksBox({ session, client: "here", post: () => undefined });
  document.body.replaceChildren(box.element);
  const many = (path: string, count: number) =>
    file(
      path,
      "",
      Array.from({ length: count }, (_, at) => hunk(`${path}${at}`, at * 9 + 1, "a\n", "b\n")),
    );
  box.update(proposal("p", "t", [many("/w/a", 12), many("/w/b", 13)]), ASKED);
  const drawn = () => box.element.querySelectorAll("[data-hunk]").length;
  const press = (label: string) =>
    [...box.element.querySelectorAll("button")].find((each) => each.textContent === label)?.click();
  expect(drawn()).toBe(1);
  const other = box.element.querySelectorAll("details")[1];
  other?.setAttribute("open", "");
  other?.dispatchEvent(new Event("toggle"));
  expect(drawn()).toBe(1 + 13);
  press("Show all 25 changes");
  expect(drawn()).toBe(25);
  expect(document.activeElement?.getAttribute("data-hunk")).toBe("/w/a0");
});
