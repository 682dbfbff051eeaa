'use strict';
// Which files cannot be parsed: compiled as node would, and not run. The names come on stdin, what is wrong leaves on stdout.

const { readFileSync } = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const { describe } = require('./errors.cjs');

const WRAPPED = ['exports', 'require', 'module', '__filename', '__dirname'];
const { root, files } = JSON.parse(readFileSync(0, 'utf8'));

function asScript(text, filename) {
  vm.compileFunction(text.replace(/^#!/, '//'), WRAPPED, { filename });
}

function asModule(text, identifier) {
  return new vm.SourceTextModule(text, { identifier });
}

// Return the first error if every way to read the file has one.
function fault(name, ways) {
  const place = path.join(root, name);
  const text = readFileSync(place, 'utf8');
  let first = null;
  for (const way of ways) {
    try {
      way(text, place);
      return null;
    } catch (error) {
      first ??= error;
    }
  }
  return first;
}

const wrong = [];
for (const { path: name, kind } of files) {
  const ways = { module: [asModule], commonjs: [asScript], either: [asScript, asModule] }[kind];
  const error = fault(name, ways);
  if (error) wrong.push({ path: name, error: describe(error) });
}
process.stdout.write(JSON.stringify(wrong));
