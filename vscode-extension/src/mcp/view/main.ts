import type { ToServersHost, ToServersPage } from "../messages";
import { ServersView } from "./list";

declare function acquireVsCodeApi(): { postMessage(message: ToServersHost): void };

const api = acquireVsCodeApi();
const view = new ServersView((message) => api.postMessage(message));
document.body.append(view.element);
window.addEventListener("message", ({ data, origin }) => {
  if (origin === window.origin) view.receive(data as ToServersPage); // VS Code hands on what the extension says
});
api.postMessage({ type: "ready" });
