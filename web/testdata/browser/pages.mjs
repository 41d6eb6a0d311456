// Looks at the operator pages of a node in a real Chromium, as its Go test asks: PAGES names the paths, and all four looks
// are photographed if SHOTS names a folder. Prints each fault on a line of its own.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const { BASE, BROWSER, CHROMIUM, SHOTS, PARKED } = process.env;
const paths = JSON.parse(process.env.PAGES);
const require = createRequire(join(BROWSER, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);

const looks = [["light", 1280], ["dark", 390], ["dark", 1280], ["light", 390]];
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

// finish tells what was found, and ends.
async function finish() {
  await browser.close();
  for (const f of faults) console.log(f);
  console.log(`judged ${paths.length} pages`);
  process.exit(0);
}

// watch reports what no page may do: errors, breaches of the policy, requests to elsewhere.
async function open(where, options) {
  const context = await browser.newContext(options);
  await context.addInitScript(() => {
    window.shift = 0;
    window.breaches = [];
    let news = -1000; // when the page last changed because something happened: what moves then is no shift
    document.addEventListener("htmx:beforeSwap", () => (news = performance.now()), true);
    new PerformanceObserver((list) => {
      for (const e of list.getEntries()) if (!e.hadRecentInput && (e.startTime < news || e.startTime > news + 500)) window.shift += e.value;
    }).observe({ type: "layout-shift", buffered: true });
    document.addEventListener("securitypolicyviolation", (e) => window.breaches.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  const page = await context.newPage();
  page.setDefaultTimeout(15000);
  page.on("console", (m) => {
    if (m.type() === "error" && !/status of (401|404|422)/.test(m.text())) fault(where, "console: " + m.text());
  });
  page.on("pageerror", (e) => fault(where, "error: " + e.message));
  page.on("request", (r) => {
    if (!r.url().startsWith(BASE + "/") && !r.url().startsWith("data:")) fault(where, "asked elsewhere: " + r.url());
  });
  return page;
}

async function judge(page, where) {
  const { violations } = await page.evaluate(axe + ";axe.run(document,{resultTypes:['violations'],runOnly:['wcag2a','wcag2aa','wcag21a','wcag21aa','wcag22aa','best-practice']})");
  for (const v of violations) fault(where, `axe: ${v.id} at ${v.nodes.map((n) => n.target).slice(0, 3).join(" ")}`);
  const seen = await page.evaluate(() => ({ shift: window.shift, breaches: window.breaches, over: document.documentElement.scrollWidth - innerWidth }));
  if (seen.shift > 0.1) fault(where, `the layout shifts by ${seen.shift.toFixed(3)}`);
  for (const b of seen.breaches) fault(where, "policy: " + b);
  if (seen.over > 0) fault(where, `is ${seen.over} px too wide`);
}

// Every page, in looks that rotate; all looks for photographs.
for (const [n, [scheme, width]] of looks.entries()) {
  const page = await open(`${scheme} ${width}`, { colorScheme: scheme, viewport: { width, height: 800 } });
  for (const [i, path] of paths.entries()) {
    if (!SHOTS && i % looks.length !== n) continue;
    await page.goto(BASE + path);
    await judge(page, `${path} ${scheme} ${width}`);
    if (SHOTS) await page.screenshot({ path: join(SHOTS, `${path.replace(/[^a-z0-9]+/gi, "_")}-${scheme}-${width}.png`), fullPage: true });
  }
  await page.context().close();
}

// at 320 px nothing is cut off.
{
  const page = await open("320 px", { viewport: { width: 320, height: 700 } });
  for (const path of paths) {
    await page.goto(BASE + path);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) fault(path, `is ${over} px too wide at 320 px`);
  }
  await page.context().close();
}

if (!PARKED) await finish(); // there is nothing to do on these pages

// Without script: from the overview to a parked message, and a retry of it.
{
  const page = await open("without script", { javaScriptEnabled: false });
  await page.goto(BASE + "/ui/");
  await page.getByRole("link", { name: /^Show messages of 2 messages/ }).click();
  await page.getByRole("link", { name: PARKED + "-1" }).click();
  await page.getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByRole("status").filter({ hasText: "Retried" }).waitFor();
  await page.context().close();
}

// By keyboard alone: the same, with the second one; and its copy button works where there is no clipboard API (U24).
{
  const page = await open("by keyboard", { viewport: { width: 1280, height: 800 } });
  await page.addInitScript(() => Object.defineProperty(window, "isSecureContext", { value: false }));
  await page.goto(BASE + "/ui/messages?state=parked");
  const reach = async (name) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      const at = await page.evaluate(() => (document.activeElement.getAttribute("aria-label") || document.activeElement.textContent || "").trim());
      if (at === name) return;
    }
    fault("by keyboard", `${name} is not reached`);
  };
  await reach(PARKED + "-2");
  await Promise.all([page.waitForURL(/messages\/.+/), page.keyboard.press("Enter")]);
  await reach("Copy the id");
  await page.keyboard.press("Enter");
  await page.locator(".copied").waitFor();
  await reach("Retry");
  await Promise.all([page.waitForURL(/done=retried/), page.keyboard.press("Enter")]);
  await page.goto(BASE + "/ui/messages");
  await page.locator("[name=destination]").focus();
  await page.keyboard.press("Control+V");
  const pasted = await page.locator("[name=destination]").inputValue();
  if (pasted !== PARKED + "-2") fault("copy", `pasted ${JSON.stringify(pasted)}`);
  await page.context().close();
}

// Rows do not move under a selection (U2, U3), and are brought up to date again after it.
{
  const page = await open("selection", { viewport: { width: 1280, height: 800 } });
  await page.context().addCookies([{ name: "holdfast_every", value: "5", url: BASE + "/ui/" }]);
  await page.goto(BASE + "/ui/messages");
  let asked = 0;
  page.on("request", (r) => { if (r.headers()["hx-request"]) asked++; });
  const box = page.locator("input[type=checkbox][name=id]").first();
  await box.check();
  await page.waitForTimeout(5600);
  if (asked > 0 || !(await box.isChecked())) fault("selection", "the rows moved under it");
  await box.uncheck();
  await page.evaluate(() => document.activeElement.blur());
  await page.waitForResponse((r) => r.request().headers()["hx-request"] === "true", { timeout: 9000 });
  await page.context().close();
}

// The first person closes the node; that person is refused, signs in, sees their account, and leaves. This is
// the last part: nobody is let in without a name afterwards.
{
  const page = await open("sign-in", { colorScheme: "dark", viewport: { width: 390, height: 800 } });
  const password = "correct horse battery";
  await page.goto(BASE + "/ui/people");
  await judge(page, "people");
  await page.getByLabel("Name", { exact: true }).fill("anna");
  await page.getByLabel("Role").selectOption("admin");
  await page.getByLabel("Password").fill(password);
  await page.getByRole("button", { name: "Add" }).click();
  await page.waitForURL(/sign-in\?next=/);
  await judge(page, "sign-in");
  const signIn = async (with_) => {
    await page.getByLabel("Name", { exact: true }).fill("anna");
    await page.getByLabel("Password").fill(with_);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await signIn("wrong");
  await page.getByRole("status").filter({ hasText: "Not signed in" }).waitFor();
  await judge(page, "refused sign-in");
  await signIn(password);
  await page.waitForURL(/ui\/people\/anna/);
  await judge(page, "person");
  for (const cookie of await page.context().cookies()) if (!cookie.httpOnly || cookie.sameSite !== "Lax") fault("sign-in", `cookie ${cookie.name} is open`);
  await page.goto(BASE + "/ui/account");
  await judge(page, "account");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/done=signed-out/);
  await page.goto(BASE + "/ui/messages");
  if (!page.url().includes("/ui/sign-in")) fault("signed out", "still sees " + page.url());
  await page.context().close();
}

await finish();
