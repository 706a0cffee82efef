import { advice } from "./advice";
import type { ModelInfo } from "./protocol";
import { price } from "./words";

/** What the user should know of a model before choosing it: its price and where that is from, or what it lacks, and
 * when it is shut down. */
export function detail(model: ModelInfo): string {
  const { available, unavailable, factsFrom } = model;
  const facts = available ? [price(model), factsFrom] : [advice(unavailable ?? "not available")];
  return [...facts, fate(model)].filter(Boolean).join(" · ");
}

function fate({ retires, successor }: ModelInfo): string {
  if (retires === null && successor === null) return "";
  return `${retires === null ? "deprecated" : `shut down on ${retires}`}${successor === null ? "" : `, use ${successor}`}`;
}
