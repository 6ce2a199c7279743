// SPDX-License-Identifier: Apache-2.0
// Checks all sources together: node check-sources.mjs [FOLDER]. Import cycles are errors, even of types only. A class,
// interface or type that two modules declare is an error too.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const folder = resolve(process.argv[2] ?? join(dirname(fileURLToPath(import.meta.url)), "src"));

function listModules(within) {
  return readdirSync(within, { withFileTypes: true }).flatMap((entry) => {
    const path = join(within, entry.name);
    if (entry.isDirectory()) return listModules(path);
    return path.endsWith(".ts") ? [path] : [];
  });
}

function importsOf(path) {
  const { importedFiles } = ts.preProcessFile(readFileSync(path, "utf8"));
  const own = importedFiles.filter(({ fileName }) => fileName.startsWith("."));
  return own.map(({ fileName }) => `${join(dirname(path), fileName)}.ts`);
}

/** Return the modules of the first cycle of imports; the last module is the first one again. */
function findCycle(modules) {
  const done = new Set();
  const walk = (path, trail) => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return undefined;
    for (const next of importsOf(path)) {
      const cycle = walk(next, [...trail, path]);
      if (cycle) return cycle;
    }
    done.add(path);
    return undefined;
  };
  for (const path of modules) {
    const cycle = walk(path, []);
    if (cycle) return cycle;
  }
  return undefined;
}

/** Return a message for each type name that several modules declare. */
function findRepeatedTypes(modules) {
  const declaredIn = new Map();
  for (const path of modules) {
    const source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2022);
    for (const statement of source.statements) {
      const isType =
        ts.isClassDeclaration(statement) ||
        ts.isInterfaceDeclaration(statement) ||
        ts.isTypeAliasDeclaration(statement);
      if (!isType || !statement.name) continue;
      const { text } = statement.name;
      declaredIn.set(text, [...(declaredIn.get(text) ?? []), relative(folder, path)]);
    }
  }
  const repeated = [...declaredIn].filter(([, paths]) => paths.length > 1);
  return repeated.map(([name, paths]) => `type ${name} is declared in ${paths.join(" and ")}`);
}

const modules = listModules(folder);
const cycle = findCycle(modules);
const findings = findRepeatedTypes(modules);
if (cycle) findings.push(`import cycle: ${cycle.map((path) => relative(folder, path)).join(" -> ")}`);
if (!modules.length) findings.push(`no modules in ${folder}`);
for (const finding of findings) console.error(finding);
process.exitCode = findings.length ? 1 : 0;
