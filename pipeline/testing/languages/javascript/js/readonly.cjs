'use strict';
// The installed packages are shown read-only. Tools that want a folder of their own among them go elsewhere if they may
// not make it; but they know the answer of a closed folder only (EACCES), and not that of a read-only mount (EROFS).

const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const { dirname } = require('node:path');

const AMONG = /[\\/]node_modules[\\/]/;
const { accessSync, constants } = fs;

function closed(path) {
  const error = new Error(`EACCES: permission denied, mkdir '${path}'`);
  return Object.assign(error, { code: 'EACCES', errno: -13, syscall: 'mkdir', path: `${path}` });
}

function isWritable(path) {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (error) {
    const parent = dirname(path);
    return error.code === 'ENOENT' && parent !== path && isWritable(parent);
  }
}

// Throw if a folder that was made, or was there, cannot be written into.
function prove(path) {
  if (AMONG.test(`${path}`) && !isWritable(`${path}`)) throw closed(path);
}

// Making folders with their parents says ENOENT where the kernel says EROFS.
function told(error, path) {
  const isAbout = error?.code === 'EROFS' || error?.code === 'ENOENT';
  return isAbout && AMONG.test(`${path}`) && !isWritable(`${path}`) ? closed(path) : error;
}

const { mkdirSync } = fs;
const { mkdir } = fs.promises;

fs.mkdirSync = function made(path, ...rest) {
  let answer;
  try {
    answer = mkdirSync(path, ...rest);
  } catch (error) {
    throw told(error, path);
  }
  prove(path);
  return answer;
};
fs.promises.mkdir = async function made(path, ...rest) {
  let answer;
  try {
    answer = await mkdir(path, ...rest);
  } catch (error) {
    throw told(error, path);
  }
  prove(path);
  return answer;
};
syncBuiltinESMExports();
