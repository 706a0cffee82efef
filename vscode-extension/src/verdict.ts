import type { Check, Finding } from "./protocol";
import { oneLine } from "./visible";

/** Characters of what a checker says. */
const MESSAGE = 200;

/** What a checker says of the whole change, and its findings in these lines. */
export function verdict(check: Check, from: number, to: number): string[] {
  if (check.state === "running") return [`${check.checker} looks at it…`];
  if (check.state === "failed")
    return [`${check.checker}: ${oneLine(check.message ?? "could not look at it", MESSAGE)}`];
  const tense = check.about === "proposed" ? ["adds", "fixes"] : ["added", "fixed"];
  const parts = [
    ...count(check.added).map((each) => `${tense[0]} ${each}`),
    ...(check.fixed > 0 ? [`${tense[1]} ${check.fixed}`] : []),
  ];
  if (parts.length === 0) return [`${check.checker}: nothing new`];
  const here = check.added.filter(({ startLine, endLine }) => startLine <= to && endLine >= from);
  return [
    `${check.checker}: ${parts.join(", ")}`,
    ...here.map(
      ({ startLine, message }) =>
        `  line ${startLine}: ${oneLine(message.replace(/\n\s*help:[^]*$/, ""), MESSAGE)}`,
    ),
  ];
}

function count(added: Finding[]): string[] {
  return (["error", "warning", "information", "hint"] as const).flatMap((severity) => {
    const found = added.filter((each) => each.severity === severity).length;
    return found === 0 ? [] : [`${found} ${severity}${found > 1 && severity !== "information" ? "s" : ""}`];
  });
}
