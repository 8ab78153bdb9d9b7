// What pages can do beyond being loaded: progress as it is made, and search as
// one types. Without this script, forms and links do the same.
"use strict";

// Browsers have few connections to a server, so only a page that is seen holds
// one; where no events come, the page asks.
function watchProgress(panel) {
  const text = panel.querySelector("[data-progress-text]");
  let events = null;
  let wait = 0;
  const stop = () => {
    events?.close();
    events = null;
    clearTimeout(wait);
  };
  const show = (progress) => {
    text.textContent = progress.text;
    if (progress.done) {
      stop();
      location.reload();
    }
  };
  const ask = async () => {
    stop();
    if (document.hidden) return;
    const asked = (wait = setTimeout(ask, 5000));
    try {
      const answer = await fetch(panel.dataset.progress + "?now", { signal: AbortSignal.timeout(4500) });
      if (answer.status === 404) location.reload();
      else if (answer.ok) show(await answer.json());
    } catch {
      // It is asked again.
    }
    if (wait !== asked) return;
    clearTimeout(wait);
    wait = setTimeout(ask, 1000);
  };
  const start = () => {
    stop();
    if (document.hidden) return;
    wait = setTimeout(ask, 3000);
    events = new EventSource(panel.dataset.progress);
    events.onmessage = (event) => {
      clearTimeout(wait);
      show(JSON.parse(event.data));
    };
    events.onerror = ask;
  };
  document.addEventListener("visibilitychange", start);
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => event.persisted && start());
  start();
}

function searchAsTyped(form) {
  const input = form.querySelector("input[type=search]");
  let wait = 0;
  let asked = null;
  const search = async () => {
    const query = new URLSearchParams(new FormData(form));
    if (!input.value.trim()) query.delete("q");
    const address = location.pathname + (query.size ? "?" + query : "");
    asked?.abort();
    asked = new AbortController();
    try {
      const answer = await fetch(address, { signal: asked.signal, headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const found = page.querySelector("[data-results]");
      if (!found) return;
      document.querySelector("[data-results]").replaceWith(found);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(search, 200);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(wait);
    search();
  });
}

document.querySelectorAll("[data-progress]").forEach(watchProgress);
document.querySelectorAll("form[data-search]").forEach(searchAsTyped);
// The newest part of a timeline that is wider than the screen comes first.
document.querySelectorAll(".timeline .scroll").forEach((part) => (part.scrollLeft = part.scrollWidth));
