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

// What is pressed must still be there when it is let go: a click needs both on one element.
const isPressed = (part) => part.matches(":active");

async function refresh(part) {
  if (document.hidden || isPressed(part)) return;
  if (part.querySelector("[data-final]")) return; // nothing changes any more
  const answer = await fetch(part.dataset.refresh, { headers: { accept: "text/html" } });
  if (!answer.ok || answer.redirected) return;
  const html = await answer.text();
  if (!isPressed(part)) swap(part, html);
}

for (const part of document.querySelectorAll("[data-refresh]")) {
  // A server that is away for a moment is asked again at the next turn.
  setInterval(() => refresh(part).catch(() => {}), 1000 * Number(part.dataset.seconds));
}
