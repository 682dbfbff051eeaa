// Vitest's own test runner, in the process that runs the tests: it leaves out what was not asked for, says which test is
// running, and notes what it touches.

import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const { Ids, chooser, relative } = require('./ids.cjs');
const { openHints, readPlan } = require('./hints.cjs');

const plan = readPlan();
const chosen = chooser(plan);
const hint = openHints();
const Tracer = plan.trace ? require('./trace.cjs').Tracer : null;
const tracer = Tracer && new Tracer(plan.root);
const { [plan.base.name]: Base } = await import(plan.base.url);

const ours = new WeakMap();

// Leave out the tests that were not asked for, and the suites in which nothing is left; return whether something is.
function select(tasks, ids, names) {
  let some = false;
  for (const task of tasks) {
    const own = [...names, task.name];
    if (task.type === 'suite') {
      if (!select(task.tasks, ids, own) && task.mode !== 'todo') task.mode = 'skip';
    } else {
      const id = ids.of(own);
      ours.set(task, id);
      if (!chosen(id) && task.mode !== 'todo') task.mode = 'skip';
    }
    some ||= task.mode === 'run' || task.mode === 'queued';
  }
  return some;
}

export default class Runner extends Base {
  onCollectStart(file) {
    hint('loading', relative(plan.root, file.filepath) ?? file.filepath);
    return super.onCollectStart?.(file);
  }

  onCollected(files) {
    for (const file of files) {
      const path = relative(plan.root, file.filepath) ?? file.filepath;
      hint('loaded', path);
      if (!select(file.tasks, new Ids(path), [])) file.mode = 'skip';
    }
    return super.onCollected?.(files);
  }

  onBeforeRunSuite(suite) {
    tracer?.begin();
    return super.onBeforeRunSuite?.(suite);
  }

  onBeforeRunTask(test) {
    const id = ours.get(test);
    if (id && chosen(id) && test.mode !== 'skip' && test.mode !== 'todo') {
      tracer?.share();
      hint('start', id);
      tracer?.begin();
    }
    return super.onBeforeRunTask?.(test);
  }

  async onAfterRunTask(test) {
    const id = ours.get(test);
    if (id && chosen(id)) {
      if (tracer) test.meta.redfirst = tracer.end();
      hint('left', id);
      tracer?.begin();
    }
    return super.onAfterRunTask?.(test);
  }
}
