// Uploads one report for each cell named on the command line: `node upload.mjs client.json 0 2 1 …`
import { readFileSync } from "node:fs";
import { Task } from "@divviup/dap";

const [file, ...cells] = process.argv.slice(2);
const task = JSON.parse(readFileSync(file, "utf8"));
const { length, chunk_length: chunkLength } = task.vdaf.histogram;
const client = new Task({
  type: "histogram",
  length,
  chunkLength,
  id: task.task_id,
  leader: task.leader,
  helper: task.helper,
  timePrecisionSeconds: task.time_precision,
});
for (const cell of cells) {
  await client.sendMeasurement(Number(cell));
}
