"""Pieces of source in each language that are put together at random; each piece defines NAME."""

from __future__ import annotations

CUT = "----\n"

PYTHON = '''\
def NAME(a, b=1, *, c: "int" = 2):
    """Text."""
    if a < b and not (c == 3):
        return a - b
    return -c
----
def NAME(items):
    total = 0
    for item in items:
        total += item.price * 2
    return total
----
def NAME(a):
    try:
        work(a, key=(1))
    except (KeyError, ValueError) as e:
        a = None
    return a
----
def NAME(a):
    if a is not None:
        raise ValueError("no")
    log.info("x %s", 1)
    return f"{a}"
----
async def NAME(a):
    while a:
        await a.step(1, 2)
        a.x = a.y or 3.5
        if a in (1, 2): continue
----
class NAME:
    size: int = 3

    @property
    def big(self):
        return self.size >= (10) or not self.x
----
def NAME(a):
    x = [i for i in a if i > 0]
    del a[0]
    yield x[1:], {'k': 1}
    assert x, 'text'
----
def NAME(s):
    # a comment: < > and
    return ("é" in s  # ü
            and s < "ö") if s else b""
----
if TYPE_CHECKING:
    NAME = 1
'''

RUST = """\
pub fn NAME(a: i32, b: i32) -> bool {
    if a < b && !ready() {
        return true;
    }
    a == b || false
}
----
fn NAME(items: &[u32]) -> Result<u32, String> {
    let mut t = 0u32;
    for i in items {
        t += i * 2;
    }
    if t > 9 {
        return Err("big".into());
    }
    store(t);
    Ok(t)
}
----
#[test]
fn NAME() {
    assert_eq!(1 + 1, 2);
    let x = 3 < 4;
}
----
#[cfg(test)]
mod NAME {
    fn f() -> u8 {
        1 + 1
    }
}
----
fn NAME(mut n: u8) -> &'static str {
    while n > 0 {
        n -= 1;
    }
    match n {
        1 if n < 2 => "é",
        _ => "",
    }
}
"""

GO = """\
func NAME(a, b int) (int, error) {
	if a < b && !ready() {
		return 0, errors.New("bad")
	}
	return a + b, nil
}
----
func NAME(items []int) bool {
	total := 0
	for _, item := range items {
		total += item * 2
	}
	log.Println("x")
	store(total)
	return total > 3
}
----
func NAME(s string) string {
	if s == "é" {
		panic("no")
	}
	return s + "x"
}
"""

JAVASCRIPT = """\
function NAME(a, b = 2) {
  if (a < b && !ready) {
    throw new Error('x');
  }
  return a === b ? a - b : g(a, b);
}
----
const NAME = (a) => a + 1;
----
class NAME {
  m(a) {
    for (const i of a) {
      this.t += i * 2;
    }
    try { s(a); } catch (e) { this.t = 'é'; }
    console.log('x');
  }
}
----
function NAME(n) {
  while (n > 0) {
    n -= 1;
    if (n === 3) continue;
  }
  return [1.5, true, ""];
}
"""

TYPESCRIPT = """\
export function NAME(a: number, k: 'x' | 'y' = 'x'): string | null {
  return a > 3 ? `${a}` : (k as string);
}
"""

WINDOWS = "def NAME(n):\r\n    return n ** 2 // 3 % 4 | 1 << n\r\n"
LANGUAGES = {
    "a.py": (*PYTHON.split(CUT), WINDOWS),
    "a.rs": tuple(RUST.split(CUT)),
    "a.go": tuple(GO.split(CUT)),
    "a.js": tuple(JAVASCRIPT.split(CUT)),
    "a.ts": (*JAVASCRIPT.split(CUT), *TYPESCRIPT.split(CUT)),
}
HEADS = {"a.go": "package a\n\n"}


def source(path: str, pieces: list[int]) -> bytes:
    """Return a file put together of the pieces with these numbers."""
    known = LANGUAGES[path]
    parts = (known[number % len(known)].replace("NAME", f"f{place}") for place, number in enumerate(pieces))
    return (HEADS.get(path, "") + "\n".join(parts)).encode()
