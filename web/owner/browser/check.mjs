// The page in a real browser: `node browser/check.mjs PATH/TO/uptack [--screenshots FOLDER]`, after `npm run build`.
//
// 30 browsers and 300 owners on the command line answer one question through two aggregators: the sums are exact and every
// report is there once, whatever is reloaded, opened twice or closed. Meanwhile every falsified card is refused, and what goes
// over the wire is compared for yes and no, at once and late.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { startServers } from "./servers.mjs";

const [binary, flag, screenshots] = process.argv.slice(2);
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const BROWSERS = 30;
const OWNERS = 300;
/** In seconds; long enough for a busy machine. */
const OPEN_FOR = 120;
const run = promisify(execFile);
const step = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(0)} s: ${text}`);
const began = Date.now();
const from = (name) => new URL(name, import.meta.url);

/** A card without randomness and noise, whose sums are exact. Only tests ask like this. */
function exactCard(planned) {
  const { series: _series, ...card } = planned;
  const whole = (1n << 64n).toString();
  const cells = [{ outputs: ["1"], yes: whole, no: "0" }, { outputs: ["0"], yes: "0", no: whole }];
  return {
    ...card,
    question: "Do you take the stairs?",
    mechanism: "randomized-response(t=1)",
    channel: { bits: "64", answers: [["1", "0"]], cells },
    minimum_batch: "100",
  };
}

async function plan(servers) {
  const planned = servers.path("planned.json");
  const size = ["--owners", String(BROWSERS + OWNERS), "--yes", "100", "--epsilon", "2", "--delta", "1e-4"];
  await run(binary, ["plan", ...size, "--noise", "none", "--out", planned]);
  return JSON.parse(readFileSync(planned, "utf8"));
}

/** Opens a card at a desk and returns its link. */
async function open(servers, card, seconds, desk = { ...servers.desk, url: servers.deskUrl }) {
  const token = readFileSync(desk.token, "utf8").trim();
  const response = await fetch(new URL("queries", desk.address), {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "idempotency-key": randomUUID() },
    body: JSON.stringify({ card, seconds }),
  });
  assert.equal(response.status, 201, await response.clone().text());
  const { query } = (await response.json()).queries[0];
  return { query, link: linkTo(servers, desk.url ?? desk.address, desk.signer, query) };
}

function linkTo(servers, desk, key, query) {
  return `${servers.page.origin}/#${new URLSearchParams({ desk, key, query })}`;
}

/** A separate browser context that records anything that should not happen. */
async function newPerson(browser, servers, options = {}) {
  const context = await browser.newContext(options);
  const person = { context, requests: [], faults: [] };
  context.on("console", (message) => message.type() === "error" && person.faults.push(message.text()));
  context.on("weberror", (error) => person.faults.push(String(error.error())));
  context.on("request", (request) => {
    const url = new URL(request.url());
    person.requests.push(`${request.method()} ${url.pathname}`);
    if (!servers.hosts.has(url.origin)) person.faults.push(`a request to ${url.origin}`);
  });
  return person;
}

const visible = (page, id) => page.locator(`#${id}`).waitFor({ state: "visible", timeout: 60_000 });

/** Fills in the limits and waits until they are saved. */
async function saveLimits(page, fields) {
  for (const [name, value] of Object.entries(fields)) await page.locator(`[name=${name}]`).fill(value);
  await page.evaluate(() => { document.getElementById("saved").textContent = ""; });
  await page.locator("#limits button").click();
  await page.locator("#saved:has-text('Saved')").waitFor();
}

/** Opens the link, lifts the limits, and accepts both aggregators. */
async function openLink(person, link, within) {
  const page = await person.context.newPage();
  await page.goto(link);
  await visible(page, "unlisted");
  await page.locator("#settings > summary").click();
  const limits = ["cardLinked", "cardOneAggregator", "lifetimeLinked", "lifetimeOneAggregator"];
  await saveLimits(page, { ...Object.fromEntries(limits.map((name) => [name, "unlimited"])), within: String(within) });
  await visible(page, "unlisted");
  await page.locator("#accept").click();
  await visible(page, "question");
  return page;
}

async function outcome(page) {
  await visible(page, "done");
  return page.locator("#done").getAttribute("data-state");
}

const uploads = (person) => person.requests.filter((request) => request.startsWith("PUT")).length;

/** One browser among many; the first ones are disturbed in ways that must not matter. */
async function answer(browser, servers, link, index, yes) {
  const person = await newPerson(browser, servers);
  const button = yes ? "#yes" : "#no";
  let page = await openLink(person, link, index < 3 ? 12 : 6);
  if (index === 0) {
    await page.locator(button).click();
    await visible(page, "waiting");
    await page.reload();
  } else if (index === 1) {
    const second = await person.context.newPage();
    await second.goto(link);
    await visible(second, "question");
    // Both tabs at once, the same answer: one report.
    await Promise.all([page.locator(button).click(), second.locator(button).click()]);
    assert.equal(await outcome(second), "sent");
  } else if (index === 2) {
    await page.locator(button).click();
    await visible(page, "waiting");
    await page.close();
    assert.equal(uploads(person), 0, "nothing is sent before its time");
    page = await person.context.newPage();
    await page.goto(link);
  } else {
    await page.locator(button).click();
  }
  assert.equal(await outcome(page), "sent");
  await page.reload();
  assert.equal(await outcome(page), "sent", "a question that was answered stays answered");
  assert.equal(uploads(person), 1, `one report: ${person.requests}`);
  assert.deepEqual(person.faults, []);
  await person.context.close();
}

/** A few at a time, because a page keeps a processor busy. */
async function all(items, work, atOnce = 5) {
  const left = [...items];
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (let item = left.shift(); item !== undefined; item = left.shift()) await work(item);
  }));
}

function policyText(signer) {
  const limits = "linked = \"unlimited\"\none-aggregator = \"unlimited\"\nrelease = \"unlimited\"\n";
  return `signers = ["${signer}"]\nattributes = []\n[card]\nanswer = "unlimited"\nanswer-with-release = "unlimited"\n${limits}` +
    `delta = 0.5\nhonest = 1.0\nseparate-operators = false\nenrolment = false\n[lifetime]\n${limits}delta = 0.5\n`;
}

/** Owners on the command line: a fleet, and one person who gives the answer as an option. */
async function answerInTerminals(servers, query) {
  const policy = servers.file("policy.toml", policyText(servers.desk.signer));
  const rows = Array.from({ length: OWNERS - 1 }, (_, index) => `${index},${index % 3 === 0}`);
  const fleet = servers.file("fleet.csv", `owner,climbs:bool\n${rows.join("\n")}\n`);
  const common = ["--desk", servers.desk.address, "--policy", policy, "--within", "10s"];
  await run(binary, ["fleet", fleet, ...common, "--data", servers.path("fleet"), "--truth", "climbs"]);
  await run(binary, ["answer", ...common, "--data", servers.path("self"), "--truth", "yes", "--query", query]);
  return rows.filter((row) => row.endsWith("true")).length + 1;
}

/** Compares what browsers send for either button, at once and late. */
async function compareTraffic(browser, servers, card) {
  const { link } = await open(servers, { ...card, question: "Does the button show?" }, OPEN_FOR);
  const seen = [];
  for (const [button, thought] of [["#yes", 0], ["#no", 0], ["#yes", 9], ["#no", 9]]) {
    const before = servers.meters.map(({ counted }) => ({ ...counted }));
    const person = await newPerson(browser, servers);
    const page = await openLink(person, link, 4);
    await page.waitForTimeout(thought * 1000);
    await page.locator(button).click();
    assert.equal(await outcome(page), "sent");
    assert.deepEqual(person.faults, []);
    await person.context.close();
    const bytes = servers.meters.map(({ counted }, index) => counted.bytes - before[index].bytes);
    seen.push(JSON.stringify({ bytes, requests: person.requests.sort() }));
  }
  assert.equal(new Set(seen).size, 1, seen.join("\n"));
  const { bytes, requests } = JSON.parse(seen[0]);
  step(`yes and no, at once and late: ${requests.length} requests, ${bytes.join(" + ")} bytes to desk, leader and helper each time`);
}

/** Shows every falsified card of the shared vectors to the page. */
async function refuseFalsified(browser, servers) {
  const { key, now, rows } = JSON.parse(readFileSync(from("../../../vectors/cards.json"), "utf8"));
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.clock.setFixedTime(new Date(now * 1000));
  const cards = new Map(rows.map(({ name, signed }) => [name, signed]));
  let serving = "";
  await context.route("https://desk.example/**", (route) =>
    route.fulfill({ json: cards.get(serving), headers: { "access-control-allow-origin": "*" } }));
  await context.route(/https:\/\/(leader|helper)\.example\//, (route) => route.abort());
  await page.goto(servers.page.origin);
  const shown = async (name, query) => {
    serving = name;
    const fragment = new URL(linkTo(servers, "https://desk.example/", key, query)).hash;
    await page.evaluate((fragment) => {
      document.getElementById("reason").textContent = "";
      for (const id of ["refused", "unlisted"]) document.getElementById(id).hidden = true;
      // The same link twice is no change; an empty one in between is.
      history.replaceState(null, "", "#");
      location.hash = fragment;
    }, fragment);
    await page.waitForFunction(() =>
      document.getElementById("reason").textContent !== "" || !document.getElementById("unlisted").hidden);
    return page.locator("#reason").textContent();
  };
  for (const { name, refused_by, signed } of rows) {
    const reason = await shown(name, signed.query);
    assert.equal(reason !== "", refused_by.includes("page"), `${name}: ${reason}`);
  }
  const [first, second] = rows.map(({ name, signed }) => ({ name, query: signed.query }));
  assert.match(await shown(first.name, second.query), /another card/);
  // An aggregator that is not on the list: asked once, and not again.
  assert.equal(await shown(first.name, first.query), "");
  await page.locator("#decline").click();
  await visible(page, "refused");
  assert.match(await page.locator("#reason").textContent(), /leader\.example is not on your list/);
  assert.match(await shown(first.name, first.query), /not on your list/);
  await refuseSpent(page, shown, first);
  await context.close();
  step(`${rows.length} cards judged as the library judges them`);
}

/** Checks the limit for one question, and a budget too small for another one. */
async function refuseSpent(page, shown, { name, query }) {
  await page.locator("#settings > summary").click();
  await saveLimits(page, { aggregators: "https://leader.example\nhttps://helper.example", cardLinked: "1" });
  assert.match(await shown(name, query), /your limit for one question is 1/);
  await saveLimits(page, { cardLinked: "8", lifetimeOneAggregator: "0.5" });
  assert.match(await shown(name, query), /budget is spent/);
}

/** Where enrolment is required, a personal link is good for one answer, and a link without a credential for none. */
async function answerEnrolled(browser, servers, card) {
  const { link } = await open(servers, { ...card, question: "Are you enrolled?" }, 60, servers.enrolling);
  const secret = readFileSync(servers.path("secrets.csv"), "utf8").split("\n")[1].split(",")[1];
  const ann = await newPerson(browser, servers);
  const page = await openLink(ann, `${link}&credential=${encodeURIComponent(secret)}`, 1);
  assert.ok(!page.url().includes("secret"), "the secret is removed from the address");
  await page.locator("#yes").click();
  assert.equal(await outcome(page), "sent");
  assert.deepEqual(ann.faults, []);
  await ann.context.close();
  // The same secret in another browser: the leader has taken one report for it.
  const again = await newPerson(browser, servers);
  const second = await openLink(again, `${link}&credential=${encodeURIComponent(secret)}`, 1);
  await second.locator("#no").click();
  assert.equal(await outcome(second), "lost");
  await again.context.close();
  const stranger = await newPerson(browser, servers);
  const third = await stranger.context.newPage();
  await third.goto(link);
  await visible(third, "unlisted");
  await third.locator("#settings > summary").click();
  await saveLimits(third, { cardLinked: "unlimited", cardOneAggregator: "unlimited" });
  await visible(third, "unlisted");
  await third.locator("#accept").click();
  await visible(third, "refused");
  assert.match(await third.locator("#reason").textContent(), /Only enrolled people/);
  await stranger.context.close();
  step("an enrolled person answered once, a stranger not at all");
}

/** Opens a question as an analyst asks it, with the printed link and the default limits. */
async function showPlanned(browser, servers) {
  const question = ["--question", "Did you sleep well last night?", "--people", "--page", `${servers.page.origin}/`];
  const size = ["--owners", "5000", "--yes", "2500", "--epsilon", "0.5", "--closes", "10m", "--json"];
  const access = ["--desk", servers.desk.address, "--token", servers.desk.token];
  const { stdout } = await run(binary, ["ask", ...access, ...question, ...size]);
  const { link } = JSON.parse(stdout);
  for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"]]) {
    const person = await newPerson(browser, servers, { viewport: { width, height: 900 }, colorScheme, reducedMotion: "reduce" });
    const page = await person.context.newPage();
    await page.goto(link);
    await visible(page, "unlisted");
    await page.locator("#accept").click();
    await visible(page, "question");
    // e^0.5/(1 + e^0.5) is 0.6225.
    assert.match(await page.locator("#learns").textContent(), /one of the two aggregators is honest.*at most 63\s%/);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing overflows");
    if (flag === "--screenshots" && (width === 1280) === (colorScheme === "light")) {
      mkdirSync(screenshots, { recursive: true });
      await page.screenshot({ path: `${screenshots}/person-${width}-${colorScheme}.png`, fullPage: true });
    }
    assert.deepEqual(person.faults, []);
    await person.context.close();
  }
  step("a planned question shows how much it reveals, in light and dark, at 1280 and 400 pixels");
}

assert.ok(binary && existsSync(binary), "the first argument is the path of uptack");
const servers = await startServers(binary, from("../dist/page").pathname);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
try {
  const card = exactCard(await plan(servers));
  const { query, link } = await open(servers, card, OPEN_FOR);
  step("the question is open");
  const inTerminals = answerInTerminals(servers, query);
  const truths = Array.from({ length: BROWSERS }, (_, index) => index % 2 === 0);
  await all(truths.entries(), ([index, yes]) => answer(browser, servers, link, index, yes));
  step(`${BROWSERS} browsers have answered`);
  const yes = (await inTerminals) + truths.filter(Boolean).length;
  await compareTraffic(browser, servers, card);
  await showPlanned(browser, servers);
  await answerEnrolled(browser, servers, card);
  await refuseFalsified(browser, servers);
  const args = ["result", query, "--desk", servers.desk.address, "--token", servers.desk.token, "--wait", "--json"];
  const { stdout } = await run(binary, args, { maxBuffer: 1 << 26 });
  const result = JSON.parse(stdout);
  assert.equal(result.reports, BROWSERS + OWNERS, "one report each");
  assert.equal(result.estimate, yes, "the sums are exact");
  step(`${result.reports} reports, ${yes} of them yes, counted exactly`);
} finally {
  await browser.close();
  servers.close();
}
