// This script shows progress while a feed is polled, and searches while you type.
// Without it, forms and links do the same.
"use strict";

// load returns a page of this server; null if it cannot be had now.
async function load(address, signal) {
  const answer = await fetch(address, { signal, headers: { Accept: "text/html" } });
  if (answer.status === 404) location.reload(); // it has been removed
  return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

// A visible page that watches a poll loads itself every second: its title, the timeline and
// the list of entries come with what is read.
function watchProgress(panel) {
  const seen = {};
  const changes = (page, part) => {
    const before = seen[part];
    return (seen[part] = page.querySelector(part)?.outerHTML) !== before;
  };
  const renew = (page) => {
    const told = page.querySelector("[data-progress]");
    if (!told) return location.reload();
    for (const part of ["h1", "title", "[data-progress-text]"]) {
      const [old, fresh] = [document, page].map((from) => from.querySelector(part));
      if (old.textContent !== fresh.textContent) old.textContent = fresh.textContent;
    }
    if (!document.activeElement?.closest("[data-timeline]") && changes(page, "[data-timeline]")) renewTimeline(page);
    const [list, found] = [document, page].map((from) => from.querySelector("[data-results]"));
    if (!found || list?.contains(document.activeElement) || !changes(page, "[data-results]")) return;
    if (list) list.replaceWith(found);
    else document.querySelector("main").append(found.closest("section"));
  };
  let wait = 0;
  const ask = async () => {
    clearTimeout(wait);
    if (document.hidden) return;
    const asked = (wait = setTimeout(ask, 5000));
    const page = await load(location.href, AbortSignal.timeout(4500)).catch(() => null);
    if (page) renew(page);
    if (wait !== asked) return;
    clearTimeout(wait);
    wait = setTimeout(ask, 1000);
  };
  document.addEventListener("visibilitychange", ask);
  addEventListener("pageshow", (event) => event.persisted && ask());
  wait = setTimeout(ask, 500);
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
      const page = await load(address, asked.signal);
      const found = page?.querySelector("[data-results]");
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

document.addEventListener("click", async ({ target }) => {
  if (!target.matches(".copy")) return;
  await copy(target.dataset.copy);
  target.textContent = "Copied";
  setTimeout(() => (target.textContent = "Copy"), 2000);
});

// A chapter begins in the player.
document.addEventListener("click", (event) => {
  const chapter = event.target.closest("[data-seek]");
  const player = document.querySelector("audio, video");
  if (!chapter || !player) return;
  event.preventDefault();
  player.currentTime = Number(chapter.dataset.seek);
  player.play().catch(() => {}); // the player shows what is wrong
});

// Times are in the reader's zone.
function tellTimes() {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const form = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
  if (zone === "UTC" || new Date().getTimezoneOffset() === 0 && new Date(2000, 6).getTimezoneOffset() === 0) return;
  const local = (time) => form.format(new Date(time.dateTime)).replace(" at ", ", ");
  for (const time of document.querySelectorAll("time[data-moment]")) time.textContent = local(time);
  for (const time of document.querySelectorAll("time[title]")) time.title = local(time);
  document.querySelector("[data-zone]").textContent = "Times are in your zone, " + zone + ", and days in UTC.";
}

// On a strip, one drags to a month; with the arrow keys, one goes there by Enter.
function dragOn(strip) {
  const slide = strip.querySelector("input[type=range]");
  const from = Number(strip.dataset.from);
  slide.addEventListener("input", () => {
    const month = new Date(Date.UTC(from, Number(strip.dataset.month) + Number(slide.value)));
    const says = month.toLocaleDateString("en", { month: "long", year: "numeric", timeZone: "UTC" });
    slide.setAttribute("aria-valuetext", says);
    const at = (100 * slide.value + 50) / (Number(slide.max) + 1) + "%";
    strip.querySelector("line.at").setAttribute("x1", at);
    strip.querySelector("line.at").setAttribute("x2", at);
    strip.querySelector("circle.at").setAttribute("cx", at);
    strip.querySelector("[data-place]").lastChild.data = "Go to " + says;
  });
  let byKey = false;
  slide.addEventListener("keydown", () => (byKey = true));
  slide.addEventListener("pointerdown", () => (byKey = false));
  slide.addEventListener("change", () => byKey || strip.requestSubmit());
}

// Keys move through lists and pages.
const keys = {
  j: ["The next entry of the list", () => step(1)],
  k: ["The entry before", () => step(-1)],
  n: ["The next page, the newer entry, or the next hit", () => follow(".hits .on", "a[rel=next]")],
  p: ["The page, the entry or the hit before", () => follow(".hits a:not(.on)", "a[rel=prev], nav.pages a:not([rel=next])")],
  "/": ["Search", () => document.querySelector("input[type=search]")?.focus()],
  v: ["The original, also o", () => original()],
  o: ["The original", () => original()],
  g: ["Go to another time, by the arrow keys", () => document.querySelector("[data-strip] input[type=range], [data-timeline] [tabindex='0']")?.focus()],
  "?": ["These keys", () => showKeys()],
};

function step(by) {
  const items = [...document.querySelectorAll("[data-item]")];
  const at = items.findIndex((item) => item.classList.contains("told"));
  const to = items[at < 0 ? (by > 0 ? 0 : items.length - 1) : at + by];
  if (!to) return;
  items[at]?.classList.remove("told");
  to.classList.add("told");
  to.querySelector("[data-link]")?.focus({ preventScroll: true });
  to.scrollIntoView({ block: "nearest" });
}

// follow clicks on the first of these.
function follow(...selectors) {
  selectors.map((selector) => document.querySelector(selector)).find((item) => item)?.click();
}

// In a list, the original is that of the entry that was moved to.
function original() {
  const item = document.querySelector("li.told[data-page]");
  if (item) location.href = item.dataset.page;
  else follow("[data-original]");
}

function showKeys() {
  const dialog = document.createElement("dialog");
  dialog.className = "keys";
  dialog.setAttribute("aria-label", "Keys");
  const list = document.createElement("dl");
  for (const [key, [says]] of Object.entries(keys)) {
    const name = document.createElement("dt");
    name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
    list.append(name, Object.assign(document.createElement("dd"), { textContent: says }));
  }
  const close = Object.assign(document.createElement("button"), { textContent: "Close", autofocus: true });
  close.addEventListener("click", () => dialog.close());
  dialog.append(list, close);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, dialog, [contenteditable]")) return;
  const key = keys[event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
});

tellTimes();
document.querySelectorAll("[data-strip]").forEach(dragOn);
document.querySelectorAll("[data-progress]").forEach(watchProgress);
document.querySelectorAll("form[data-search]").forEach(searchAsTyped);
document.querySelectorAll("[data-timeline]").forEach(setUpTimeline);
// If a timeline is wider than the screen, its chosen part is shown, or the entries below it.
function showChosen() {
  document.querySelectorAll(".timeline .scroll").forEach((part) => {
    part.scrollLeft = part.scrollWidth;
    const chosen = (part.querySelector(".chosen") ?? part.querySelector(".here"))?.getBoundingClientRect();
    if (chosen) part.scrollLeft += (chosen.left + chosen.right - part.clientWidth) / 2 - part.getBoundingClientRect().left;
  });
}
showChosen();
document.querySelector(".fold")?.addEventListener("change", showChosen);
