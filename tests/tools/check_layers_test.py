"""Tests of tools/check_layers.py on trees made for each rule."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tests/support")]

import cases  # noqa: E402
import check_layers  # noqa: E402

CMAKE = """
attend_layer(base PACKAGES fmt::fmt)
attend_layer(kernels IMPORTS base PACKAGES hwy::hwy)  # attend_layer(ghost IMPORTS nn)
attend_layer(data TENSORS IMPORTS base)
attend_layer(nn TORCH IMPORTS kernels base)
attend_program(cli IMPORTS nn base
               PACKAGES CLI11::CLI11)
"""


def uses_of_imports(cmake):
    """Returns files in which every layer includes a file of each layer that it imports."""
    files = {}
    for name, layer in check_layers.read_layers(cmake).items():
        files[f"attend/{name}/all.h"] = ""
        files[f"attend/{name}/all.cpp"] = "".join(
            f'#include "attend/{other}/all.h"\n' for other in sorted(layer.imports))
    return files


def findings(files, cmake=CMAKE, uses_imports=True):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        uses = uses_of_imports(cmake) if uses_imports else {}
        for name, text in {"CMakeLists.txt": cmake, **uses, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check_layers.Checker(root).run()


def function(lines, head="void f() {"):
    return head + "\n" + "  g();\n" * (lines - 2) + "}\n"


class Layers(unittest.TestCase):
    def test_reads_the_lines_of_cmake(self):
        layers = check_layers.read_layers(CMAKE)
        self.assertEqual(sorted(layers), ["base", "cli", "data", "kernels", "nn"])
        self.assertEqual(layers["nn"], ({"kernels", "base"}, True))
        self.assertEqual(layers["base"], (set(), False))
        self.assertTrue(layers["cli"].torch)

    def test_this_repository_declares_every_folder(self):
        layers = check_layers.read_layers((ROOT / "CMakeLists.txt").read_text())
        folders = {path.name for path in (ROOT / "attend").iterdir() if path.is_dir()}
        self.assertLessEqual(folders, set(layers))

    def test_imports_run_one_way(self):
        files = {"attend/base/a.h": "", "attend/nn/b.h": '#include "attend/base/a.h"\n'}
        self.assertEqual(findings(files), [])
        files = {"attend/nn/b.h": "", "attend/base/a.h": '\n#include "attend/nn/b.h"\n'}
        self.assertEqual(
            findings(files),
            ["attend/base/a.h:2: base may not include nn; it imports no layer"])

    def test_an_import_is_not_inherited(self):
        files = {"attend/kernels/a.h": "", "attend/cli/b.cpp": '#include "attend/kernels/a.h"\n'}
        self.assertEqual(len(findings(files)), 1)

    def test_an_import_is_used(self):
        cmake = ("attend_layer(base)\nattend_layer(kernels IMPORTS base)\n"
                 "attend_layer(nn TORCH IMPORTS kernels base)\n")
        files = {"attend/base/a.h": "", "attend/kernels/b.h": '#include "attend/base/a.h"\n',
                 "attend/nn/c.cpp": '#include "attend/base/a.h"\n',
                 "tests/nn/c_test.cpp": '#include "attend/kernels/b.h"\n'}
        self.assertEqual(findings(files, cmake, uses_imports=False), [
            "CMakeLists.txt:3: nn imports kernels and includes nothing of it; leave it out"])
        files["attend/nn/d.h"] = '#include "attend/kernels/b.h"\n'
        self.assertEqual(findings(files, cmake, uses_imports=False), [])

    def test_unknown_layer_and_missing_file(self):
        self.assertIn("no attend_layer line", findings(
            {"attend/base/a.h": "", "attend/lost/b.h": '#include "attend/base/a.h"\n'})[0])
        self.assertIn("no file", findings({"attend/nn/b.h": '#include "attend/base/a.h"\n'})[0])

    def test_cycles(self):
        cmake = "attend_layer(base IMPORTS nn)\nattend_layer(nn IMPORTS base)\n"
        self.assertIn("base -> nn -> base", findings({}, cmake)[0])
        files = {"attend/nn/a.h": '#include "attend/nn/b.h"\n',
                 "attend/nn/b.h": '#include "attend/nn/a.h"\n'}
        self.assertIn("include each other", findings(files)[0])

    def test_private_headers(self):
        files = {"attend/kernels/a-inl.h": "",
                 "attend/kernels/a.cpp": '#include "attend/kernels/a-inl.h"\n',
                 "tests/kernels/a_test.cpp": '#include "attend/kernels/a-inl.h"\n'}
        self.assertEqual(findings(files), [])
        files["attend/nn/b.cpp"] = '#include "attend/kernels/a-inl.h"\n'
        self.assertEqual(findings(files), [
            "attend/nn/b.cpp:1: attend/kernels/a-inl.h is private to kernels"])

    def test_torch_stays_out_of_the_low_layers(self):
        for header in ("<torch/torch.h>", "<ATen/ATen.h>", "<c10/util/Half.h>"):
            for file in ("attend/kernels/a.cpp", "tests/kernels/a_test.cpp"):
                self.assertEqual(len(findings({file: f"#include {header}\n"})), 1, file)
            for file in ("attend/nn/a.cpp", "attend/data/a.cpp"):
                self.assertEqual(findings({file: f"#include {header}\n"}), [], file)


class Sizes(unittest.TestCase):
    def test_files(self):
        self.assertEqual(findings({"attend/nn/a.cpp": "\n" * 800}), [])
        self.assertIn("801 lines", findings({"attend/nn/a.cpp": "\n" * 801})[0])

    def test_functions(self):
        heads = ("void f() {", "TEST(A, B) {", "template <class T>\nint A<T>::f(T x) const {",
                 "A::A(int x) : x_{x}, y_(x) {", "struct B {\n void f() {",
                 "namespace a {\nstatic bool operator<(const A& a, const A& b) {",
                 "struct alignas(16) C {\n public:\n auto f() -> std::vector<int> {",
                 "int table[] = {1, 2};\nconst auto f = [](int x) {")
        for head in heads:
            self.assertEqual(findings({"attend/nn/a.cpp": function(40, head)}), [], head)
            self.assertEqual(len(findings({"attend/nn/a.cpp": function(70, head)})), 1, head)

    def test_the_limit_is_sixty_lines(self):
        self.assertEqual(findings({"attend/nn/a.cpp": function(60)}), [])
        self.assertEqual(findings({"attend/nn/a.cpp": function(61)}),
                         ["attend/nn/a.cpp:1: f has 61 lines; split it, at most 60"])

    def test_neighbours_are_counted_apart(self):
        self.assertEqual(findings({"attend/nn/a.cpp": function(40) + function(40)}), [])
        both = "struct A {\n" + function(40) + "int x{1};\n" + function(40) + "};\n"
        self.assertEqual(findings({"attend/nn/a.h": both}), [])

    def test_tables_and_namespaces_are_no_functions(self):
        table = "constexpr Row rows[] = {\n" + "  {1, f(2)},\n" * 100 + "};\n"
        self.assertEqual(findings({"attend/nn/a.cpp": "namespace a {\n" + table + "}\n"}), [])

    def test_braces_in_literals_and_directives_do_not_count(self):
        text = ('const char* a = "{";  // {\nconst char b = \'{\';\n/* { */\n'
                'const char* c = R"(\n{ " )";\n#define D {\nconst int n = 1\'000;\n')
        self.assertEqual(findings({"attend/nn/a.cpp": text + function(50) + function(50)}), [])


class Printing(unittest.TestCase):
    def test_only_the_program_prints(self):
        for call in ("std::cout << 1;", 'std::printf("a");', 'fprintf(stderr, "a");', "exit(1);",
                     "std::abort();", 'fmt::print("a");', "std::terminate();"):
            text = f"void f() {{ {call} }}\n"
            self.assertGreaterEqual(len(findings({"attend/nn/a.cpp": text})), 1, call)
            self.assertEqual(findings({"attend/cli/a.cpp": text}), [], call)
            self.assertEqual(findings({"tests/nn/a.cpp": text}), [], call)

    def test_words_that_only_look_like_it(self):
        text = '// exit(1)\nconst char* a = "abort()";\nvoid f() { snprintf(b, 1, a); x.exit(); }\n'
        self.assertEqual(findings({"attend/nn/a.cpp": text}), [])


TABLES = {
    "attend/ops/score_table.cpp": """ScoreRow additive_row() { return {.name = "additive", .formula = "v"}; }
      bool f(const Row& row) { return row.name == "additive"; }
      tanh_row("additive_relu", "max");""",
    "attend/ops/scope_table.cpp": 'Scope t[] = {{"all", "all"}, {"causal", "causal:N"}};',
    "attend/ops/bias_table.cpp": '{.kind = 1, .name = "alibi"},',
    "attend/ops/normalisers.cpp": '{.name = "softmax"}, {.name = "linear"}, {.name = "none"},',
    "attend/ops/one_key_normalisers.cpp": '{.name = "monotonic"}, {.name = "monotonic_hard"},',
    "attend/nn/mechanism_table.cpp": '{.name = "self"}, {.name = "bahdanau", .module = "M()"},',
    "attend/metrics/metric_table.cpp": 'counts = {{"edits", 1}}; {.name = "loss"}, {.name = "bleu"},'}
TABLES_CMAKE = "attend_layer(ops)\nattend_layer(nn)\nattend_layer(metrics)\n"


class Rows(unittest.TestCase):
    def found(self, code):
        return findings({**TABLES, "attend/nn/a.cpp": f"bool f() {{\n  return {code};\n}}\n"},
                        TABLES_CMAKE)

    def test_names_are_read_from_the_sources_of_the_tables(self):
        for kind, names in {
                "score": {"dot", "additive", "additive_relu", "location_sensitive", "elu_features"},
                "scope": {"all", "causal", "global", "around"},
                "bias": {"dense", "alibi", "relative_keys", "offset", "sink"},
                "normaliser": {"softmax", "none", "entmax15", "linear", "hard", "monotonic_hard"},
                "mechanism": {"bahdanau", "self", "rope", "t5", "entmax"},
                "metric": {"bleu", "chrf", "f1", "token_error", "loss", "perplexity"}}.items():
            self.assertLessEqual(names, check_layers.row_names(ROOT)[kind], kind)
        self.assertNotIn("edits", check_layers.row_names(ROOT)["metric"])

    def test_no_name_of_a_row_is_compared(self):
        for code in ('choices.normaliser == "softmax"', '"softmax" != choices_.normaliser',
                     'name == "alibi"', 'std::string(row.name) == "x" || spec->normaliser == "none"',
                     'base_name(scope) == "causal"', 'self.mechanism == "bahdanau"',
                     'choices.scope == "causal:-1"', 'scope_.find("causal") == npos',
                     'choices.normaliser.starts_with("mono")', 'name.starts_with("additive")',
                     'config.train.metric != "loss"', 'name == "bleu"'):
            self.assertEqual(len(self.found(code)), 1, code)
        self.assertEqual(self.found('x || name == "softmax"'), [
            'attend/nn/a.cpp:2: name is compared with "softmax"; ask a field of the row'])

    def test_no_text_of_a_row_is_compared(self):
        for code in ('row.name == "anything"', 'one->module == "M()"', '"the same" == row.memory',
                     'spec.normaliser.row().name != "other"', 'row.queries.find("learned") != npos'):
            self.assertEqual(len(self.found(code)), 1, code)

    def test_no_setting_is_compared(self):
        settings = {"attend/nn/config.cpp":
                    'Settings s = {{"model.tied", &tied}, {.key = "train.schedule", .value = &schedule},\n'
                    '              {prefix + "score", &score}};\n'}
        for code in ('config.tied == "all"', 'schedule_ != "linear"', '"none" == score'):
            self.assertEqual(len(findings({**TABLES, **settings,
                                           "attend/nn/a.cpp": f"bool f() {{\n  return {code};\n}}\n"},
                                          TABLES_CMAKE)), 1, code)
        for code in ('config.tied == Tied::all', 'score.empty()', 'score == ""', 'tie == "all"'):
            self.assertEqual(findings({**TABLES, **settings,
                                       "attend/nn/a.cpp": f"bool f() {{\n  return {code};\n}}\n"},
                                      TABLES_CMAKE), [], code)
        self.assertLessEqual({"tied", "schedule", "pooling", "bias", "references", "type"},
                             check_layers.setting_names(ROOT))

    def test_no_suffix_of_a_format_is_asked_for(self):
        files = {"attend/explain/explain_files.cpp": 'table = {{".svg", "", maps_svg}, {".png", "", maps_png}};\n',
                 "attend/cli/a.cpp": 'bool f() {\n  return has_suffix(path, ".svg");\n}\n',
                 "attend/cli/b.cpp": 'bool f() {\n  return has_suffix(path, ".toml");\n}\n'}
        self.assertEqual(findings(files, "attend_program(cli)\n"), [
            "attend/cli/a.cpp:2: suffix .svg is asked for outside of its table; take format_of"])
        self.assertLessEqual({".svg", ".npz", ".dot", ".align"}, check_layers.format_suffixes(ROOT))

    def test_other_words_are_compared(self):
        for code in ('name == "line"', 'name == "gru"', 'units == "softmax"',
                     'row.kind == Kind::softmax', 'row.name == name', 'f(score, "additive")',
                     'metric == "edits"',
                     'true;  // name == "softmax"', 'part == "state"', 'text.find("causal")'):
            self.assertEqual(self.found(code), [], code)

    def test_tests_may_compare_names(self):
        self.assertEqual(findings({**TABLES, "tests/nn/a.cpp": 'bool b = row.name == "softmax";\n'},
                                  TABLES_CMAKE), [])


class OwnNames(unittest.TestCase):
    def files(self, one, other):
        wrap = "namespace attend {{\nnamespace {{\n\n{}\n\n}}  // namespace\n}}  // namespace attend\n"
        return findings({"attend/data/one.cpp": wrap.format(one),
                         "attend/data/other.cpp": wrap.format(other)})

    def test_a_name_belongs_to_one_file(self):
        for one, other in (("struct Kind {", "enum class Kind {"),
                           ("constexpr int64_t most = 3;", "const double most = 4;"),
                           ("constexpr std::array<int, 2> all = {{1, 2}};", "void all(int x) {"),
                           ("int size_of(const Tensor& x) {", "int64_t size_of(const Tensor& x) {")):
            with self.subTest(one=one):
                found = self.files(one, other)
                self.assertEqual(len(found), 1, found)
                self.assertIn("attend/data/other.cpp:4: ", found[0])

    def test_overloads_may_share_a_name(self):
        self.assertEqual(self.files("int f(int x) {", "int f(const Tensor& x) {"), [])
        self.assertEqual(self.files("constexpr int one = 1;", "constexpr int other = 1;"), [])

    def test_another_layer_may_not_share_a_name(self):
        wrap = "namespace {\nconstexpr int most = 1;\n}  // namespace\n"
        found = findings({"attend/data/a.cpp": wrap, "attend/nn/a.cpp": wrap})
        self.assertEqual(len(found), 1, found)
        self.assertIn("attend/nn/a.cpp:2: ", found[0])


class Words(unittest.TestCase):
    def found(self, name, text):
        return findings({name: text}, uses_imports=False, cmake="")

    def test_no_variable_is_called_of_or_at(self):
        for code in ("int of = 1;", "void f(const X& at);", "struct S { Tensor of; };", "y = x.of + z->at;",
                     "const auto at = [&](int i) { return i; };", "auto f = [of] { return g(of); };"):
            with self.subTest(code):
                self.assertIn("attend/a.cpp:2: ", self.found("attend/a.cpp", "\n" + code + "\n")[0])
        self.assertEqual(self.found("tests/a.cpp", "int x = at + 1;\n"), [
            "tests/a.cpp:1: at says nothing of what it names; call it what it is"])

    def test_functions_and_namespaces_may_be(self):
        for code in ("at::Tensor x = y.at(1);", "config.of<Config>().depth = 2;", "namespace at {}",
                     "Rows& of(int row);", "f(&Rows::at);", 'g("of", \'x\');  // of at one_a_row'):
            with self.subTest(code):
                self.assertEqual(self.found("attend/a.cpp", code + "\n"), [])

    def test_per_is_written_per(self):
        for code in ("int rows_a_chunk = 1;", "int rows_a_chunk() { return 1; }", "x.rows_a_chunk_ = 2;"):
            with self.subTest(code):
                self.assertEqual(len(self.found("bench/a.cpp", code + "\n")), 1)
        self.assertEqual(self.found("bench/a.cpp", "int rows_per_chunk = is_a_row;\n"), [
            "bench/a.cpp:1: is_a_row: write _per_ for _a_, or another name"])

    def test_python_is_looked_at_too(self):
        for code in ("of = 1", "f(at=2)", "def f(of):\n    pass", "x = lambda at: 1", "rows_a_page = 3",
                     "def rows_a_page():\n    pass"):
            with self.subTest(code):
                self.assertIn("tools/a.py:1: ", self.found("tools/a.py", code + "\n")[0])
        for code in ("x = y.at(1)", '"of"  # at', "def test_of_a_page(self):\n    pass"):
            with self.subTest(code):
                self.assertEqual(self.found("tools/a.py", code + "\n"), [])


if __name__ == "__main__":
    cases.main()
