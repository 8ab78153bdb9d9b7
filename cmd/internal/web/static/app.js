// This script shows progress while a feed is polled, and searches while you type.
// Without it, forms and links do the same.
"use strict";

// Browsers have few connections to a server, so only a visible page holds one; if
// no events come, the page asks.
function watchProgress(panel) {
  const text = panel.querySelector("[data-progress-text]");
  let events = null;
  let wait = 0;
  const stop = () => {
    events?.close();
    events = null;
    clearTimeout(wait);
  };
  // The timeline grows with what is read.
  let grown = 0;
  const grow = async () => {
    if (Date.now() - grown < 2000 || document.activeElement?.closest("[data-timeline]")) return;
    grown = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) renewTimeline(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch {
      // The page reloads at the end.
    }
  };
  const show = (progress) => {
    text.textContent = progress.text;
    if (!progress.done) grow();
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
      // The next request will tell.
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
  const search = async (now) => {
    if (unfinished.test(input.value) && !now) return; // too many words begin with one or two letters
    const query = new URLSearchParams(new FormData(form));
    for (const [name, value] of [...query]) if (!value.trim()) query.delete(name);
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
      renewTimeline(page);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(search, 200, false);
  });
  form.addEventListener("change", (event) => event.target.matches("select") && search(true));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(wait);
    search(true);
  });
}
const unfinished = /(^|[^\p{L}\p{N}\p{M}])[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}]{1,2}$/u;

// A list of many links is a single stop of the Tab key. The arrow keys move within
// it, and up and down between the rows of a timeline.
function rove(part) {
  const rows = [...part.querySelectorAll("[data-row]")].map((row) => [...row.querySelectorAll("a, g[tabindex]")]).filter((row) => row.length);
  const all = rows.flat();
  const stop = (item) => {
    all.forEach((other) => other.setAttribute("tabindex", other === item ? 0 : -1));
  };
  if (all.length) stop(part.querySelector("[data-row] [aria-current]") ?? rows[0].at(-1));
  part.addEventListener("focusin", (event) => all.includes(event.target) && stop(event.target));
  part.addEventListener("keydown", (event) => {
    const row = rows.find((items) => items.includes(document.activeElement));
    if (!row || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = row.indexOf(document.activeElement);
    const nearest = (items) => {
      const middle = (item) => item.getBoundingClientRect().left + item.getBoundingClientRect().width / 2;
      return items?.reduce((a, b) => (Math.abs(middle(b) - middle(row[at])) < Math.abs(middle(a) - middle(row[at])) ? b : a));
    };
    const to = {
      ArrowLeft: () => row[at - 1], ArrowRight: () => row[at + 1], Home: () => row[0], End: () => row.at(-1),
      ArrowUp: () => nearest(rows[rows.indexOf(row) - 1]), ArrowDown: () => nearest(rows[rows.indexOf(row) + 1]),
    }[event.key]?.();
    if (!(event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End")) return;
    event.preventDefault();
    to?.focus();
    to?.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
}

// A timeline describes the part that is pointed at or moved to. With a finger, the
// first tap describes the nearest part, and a second tap goes there.
function tellParts(part) {
  const line = part.querySelector("[data-says]");
  const usual = line.textContent;
  const items = [...part.querySelectorAll("svg [data-row] > *")];
  let told = null;
  let touched = false;
  const tell = (item) => {
    told?.classList.remove("told");
    told = item;
    told?.classList.add("told");
    line.textContent = told ? told.querySelector("title").textContent : usual;
    line.classList.toggle("told", !!told);
  };
  const find = (event) => event.target.closest("svg a, svg g[tabindex]");
  const nearest = (event) => {
    const far = (item) => {
      const box = item.getBoundingClientRect();
      return Math.max(box.left - event.clientX, event.clientX - box.right, 0) + 4 * Math.max(box.top - event.clientY, event.clientY - box.bottom, 0);
    };
    return items.reduce((a, b) => (far(b) < far(a) ? b : a));
  };
  part.addEventListener("pointerdown", (event) => (touched = event.pointerType === "touch"));
  part.addEventListener("pointerover", (event) => event.pointerType !== "touch" && tell(find(event)));
  part.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && tell(null));
  part.addEventListener("focusin", (event) => !touched && tell(find(event)));
  part.addEventListener("focusout", () => !touched && tell(null));
  part.querySelector("svg").addEventListener("click", (event) => {
    if (!touched || !items.length) return;
    event.preventDefault();
    const item = nearest(event);
    if (item === told && item.href) location.href = item.href.baseVal;
    tell(item);
    if (item.href) line.append(" Tap again to go there.");
  });
}

function setUpTimeline(part) {
  rove(part);
  tellParts(part);
}

// renewTimeline shows the timeline of a page that was loaded.
function renewTimeline(page) {
  const [old, fresh] = [document, page].map((from) => from.querySelector("[data-timeline]"));
  if (!fresh) return;
  const at = old?.querySelector(".scroll").scrollLeft;
  if (old) old.replaceWith(fresh);
  else document.querySelector("[data-progress]").after(fresh);
  fresh.querySelector(".scroll").scrollLeft = at ?? fresh.scrollWidth;
  if (!document.querySelector("[data-results]")) { // the first reading: no entries are shown yet
    fresh.querySelector("[data-says]").textContent = "";
    fresh.querySelectorAll(".here, .here-key").forEach((part) => part.remove());
  }
  setUpTimeline(fresh);
}

// copy copies a text. Without TLS, browsers support only the old way.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

function offerCopy(link) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy the address " + link.href);
  button.addEventListener("click", async () => {
    await copy(link.href);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  link.after(button);
}

// The browser remembers where somebody was in a feed, for those who read a feed
// from its beginning.
function keepPlace(article) {
  try {
    localStorage.setItem("read " + article.dataset.read, JSON.stringify([article.dataset.id, document.querySelector("h1").textContent]));
  } catch {
    // The browser stores nothing.
  }
}

function offerPlace(part) {
  try {
    const [id, title] = JSON.parse(localStorage.getItem("read " + part.dataset.resume)) ?? [];
    if (!id) return;
    const link = part.querySelector("a");
    link.href = part.dataset.entry + "?id=" + encodeURIComponent(id);
    link.after(": “", Object.assign(document.createElement("bdi"), { textContent: title }), "”");
    part.hidden = false;
  } catch {
    // Nothing is stored.
  }
}

document.querySelectorAll("[data-read]").forEach(keepPlace);
document.querySelectorAll("[data-resume]").forEach(offerPlace);
document.querySelectorAll("[data-copy]").forEach(offerCopy);
document.querySelectorAll("[data-progress]").forEach(watchProgress);
document.querySelectorAll("form[data-search]").forEach(searchAsTyped);
document.querySelectorAll("[data-timeline]").forEach(setUpTimeline);
// If a timeline is wider than the screen, its chosen or its newest part is shown.
document.querySelectorAll(".timeline .scroll").forEach((part) => {
  part.scrollLeft = part.scrollWidth;
  const chosen = part.querySelector(".chosen")?.getBoundingClientRect();
  if (chosen) part.scrollLeft += (chosen.left + chosen.right - part.clientWidth) / 2 - part.getBoundingClientRect().left;
});
