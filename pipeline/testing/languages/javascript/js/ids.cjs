'use strict';
// How a test is called: its file and its names, and a number where the same names come again.

exports.Ids = class {
  constructor(path) {
    this.path = path;
    this.taken = new Set();
  }

  of(names) {
    const plain = `${this.path}::${names.join(' > ').replace(/\s*[\r\n]+\s*/g, ' ')}`;
    let id = plain;
    for (let count = 2; this.taken.has(id); count += 1) id = `${plain} #${count}`;
    this.taken.add(id);
    return id;
  }
};

// Return the path of a file below the root with `/`, null for any other.
exports.relative = function relative(root, file) {
  const clean = file.startsWith('file://') ? decodeURIComponent(file.slice(7)) : file;
  return clean.startsWith(`${root}/`) ? clean.slice(root.length + 1) : null;
};

// Return whether a test is to run, by the request: `ids` and `files` null for all, `done` what an earlier process settled.
exports.chooser = function chooser(request) {
  const ids = request.ids === null ? null : new Set(request.ids);
  const files = request.files === null ? null : new Set(request.files);
  const done = new Set(request.done);
  return (id) => (ids === null || ids.has(id)) && (files === null || files.has(id.split('::', 1)[0])) && !done.has(id);
};
