// Builds the page and the package into dist/, and prints the page's digest; with --tests, the tests into .tests/.
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { build } from "esbuild";

const common = { bundle: true, format: "esm", target: "es2022", legalComments: "none", logLevel: "warning" };

if (process.argv.includes("--tests")) {
  rmSync(".tests", { recursive: true, force: true });
  const tests = readdirSync("test").map((name) => `test/${name}`);
  await build({ ...common, entryPoints: tests, outdir: ".tests", platform: "node", outExtension: { ".js": ".mjs" } });
} else {
  rmSync("dist", { recursive: true, force: true });
  mkdirSync("dist/page", { recursive: true });
  await build({ ...common, entryPoints: ["src/page/page.ts"], outfile: "dist/page/page.js", platform: "browser", minify: true });
  await build({ ...common, entryPoints: ["src/index.ts"], outfile: "dist/package/index.js", platform: "browser" });
  const types = ["--emitDeclarationOnly", "--declaration", "--rootDir", "src", "--outDir", "dist/package", "--noEmit", "false"];
  execFileSync("node_modules/.bin/tsc", ["-p", "tsconfig.package.json", ...types], { stdio: "inherit" });
  for (const name of ["style.css", "icon.svg"]) cpSync(`src/page/${name}`, `dist/page/${name}`);
  // The page names the digests of what it loads, so that its own digest stands for all of it.
  const integrity = (name) => `sha384-${createHash("sha384").update(readFileSync(`dist/page/${name}`)).digest("base64")}`;
  const page = readFileSync("src/page/index.html", "utf8")
    .replace("PAGE_INTEGRITY", integrity("page.js"))
    .replace("STYLE_INTEGRITY", integrity("style.css"));
  writeFileSync("dist/page/index.html", page);
  console.log(`SHA-256 of dist/page/index.html: ${createHash("sha256").update(page).digest("hex")}`);
}
