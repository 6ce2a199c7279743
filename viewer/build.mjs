// SPDX-License-Identifier: Apache-2.0
// Bundles the page's program into the Python package: node build.mjs [FILE]
import { build } from "esbuild";

const committed = "../converter/ibprof_converter/viewer/app.js";

await build({
  absWorkingDir: import.meta.dirname ?? new URL(".", import.meta.url).pathname,
  entryPoints: ["src/main.ts"],
  outfile: process.argv[2] ?? committed,
  bundle: true,
  format: "iife",
  target: "es2022",
  minifyWhitespace: true,
  minifySyntax: true,
  charset: "ascii",
  banner: {
    js: "// SPDX-License-Identifier: Apache-2.0\n// Built from the folder `viewer` of the sources by `make viewer`.",
  },
});
