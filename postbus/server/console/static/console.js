// What pages gain with JavaScript: live figures, keys, copying. Without it they can all be read and used.

const EVERY_MS = 2000;
const main = document.getElementById("main");
const liveButton = document.getElementById("live");
let paused = false;
let timer = 0;

// Live figures: the page is fetched again, and its live parts replace those here.

const liveParts = () => [...document.querySelectorAll("[data-live][id]")];

function isInUse(part) {
  const selection = getSelection();
  const selects = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const typing = part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select, button");
  const ticked = part.querySelector("input[type=checkbox]:checked");
  return selects || typing || ticked;
}

function update(part, fresh) {
  if (part.innerHTML === fresh.innerHTML || isInUse(part)) return;
  const open = new Set([...part.querySelectorAll("details[open][id]")].map((each) => each.id));
  const known = new Set([...part.querySelectorAll("tr[id]")].map((each) => each.id));
  const scrolled = [...part.querySelectorAll(".scroll[id]")].map((each) => [each.id, each.scrollLeft]);
  const focused = part.contains(document.activeElement) ? placeOf(part, document.activeElement) : null;
  const current = part.querySelector("tr[data-current]")?.id;
  part.replaceChildren(...fresh.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  for (const [id, left] of scrolled) document.getElementById(id)?.scrollTo({ left });
  if (current) document.getElementById(current)?.setAttribute("data-current", "");
  if (focused !== null) [...part.querySelectorAll("a, summary, [tabindex]")][focused]?.focus({ preventScroll: true });
  if (known.size) for (const row of part.querySelectorAll("tr[id]")) if (!known.has(row.id)) row.classList.add("arrived");
  decorate(part);
}

const placeOf = (part, element) => {
  const place = [...part.querySelectorAll("a, summary, [tabindex]")].indexOf(element);
  return place < 0 ? null : place;
};

async function refresh() {
  clearTimeout(timer);
  if (!paused && !document.hidden && !document.querySelector("dialog[open]")) {
    try {
      const response = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
      if (response.ok) {
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
        const parts = liveParts();
        const missing = parts.some((part) => !fresh.getElementById(part.id));
        // Such as the first stream on an empty system: another page altogether.
        if (missing && !main.contains(document.activeElement)) location.reload();
        for (const part of parts) {
          const other = fresh.getElementById(part.id);
          if (other) update(part, other);
        }
      }
      liveButton.textContent = response.ok ? "live" : "not answering";
    } catch {
      liveButton.textContent = "not answering";
    }
  }
  timer = setTimeout(refresh, EVERY_MS);
}

function setPaused(value) {
  paused = value;
  liveButton.setAttribute("aria-pressed", String(!value));
  liveButton.textContent = value ? "paused" : "live";
  if (!value) refresh();
}

// Copying.

function decorate(root) {
  for (const block of root.querySelectorAll("pre[data-copy]")) {
    if (block.querySelector(".copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "copy";
    button.addEventListener("click", () => copy(block.querySelector("code").textContent, button));
    block.append(button);
  }
}

async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages without TLS have no clipboard.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => (button.textContent = "copy"), 1500);
}

// Keys.

const WAYS = { o: "", s: "streams", c: "consumers", d: "dead", p: "pipelines", h: "doctor" };
let going = false;
const go = (way) => (location.href = new URL(document.body.dataset.root + way, location.href));
const click = (selector) => document.querySelector(selector)?.click();

function nextState() {
  const states = [...document.querySelectorAll(".chips a")];
  states[(states.findIndex((each) => each.hasAttribute("aria-current")) + 1) % states.length]?.click();
}

function step(by) {
  const rows = [...document.querySelectorAll("tbody tr")].filter((row) => row.querySelector("a") && !row.closest("dialog"));
  if (!rows.length) return;
  const at = rows.findIndex((row) => row.hasAttribute("data-current"));
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + by));
  rows[at]?.removeAttribute("data-current");
  rows[next].setAttribute("data-current", "");
  rows[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  if (going) {
    going = false;
    if (event.key in WAYS) go(WAYS[event.key]);
    return;
  }
  const actions = {
    "/": () => (document.querySelector("[data-search]") ?? document.getElementById("search"))?.focus(),
    "?": () => document.getElementById("keys")?.showModal(),
    g: () => (going = true),
    j: () => step(1),
    k: () => step(-1),
    l: () => setPaused(!paused),
    n: () => click("main [rel=next]"),
    b: () => click("main [rel=prev]"),
    f: () => document.querySelector("main input:not([type=hidden], [type=checkbox])")?.focus(),
    t: nextState,
    d: () => go("dead"),
    w: () => go("sources"),
    c: () => go("schedules"),
    Escape: () => document.querySelector("dialog[open]") || click(".crumbs li:last-child a"),
    Enter: () => event.target === document.body && document.querySelector("tr[data-current] a")?.click(),
  };
  if (!(event.key in actions)) return;
  if (!["Enter", "Escape"].includes(event.key)) event.preventDefault();
  actions[event.key]();
});

if (main) decorate(main);
if (liveButton && liveParts().length) {
  liveButton.hidden = false;
  liveButton.addEventListener("click", () => setPaused(!paused));
  document.addEventListener("visibilitychange", () => document.hidden || refresh());
  timer = setTimeout(refresh, EVERY_MS);
}
