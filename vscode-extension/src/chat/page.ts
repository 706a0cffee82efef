import { randomBytes } from "node:crypto";

/** The chat's document. Nothing is loaded but our own script and style, whose addresses these are, and pictures that come
 * as data; no inline script or style, no form, no other base. `source` is where VS Code serves our files from. */
export function page(script: string, style: string, source: string): string {
  const nonce = randomBytes(16).toString("base64");
  const policy = [
    "default-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    `style-src ${source}`,
    `font-src ${source}`,
    "img-src data:",
    `script-src 'nonce-${nonce}'`,
  ].join("; ");
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy};">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Amanu</title>
</head>
<body><script nonce="${nonce}" src="${script}"></script></body>
</html>`;
}
