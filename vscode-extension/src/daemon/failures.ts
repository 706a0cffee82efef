import type { Python } from "./python";

/** What pip and venv say when they fail, and what the user can do; the first that fits is told. */
const KNOWN: [pattern: RegExp, sentence: (python: Python) => string][] = [
  [
    /No space left on device|ENOSPC|Errno 28\b|Disk quota exceeded|EDQUOT/i,
    () => "Not enough disk space: about 300 MB are needed. Free some space, then try again.",
  ],
  [
    /ensurepip is not available|No module named '?(venv|ensurepip)|ensurepip.*returned non-zero/i,
    ({ version, command }) =>
      `Python ${version} at ${command} cannot make virtual environments. On Debian and Ubuntu: sudo apt install python${version.split(".").slice(0, 2).join(".")}-venv. Or name another Python in the setting amanu.python.`,
  ],
  [
    /DO NOT MATCH THE HASHES|hashes are required/i,
    () =>
      "A downloaded package is not the one Amanu was tested with, so nothing was installed. Does a mirror or proxy modify packages?",
  ],
  [
    /CERTIFICATE_VERIFY_FAILED|SSLError|SSLCertVerificationError/i,
    () =>
      "The package index was reached, but its certificate is not trusted. Behind a proxy that re-signs connections, set PIP_CERT to its certificate in the setting amanu.server.environment.",
  ],
  [
    /ProxyError|Tunnel connection failed|407 Proxy/i,
    () =>
      "The proxy refused the connection. Set HTTPS_PROXY in the setting amanu.server.environment, then try again.",
  ],
  [
    /NewConnectionError|Failed to establish a new connection|name resolution|Name or service not known|nodename nor servname|Connection refused|Network is unreachable|ConnectTimeout|ReadTimeout|timed out|Connection (broken|reset)/i,
    () =>
      "The package index cannot be reached. Is the machine online? Behind a proxy, set HTTPS_PROXY, and for an index of your own PIP_INDEX_URL, in the setting amanu.server.environment.",
  ],
  [
    /Permission denied|EACCES|EROFS|Read-only file system/i,
    () => "The extension's storage folder is not writable. The log names the file.",
  ],
];

/** Pip's message about a package that does not exist for this Python and system. */
export const NO_PACKAGE = /No matching distribution found for ([\w.-]+)/;

/** Why the packages that come with the extension were of no use, in a sentence for the user. */
export function carriedFor(pythons: string[], { version }: Python): string {
  return pythons.some((each) => version.startsWith(`${each}.`))
    ? "The packages that come with the extension are for another system: is this the right build?"
    : `With Python ${pythons.at(0)} to ${pythons.at(-1)}, the packages that come with the extension are used, and nothing is downloaded.`;
}

/** Why it failed, in a sentence for the user. Whatever pip printed in full is in the log. */
export function inWords(output: string, python: Python): string {
  const known = KNOWN.find(([pattern]) => pattern.test(output));
  if (known !== undefined) return known[1](python);
  const missing = NO_PACKAGE.exec(output)?.[1];
  if (missing !== undefined)
    return `There is no ready-made package of ${missing} for Python ${python.version} on ${process.platform} ${process.arch}, or your package index does not have it. Another Python can be named in the setting amanu.python.`;
  return `It failed: ${lastWords(output)}`;
}

/** The last thing said that is neither a hint nor a line of a stack trace. */
function lastWords(output: string): string {
  const lines = output
    .split("\n")
    .filter((line) => /\S/.test(line) && !/^\s|^Traceback|^(hint|note|\[notice\])/i.test(line));
  const last = lines.findLast((line) => /^error/i.test(line)) ?? lines.at(-1) ?? "nothing was said why";
  return last.replace(/^error:?\s*/i, "").slice(0, 300);
}
