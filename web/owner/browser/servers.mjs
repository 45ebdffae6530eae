// The servers of the check: two desks, two aggregators and a server for the page, each in its own process or on its own port.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

const listen = (server) => new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));

/** Forwards bytes and counts those sent by browsers, not those of programs. */
async function meter(target) {
  const counted = { bytes: 0 };
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    let isBrowser;
    client.on("data", (data) => {
      isBrowser ??= data.includes("Mozilla/");
      if (isBrowser) counted.bytes += data.length;
    });
    client.pipe(upstream).pipe(client);
    for (const end of [client, upstream]) end.on("error", () => (client.destroy(), upstream.destroy()));
  });
  return { port: await listen(server), counted, close: () => server.close() };
}

/** Starts `uptack` and waits for the JSON that it prints when it is ready. */
function start(binary, args, processes) {
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
  processes.push(child);
  let [told, logged] = ["", ""];
  child.stderr.on("data", (data) => (logged += data));
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (data) => {
      told += data;
      try {
        resolve(JSON.parse(told));
      } catch {
        // The JSON is not complete yet.
      }
    });
    child.on("exit", (code) => reject(new Error(`uptack ${args[0]} ended with ${code}: ${logged.slice(-2000)}`)));
  });
}

/** A free port, bound briefly, so that the addresses on cards are known before their servers run. */
async function freePort() {
  const server = createServer();
  const port = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Serves the built page. */
async function servePage(folder) {
  const server = createHttpServer((request, response) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    const type = TYPES[name.split(".").pop()];
    if (!/^[a-z]+\.[a-z]+$/.test(name) || !type) return void response.writeHead(404).end();
    response.writeHead(200, { "content-type": type, "content-security-policy": "frame-ancestors 'none'" });
    response.end(readFileSync(join(folder, name)));
  });
  return { origin: `http://127.0.0.1:${await listen(server)}`, close: () => server.close() };
}

/** Starts all the servers that a question needs; `close` stops them. */
export async function startServers(binary, pageFolder) {
  const folder = mkdtempSync(join(tmpdir(), "uptack-person-"));
  const processes = [];
  const file = (name, text) => (writeFileSync(join(folder, name), text, { mode: 0o600 }), join(folder, name));
  const path = (name) => join(folder, name);
  const page = await servePage(pageFolder);
  const admin = file("admin", "token-of-both-operators-in-this-check");
  execFileSync(binary, ["pair-secret", path("pair.secret")]);
  const [leaderPort, helperPort] = [await freePort(), await freePort()];
  const [leaderMeter, helperMeter] = [await meter(leaderPort), await meter(helperPort)];
  const address = (port) => `http://127.0.0.1:${port}/`;
  const serve = (data, ...more) => {
    const aggregators = ["--leader", address(leaderMeter.port), "--helper", address(helperMeter.port)];
    const tokens = ["--leader-admin", admin, "--helper-admin", admin, "--allow-origin", page.origin];
    return start(binary, ["serve", "--json", "--data", path(data), ...aggregators, ...tokens, ...more], processes);
  };
  const [desk, enrolling] = await Promise.all([serve("desk"), serve("enrolling", "--enrolment")]);
  const people = file("people.csv", "owner\nann\nbob\n");
  execFileSync(binary, ["enrol", people, "--credentials", path("secrets.csv"), "--keys", path("enrolled.keys")]);
  const desks = [desk, enrolling].flatMap(({ signer }) => ["--desk-key", signer]);
  const common = [...desks, "--pair-secret", path("pair.secret"), "--admin-token", admin, "--allow-origin", page.origin];
  const aggregator = (role, port, ...more) => {
    const place = ["--role", role, "--data", path(role), "--listen", `127.0.0.1:${port}`];
    return start(binary, ["aggregator", "--json", ...place, ...common, ...more], processes);
  };
  await Promise.all([aggregator("helper", helperPort), aggregator("leader", leaderPort, "--credentials", path("enrolled.keys"))]);
  const deskMeter = await meter(new URL(desk.address).port);
  const close = () => {
    for (const child of processes) child.removeAllListeners("exit").kill();
    for (const one of [page, leaderMeter, helperMeter, deskMeter]) one.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const hosts = new Set([page.origin, ...[desk, enrolling].map(({ address }) => new URL(address).origin), ...[deskMeter, leaderMeter, helperMeter].map(({ port }) => new URL(address(port)).origin)]);
  return { file, path, page, desk, enrolling, meters: [deskMeter, leaderMeter, helperMeter], deskUrl: address(deskMeter.port), hosts, close };
}
