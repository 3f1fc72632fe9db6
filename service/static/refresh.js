// Replaces parts of a page with what the server shows now: data-refresh="URL" data-seconds="N".
"use strict";

async function refresh(part) {
  if (document.hidden || part.contains(document.activeElement)) return;
  if (part.querySelector("[data-final]")) return; // nothing changes any more
  const answer = await fetch(part.dataset.refresh, { headers: { accept: "text/html" } });
  if (answer.ok && !answer.redirected) part.innerHTML = await answer.text();
}

for (const part of document.querySelectorAll("[data-refresh]")) {
  // A server that is away for a moment is asked again at the next turn.
  setInterval(() => refresh(part).catch(() => {}), 1000 * Number(part.dataset.seconds));
}
