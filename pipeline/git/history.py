"""Reads commits: their messages, trailers and parents, and how histories are related."""

from __future__ import annotations

from pipeline.git.reading import OBJECT_NAME
from pipeline.git.ref_files import refs_in_files
from pipeline.git.unfit import UnfitDoor
from pipeline.git.values import Signature
from pipeline.scratch import scratch_folder


class HistoryDoor(UnfitDoor):
    """The repository for questions about commits."""

    def subject(self, commit: str) -> str:
        """Return the first line of a commit's message."""
        out = self._of_objects("log", "--no-walk", "--format=%s", commit, of=(commit,))
        return out.decode(errors="replace").strip()

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether *old* is *new* or one of its ancestors; the answer is cached."""
        if old == new:
            return True
        asked = ("merge-base", "--is-ancestor", old, new)
        if not (OBJECT_NAME.fullmatch(old) and OBJECT_NAME.fullmatch(new)):
            return self._start(asked).returncode == 0
        # 1 is an answer; any other code is a failure, which may be none the next time
        code = self._once(asked, lambda: str(self._start(asked).returncode).encode())
        if code not in {b"0", b"1"}:
            self._known.pop(asked, None)
        return code == b"0"

    def trailers(self, commit: str) -> tuple[tuple[str, str], ...]:
        """Return the trailers of a commit's message, in order, as git reads them."""
        # `show` compares trees, also where it shows nothing of them
        plain = ("-c", "log.showSignature=false")  # the user's wish for their own eyes
        shown = self._git(*plain, "log", "--no-walk", "--format=%(trailers:only,unfold)", commit)
        out = shown.decode(errors="replace")
        pairs = (line.partition(":") for line in out.split("\n") if ":" in line)
        return tuple((key.strip(), value.strip()) for key, _, value in pairs)

    def message(self, commit: str) -> str:
        """Return the whole message of a commit."""
        return self._git("log", "--no-walk", "--format=%B", commit).decode(errors="replace").rstrip("\n") + "\n"

    def author(self, commit: str) -> Signature:
        """Return the author of a commit, with the date."""
        out = self._git("log", "--no-walk", "--date=raw", "--format=%an%x00%ae%x00%ad", commit)
        return Signature(*out.decode(errors="replace").rstrip("\n").split("\0"))

    def parents(self, commit: str) -> tuple[str, ...]:
        """Return the parents of a commit; none for a root commit, or where a shallow clone ends."""
        return tuple(self._git("rev-list", "--parents", "--max-count=1", commit).decode().split()[1:])

    def history(self, *revisions: str, saying: str = "") -> tuple[str, ...]:
        """Return the commits of revisions (`A..B`, `HEAD`, `--all`), oldest first.

        Args:
            revisions: As `git rev-list` takes them.
            saying: Only those whose message has these words somewhere.
        """
        grep = ("--fixed-strings", f"--grep={saying}") if saying else ()
        return tuple(self._git("rev-list", "--topo-order", "--reverse", *grep, *revisions, "--").decode().split())

    def tags(self, commit: str, most: int) -> tuple[tuple[str, bool, int], ...]:
        """Return the newest tags of *commit* and of those before it: name, whether annotated, seconds since 1970."""
        if refs_in_files(self.common_dir, ("refs/tags/",)) == {} or self.resolve(commit) is None:
            return ()
        form = "--format=%(refname:strip=2)%00%(objecttype)%00%(creatordate:unix)"
        asked = ("for-each-ref", f"--merged={commit}", "--sort=-creatordate", f"--count={most}", form, "refs/tags/")
        lines = self._git(*asked).decode(errors="surrogateescape").split("\n")
        parts = (line.split("\0") for line in lines if line)
        return tuple((name, kind == "tag", int(when or 0)) for name, kind, when in parts)

    def merged(self, base: bytes, one: bytes, other: bytes) -> bytes | None:
        """Return a file with the changes of both sides merged, None where they conflict."""
        with scratch_folder("merge") as place:
            files = [place / name for name in ("one", "base", "other")]
            for file, content in zip(files, (one, base, other), strict=True):
                file.write_bytes(content)
            return self._answers("merge-file", "--stdout", *map(str, files))

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the merge base of two commits, None if they have none."""
        found = self._answers("merge-base", one, other)
        return found.decode().split()[0] if found else None

    def touching(self, old: str, new: str, *paths: str) -> tuple[str, ...]:
        """Return the commits of `old..new` that change one of *paths*, oldest first."""
        argv = ("--literal-pathspecs", "rev-list", "--topo-order", "--reverse", f"{old}..{new}", "--", *paths)
        return tuple(self._git(*argv).decode().split())
