// Hints of the node that something changed. All tabs of a browser share one stream: the tab that holds a lock
// has it, and tells the others. Without locks, or while the stream is cut, the page is asked for now and then,
// as it is without this file.

const again = 10_000; // ms until a refused stream is asked for once more
const justLoaded = 5000; // ms for which a page needs no hello to be new
const kinds = ["hello", "counts", "message", "notification", "channel", "destination"];

// follow calls heard(kind, hint) in this tab, whichever tab has the stream. It returns what ends that.
export function follow({ url, heard, locks, channel, Source, wait }) {
  const ended = new AbortController();
  let source = null;
  let release = () => {};
  const tell = (kind, hint) => {
    heard(kind, hint);
    channel.postMessage({ kind, hint });
  };
  const open = () => {
    if (ended.signal.aborted) return;
    source = new Source(url);
    for (const kind of kinds) {
      source.addEventListener(kind, (event) => tell(kind, JSON.parse(event.data)));
    }
    source.addEventListener("error", () => {
      if (source.readyState === Source.CLOSED) wait(open, again); // otherwise it connects again by itself
    });
  };
  channel.onmessage = (event) => heard(event.data.kind, event.data.hint);
  locks.request("holdfast live " + url, { signal: ended.signal }, () => new Promise((done) => {
    release = done;
    open();
  })).catch(() => {}); // ended before it was this tab's turn
  return () => {
    ended.abort();
    source?.close();
    channel.onmessage = null;
    release();
  };
}

// Told counts what came while a page could not change, and asks for the page at most once a second otherwise.
export class Told {
  constructor({ busy, refresh, show, now, wait }) {
    Object.assign(this, { busy, refresh, show, now, wait, news: 0, last: -Infinity, planned: false, began: now() });
  }

  hear(kind, hint) {
    if (kind === "hello" && !hint.resumed && this.now() - this.began < justLoaded) return;
    if (kind === "hello") this.news += hint.missed ?? (hint.resumed ? 1 : 0);
    else if (kind === "message") this.news += (hint.ids ?? []).length + (hint.more ?? 0);
    this.pending = true;
    this.look();
  }

  // look refreshes if it may. The page calls it again when a selection, a dialog or a marked text is gone.
  look() {
    if (!this.pending) return;
    if (this.busy()) {
      this.show(this.news);
      return;
    }
    const left = this.last + 1000 - this.now();
    if (left > 0) {
      if (!this.planned) this.wait(() => { this.planned = false; this.look(); }, left);
      this.planned = true;
      return;
    }
    this.last = this.now();
    this.pending = false;
    this.news = 0;
    this.show(0);
    this.refresh();
  }
}

// start joins the page to the stream. A page that does not refresh itself, as its reader has chosen, does not listen.
function start() {
  const main = document.getElementById("main");
  const brand = document.querySelector("a.brand");
  if (!main?.hasAttribute("hx-get") || !brand || !navigator.locks || !window.BroadcastChannel || !window.EventSource || !window.holdfast || !window.htmx) return;
  const wait = (f, ms) => setTimeout(f, ms);
  const told = new Told({
    busy: window.holdfast.busy, show: window.holdfast.told, now: () => performance.now(), wait,
    refresh: () => window.htmx.ajax("GET", main.getAttribute("hx-get"), { source: main, target: main, swap: "innerHTML" }),
  });
  const url = new URL("../v1/live", brand.href).pathname;
  const end = follow({
    url, wait, heard: (kind, hint) => told.hear(kind, hint),
    locks: navigator.locks, channel: new BroadcastChannel("holdfast live " + url), Source: EventSource,
  });
  window.addEventListener("pagehide", end, { once: true });
  window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  for (const event of ["change", "click", "close", "focusout", "selectionchange", "visibilitychange"]) {
    document.addEventListener(event, () => setTimeout(() => told.look()), true);
  }
}

if (typeof document !== "undefined") start();
