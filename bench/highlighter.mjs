// Colours code for `bench/faces.py` as the extension does: a request per line in, an answer per line out.
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const dist = new URL("../vscode-extension/dist/highlight/", import.meta.url).pathname;
const workerData = { folder: `${dist}grammars`, theme: { kind: "vs-dark" } };
const worker = new Worker(`${dist}worker.js`, { workerData });
worker.on("message", (reply) => console.log(JSON.stringify(reply)));
createInterface({ input: process.stdin }).on("line", (line) => worker.postMessage(JSON.parse(line)));
