import { expect, test, vi } from "vitest";
import type { Event, EventMessage, SessionAttachResult, SessionState } from "../src/protocol";
import { type Line, Session } from "../src/sessions/session";
import { state } from "./states";

function message(seq: number, event: Event, epoch = 1): EventMessage {
  return { sessionId: "s1", epoch, seq, at: 0, event };
}

const started = (id: string): Event => ({
  kind: "itemStarted",
  item: { kind: "answer", agentId: null, itemId: id, turnId: "t", text: "" },
});
const delta = (id: string, text: string): Event => ({ kind: "itemDelta", itemId: id, text });

function follow(answers: (SessionAttachResult | Error)[] = [], start: Partial<SessionState> = {}) {
  const asked: [number, number][] = [];
  const acks: number[] = [];
  const heard: string[] = [];
  const line: Line = {
    attach: async (_, epoch, seq) => {
      asked.push([epoch, seq]);
      const answer = answers.shift();
      if (answer === undefined || answer instanceof Error) throw answer ?? new Error("asked too often");
      return answer;
    },
    ack: (_, seq) => acks.push(seq),
  };
  const session = new Session(
    line,
    { state: state(start), epoch: 1, fromSeq: 1 },
    {
      event: (event, seq) => heard.push(`${seq} ${event.kind}`),
      replaced: () => heard.push("replaced"),
      failed: (error) => heard.push(`failed ${(error as Error).message}`),
    },
  );
  return { session, asked, acks, heard };
}

test("in order, each once, and nobody else's", () => {
  const { session, heard } = follow();
  session.receive(message(1, started("a")));
  session.receive(message(1, started("a")));
  session.receive({ ...message(2, delta("a", "no")), sessionId: "s2" });
  session.receive(message(2, delta("a", "yes")));
  expect(heard).toEqual(["1 itemStarted", "2 itemDelta"]);
  expect(session.state.items).toMatchObject([{ itemId: "a", text: "yes" }]);
});

test("a gap is filled by what was missed", async () => {
  const missed = [message(1, started("a")), message(2, delta("a", "x")), message(3, delta("a", "y"))];
  const { session, asked } = follow([{ epoch: 1, fromSeq: 4, events: missed, state: null }]);
  session.receive(message(3, delta("a", "y")));
  await session.catchUp();
  session.receive(message(4, delta("a", "z")));
  expect(asked[0]).toEqual([1, 0]);
  expect(session.state.items).toMatchObject([{ text: "xyz" }]);
});

test("another epoch brings a whole state", async () => {
  const fresh = state({ title: "after the restart" });
  const { session, heard } = follow([{ epoch: 2, fromSeq: 8, events: null, state: fresh }]);
  session.receive(message(1, started("a"), 2));
  await vi.waitFor(() => expect(heard).toEqual(["replaced"]));
  session.receive(message(8, started("b"), 2));
  expect(session.state.title).toBe("after the restart");
  expect(session.state.items.map((item) => item.itemId)).toEqual(["b"]);
});

test("replaced items leave no gap", () => {
  const { session, asked } = follow();
  session.receive(message(1, started("a")));
  const item = { kind: "answer" as const, agentId: null, itemId: "a", turnId: "t", text: "all" };
  session.receive(message(9, { kind: "itemsReplaced", replacesFrom: 2, items: [item], withdrawn: [] }));
  expect(asked).toEqual([]);
  expect(session.state.items).toMatchObject([{ text: "all" }]);
});

test("a failure is told", async () => {
  const { session, heard } = follow([new Error("gone")]);
  await session.catchUp();
  expect(heard).toEqual(["failed gone"]);
});

test("acknowledgements are gathered and never ahead of what was folded", () => {
  vi.useFakeTimers();
  const { session, acks } = follow();
  for (let seq = 1; seq <= 5; seq++) session.receive(message(seq, started(`${seq}`)));
  session.drawn(2);
  session.drawn(99);
  session.drawn(3);
  vi.runAllTimers();
  vi.useRealTimers();
  expect(acks).toEqual([5]);
});
