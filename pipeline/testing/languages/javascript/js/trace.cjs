'use strict';
// What a test touches: functions of the project that were entered, files that it read, and whether it started a process.
//
// Functions come from V8's own counters, by name; which one of several with a name it is, the sources tell.

const inspector = require('node:inspector');
const childProcess = require('node:child_process');
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const { relative } = require('./ids.cjs');

const LIMIT = 300;
const CODE = /\.(?:[cm]?[jt]sx?|node|wasm|map)$/;
const PROCESSES = ['spawn', 'spawnSync', 'exec', 'execSync', 'execFile', 'execFileSync', 'fork'];
const READERS = ['readFileSync', 'readFile', 'openSync', 'open', 'createReadStream'];

exports.Tracer = class {
  constructor(root) {
    this.root = root;
    this.doors = new Set();
    this.common = new Set(); // what hooks entered: they run once, for several tests
    this.session = new inspector.Session();
    this.session.connect();
    this.post('Profiler.enable');
    this.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    this.watch(childProcess, PROCESSES, () => 'process');
    const file = (name) => this.file(name);
    this.watch(fs, READERS, file);
    this.watch(fs.promises, ['readFile', 'open'], file);
    syncBuiltinESMExports();
  }

  begin() {
    this.take();
    this.doors.clear();
  }

  end() {
    const functions = [...new Set([...this.take(), ...this.common])].sort();
    return { functions: functions.slice(0, LIMIT), doors: [...this.doors].sort().slice(0, LIMIT) };
  }

  share() {
    for (const one of this.take()) this.common.add(one);
  }

  take() {
    const found = new Set();
    for (const script of this.post('Profiler.takePreciseCoverage').result) {
      const path = script.url && relative(this.root, script.url.replace(/\?.*$/, ''));
      if (!path || path.includes('node_modules/')) continue;
      const end = Math.max(...script.functions.map((one) => one.ranges[0].endOffset));
      for (const one of script.functions) {
        const [range] = one.ranges;
        const whole = range.startOffset === 0 && range.endOffset === end;
        if (range.count > 0 && !whole) found.add(`${path}::${one.functionName || '<anonymous>'}`);
      }
    }
    return [...found];
  }

  post(method, params) {
    let answer;
    let failure = null;
    this.session.post(method, params, (error, result) => {
      failure = error;
      answer = result;
    });
    if (failure) throw failure;
    return answer;
  }

  watch(owner, names, door) {
    for (const name of names) {
      const original = owner[name];
      const watched = (...args) => {
        const found = door(args[0]);
        if (found) this.doors.add(found);
        return Reflect.apply(original, owner, args);
      };
      owner[name] = Object.defineProperties(watched, Object.getOwnPropertyDescriptors(original));
    }
  }

  file(name) {
    if (typeof name !== 'string' && !(name instanceof URL)) return null;
    const path = relative(this.root, new URL(`${name}`, `file://${process.cwd()}/`).href);
    return path && !CODE.test(path) && !path.includes('node_modules/') ? path : null;
  }
};
