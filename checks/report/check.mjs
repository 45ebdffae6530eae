// Opens the report of `uptack evaluate --out DIR` in headless Chromium.
//
// Usage: node check.mjs DIR/index.html [path of chromium]
//
// The page must make no network request and log no error, begin with its findings, hold every plot with its text, fit the
// width of the window (tables may scroll by themselves), and show no text in a plot smaller than 8 pixels at 1280 and at
// 400 pixels.

import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const PLOTS = ["error-paper", "error-release", "error-answer", "error-linked", "error-epsilon", "coverage", "map"];
const FINDINGS = ["#findings", "#growth tbody tr", "#at-release tbody tr", "#intervals"];
const SMALLEST_TEXT = 8;
const [page_path, executablePath = "/usr/bin/chromium"] = process.argv.slice(2);

const faults = [];
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
for (const width of [1280, 400]) {
  const page = await browser.newPage({ viewport: { width, height: 900 } });
  page.on("console", (message) => message.type() === "error" && faults.push(`${width}: console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`${width}: ${error}`));
  page.on("request", (request) => {
    const local = request.url().startsWith("file:") || request.url().startsWith("data:");
    if (!local) faults.push(`${width}: asks the network for ${request.url()}`);
  });
  await page.goto(pathToFileURL(page_path).href);
  const found = await page.evaluate((findings) => ({
    missing: findings.filter((selector) => !document.querySelector(selector)?.textContent.trim()),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    rows: document.querySelectorAll("tbody tr").length,
    plots: [...document.querySelectorAll("figure")].map((figure) => {
      const texts = [...figure.querySelectorAll("svg text")];
      const box = figure.querySelector("svg").getBoundingClientRect();
      const scale = box.width / figure.querySelector("svg").viewBox.baseVal.width;
      const smallest = Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * scale));
      return { name: figure.id, texts: texts.length, width: box.width, smallest };
    }),
  }), FINDINGS);
  for (const selector of found.missing) faults.push(`${width}: nothing at ${selector}`);
  if (found.overflow > 0) faults.push(`${width}: the page is ${found.overflow} pixels too wide`);
  if (found.rows === 0) faults.push(`${width}: the tables are empty`);
  for (const name of PLOTS) {
    const plot = found.plots.find((other) => other.name === name);
    if (!plot || plot.texts < 5 || plot.width < 300) faults.push(`${width}: plot ${name} is missing or has no text`);
    else if (plot.smallest < SMALLEST_TEXT) faults.push(`${width}: text of ${name} is ${plot.smallest} pixels`);
  }
  console.log(`${width} pixels: ${found.plots.length} plots, ${found.rows} rows, smallest text ` +
    `${Math.min(...found.plots.map((plot) => plot.smallest)).toFixed(1)} pixels`);
}
await browser.close();
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
