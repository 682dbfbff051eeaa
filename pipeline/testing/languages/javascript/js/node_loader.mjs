// For versions of Node that ask their loader hooks in another thread: `node:test` is the layer over it.

let given;

export function initialize(data) {
  given = data;
}

export function resolve(name, context, next) {
  if (name === 'node:test') return { url: `${given.url}?layer`, format: 'module', shortCircuit: true };
  return next(name, context);
}

export function load(url, context, next) {
  if (url === `${given.url}?layer`) return { format: 'module', source: given.source, shortCircuit: true };
  return next(url, context);
}
