'use strict';
// What the processes below a runner are told, and how they say at once which test is running, and in which
// process: one that dies or hangs tells its parent nothing more. Neither is a secret, and no result travels this way.
// Tests can write the file of the plan, but not the environment with which other processes start: it has the digest.

const { createHash } = require('node:crypto');
const { openSync, readFileSync, writeFileSync, writeSync } = require('node:fs');
const path = require('node:path');

const shared = path.join(__dirname, '..', '..', 'shared');
const PLAN = path.join(shared, 'plan.json');
const HINTS = path.join(shared, 'hints.jsonl');
const quote = JSON.stringify;

const DIGEST = 'REDFIRST_NODE_PLAN';
const digest = (text) => createHash('sha256').update(text).digest('hex');
let known = null; // in this process

exports.leavePlan = (plan) => {
  const text = quote(plan);
  writeFileSync(PLAN, text);
  process.env[DIGEST] = digest(text);
};

// Return what was left; an error if it is not that any more.
exports.readPlan = () => {
  if (!known) {
    const text = readFileSync(PLAN, 'utf8');
    if (digest(text) !== process.env[DIGEST]) throw new Error('the plan of this run was changed');
    delete process.env[DIGEST];
    known = JSON.parse(text);
  }
  return known;
};

// Return the function that leaves a hint: what happened, and to which test or file.
exports.openHints = function openHints() {
  const descriptor = openSync(HINTS, 'a');
  return (kind, id) => writeSync(descriptor, `{"kind":${quote(kind)},"id":${quote(id)},"pid":${process.pid}}\n`);
};
