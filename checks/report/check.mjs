// Opens the report of `uptack evaluate --out DIR` in headless Chromium.
//
// Usage: node check.mjs DIR/index.html [path of chromium]
//
// At 1280 and at 400 pixels the page must make no network request and log no error, begin with its findings, hold every
// plot with its text, scroll sideways neither as a whole nor in a table, show every ε of every row within the window, and
// have no text in a plot smaller than 8 pixels. No two methods of a plot may share a colour.

import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const COMPARISONS = ["choice", "choice-linked", "trust", "release", "answer", "linked", "paper"];
const PLOTS = [...COMPARISONS.map((name) => `error-${name}`), "error-epsilon", "coverage", "histogram", "scatter", "map"];
const FINDINGS = ["#findings", "#choice-table tbody tr", "#day-series tbody tr", "#trust-table tbody tr", "#growth-table tbody tr", "#at-release-table tbody tr", "#intervals"];
const EPSILONS = ["ε answer", "ε linked", "ε release", "ε one aggregator"];
const SMALLEST_TEXT = 8;
const [page_path, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);

const faults = [];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const width of [1280, 400]) {
  const fault = (text) => faults.push(`${width}: ${text}`);
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  page.on("console", (message) => message.type() === "error" && fault(`console: ${message.text()}`));
  page.on("pageerror", (error) => fault(error));
  page.on("request", (request) => {
    const local = request.url().startsWith("file:") || request.url().startsWith("data:");
    if (!local) fault(`asks the network for ${request.url()}`);
  });
  await page.goto(pathToFileURL(page_path).href);
  // What is folded must fit as well.
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  const found = await page.evaluate(look, { findings: FINDINGS, comparisons: COMPARISONS, epsilons: EPSILONS });
  for (const selector of found.missing) fault(`nothing at ${selector}`);
  for (const text of found.hidden) fault(text);
  if (found.first !== "choice") fault(`the first finding is ${found.first}`);
  if (found.overflow > 0) fault(`the page is ${found.overflow} pixels too wide`);
  if (found.cells === 0) fault("the tables are empty");
  for (const name of PLOTS) {
    const plot = found.plots.find((other) => other.name === name);
    if (!plot || plot.texts < 5 || plot.width < 300) fault(`plot ${name} is missing or has no text`);
    else if (plot.smallest < SMALLEST_TEXT) fault(`text of ${name} is ${plot.smallest} pixels`);
    if (plot?.shared.length > 0) fault(`methods of ${name} share ${plot.shared}`);
  }
  console.log(`${width} pixels: ${found.plots.length} plots, ${found.cells} ε in sight, smallest text ` +
    `${Math.min(...found.plots.map((plot) => plot.smallest)).toFixed(1)} pixels`);
}
await browser.close();
if (faults.length > 0) {
  console.error(faults.slice(0, 40).join("\n"));
  process.exit(1);
}

/// Runs in the page.
function look({ findings, comparisons, epsilons }) {
  const wide = document.documentElement.clientWidth;
  const inSight = (element) => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.left >= 0 && box.right <= wide + 0.5 && element.scrollWidth <= element.clientWidth + 1;
  };
  const hidden = [];
  let cells = 0;
  for (const table of document.querySelectorAll("table")) {
    if (!inSight(table)) hidden.push(`table ${table.id} does not fit`);
  }
  for (const name of comparisons) {
    const rows = [...document.querySelectorAll(`#rows-${name} tbody tr`)];
    if (rows.length === 0) hidden.push(`there are no rows of ${name}`);
    for (const row of rows) {
      for (const epsilon of epsilons) {
        const cell = row.querySelector(`td[data-column="${epsilon}"]`);
        if (cell?.textContent && inSight(cell)) cells += 1;
        else hidden.push(`${epsilon} of ${row.firstChild.textContent} in ${name} is out of sight`);
      }
    }
  }
  // In a chart's legend a sample of each method's line stands before its name.
  const shared = (svg) => {
    const lines = [...svg.querySelectorAll("polyline")].map((line) => [line.getAttribute("stroke"), line]);
    const samples = lines.filter(([, line]) => line.points.length === 2 && line.points[0].y === line.points[1].y &&
      line.points[1].x - line.points[0].x === 40);
    const colours = samples.map(([colour]) => colour);
    return colours.filter((colour, index) => colours.indexOf(colour) !== index);
  };
  const plots = [...document.querySelectorAll("figure")].map((figure) => {
    const svg = figure.querySelector("svg");
    const texts = [...figure.querySelectorAll("svg text")];
    const box = svg.getBoundingClientRect();
    const scale = box.width / svg.viewBox.baseVal.width;
    const smallest = Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
    return { name: figure.id, texts: texts.length, width: box.width, smallest, shared: shared(svg) };
  });
  return {
    missing: findings.filter((selector) => !document.querySelector(selector)?.textContent.trim()),
    overflow: document.documentElement.scrollWidth - wide,
    first: document.querySelector("#findings ~ section")?.id,
    hidden,
    cells,
    plots,
  };
}
