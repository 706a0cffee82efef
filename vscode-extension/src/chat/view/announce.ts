import { advice } from "../../daemon/advice";
import { oneLine } from "../../editor/visible";
import type { Event } from "../../protocol";
import { wanted } from "../../sessions/words";
import { REASONS } from "./statusLines";

/** Characters of an answer that are read out; the rest stands in the conversation. */
const SPOKEN = 600;

/** What a screen reader should hear of an event; "" for most. Deltas are never read out. */
export function announcement(event: Event): string {
  switch (event.kind) {
    case "approvalRequested":
      return `Amanu needs your decision: ${wanted(event.approval)}`;
    case "approvalResolved":
      return event.decision.by === "user" ? `Decided: ${event.decision.outcome}` : "";
    case "turnEnded":
      if (event.reason === "completed") return "Amanu has finished.";
      return event.message ? `The turn ended: ${advice(event.message)}` : REASONS[event.reason];
    case "agentChanged": {
      const { name, summary, endedAt } = event.agent;
      return endedAt === null ? "" : `${name}: ${summary}`;
    }
    case "retryChanged":
      return event.retry === null ? "" : `${event.retry.reason} It is tried again.`;
    case "turnRouted":
      return event.reason;
    case "itemStarted":
    case "itemCompleted":
      if (event.item.kind === "question")
        return event.item.state === "open"
          ? `${event.item.asker} asks: ${event.item.title}`
          : event.item.summary;
      if (event.item.kind === "answer")
        return event.kind === "itemCompleted" && event.item.agentId === null ? spoken(event.item.text) : "";
      return event.item.kind === "notice" ? event.item.text : "";
    default:
      return "";
  }
}

/** An answer to be heard: code is left to be read, and the marks of Markdown are no words. */
function spoken(markdown: string): string {
  const words = markdown
    .replace(/^ *(```|~~~)[^]*?(^ *\1|$(?![^]))/gm, "(code)")
    .replace(/\[([^\]\n]*)\]\([^)\s]*\)/g, "$1")
    .replace(/^[ |:-]+$/gm, "")
    .replace(/[*`#|]+/g, " ");
  return oneLine(words, SPOKEN);
}
