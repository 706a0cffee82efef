// Compiled by `make check` together with the generated types: what must hold, and what must not compile.

import type { ClientCapabilities, Event, Item, RequestsToDaemon } from "../../../vscode-extension/src/protocol";

export function textOf(item: Item): string {
  switch (item.kind) {
    case "userMessage":
    case "thought":
    case "answer":
    case "notice":
      return item.text;
    case "toolCall":
      return item.output;
    case "todoList":
      return item.todos.map((todo) => todo.text).join("\n");
    case "citations":
      return item.sources.map((source) => source.title).join("\n");
    case "question":
      return item.title;
  }
}

export function about(event: Event): string {
  if (event.kind === "itemDelta") return event.itemId;
  // @ts-expect-error: other events have no itemId
  return event.itemId;
}

declare function request<M extends keyof RequestsToDaemon>(
  method: M,
  params: RequestsToDaemon[M]["params"],
): Promise<RequestsToDaemon[M]["result"]>;

export async function requests(): Promise<string | null> {
  const sent = await request("amanu/prompt/send", { sessionId: "s", promptId: "p", text: "hello" });
  // @ts-expect-error: a parameter is missing
  await request("amanu/prompt/send", { sessionId: "s", promptId: "p" });
  // @ts-expect-error: no such method
  await request("amanu/prompt/sing", {});
  // @ts-expect-error: no such mode
  await request("amanu/session/setMode", { sessionId: "s", mode: "yolo" });
  // @ts-expect-error: may be null
  const turnId: string = sent.turnId;
  return turnId;
}

export const least: ClientCapabilities = { protocol: [3] };
