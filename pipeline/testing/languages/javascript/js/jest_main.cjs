'use strict';
// Runs jest with the project's own configuration, and is the reporter that records what came of each test file. The
// tests run in processes below this one, or, where there is but one file, in a context of their own in this one.

const fs = require('node:fs');
const path = require('node:path');
const { open } = require('./channel.cjs');
const { describe } = require('./errors.cjs');
const { chooser, relative } = require('./ids.cjs');
const { leavePlan } = require('./hints.cjs');

const channel = open(); // null where a test loads this file for itself
let waiting = 0; // test files of which nothing has come yet
const DIED = /^A jest worker process \(pid=\d+\) (?:was terminated|crashed)|^Call retries were exceeded|^jest: failed to/;

module.exports = class Reporter {
  constructor() {
    if (!channel) throw new Error('there is nobody to report to');
    this.chosen = chooser(channel.request);
  }

  onRunStart({ numTotalTestSuites }) {
    waiting += numTotalTestSuites;
  }

  onTestResult({ path: file }, result) {
    waiting -= 1;
    const { request, write } = channel;
    const name = relative(request.root, file) ?? file;
    if (request.bad_files.includes(name)) return;
    const { patterns = [] } = result.redfirst ?? {};
    if (patterns.length && !this.listed) write('layout', { patterns });
    this.listed ||= patterns.length > 0;
    for (const item of result.redfirst?.items ?? []) write('item', item);
    for (const { kind, ...facts } of result.redfirst?.ends ?? []) {
      if (this.chosen(facts.id) && (kind === 'end' || kind === 'reach')) write(kind, facts);
    }
    const error = result.testExecError;
    if (!error) write('file', { path: name });
    else if (!DIED.test(`${error.message}`)) write('uncollected', { path: name, errors: [describe(error)] });
  }
};

async function main() {
  const { request, write } = channel;
  const found = packages(request.home);
  leavePlan({
    ids: request.ids, files: request.files, done: request.done, bad_files: request.bad_files, trace: request.trace,
    root: request.root, circus: found.circus,
  });
  const given = await found.buildArgv(request.arguments);
  const projects = request.projects.length ? request.projects : given.projects;
  await found.jest.runCLI({
    ...given,
    bail: 0,
    cache: false, // its processes share these files, and a test could change what the tests after it are loaded from
    cacheDirectory: request.cache,
    ci: true,
    collectCoverage: false,
    coverage: false,
    maxWorkers: request.serial ? 1 : undefined,
    runInBand: request.serial,
    onlyChanged: false,
    passWithNoTests: true,
    projects,
    reporters: [__filename],
    testLocationInResults: true,
    testRunner: require.resolve('./jest_runner.cjs'),
    watch: false,
    watchAll: false,
    watchman: false,
  }, projects ?? [given.rootDir ?? process.cwd()]);
  if (waiting === 0) write('done', { canaries: { fail: true, pass: true } });
  process.exit();
}

// Return jest, its command line, and the runner that it comes with: each is found from the one that depends on it.
function packages(home) {
  const at = (name, from) => require.resolve(name, { paths: [from] });
  const jest = path.dirname(at('jest/package.json', home));
  const core = path.dirname(at('@jest/core', jest));
  const config = path.dirname(at('jest-config', core));
  const cli = path.dirname(at('jest-cli/package.json', jest));
  return {
    jest: require(at('jest', home)), buildArgv: buildArgv(cli, at('jest-cli', jest)), circus: at('jest-circus/runner', config),
  };
}

// Return what reads arguments as jest's command line does: exported since 30, in a file of its own in 29, and in 28.
function buildArgv(cli, entry) {
  const places = [entry, path.join(cli, 'build', 'run.js'), path.join(cli, 'build', 'cli', 'index.js')];
  for (const place of places.filter((one) => fs.existsSync(one))) {
    const found = require(place).buildArgv;
    if (found) return found;
  }
  throw new Error(`jest-cli in ${cli} has no buildArgv`);
}

if (channel && require.main === module) main();
