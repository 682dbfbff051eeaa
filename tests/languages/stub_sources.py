"""Sources of each language, for the tests of stubs."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

from pipeline.judge.evidence.red_classes import Symbol
from pipeline.testing.languages.sources import stubs

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Source:
    """A file of production, and whose it is."""

    package: str
    path: str
    source: str

    def stubbed(self, *names: str, path: str | None = None) -> tuple[str, tuple[str, ...]]:
        """Return the file with stubs in place of the names, and the names that it does not define."""
        symbols = [Symbol(self.path if path is None else path, name) for name in names]
        done = stubs.stub_symbols(self.package, {self.path: self.source}, symbols)
        return done.files.get(self.path, self.source), tuple(symbol.name for symbol in done.unknown)

    def introduced(self, before: str | None = None) -> list[str]:
        """Return what the file defines that it did not before."""
        found = stubs.introduced(self.package, {} if before is None else {self.path: before}, {self.path: self.source})
        assert {symbol.path for symbol in found} <= {self.path}
        return [symbol.name for symbol in found]

    def faults(self, after: str, names: Sequence[str | Symbol], before: str | None = None) -> list[str]:
        """Return what of a stub pass is no stub of the names."""
        symbols = [name if isinstance(name, Symbol) else Symbol(self.path, name) for name in names]
        old = {self.path: self.source if before is None else before}
        return [str(fault) for fault in stubs.stub_faults(self.package, old, {self.path: after}, symbols)]


BODY = '{ throw new Error("not implemented"); }'
GO = Source(
    "pipeline.testing.languages.go",
    "greet.go",
    """// Package greet greets, “quoted”.
package greet

import "strings"

// Limit is the most.
const Limit = 3

var greeting = "Hello"

// Greet greets.
func Greet(name string) string {
	return greeting + ", " + strings.ToUpper(name)
}

type Greeter[T any] struct{ Loud T }

func (g *Greeter[T]) Polite() bool { return true }

func (g Greeter[T]) String() string {
	// says it
	return "x"
}

var Shout = func(name string) string { return name + "!" }

type Speaker interface {
	Say() string
}

func init() { greeting = "Hi" }
""",
)
SCRIPT = Source(
    "pipeline.testing.languages.javascript",
    "a.js",
    dedent(
        """\
    // Greetings, “quoted”.
    'use strict';
    const fs = require('node:fs');
    const LIMIT = 3;
    /** Greets. */
    function greet(name, loud = false) {
      return `Hello, ${name}!`;
    }
    const shout = (name) => greet(name).toUpperCase();
    const pick = ({ a }) => ({ a });
    class Greeter {
      #secret = 1;
      static made = 0;
      constructor(name) { this.name = name; }
      polite() { return true; }
      get size() { return 1; }
      later = () => { return 2; };
    }
    const api = { hello() { return 1; }, bye: () => 2, plain: 3 };
    Greeter.prototype.rude = function () { return false; };
    exports.extra = function () { return 1; };
    module.exports = { greet, shout, Greeter };
    """
    ),
)
TYPED = Source(
    "pipeline.testing.languages.javascript",
    "a.ts",
    dedent(
        """\
    import { x } from './x';
    export interface Shape { area(): number }
    export enum Color { Red = 1, Blue }
    export function over(a: string): string;
    export function over(a: number): number;
    export function over(a: unknown): unknown { return a; }
    export abstract class Base<T> { abstract area(): number; name(): string { return 'b'; } }
    export class Empty {}
    export const LIMIT: number = 3;
    export const add = (a: number, b: number): number => a + b;
    export namespace Deep { export function inner(): number { return 1; } }
    export default function (): void { x(); }
    """
    ),
)
CRATE = Source(
    "pipeline.testing.languages.rust",
    "src/lib.rs",
    dedent(
        """\
    //! Greetings, “quoted”.
    pub const LIMIT: u32 = 3;

    /// Greets.
    #[must_use]
    pub fn greet(name: &str) -> String where {
        format!("Hello, {name}!")
    }

    pub struct Greeter<T> { loud: T }

    impl<T: Clone> Greeter<T> {
        pub const fn new(loud: T) -> Self { Self { loud } }
        pub fn polite(&self) -> bool { true }
    }

    impl<T> std::fmt::Display for Greeter<T> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { write!(f, "x") }
    }

    pub trait Speak { fn say(&self) -> u32 { 1 } fn hush(&self); }

    pub mod inner {
        pub fn deep() -> u32 { 7 }
    }

    #[cfg(test)]
    mod tests {
        fn greet() {}
        #[test]
        fn it() { assert!(true); }
    }
    """
    ),
)
PYTHON = Source(
    "pipeline.testing.languages.python",
    "cart.py",
    '''"""Prices."""

import decimal

RATE = 3


class Cart:
    """What is bought."""

    def __init__(self):
        self.lines = []

    def add(self, name):
        self.lines.append(name)


def total(cart):
    return len(cart.lines)
''',
)
RUST = Source(
    "pipeline.testing.languages.rust",
    "src/lib.rs",
    """//! Prices.

use std::fmt;

pub const RATE: u32 = 3;

pub struct Cart { pub lines: Vec<String> }

impl Cart {
    pub fn add(&mut self, name: &str) { self.lines.push(name.into()); }
}

pub fn total(cart: &Cart) -> usize { cart.lines.len() }

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn empty() { assert_eq!(total(&Cart { lines: vec![] }), 0); }
}
""",
)
