// Runs vitest with the project's own configuration, and records what its reporters are told. The tests run in processes
// or threads below this one; what they say of themselves comes by vitest's own protocol.

import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(import.meta.url);
const { open } = require('./channel.cjs');
const { describe } = require('./errors.cjs');
const { Ids, chooser, relative } = require('./ids.cjs');
const { leavePlan } = require('./hints.cjs');

const { request, write } = open();
const chosen = chooser(request);
const runner = new URL('vitest_runner.mjs', import.meta.url).pathname;
const EXITED = /process\.exit unexpectedly called with/;
const LATE = /^(?:Test|Hook) timed out in \d+ms/;
const FINAL = new Set(['passed', 'failed', 'skipped']);

const planned = new Set(); // the files that are to be loaded, by project
const known = new Map(); // by vitest's id of a test: ours
const told = new Set();

function pathOf(module) {
  return relative(request.root, module.moduleId) ?? module.moduleId;
}

function namesOf(test) {
  const names = [];
  for (let task = test; task.type !== 'module'; task = task.parent) names.unshift(task.name);
  return names;
}

function list(module) {
  const file = pathOf(module);
  const ids = new Ids(file);
  for (const test of module.children.allTests()) {
    if (known.has(test.id)) continue;
    const names = namesOf(test);
    const id = ids.of(names);
    known.set(test.id, id);
    const { mode } = test.options;
    const state = mode === 'skip' || mode === 'todo' ? mode : 'run';
    write('item', { id, names, state, place: { path: file, line: test.location?.line, column: test.location?.column } });
  }
  write('file', { path: file });
}

function factsOf(error) {
  const facts = describe(error);
  facts.frames = (error?.stacks ?? []).slice(0, 60).map(({ file, line, column, method }) => ({ file, line, column, method }));
  return facts;
}

// Return the error of a suite around a test that was not run because of it.
function errorsAround(test) {
  for (let task = test.parent; task; task = task.parent) {
    const errors = typeof task.errors === 'function' ? task.errors() : [];
    if (errors.length) return errors;
    if (task.type === 'module') break;
  }
  return [];
}

function tell(test) {
  const id = known.get(test.id);
  const result = test.result();
  if (!id || told.has(test.id) || !chosen(id) || !FINAL.has(result?.state)) return;
  const { mode, fails } = test.options;
  let errors = result.errors ?? [];
  let phase = 'call';
  if (result.state === 'skipped' && mode !== 'skip' && mode !== 'todo') {
    const around = errorsAround(test);
    if (around.length) [errors, phase] = [around, 'setup'];
  }
  told.add(test.id);
  const reach = test.meta().redfirst;
  if (reach) write('reach', { id, ...reach });
  const message = `${errors[0]?.message ?? ''}`;
  if (EXITED.test(message)) {
    write('crashed', { id, how: 'process.exit' });
    return;
  }
  const skipped = result.state === 'skipped' && errors.length === 0;
  write('end', {
    id, phase,
    passed: result.state === 'passed',
    skipped: skipped && mode !== 'todo' ? `${result.note ?? ''}` : null,
    todo: mode === 'todo' ? '' : null,
    inverted: Boolean(fails),
    timed_out: LATE.test(message),
    errors: errors.map(factsOf),
  });
}

function close(module) {
  list(module);
  const tests = [...module.children.allTests()];
  tests.forEach(tell);
  const broken = [module, ...module.children.allSuites()].flatMap((one) => one.errors());
  const explained = tests.some((test) => test.result()?.state === 'skipped' && errorsAround(test).length);
  if (broken.length && !explained) write('uncollected', { path: pathOf(module), errors: broken.map(factsOf) });
}

function strays(errors) {
  for (const error of errors) {
    const file = error?.VITEST_TEST_PATH && relative(request.root, `${error.VITEST_TEST_PATH}`);
    if (file) write('uncollected', { path: file, errors: [factsOf(error)] });
  }
}

const reporter = {
  onInit(vitest) {
    const { include } = vitest.config;
    write('layout', { patterns: vitest.projects.flatMap((project) => project.config.include ?? include) });
  },
  onTestRunStart(specifications) {
    for (const one of specifications) planned.add(`${one.project.name} ${one.moduleId}`);
  },
  onTestModuleCollected: list,
  onTestCaseResult: tell,
  onTestModuleEnd: close,
  onTestRunEnd(modules, errors) {
    for (const module of modules) {
      if (module.state() === 'queued' || module.state() === 'pending') continue;
      planned.delete(`${module.project.name} ${module.moduleId}`);
      close(module);
    }
    strays(errors);
  },
};

// What vitest has compiled it hands to its processes in files that each of them can write: a test could change what the
// tests after it are loaded from. So it is handed over with the answer, as vitest does it for threads.
function handOver(project) {
  const { _transformService: service, _fetcher: fetcher, vitenode } = project;
  if (service) {
    const { fetch } = service;
    service.fetch = (url, importer, environment, files, ...rest) => fetch.call(service, url, importer, environment, false, ...rest);
  } else if (fetcher) {
    project._fetcher = (url, importer, environment, files, ...rest) => fetcher(url, importer, environment, false, ...rest);
  } else {
    const { fetchModule, fetchResult } = vitenode;
    vitenode.fetchModule = async (...asked) => ({ ...await fetchModule.apply(vitenode, asked) });
    vitenode.fetchResult = async (...asked) => {
      const result = await fetchResult.apply(vitenode, asked);
      if (result.externalize) return result;
      // vitest 3 makes a file of what has no such key; it is lost on the way to the other process
      return Object.defineProperty({ ...result }, 'externalize', { value: 'nowhere', enumerable: false });
    };
  }
}

// The same of files that a project has vitest keep from run to run; the name has moved.
const UNSHARED = { fsModuleCache: false, experimental: { fsModuleCache: false } };

function configure(project) {
  Object.assign(project.config, { runner, retry: 0, includeTaskLocation: true });
  handOver(project);
}

const at = createRequire(`${request.home}/`);
const node = at.resolve('vitest/node');
const { parseCLI, startVitest } = await import(pathToFileURL(node).href);
// Return where vitest's own runner is, which ours extends.
function base() {
  try {
    return { url: pathToFileURL(at.resolve('vitest/runners')).href, name: 'VitestTestRunner' };
  } catch {
    return { url: pathToFileURL(path.join(path.dirname(node), 'index.js')).href, name: 'TestRunner' };
  }
}

leavePlan({
  ids: request.ids, files: request.files, done: request.done, trace: request.trace, root: request.root, base: base(),
});
const given = parseCLI(['vitest', 'run', ...request.arguments], { allowUnknownOptions: true });
const vitest = await startVitest('test', given.filter, {
  ...given.options,
  watch: false,
  run: true,
  reporters: [reporter],
  runner,
  coverage: { enabled: false },
  typecheck: { enabled: false },
  ui: false,
  open: false,
  bail: 0,
  retry: 0,
  cache: false,
  passWithNoTests: true,
  includeTaskLocation: true,
  cliExclude: request.bad_files,
  sequence: { shuffle: false },
  ...(request.projects.length ? { projects: request.projects } : {}),
  ...(request.serial ? { fileParallelism: false, maxWorkers: 1, minWorkers: 1, sequence: { shuffle: false, concurrent: false } } : {}),
}, {
  cacheDir: request.cache,
  plugins: [{ name: 'redfirst', config: () => ({ test: UNSHARED }), configureVitest: ({ project }) => configure(project) }],
});
await vitest?.close();
// a file that nobody has heard of is no end
if (planned.size === 0) write('done', { canaries: { fail: true, pass: true } });
process.exit();
