'use strict';
// Records what node:test does in this process: required before the test file, and named as the reporter of the run.
//
// What a test file gets as `node:test` are node's own functions behind a thin layer that says which tests there are,
// when the body of one begins, and that leaves out those that were not asked for. How a test ended is what node reports.
// Tests within a test (`t.test`) belong to that test: they exist only while it runs.

const { AsyncLocalStorage } = require('node:async_hooks');
const { Transform } = require('node:stream');
const { describe: factsOf } = require('./errors.cjs');
const { Ids, chooser } = require('./ids.cjs');
const { canaries, intercept } = require('./node_layer.cjs');

const channel = require('./channel.cjs').open();
const HOOKS = new Set(['before', 'after', 'beforeEach', 'afterEach']);
const TESTS = new Set(['test', 'it']);
const SUITES = new Set(['describe', 'suite']);

let handle = () => undefined;
let finish = () => undefined;
let reporters = 0;

// The reporter; it travels in this file because what it tells must not be reachable from a module of its own.
module.exports = class Reporter extends Transform {
  constructor() {
    super({ writableObjectMode: true });
    reporters += 1;
    if (channel && reporters > 1) channel.write('tampered', { what: 'a second reporter was made' });
  }

  _transform(event, _encoding, done) {
    handle(event);
    done();
  }

  _flush(done) {
    finish();
    done();
  }
};

if (channel) record(channel);

function record({ request, write }) {
  // taken now: the tested code may change what it finds later
  const native = require('node:test');
  const assert = require('node:assert');
  const place = new AsyncLocalStorage();
  const ids = new Ids(request.path);
  const chosen = chooser(request);
  const root = { names: [], children: [], isSuite: true };
  const Tracer = request.trace ? require('./trace.cjs').Tracer : null;
  const tracer = Tracer && new Tracer(request.root);
  let running = 0;
  let broken = false;

  function split(name, options, fn) {
    if (typeof name === 'function') return [undefined, {}, name];
    if (name !== null && typeof name === 'object') return [undefined, name, options];
    if (typeof options === 'function') return [name, {}, options];
    return [name, options ?? {}, fn];
  }

  function site(below) {
    const limit = Error.stackTraceLimit;
    Error.stackTraceLimit = 6;
    const here = {};
    Error.captureStackTrace(here, below);
    const { stack } = here;
    Error.stackTraceLimit = limit;
    return typeof stack === 'string' ? stack.slice(0, 4000) : '';
  }

  function add(words, node) {
    const [name, options, fn] = words;
    const own = typeof name === 'string' && name ? name : fn?.name || '<anonymous>';
    const parent = place.getStore()?.node ?? root;
    const made = { ...node, names: [...parent.names, own], options, children: [] };
    parent.children.push(made);
    return made;
  }

  function list(node, at, extra) {
    const { options } = node;
    const state = extra.skip || options.skip ? 'skip' : extra.todo || options.todo ? 'todo' : 'run';
    node.id = ids.of(node.names);
    node.chosen = chosen(node.id);
    write('item', { id: node.id, names: node.names, at, state });
  }

  function body(node, fn) {
    const run = function run(...given) {
      const leave = () => {
        if (node.left) return;
        node.left = true;
        running -= 1;
        if (tracer) write('reach', { id: node.id, ...tracer.end() });
        write('left', { id: node.id });
      };
      running += 1;
      node.started = true;
      write('start', { id: node.id });
      if (tracer) tracer.begin();
      if (fn.length > 1) {
        const [context, done] = given;
        const ended = (...how) => {
          leave();
          return done(...how);
        };
        return place.run({ leaf: node }, () => Reflect.apply(fn, this, [context, ended]));
      }
      let answer;
      try {
        answer = place.run({ leaf: node }, () => Reflect.apply(fn, this, given));
      } catch (error) {
        leave();
        throw error;
      }
      if (typeof answer?.then !== 'function') {
        leave();
        return answer;
      }
      return Promise.resolve(answer).finally(leave);
    };
    return Object.defineProperty(run, 'length', { value: fn.length });
  }

  function tests(original, extra) {
    const wrapped = function test(...given) {
      if (place.getStore()?.leaf) return Reflect.apply(original, this, given);
      const [name, options, fn] = split(...given);
      const node = add([name, options, fn], { isSuite: false });
      list(node, site(wrapped), extra);
      const own = node.names.at(-1);
      if (!node.chosen) return Reflect.apply(native.test, this, [own, { skip: true }, () => undefined]);
      const runs = typeof fn === 'function' ? [body(node, fn)] : [];
      return Reflect.apply(original, this, [own, options, ...runs]);
    };
    return wrapped;
  }

  function suites(original, extra) {
    const wrapped = function suite(...given) {
      if (place.getStore()?.leaf) return Reflect.apply(original, this, given);
      const [name, options, fn] = split(...given);
      const node = add([name, options, fn], { isSuite: true });
      const own = node.names.at(-1);
      if (extra.skip || options.skip || typeof fn !== 'function') {
        list(node, site(wrapped), extra); // node does not look inside, so it counts as one
        return Reflect.apply(original, this, [own, options, ...(fn ? [fn] : [])]);
      }
      const inside = function inside(...words) {
        return place.run({ node }, () => Reflect.apply(fn, this, words));
      };
      return Reflect.apply(original, this, [own, options, inside]);
    };
    return wrapped;
  }

  function hooks(original, isBefore) {
    if (request.ids !== null && request.ids.length === 0) return () => undefined;
    if (!tracer || !isBefore) return original;
    return function hook(fn, ...more) {
      if (typeof fn !== 'function') return Reflect.apply(original, this, [fn, ...more]);
      const watched = function watched(...given) {
        tracer.begin();
        const answer = Reflect.apply(fn, this, given);
        if (typeof answer?.then !== 'function') tracer.share();
        return typeof answer?.then === 'function' ? Promise.resolve(answer).finally(() => tracer.share()) : answer;
      };
      return Reflect.apply(original, this, [Object.defineProperty(watched, 'length', { value: fn.length }), ...more]);
    };
  }

  function layer(original, kind, extra) {
    const made = kind === 'suite' ? suites(original, extra) : tests(original, extra);
    for (const name of ['skip', 'todo', 'only']) {
      if (typeof original[name] === 'function' && original[name] !== original) {
        const more = name === 'only' ? extra : { ...extra, [name]: true };
        Object.defineProperty(made, name, {
          enumerable: true, configurable: true, writable: true,
          value: kind === 'suite' ? suites(original[name], more) : tests(original[name], more),
        });
      }
    }
    return made;
  }

  function kindOf(name) {
    if (HOOKS.has(name)) return 'hook';
    return TESTS.has(name) ? 'test' : SUITES.has(name) ? 'suite' : null;
  }

  function layers() {
    const test = layer(native.test, 'test', {});
    for (const name of Reflect.ownKeys(native)) {
      const found = Object.getOwnPropertyDescriptor(native, name);
      if (!found.configurable || Object.hasOwn(test, name) || name === 'prototype') continue;
      const kind = kindOf(name);
      if (name === 'test') found.value = test;
      else if (kind === 'hook') found.value = hooks(native[name], name.startsWith('before'));
      else if (kind) found.value = layer(native[name], kind, {});
      else if (found.get) found.get = found.get.bind(native);
      Object.defineProperty(test, name, found);
    }
    return test;
  }

  const api = layers();
  require('./node_api.cjs').set(api);
  intercept(native, api);

  // --- what node reports: in the order of definition, what is inside a suite before the suite itself ---

  const open = [];
  const cursors = new Map();

  function started(nesting) {
    const parent = nesting === 0 ? root : open[nesting - 1];
    open.length = nesting;
    if (!parent || parent.leaf || !parent.isSuite) {
      open.push({ leaf: parent?.leaf ?? parent });
      return;
    }
    const at = cursors.get(parent) ?? 0;
    cursors.set(parent, at + 1);
    open.push(parent.children[at]);
  }

  function ended(type, data) {
    const node = open[data.nesting];
    const error = data.details?.error;
    if (!node) return;
    if (node.leaf) {
      if (type === 'test:fail' && error && !node.leaf.inner) node.leaf.inner = error;
      return;
    }
    if (type === 'test:fail' && error?.failureType === 'hookFailed') node.cancelled?.forEach((one) => end(one, error));
    if (error?.failureType === 'cancelledByParent' && !node.started) {
      // it did not come to run, because of a hook further out, or another process may try
      const inside = node.id ? [node].filter((one) => one.chosen) : (node.cancelled ?? []);
      const parent = open[data.nesting - 1];
      if (parent) (parent.cancelled ??= []).push(...inside);
      return;
    }
    if (!node.id || !node.chosen) return;
    const failure = error?.failureType === 'subtestsFailed' ? (node.inner ?? error) : error;
    end(node, failure, data, type === 'test:pass');
  }

  function end(node, failure, data = {}, passed = false) {
    write('end', {
      id: node.id,
      passed,
      skipped: data.skip === undefined ? null : `${data.skip === true ? '' : data.skip}`,
      todo: data.todo === undefined ? null : `${data.todo === true ? '' : data.todo}`,
      phase: failure?.failureType !== 'hookFailed' ? 'call' : node.left ? 'teardown' : 'setup',
      timed_out: failure?.failureType === 'testTimeoutFailure' || failure?.failureType === 'cancelledByParent',
      errors: failure ? [factsOf(failure.cause ?? failure)] : [],
    });
  }

  handle = ({ type, data }) => {
    if (type === 'test:start') started(data.nesting);
    else if (type === 'test:pass' || type === 'test:fail') ended(type, data);
  };

  finish = () => {
    if (!broken) write('file', { path: request.path });
    write('done', { canaries: canaries(assert) });
  };

  Error.stackTraceLimit = Math.max(Error.stackTraceLimit, 50); // the loader's own frames take more than there is room for
  process.on('beforeExit', () => {
    if (root.children.length === 0 && !broken && reporters === 0) finish(); // a file without tests has no reporter
  });
  process.on('uncaughtExceptionMonitor', (error) => {
    if (running > 0) return; // it is reported as the failure of a test
    broken = true;
    write('uncollected', { path: request.path, errors: [factsOf(error)] });
  });
}
