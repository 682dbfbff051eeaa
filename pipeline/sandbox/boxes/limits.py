"""The resource limits of every command in a box, and the mark by which its processes are recognised.

The limits are set inside, by the shell that then becomes the program: a preexec function would run Python between fork
and exec of a threaded process. The address space is not limited: what JIT compilers reserve and never use would not fit
(measured: two agents end at 4 GB); the data limit counts what can be written.
"""

from __future__ import annotations

import os
from typing import Final

MARK: Final = "redfirst-box"
"""The word that marks a box's process in its argv."""
BOX_USER: Final = 64_321
"""The host user id of boxes when the driver is root: nobody has it (systemd hands out lower numbers)."""

_PROCESSES: Final = 4096
_FILE_BLOCKS: Final = 4_194_304  # of 512 bytes: 2 GiB
_DESCRIPTORS: Final = 4096


def _data_kib() -> int:
    """Return the private memory in KiB that one process may have: three quarters of the machine's, from 4 to 16 GiB."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
    return min(16 << 20, max(4 << 20, pages * 3 // 4))


_EACH: Final = (
    f"ulimit -c 0; ulimit -n {_DESCRIPTORS} 2>/dev/null || :; ulimit -f {_FILE_BLOCKS} 2>/dev/null || :; "
    f'ulimit -d {_data_kib()} 2>/dev/null || :; exec "$@"'
)
LIMITS: Final = ("/bin/sh", "-c", _EACH, MARK)
"""The argv prefix that sets limits: no core files; files, descriptors and memory of each process bounded."""
OWN_LIMITS: Final = (
    "/bin/sh",
    "-c",
    f"ulimit -u {_PROCESSES} 2>/dev/null || ulimit -p {_PROCESSES} 2>/dev/null || :; {_EACH}",
    MARK,
)
"""The argv prefix that also limits the number of processes, for a box with a user namespace of its own: elsewhere the
kernel would count the processes that the user has anyway. (`-u` is bash's name for it, `-p` dash's.)"""
