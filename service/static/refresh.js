// Replaces parts of a page with what the server shows now: data-refresh="URL" data-seconds="N".
"use strict";

// What a reader has scrolled to or focused stays where it is.
function swap(part, html) {
  const tables = () => [...part.querySelectorAll(".scroll")];
  const places = tables().map(({ scrollLeft, scrollTop }) => ({ scrollLeft, scrollTop }));
  const name = (element) => `${element.tagName} ${element.getAttribute("href") ?? element.textContent}`;
  const focused = part.contains(document.activeElement) ? name(document.activeElement) : null;
  part.innerHTML = html;
  tables().forEach((table, index) => Object.assign(table, places[index]));
  if (focused) [...part.querySelectorAll("a, button, [tabindex]")].find((found) => name(found) === focused)?.focus();
}

async function refresh(part) {
  if (document.hidden) return;
  if (part.querySelector("[data-final]")) return; // nothing changes any more
  const answer = await fetch(part.dataset.refresh, { headers: { accept: "text/html" } });
  if (answer.ok && !answer.redirected) swap(part, await answer.text());
}

for (const part of document.querySelectorAll("[data-refresh]")) {
  // A server that is away for a moment is asked again at the next turn.
  setInterval(() => refresh(part).catch(() => {}), 1000 * Number(part.dataset.seconds));
}
