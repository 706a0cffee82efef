import { advice } from "./advice";
import type { Found } from "./daemon";
import type { CommandSandbox } from "../protocol";
import { oneLine } from "../editor/visible";

/** What the extension itself knows, for the Doctor. */
export interface Known {
  extension: string;
  bundled: string | undefined;
  editor: string;
  remote: string | undefined;
  trusted: boolean;
  folders: string[];
  found: Found;
  connection: { status: string; message?: string };
  /** What holds the commands of the session shown; null while no session said. */
  sandbox: CommandSandbox | null;
  /** The daemon's environment as the settings have it. */
  settings: Record<string, string>;
  /** What `amanu doctor` printed, if it could be asked, and how it ended. */
  daemon: { output: string; code: number | null } | undefined;
}

const FROM = {
  setting: "from the setting amanu.server.path",
  storage: "installed by this extension",
  path: "from PATH",
};

/** The report as text: what the extension knows, then what the daemon's own doctor says. */
export function report(known: Known): string {
  const { found, connection, settings } = known;
  const lines = ["Amanu Doctor", "", "The extension", ""];
  const line = (sign: string, what: string, detail: string, todo = "") => {
    lines.push(`${sign} ${what.padEnd(14)}${detail}`);
    if (todo) lines.push(`${" ".repeat(16)}→ ${todo}`);
  };
  line(
    "✓",
    "extension",
    `${known.extension}${known.bundled ? `, brings daemon ${known.bundled}` : ", brings no daemon"}`,
  );
  line("✓", "editor", `${known.editor}, ${known.remote ? `remote: ${known.remote}` : "no remote"}`);
  if (known.folders.length === 0)
    line("!", "workspace", "no folder is open", "Open a folder to start working with Amanu.");
  else line("✓", "workspace", known.folders.join(", "));
  if (known.trusted) line("✓", "trust", "the workspace is trusted");
  else
    line(
      "!",
      "trust",
      "the workspace is not trusted",
      "The folder's own settings are not read; everything else works.",
    );
  if ("command" in found) line("✓", "daemon", `${FROM[found.from]}: ${found.command}`);
  else
    line(
      "✗",
      "daemon",
      found.missing,
      found.install ? "Run: Amanu: Install the Daemon" : "Check the settings.",
    );
  const ready = connection.status === "ready";
  if (ready) line("✓", "connection", "ready");
  else if ("command" in found)
    line("✗", "connection", connection.message ?? connection.status, "See: Amanu: Show Logs");
  if (known.sandbox?.tier === "none")
    line(
      "!",
      "sandbox",
      `none: ${oneLine(known.sandbox.summary, 300)}`,
      "Each question about a command says so.",
    );
  else if (known.sandbox !== null)
    line("✓", "sandbox", `${known.sandbox.tier}: ${oneLine(known.sandbox.summary, 300)}`);
  const names = Object.keys(settings).sort();
  if (names.length > 0) line("·", "environment", `${names.join(", ")} (values are not shown)`);
  lines.push("");
  if (known.daemon === undefined || !("command" in found)) {
    lines.push("The daemon", "", "There is no daemon to ask.");
  } else {
    lines.push("The daemon", "", masked(advice(known.daemon.output.trim()), settings), "");
    lines.push(
      known.daemon.code === null || known.daemon.code > 1
        ? `It did not finish its report (exit code ${known.daemon.code ?? "none"}).`
        : `Keys are set here with Amanu: Set API Key…. In a terminal, amanu is\n${found.command}`,
    );
  }
  return `${lines.join("\n")}\n`;
}

/** A page to be read, and copied into an issue: `amanu doctor --report`, and what the extension knows. */
export function problemReport(known: Known, home: string): string {
  const { found, connection } = known;
  const facts = [
    `extension ${known.extension}, ${known.bundled ? `brings daemon ${known.bundled}` : "brings no daemon"}`,
    `${known.editor}, ${known.remote ? `remote: ${known.remote}` : "no remote"}`,
    `folders: ${known.folders.length}, ${known.trusted ? "trusted" : "not trusted"}`,
    `daemon: ${"command" in found ? FROM[found.from] : found.missing}`,
    `connection: ${oneLine([connection.status, connection.message].filter(Boolean).join(": "), 400)}`,
    `environment: ${Object.keys(known.settings).sort().join(", ") || "nothing set"}`,
  ];
  const extension = facts.map((fact) => `- ${fact.replaceAll(home, "~")}\n`).join("");
  const daemon = known.daemon?.output.trim() || "# Amanu: problem report\n\nThere is no daemon to ask.";
  return masked(`${daemon}\n\n## VS Code\n\n${extension}`, known.settings);
}

/** The daemon shows no key; should one come by another way (an error with an address in it), it is taken out here. */
function masked(output: string, settings: Record<string, string>): string {
  const secrets = Object.entries(settings).filter(
    ([name, value]) => /KEY|TOKEN|SECRET|PASSWORD/i.test(name) && value.length >= 6,
  );
  return secrets.reduce((text, [, value]) => text.replaceAll(value, "***"), output);
}
