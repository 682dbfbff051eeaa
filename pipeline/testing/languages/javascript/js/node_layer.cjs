'use strict';
// How a layer over node:test gets between node and who asks for it, and how to see whether assertions still mean anything.

const module_ = require('node:module');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

exports.canaries = canaries;
exports.intercept = intercept;

// Return how the project's assertions judge what surely fails, and what surely does not.
function canaries(assert) {
  const throws = (check) => {
    try {
      check();
      return false;
    } catch {
      return true;
    }
  };
  const fails = [
    () => assert.strictEqual(1, 2), () => assert.equal(1, 2), () => assert.ok(0), () => assert(0),
    () => assert.deepStrictEqual({ a: 1 }, { a: 2 }), () => assert.throws(() => undefined), () => assert.fail(),
  ];
  return { fail: fails.every(throws), pass: !throws(() => assert.strictEqual(1, 1)) };
}

// Give whoever asks for node:test the layer: `require`, `import`, and the way past both.
function intercept(native, api) {
  const load = module_._load;
  module_._load = function layered(name, ...more) {
    return name === 'node:test' ? api : Reflect.apply(load, this, [name, ...more]);
  };
  const builtin = process.getBuiltinModule;
  if (builtin) process.getBuiltinModule = (name) => (name === 'node:test' ? api : builtin(name));
  const names = Object.keys(api).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default');
  const url = pathToFileURL(path.join(__dirname, 'node_api.cjs')).href;
  const source = `import layer from '${url}';\nconst api = layer.get();\nexport default api;\n`
    + names.map((name) => `const _${name} = api.${name};\nexport { _${name} as ${name} };\n`).join('');
  if (module_.registerHooks) {
    module_.registerHooks({
      resolve: (name, context, next) => (name === 'node:test' && !context.conditions?.includes('require')
        ? { url: `${url}?layer`, format: 'module', shortCircuit: true }
        : next(name, context)),
      load: (target, context, next) => (target === `${url}?layer`
        ? { format: 'module', source, shortCircuit: true }
        : next(target, context)),
    });
  } else {
    module_.register(pathToFileURL(path.join(__dirname, 'node_loader.mjs')), { data: { url, source } });
  }
}
