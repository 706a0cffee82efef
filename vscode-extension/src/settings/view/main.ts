import type { ToSettingsHost, ToSettingsPage } from "../messages";
import { SettingsView } from "./settings";

declare function acquireVsCodeApi(): { postMessage(message: ToSettingsHost): void };

const api = acquireVsCodeApi();
const view = new SettingsView((message) => api.postMessage(message));
document.body.append(view.element);
window.addEventListener("message", ({ data, origin }) => {
  if (origin === window.origin) view.receive(data as ToSettingsPage); // VS Code hands on what the extension says
});
api.postMessage({ type: "ready" });
