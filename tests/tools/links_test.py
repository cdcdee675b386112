"""Links of the documents lead to files of the repository and to headings of other documents."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))

import cases  # noqa: E402


def text_of(path):
    """The document without code and escaped characters, which are not links."""
    return re.sub(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`|\\.", "", path.read_text(encoding="utf-8"))


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Links(unittest.TestCase):
    def test_each_has_its_file_and_heading(self):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
        documents = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        count = 0
        for document in (ROOT / name for name in documents):
            for link in re.findall(r"\]\(([^)\s]+)\)", text_of(document)):
                if re.match(r"\w+:", link):
                    continue
                count += 1
                with self.subTest(f"{document.relative_to(ROOT)}: {link}"):
                    name, _, anchor = link.partition("#")
                    target = document.parent / name if name else document
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))
        self.assertGreater(count, 100)


if __name__ == "__main__":
    cases.main()
