import assert from "node:assert";
import { test } from "node:test";
import { readFileSync } from "node:fs";

const source = readFileSync(new URL("../static/live.js", import.meta.url));
const { follow, Told } = await import("data:text/javascript;base64," + source.toString("base64"));

// What a browser gives its tabs: one lock, one channel, and streams that are counted.
class Browser {
  tabs = [];
  queue = [];
  streams = [];
  waits = [];
  open() {
    const browser = this;
    const heard = [];
    const channel = { onmessage: null, postMessage(data) { for (const t of browser.tabs) if (t.channel !== channel) t.channel.onmessage?.({ data }); } };
    const locks = { request: (_, { signal }, hold) => new Promise((_, fail) => {
      const entry = { hold };
      signal.addEventListener("abort", () => { browser.queue = browser.queue.filter((e) => e !== entry); if (!entry.held) fail(new Error("aborted")); });
      browser.queue.push(entry);
      browser.next();
    }) };
    class Source extends EventTarget {
      static CLOSED = 2;
      readyState = 1;
      constructor(url) { super(); this.url = url; browser.streams.push(this); }
      close() { this.readyState = 2; browser.streams = browser.streams.filter((s) => s !== this); }
    }
    const end = follow({ url: "/v1/live", heard: (kind, hint) => heard.push([kind, hint]), locks, channel, Source, wait: (f) => browser.waits.push(f) });
    const tab = { heard, channel, end };
    this.tabs.push(tab);
    return tab;
  }
  next() {
    if (this.holder || !this.queue.length) return;
    const entry = this.queue.shift();
    this.holder = entry;
    entry.held = true;
    entry.hold().then(() => { this.holder = null; this.next(); });
  }
  hint(kind, hint) {
    for (const s of this.streams) s.dispatchEvent(Object.assign(new Event(kind), { data: JSON.stringify(hint) }));
  }
}

test("seven tabs have one stream, and all of them hear", async () => {
  const browser = new Browser();
  const tabs = Array.from({ length: 7 }, () => browser.open());
  assert.equal(browser.streams.length, 1);
  browser.hint("message", { ids: ["m"] });
  for (const t of tabs) assert.deepEqual(t.heard, [["message", { ids: ["m"] }]]);
  tabs[0].end();
  browser.tabs.shift();
  await new Promise(setImmediate);
  assert.equal(browser.streams.length, 1);
  browser.hint("counts", {});
  for (const t of tabs.slice(1)) assert.equal(t.heard.length, 2);
  assert.equal(tabs[0].heard.length, 1);
});

test("a refused stream is asked for again", () => {
  const browser = new Browser();
  browser.open();
  const [first] = browser.streams;
  first.readyState = 2;
  first.dispatchEvent(new Event("error"));
  assert.equal(browser.waits.length, 1);
  browser.waits[0]();
  assert.equal(browser.streams.length, 2);
});

test("nothing moves while something is chosen, and what came meanwhile is counted", () => {
  let chosen = true, refreshed = 0, shown = 0;
  const planned = [];
  let now = 0;
  const told = new Told({ busy: () => chosen, refresh: () => refreshed++, show: (n) => { shown = n; }, now: () => now, wait: (f) => planned.push(f) });
  for (let i = 0; i < 50; i++) told.hear("message", { ids: ["a"], more: 1 });
  assert.equal(refreshed, 0);
  assert.equal(shown, 100);
  chosen = false;
  told.look();
  assert.equal(refreshed, 1);
  assert.equal(shown, 0);
  for (let i = 0; i < 50; i++) told.hear("counts", {});
  assert.equal(refreshed, 1);
  assert.equal(planned.length, 1);
  now = 1000;
  planned[0]();
  assert.equal(refreshed, 2);
});

test("a stream that was cut says what was missed", () => {
  let shown = 0;
  const told = new Told({ busy: () => true, refresh() {}, show: (n) => { shown = n; }, now: () => 0, wait() {} });
  told.hear("hello", { resumed: true, missed: 12 });
  assert.equal(shown, 12);
});
