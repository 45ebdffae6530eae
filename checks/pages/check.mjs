// Uses the analyst's pages of `uptack serve` and `uptack demo --keep` in headless Chromium, as an analyst would.
//
// Usage: node check.mjs UPTACK WORK_FOLDER [--figures FOLDER] [path of chromium]
//
// Signs in by the link that the desk prints, meets the faults of the form, plans, opens a question, watches it fill while
// `uptack fleet` answers, releases the result, and cancels another question; once with JavaScript and once without. At 1280 and at 400 pixels, light
// and dark, no page may log an error, ask another host, scroll sideways or violate a rule of axe-core. With --figures the
// screenshots of the documentation are made.

import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium } from "playwright-core";

const arguments_ = process.argv.slice(2);
const at = arguments_.indexOf("--figures");
const figures = at < 0 ? null : arguments_.splice(at, 2)[1];
const [uptack, folder, executablePath = "/usr/bin/chromium"] = arguments_;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const OWNERS = 60;
const QUESTION = "Are you at station 7?";
const STEP = 120_000;
const FIGURES = [
  "questions-1280-light", "ask-1280-light", "open-400-dark", "question-400-light", "question-1280-dark", "verify-1280-light",
];
const faults = [];
const children = [];

function start(...words) {
  const child = spawn(uptack, words, { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  child.text = "";
  child.out = "";
  child.stdout.on("data", (bytes) => (child.out += bytes));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => (child.text += bytes));
  child.ended = new Promise((resolve) => child.on("exit", resolve));
  return child;
}

/// Waits until a child has printed something, and gives what was found.
async function printed(child, pattern, where = "text") {
  for (let end = Date.now() + STEP; Date.now() < end; await pause(50)) {
    const found = child[where].match(pattern);
    if (found) return found;
    if (child.exitCode !== null) throw new Error(`ended before it printed ${pattern}:\n${child.text}`);
  }
  throw new Error(`never printed ${pattern}:\n${child.text}`);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function policy(signer) {
  return `signers = ["${signer}"]
attributes = ["station"]
[card]
answer = 16.0
linked = 16.0
release = 4.0
answer-with-release = 16.0
delta = 1e-4
honest = 1.0
separate-operators = false
enrolment = false
[lifetime]
linked = 100.0
release = 20.0
delta = 1e-3
`;
}

async function newPage(browser, base, { width = 1280, scheme = "light", script = true } = {}) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, javaScriptEnabled: script, reducedMotion: "reduce",
  });
  context.setDefaultTimeout(STEP);
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`page: ${error}`));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "data:" && url.origin !== new URL(base).origin) faults.push(`asks ${url.origin}`);
  });
  return page;
}

/// Looks at a page in every size and scheme. The rules are run from outside of the page's own policy.
async function look(page, name, { script = true } = {}) {
  for (const scheme of ["light", "dark"]) {
    for (const width of [1280, 400]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.evaluate(() => scrollTo(0, 0));
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (wide > 0) faults.push(`${name} at ${width}: ${wide} pixels too wide`);
      const file = join(folder, "pictures", `${name}-${width}-${scheme}.png`);
      await page.screenshot({ path: file, fullPage: width === 400 });
      if (figures && FIGURES.includes(`${name}-${width}-${scheme}`)) {
        const clip = { x: 0, y: 0, width, height: width === 400 ? 860 : 680 };
        await page.screenshot({ path: join(figures, `pages-${name}-${width}-${scheme}.png`), clip });
      }
      if (script) await rules(page, `${name} at ${width}, ${scheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function rules(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const violation of violations) {
    const where = violation.nodes.slice(0, 3).map((node) => `${node.target}: ${node.failureSummary}`).join(" | ");
    faults.push(`${name}: ${violation.id}: ${where}`.replaceAll("\n", " "));
  }
}

/// Plans and opens a question on the page; gives its address.
async function ask(page, base, words, script) {
  await page.goto(`${base}pages/ask`);
  await page.fill("#owners", String(OWNERS));
  await page.fill("#yes", "0..20");
  await page.fill("#epsilon", "2");
  await page.fill("#minimum_batch", "40");
  if (!script) await page.click("text=Update the plan");
  await page.waitForSelector(`#plan:has-text("of ${OWNERS} owners")`);
  await page.fill("#question", words);
  await page.fill("#predicate", 'station == "7"');
  await page.fill("#closes", "60s");
  return async () => {
    await page.click("text=Preview the card");
    await page.waitForSelector("text=As owners will see it");
    return async () => {
      await page.click("text=Open the question");
      await page.waitForSelector(".progress");
      return page.url();
    };
  };
}

/// Faults of the form point at their fields and keep what was typed; many windows are planned as a whole.
async function faults_of_the_form(page, base, script) {
  const update = async () => {
    if (!script) await page.click("text=Update the plan");
  };
  await page.goto(`${base}pages/ask`);
  await page.fill("#epsilon", "0,5");
  await update();
  await page.waitForSelector("#plan .fault:has-text('decimals with a point')");
  await marked(page, "epsilon", "0,5");
  if (script) await rules(page, "a fault of the form");
  await page.fill("#epsilon", "0.5");
  await update();
  await page.waitForSelector("#epsilon:not([aria-invalid])");
  await page.fill("#yes", "5000");
  await page.click("text=Preview the card");
  await page.waitForSelector("[role=alert] a[href='#yes']");
  // A page that says no logs that it did; that is meant here.
  faults.splice(0, faults.length, ...faults.filter((fault) => !fault.includes("400 (Bad Request)")));
  await marked(page, "yes", "5000");
  if (script) await rules(page, "a refused form");
  await page.fill("#yes", "0..300");
  await page.fill("#times", "288");
  await update();
  await page.waitForSelector("#plan:has-text('at most 1 of the 288 counts')");
}

async function marked(page, field, text) {
  const found = await page.$eval(`#${field}`, (input) => ({
    value: input.value, invalid: input.getAttribute("aria-invalid"),
    words: input.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" "),
  }));
  if (found.value !== text || found.invalid !== "true" || found.words.length < 40) {
    faults.push(`${field} is not marked: ${JSON.stringify(found)}`);
  }
}

/// Text of charts has eleven pixels on a phone, and in the dark a chart has the colour of its panel.
async function charts(page) {
  await page.setViewportSize({ width: 400, height: 900 });
  const widths = await page.$$eval(".chart img", (images) => images.map((image) => image.getBoundingClientRect().width));
  if (widths.length === 0) faults.push("there is no chart");
  for (const width of widths) {
    if ((15 * width) / 500 < 11) faults.push(`text of a chart has ${(15 * width) / 500} pixels at 400`);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.emulateMedia({ colorScheme: "dark" });
  // A newer plan can replace the chart at any moment, so it is looked up, shown and measured in one step.
  const measured = () => page.evaluate(async () => {
    const chart = document.querySelector(".chart img");
    chart?.scrollIntoView({ block: "center" });
    const loaded = await chart?.decode().then(() => true, () => false);
    if (!loaded || !chart.isConnected) return null;
    const { x, y } = chart.getBoundingClientRect();
    return { x, y };
  });
  let place = null;
  for (let tries = 0; place === null && tries < 50; tries += 1) {
    place = await measured();
    if (place === null) await page.waitForTimeout(100);
  }
  if (place === null) throw new Error("no chart stays on the page");
  const { x, y } = place;
  const pixels = (left) => page.screenshot({ clip: { x: left, y: y + 40, width: 3, height: 3 } });
  if (!(await pixels(x + 3)).equals(await pixels(x - 9))) faults.push("a dark chart has another colour than its panel");
  await page.emulateMedia({ colorScheme: "light" });
}

/// The whole life of a question.
async function life(browser, desk, { script }) {
  const name = script ? "" : "-without-script";
  const { address, sign_in: link, signer } = desk;
  const page = await newPage(browser, address, { script });
  if (script) {
    await page.goto(link);
  } else {
    // The link was used: one signs in with the token.
    await page.goto(`${address}pages/`);
    await look(page, `sign-in${name}`, { script });
    await page.fill("#token", readFileSync(desk.token, "utf8").trim());
    await page.click("main button");
  }
  await page.waitForSelector("h1:has-text('Questions')");
  if (page.url() !== `${address}pages/`) faults.push(`the address keeps something: ${page.url()}`);
  if (script) {
    const again = await newPage(browser, address);
    const answer = await again.goto(link).catch(() => null);
    if (answer?.status() !== 410) faults.push("the link works twice");
    // A page that says no logs that it did; that is meant here.
    faults.splice(0, faults.length, ...faults.filter((fault) => !fault.includes("410")));
    await look(again, "sign-in");
    await again.context().close();
  }
  await faults_of_the_form(page, address, script);
  const preview = await ask(page, address, QUESTION, script);
  await page.waitForLoadState("networkidle");
  if (script) await charts(page);
  await look(page, `ask${name}`, { script });
  const open = await preview();
  await look(page, `preview${name}`, { script });
  const question = await open();
  const owners = join(folder, `owners${name}.csv`);
  const rows = Array.from({ length: OWNERS }, (_, index) => `o${index},${index % 4 === 0 ? 7 : 8}`);
  writeFileSync(owners, `owner,station\n${rows.join("\n")}\n`);
  writeFileSync(join(folder, "policy.toml"), policy(signer));
  const data = join(folder, `fleet${name}`);
  const fleet = start("fleet", owners, "--desk", address, "--policy", join(folder, "policy.toml"), "--data", data, "--within", "8s");
  if (script) await fills(page);
  await look(page, `open${name}`, { script });
  const code = await fleet.ended;
  if (code !== 0) throw new Error(`the fleet ended with ${code}:\n${fleet.text}`);
  if (script) {
    // The page comes to this by itself.
    await page.waitForSelector("text=Release the result");
  } else {
    for (let end = Date.now() + STEP; Date.now() < end && !(await page.isVisible("text=Release the result")); await pause(500)) {
      await page.reload();
    }
  }
  await page.click("text=Release the result");
  await page.waitForSelector("h2:has-text('The result')");
  const headline = await page.textContent(".headline");
  if (!headline.includes(`of ${OWNERS} would say yes`)) faults.push(`the result says ${headline}`);
  await look(page, `question${name}`, { script });
  await verify(page, address, name, script);
  await cancel(page, address, name, script);
  await page.goto(`${address}pages/`);
  await page.waitForSelector(`article:has-text("${QUESTION}") .interval`);
  await look(page, `questions${name}`, { script });
  await page.goto(`${address}pages/spending`);
  await look(page, `spending${name}`, { script });
  await page.goto(question);
  await page.click("text=Sign out");
  await page.waitForSelector("#token");
  await page.context().close();
}

/// The number of reports on the page grows without a reload.
async function fills(page) {
  await page.evaluate(() => (window.stayed = true));
  const seen = new Set();
  for (let end = Date.now() + STEP; Date.now() < end && seen.size < 3; await pause(150)) {
    const words = await page.textContent(".progress .words");
    const count = Number(words.match(/^\d+/)?.[0] ?? 0);
    if (count > 0) seen.add(count);
  }
  if (seen.size < 3) faults.push(`the page did not fill by itself: ${[...seen]}`);
  if (!(await page.evaluate(() => window.stayed))) faults.push("the page was loaded anew while it filled");
}

/// The record that the page gives holds; a falsified one does not.
async function verify(page, base, name, script) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("text=Record (JSON)")]);
  const file = join(folder, `record${name}.json`);
  await download.saveAs(file);
  const checked = start("verify", file);
  if ((await checked.ended) !== 0) faults.push(`uptack verify: ${checked.text}`);
  await page.goto(`${base}pages/verify`);
  await page.setInputFiles("#file", file);
  await page.click("main button[type=submit]");
  await page.waitForSelector("h1:has-text('passed')");
  await look(page, `verify${name}`, { script });
  const false_ = readFileSync(file, "utf8").replace(/"reports":\d+/, '"reports":61');
  await page.fill("#document", false_);
  await page.click("main button[type=submit]");
  await page.waitForSelector(".cross");
}

async function cancel(page, base, name, script) {
  const preview = await ask(page, base, "Is this a mistake?", script);
  await (await preview())();
  await page.click("summary:has-text('Cancel this question')");
  await page.click("text=Cancel it for good");
  await page.waitForSelector(".badge.cancelled");
  await look(page, `cancelled${name}`, { script });
}

/// From the demo's link to a question that fills: ten seconds.
async function demo(browser) {
  const child = start("demo", "--keep", "--vehicles", "600");
  const [link] = await printed(child, /http:\S+sign-in\S+/);
  const page = await newPage(browser, link);
  const opened = Date.now();
  await page.goto(link);
  await page.waitForSelector("article .fill .words");
  const took = (Date.now() - opened) / 1000;
  console.log(`demo: a live question ${took.toFixed(1)} s after the link was opened`);
  if (took > 10) faults.push(`the demo's question took ${took} s`);
  await page.context().close();
  child.kill("SIGINT");
  await child.ended;
}

rmSync(join(folder, "pictures"), { recursive: true, force: true });
mkdirSync(join(folder, "pictures"), { recursive: true });
for (const left of ["desk", "fleet", "fleet-without-script"]) rmSync(join(folder, left), { recursive: true, force: true });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
try {
  const served = start("--json", "serve", "--data", join(folder, "desk"));
  const [text] = await printed(served, /\{[^]*"sign_in"[^]*?\}/, "out");
  const desk = JSON.parse(text);
  await life(browser, desk, { script: true });
  await life(browser, desk, { script: false });
  await demo(browser);
} catch (error) {
  faults.push(error.stack);
} finally {
  await browser.close();
  for (const child of children) if (child.exitCode === null) child.kill("SIGINT");
}
if (faults.length > 0) {
  console.error([...new Set(faults)].slice(0, 40).join("\n"));
  process.exit(1);
}
console.log("the pages: signed in, planned, asked, watched, released, verified and cancelled, with JavaScript and without");
process.exit(0);
