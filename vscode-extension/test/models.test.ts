import { expect, test } from "vitest";
import { detail } from "../src/models";
import type { ModelInfo } from "../src/protocol";
import { model } from "./states";

const priced = { inputPrice: 2, outputPrice: 8, factsFrom: "OpenAI, 24 November 2026" };
const PRICE = "$2 in, $8 out, per million tokens · OpenAI, 24 November 2026";

test.each<[Partial<ModelInfo>, string]>([
  [priced, PRICE],
  [{ factsFrom: "assumed" }, "price not known · assumed"],
  [{}, "price not known"],
  [{ ...priced, successor: "openai:new" }, `${PRICE} · deprecated, use openai:new`],
  [{ ...priced, retires: "2026-12-11" }, `${PRICE} · shut down on 2026-12-11`],
  [{ ...priced, available: false, unavailable: "Run: amanu auth set mine" }, "Use Amanu: Set API Key…"],
])("what is said of a model: %j", (given, expected) => expect(detail(model("m", given))).toBe(expected));
