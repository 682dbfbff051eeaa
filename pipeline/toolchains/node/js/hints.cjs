'use strict';
// What the processes below a runner are told, and how they say at once which test is running, and in which
// process: one that dies or hangs tells its parent nothing more. Neither is a secret, and no result travels this way.

const { openSync, readFileSync, writeFileSync, writeSync } = require('node:fs');
const path = require('node:path');

const shared = path.join(__dirname, '..', '..', 'shared');
const PLAN = path.join(shared, 'plan.json');
const HINTS = path.join(shared, 'hints.jsonl');
const quote = JSON.stringify;

exports.leavePlan = (plan) => writeFileSync(PLAN, quote(plan));
exports.readPlan = () => JSON.parse(readFileSync(PLAN, 'utf8'));

// Return the function that leaves a hint: what happened, and to which test or file.
exports.openHints = function openHints() {
  const descriptor = openSync(HINTS, 'a');
  return (kind, id) => writeSync(descriptor, `{"kind":${quote(kind)},"id":${quote(id)},"pid":${process.pid}}\n`);
};
