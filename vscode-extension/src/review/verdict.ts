import type { Check } from "../protocol";
import { oneLine } from "../editor/visible";

/** Characters of what a checker says. */
const MESSAGE = 200;

/** What a checker says of the whole change, and its findings in these lines. */
export function verdict(check: Check, from: number, to: number): string[] {
  const here = check.added.filter(({ lines }) => lines.start < to && lines.end >= from);
  return [
    `${check.checker}: ${oneLine(check.summary, MESSAGE)}`,
    ...here.map(
      ({ lines, message }) =>
        `  line ${lines.start + 1}: ${oneLine(message.replace(/\n\s*help:[^]*$/, ""), MESSAGE)}`,
    ),
  ];
}
