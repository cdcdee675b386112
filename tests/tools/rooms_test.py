"""docs/rooms.svg shows the layers of CMakeLists.txt, and docs/architecture.md names each of them."""

import html
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tests/support")]

import cases  # noqa: E402
import check_layers  # noqa: E402
import rooms  # noqa: E402


class Rooms(unittest.TestCase):
    layers = check_layers.read_layers((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))

    def test_the_picture_is_that_of_the_layers(self):
        drawn = rooms.PICTURE.read_text(encoding="utf-8")
        titles = [html.unescape(title) for title in re.findall(r"<title>(.*?)</title>", drawn)]
        self.assertEqual({title for title in titles if "->" not in title} - {"rooms"}, set(self.layers))
        self.assertEqual({title for title in titles if "->" in title},
                         {f"{lower}->{name}" for name, lower in rooms.arrows(self.layers)}, "run tools/rooms.py")

    def test_arrows_that_follow_from_others_are_left_out(self):
        layers = check_layers.read_layers("attend_layer(a) attend_layer(b IMPORTS a) attend_layer(c IMPORTS a b)")
        self.assertEqual(rooms.arrows(layers), {("b", "a"), ("c", "b")})

    def test_the_page_says_what_each_holds(self):
        page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", page, re.M)[:len(self.layers)], [
            name for name in re.findall(r"^\| `(\w+)` \|", page, re.M) if name in self.layers])
        self.assertEqual(sorted(set(re.findall(r"^\| `(\w+)` \|", page, re.M)) & set(self.layers)), sorted(self.layers))


if __name__ == "__main__":
    cases.main()
