'use strict';
// Facts about something that was thrown: what it is called, what it says, where it came from, and what is behind it.

const MESSAGE = 2000;
const STACK = 8000;
const DEPTH = 4;

function text(value, limit) {
  try {
    const found = typeof value === 'string' ? value : String(value);
    return found.length > limit ? found.slice(0, limit) : found;
  } catch {
    return '<cannot be printed>';
  }
}

function get(error, name) {
  try {
    return error[name];
  } catch {
    return undefined;
  }
}

function classes(error) {
  const found = [];
  let proto = error;
  while (found.length < 8) {
    try {
      proto = Object.getPrototypeOf(proto);
    } catch {
      break;
    }
    if (proto === null || proto === undefined) break;
    const name = get(get(proto, 'constructor'), 'name');
    if (typeof name === 'string' && name && name !== 'Object') found.push(text(name, 200));
  }
  return found;
}

// Return what is known of a thrown value, plain data; `actual` is the error that an expectation about errors looked at.
exports.describe = function describe(error, depth = 0) {
  if (error === null || (typeof error !== 'object' && typeof error !== 'function')) {
    return { kind: typeof error, bases: [], message: text(error, MESSAGE), stack: '' };
  }
  const name = get(error, 'name');
  const ancestors = classes(error);
  const named = typeof name === 'string' && name && name !== 'Error';
  const facts = {
    kind: named ? text(name, 200) : (ancestors[0] ?? 'Error'),
    bases: ancestors,
    message: text(get(error, 'message') ?? error, MESSAGE),
    stack: text(get(error, 'stack') ?? '', STACK),
    code: text(get(error, 'code') ?? '', 100),
    operator: text(get(error, 'operator') ?? '', 100),
    compared: has(error, 'matcherResult') || (has(error, 'actual') && has(error, 'expected')),
  };
  if (depth < DEPTH) {
    const cause = get(error, 'cause');
    const actual = facts.compared ? get(error, 'actual') : undefined;
    if (cause !== null && typeof cause === 'object') facts.cause = describe(cause, depth + 1);
    else if (isError(actual)) facts.cause = describe(actual, depth + 1);
  }
  return facts;
};

function has(error, name) {
  try {
    return name in error;
  } catch {
    return false;
  }
}

function isError(value) {
  return value !== null && typeof value === 'object' && typeof get(value, 'stack') === 'string';
}
