// Keeps the page current: asks the server that it came from, and swaps the page's own parts when they have changed.
// Without it the page is right as it was delivered; nothing on it is drawn here.
(() => {
  "use strict";
  const page = document.querySelector("main[data-every]");
  if (!page || !location.protocol.startsWith("http")) return; // a saved report does not change
  const announce = document.getElementById("announce");
  let revision = page.dataset.revision;
  let lost = null; // when the server was last found silent

  const swap = (fresh) => {
    const open = new Set([...document.querySelectorAll("details[open][id]")].map((one) => one.id));
    const focused = document.activeElement && document.activeElement.id;
    const before = document.getElementById("verdict")?.textContent;
    for (const id of ["top", "page", "foot"]) document.getElementById(id).replaceWith(fresh.getElementById(id));
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    document.title = fresh.title;
    document.querySelector("link[rel=icon]").href = fresh.querySelector("link[rel=icon]").href;
    const after = document.getElementById("verdict")?.textContent;
    if (after !== before) announce.textContent = after;
  };

  const say = (state, text) => {
    const link = document.getElementById("link"); // another one after each swap
    link.className = state;
    link.textContent = text;
  };

  const look = async () => {
    try {
      const answer = await fetch(location.pathname, { cache: "no-store", headers: { "If-None-Match": `"${revision}"` } });
      if (answer.status !== 304) {
        if (!answer.ok) throw new Error(String(answer.status));
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        swap(fresh);
        revision = document.getElementById("page").dataset.revision;
      }
      lost = null;
      say("on", "live");
    } catch {
      lost ??= new Date().toLocaleTimeString();
      say("off", `no answer since ${lost}; this is the last one`);
    }
  };

  const every = () => 1000 * Number(document.getElementById("page").dataset.every);
  const tick = async () => {
    if (!document.hidden) await look();
    setTimeout(tick, every());
  };
  document.addEventListener("visibilitychange", () => document.hidden || look());
  say("on", "live");
  setTimeout(tick, every());
})();
