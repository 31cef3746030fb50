"""Writes `warpset/_warpset.pyi`, the types of the extension module; with `--check`, says whether it is as it would be.

Run it where `maturin develop` has installed the package, after a change of a class.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from warpset import _warpset

STUB = Path(__file__).parent / "warpset" / "_warpset.pyi"


def generated():
    with tempfile.TemporaryDirectory() as folder:
        command = ["maturin", "generate-stubs", "--quiet", "--features", "stubs", "--out", folder]
        subprocess.run(command, check=True, cwd=Path(__file__).parent)
        text = (Path(folder) / "warpset" / "_warpset.pyi").read_text()
    # What is not derived: operators that change their left side return it, and exceptions.
    owner = ""
    lines = []
    for line in text.splitlines():
        if line.startswith("class "):
            owner = line.removeprefix("class ").rstrip(":")
        if re.match(r"    def __i(or|and)__\(", line):
            line = line.replace("-> None", f"-> {owner}")
        if "Incomplete" not in line:
            lines.append(line)
    for name in sorted(_warpset.__all__):
        kind = getattr(_warpset, name)
        if isinstance(kind, type) and issubclass(kind, BaseException):
            lines.append(f'\nclass {name}({kind.__base__.__name__}):\n    """\n    {kind.__doc__}\n    """')
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    if "--check" not in sys.argv:
        STUB.write_text(generated())
    elif STUB.read_text() != generated():
        sys.exit(f"{STUB.name} is not what the classes say: run `python stubs.py`")
