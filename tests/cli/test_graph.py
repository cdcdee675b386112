"""attend compute --graph writes a map of self-attention as a graph."""

import json
import re
import xml.etree.ElementTree

import program

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
WORDS = ["the", "cat & \"dog\"", "<sat>"]


class Graph(program.Case):
    def setUp(self):
        super().setUp()
        self.write("x.json", json.dumps([[1.0, 0.5], [-0.25, 2.0], [0.5, -1.0]]))
        self.write("words.txt", "".join(f"{word}\n" for word in WORDS))

    def compute(self, *options):
        return ("compute", "--query", "x.json", "--key", "x.json", "--value", "x.json", *options)

    def test_causal_map_is_directed(self):
        weights = json.loads(self.succeed(*self.compute("--scope", "causal", "--weights")).stdout)
        self.succeed(*self.compute("--scope", "causal", "--graph", "map.graphml", "--labels",
                                   "words.txt"))
        tree = xml.etree.ElementTree.parse(self.folder / "map.graphml")
        [graph] = tree.iter(f"{GRAPHML}graph")
        self.assertEqual(graph.get("edgedefault"), "directed")
        names = {node.get("id"): node.find(f"{GRAPHML}data").text
                 for node in graph.iter(f"{GRAPHML}node")}
        self.assertEqual(list(names.values()), WORDS)
        places = {name: i for i, name in enumerate(names)}
        found = {(places[edge.get("source")], places[edge.get("target")]):
                 float(edge.find(f"{GRAPHML}data").text) for edge in graph.iter(f"{GRAPHML}edge")}
        self.assertEqual(set(found), {(i, j) for i in range(3) for j in range(i + 1)})
        for (i, j), weight in found.items():
            self.assertAlmostEqual(weight, weights["weights"][i][j], places=5)

    def test_shared_projection_is_undirected(self):
        self.succeed(*self.compute("--graph", "map.dot"))
        text = (self.folder / "map.dot").read_text()
        self.assertRegex(text, r"(?m)^graph\b")
        self.assertEqual(len(re.findall(r" -- ", text)), 6)

    def test_refuses_what_is_no_graph(self):
        self.write("y.json", "[[1.0, 0.5]]")
        self.refuse(*self.compute("--graph", "map.png"), names=["map.png", ".graphml", ".dot"])
        self.refuse("compute", "--query", "y.json", "--key", "x.json", "--value", "x.json",
                    "--graph", "map.dot", names=["1 queries", "3 keys"])
        self.write("words.txt", "two\nwords\n")
        self.refuse(*self.compute("--graph", "map.dot", "--labels", "words.txt"),
                    names=["words.txt", "2 lines", "3 positions"])


if __name__ == "__main__":
    program.main()
