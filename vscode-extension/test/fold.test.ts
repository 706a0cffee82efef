import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { Folded } from "../src/sessions/fold";
import type { Event, SessionState } from "../src/protocol";

interface Fixture {
  name: string;
  start: SessionState;
  events: Event[];
  expected: SessionState;
}

const folder = new URL("../../protocol/fixtures/", import.meta.url);
const fixtures = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Fixture);

/** Absent and null mean the same on the wire; `mood` and such are fields nobody knows, which Python drops. */
function shaped(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each) => (each === null || key === "mood" ? undefined : each)),
  );
}

test("there are fixtures", () => expect(fixtures.length).toBeGreaterThan(30));

test.each(fixtures.map((fixture) => [fixture.name, fixture] as const))("%s", (_, fixture) => {
  const folded = new Folded(structuredClone(fixture.start));
  for (const event of fixture.events) folded.fold(event);
  expect(shaped(folded.state)).toEqual(shaped(fixture.expected));
  for (const item of folded.state.items) expect(folded.item(item.itemId)).toBe(item);
});

test("earlier items go before, each once", () => {
  const start = structuredClone(fixtures[0]?.start) as SessionState;
  const answer = (id: string) => ({
    kind: "answer" as const,
    agentId: null,
    itemId: id,
    turnId: "t",
    text: id,
  });
  start.items = [answer("b"), answer("c")];
  const folded = new Folded(start);
  folded.prepend([answer("a"), answer("b")], false);
  expect(folded.state.items.map((item) => item.itemId)).toEqual(["a", "b", "c"]);
  expect(folded.ids(null)).toEqual(["a", "b", "c"]);
  expect(folded.placeOf("c")).toBe(2);
});
