// SPDX-License-Identifier: Apache-2.0
// Bundles the unit tests with esbuild, and runs the tests with the test runner of Node: node test.mjs [NAME...]
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const folder = join(dirname(fileURLToPath(import.meta.url)), "tests");
const names = process.argv.slice(2);
const isWanted = (file) => file.endsWith(".test.ts") && (!names.length || names.includes(file.replace(".test.ts", "")));
const sources = readdirSync(folder).filter(isWanted);
const built = mkdtempSync(join(tmpdir(), "ibprof-viewer-tests-"));
const counts = { passed: 0, failed: 0 };

try {
  await build({
    entryPoints: sources.map((file) => join(folder, file)),
    outdir: built,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node18",
    sourcemap: "inline",
    define: { TEST_DATA: JSON.stringify(join(folder, "data")) },
  });
  const files = readdirSync(built).map((file) => join(built, file));
  await new Promise((finished, broken) => {
    const events = run({ files, concurrency: 1 });
    events.on("test:pass", ({ details }) => {
      if (details.type !== "suite") counts.passed++;
    });
    events.on("test:fail", ({ name, file, details }) => {
      counts.failed++;
      const { error } = details;
      console.error(`FAILED ${file ?? ""} ${name}\n${error.cause?.stack ?? error.cause ?? error.stack ?? error}\n`);
    });
    events.on("end", finished);
    events.on("error", broken);
    events.resume();
  });
} finally {
  rmSync(built, { recursive: true, force: true });
}
const isGood = counts.passed > 0 && !counts.failed;
console.log(`viewer: ${counts.passed} tests passed, ${counts.failed} failed`);
process.exitCode = isGood ? 0 : 1;
