'use strict';
// Jest's own test runner (jest-circus), in the process that runs the tests: it leaves out what was not asked for, says
// which test is running, and takes down how each one ends.

const { describe } = require('./errors.cjs');
const { Ids, chooser, relative } = require('./ids.cjs');
const { openHints, readPlan } = require('./hints.cjs');

const LATE = /Exceeded timeout of [\d.]+ m?s for a (?:test|hook)/;
let tracer = null;

module.exports = async function run(globalConfig, config, environment, runtime, testPath, ...more) {
  const plan = readPlan();
  const path = relative(plan.root, testPath) ?? testPath;
  if (plan.bad_files.includes(path)) throw new Error('left out: it cannot be loaded');
  const hint = openHints();
  if (plan.trace) tracer ??= new (require('./trace.cjs').Tracer)(plan.root);
  const watch = new Watch(plan, path, hint);
  const own = environment.handleTestEvent?.bind(environment);
  environment.handleTestEvent = (event, state) => {
    watch.see(event, state);
    return own?.(event, state);
  };
  hint('loading', path);
  const circus = require(plan.circus);
  const result = await (circus.default ?? circus)(globalConfig, config, environment, runtime, testPath, ...more);
  hint('loaded', path);
  const patterns = config.testRegex.length ? [] : config.testMatch.map((one) => one.replace(`${config.rootDir}/`, ''));
  return Object.assign(result, { redfirst: { items: watch.items, ends: watch.ends, patterns } });
};

class Watch {
  constructor(plan, path, hint) {
    this.chosen = chooser(plan);
    this.ids = new Ids(path);
    this.path = path;
    this.hint = hint;
    this.items = [];
    this.ends = [];
    this.ours = new Map();
    this.thrown = new Map(); // by test or describe block
  }

  see(event, state) {
    switch (event.name) {
      case 'run_start':
        this.hint('loaded', this.path);
        this.list(state.rootDescribeBlock, [], state.hasFocusedTests);
        break;
      case 'hook_start':
        tracer?.begin();
        break;
      case 'hook_success':
        if (event.hook.type.startsWith('before')) tracer?.share();
        break;
      case 'hook_failure':
        this.keep(event.test ?? event.describeBlock, event.error, event.hook.type);
        break;
      case 'test_fn_start':
        tracer?.begin();
        break;
      case 'test_start':
        if (this.ours.has(event.test) && !event.test.mode) this.hint('start', this.ours.get(event.test));
        break;
      case 'test_fn_failure':
        this.keep(event.test, event.error, 'call');
        this.reached(event.test);
        break;
      case 'test_fn_success':
        this.reached(event.test);
        break;
      case 'test_skip':
      case 'test_todo':
      case 'test_done':
        this.end(event.test, event.name);
        break;
      default:
    }
  }

  list(block, names, focused) {
    for (const child of block.children) {
      const own = [...names, child.name];
      if (child.type === 'describeBlock') {
        this.list(child, own, focused);
      } else {
        const id = this.ids.of(own);
        const left = child.mode === 'skip' || (focused && child.mode !== 'only') || skippedAround(child);
        const state = child.mode === 'todo' ? 'todo' : left ? 'skip' : 'run';
        this.items.push({ id, names: own, state, at: `${child.asyncError?.stack ?? ''}`.slice(0, 4000) });
        if (this.chosen(id)) this.ours.set(child, id);
        else if (child.mode !== 'todo') child.mode = 'skip';
      }
    }
  }

  keep(owner, error, phase) {
    if (!this.thrown.has(owner)) this.thrown.set(owner, { error, phase });
  }

  reached(test) {
    const id = this.ours.get(test);
    if (tracer && id) this.ends.push({ kind: 'reach', id, ...tracer.end() });
  }

  // What a test has thrown itself, or what a hook around it has: then it was not run.
  cause(test) {
    for (let owner = test; owner; owner = owner.parent) {
      const found = this.thrown.get(owner);
      if (found) return found;
    }
    const [first] = test.errors;
    return { error: Array.isArray(first) ? (first[0] ?? first[1]) : first, phase: 'call' };
  }

  end(test, name) {
    const id = this.ours.get(test);
    if (!id) return;
    this.hint('left', id);
    const passed = name === 'test_done' && test.errors.length === 0;
    const failed = name === 'test_done' && !passed;
    const { error, phase } = failed ? this.cause(test) : { error: undefined, phase: 'call' };
    const facts = failed ? describe(error) : null;
    this.ends.push({
      kind: 'end', id, passed,
      skipped: name === 'test_skip' ? '' : null,
      todo: name === 'test_todo' ? '' : null,
      inverted: Boolean(test.failing),
      phase: phase.startsWith('before') ? 'setup' : phase.startsWith('after') ? 'teardown' : 'call',
      timed_out: failed && LATE.test(`${facts.message}\n${facts.stack}`),
      errors: failed ? [facts] : [],
    });
  }
}

function skippedAround(test) {
  for (let block = test.parent; block; block = block.parent) if (block.mode === 'skip') return true;
  return false;
}
