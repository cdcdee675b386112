#!/usr/bin/env python3
"""Checks rules that the compiler does not check: check_layers.py [ROOT]

- A file of attend/X includes only X and the layers that X imports (attend_layer and attend_program lines of
  CMakeLists.txt).
- Neither layers nor headers form a cycle.
- A layer includes at least one header of each layer that it imports.
- -inl.h headers are private to their layer.
- Layers without TENSORS or TORCH, and their tests, do not include LibTorch.
- Files have at most 800 lines, functions at most 60.
- Only attend/cli, tests, bench and examples may print, abort or exit.
- Code of attend/ compares no name or text of a table row with a literal, but reads a field of the row. Exempt are the
  tables of scores, scopes, biases, normalisers, mechanisms and metrics.
- Code of attend/ compares no setting with a literal, but with an enum or a named constant.
- Code of attend/cli tests for suffixes of a table of formats only in that table.
- Names in unnamed namespaces are unique, since files of several layers may be compiled as one. Exempt are the kernels
  and overloads.
- In C++ and Python no variable, parameter or member is named of or at, and no name has _a_ for _per_.

Prints "file:line: finding and remedy" per finding and exits with 1 if there are any.
"""

import collections
import io
import pathlib
import re
import sys
import tokenize

MAXIMUM_FILE = 800
MAXIMUM_FUNCTION = 60
CODE_FOLDERS = ("attend", "tests", "bench", "examples")
TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2)/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
PRINTING = re.compile(
    r"(?<![\w.>:])(?:std::)?(?:v?printf|puts|putchar|perror|abort|_?exit|quick_exit|terminate)\s*\("
    r"|\bstd::(?:cout|cerr|clog)\b|\b(?:stdout|stderr)\b|\bfmt::print\b"
)

# Source files of each table. Variables for its rows have the key in their names.
TABLES = {
    "score": ("attend/ops/score_table.cpp", "attend/ops/feature_maps.cpp"),
    "scope": ("attend/ops/scope_table.cpp",),
    "bias": ("attend/ops/bias_table.cpp",),
    "normaliser": ("attend/ops/normalisers.cpp", "attend/ops/one_key_normalisers.cpp"),
    "mechanism": ("attend/nn/mechanism_table.cpp", "attend/nn/mechanism_sequences.cpp"),
    "metric": tuple(f"attend/metrics/{name}.cpp" for name in (
        "metric_table", "text_metrics", "span_metrics", "ranking_metrics", "number_metrics")),
}
# Tables of output formats by suffix.
FORMATS = ("attend/explain/explain_files.cpp", "attend/pictures/graph_files.cpp")
SUFFIX_ROW = re.compile(r'\{"(\.\w+)",')
SUFFIX_ASKED = re.compile(r'\bhas_suffix\([^"]*?"(\.\w+)"\)')
# A configuration key in the definition of a Setting.
SETTING_KEY = re.compile(r'(?:\{|\.key = )\s*(?:"(?:data|model|train)\.(\w+)"|prefix \+ "(\w+)")\s*,')
TABLE_FILES = {file for files in TABLES.values() for file in files}
# Rows set .name or pass it to a function ..._row(); in tables with neither, the name comes first.
ROW_NAME = re.compile(r'(?:\.name = |\w+_row\(\s*)"([a-z]\w*)"')
FIRST_NAME = re.compile(r'\{"([a-z]\w*)"')
# Members of rows with a name or text for documents.
ROW_TEXT = {"name", "syntax", "title", "formula", "source", "meaning", "queries", "memory", "time",
            "space", "carries", "paths", "module", "refusal"}
OPERAND = r"[\w.>:-]*\w(?:\([\w.>:-]*\))?(?:[.>-]+\w+(?:\(\))?)*"
COMPARISON = re.compile(
    rf'(?P<left>{OPERAND})\s*[=!]=\s*"(?P<right_text>[^"\n]*)"'
    rf'|"(?P<left_text>[^"\n]*)"\s*[=!]=\s*(?P<right>{OPERAND})'
    rf'|(?P<searched>{OPERAND})\.(?:starts_with|ends_with|contains|find|compare)\(\s*"(?P<part>[^"\n]+)"'
)

# Declarations in an unnamed namespace; they start at the beginning of a line.
OWN_TYPE = re.compile(r"(?:struct|class|enum class|enum)\s+(\w+)\b(?!.*;)")
OWN_CONSTANT = re.compile(
    r"(?:static |inline )*(?:constexpr|const)\s[^=({]*?\b(\w+)(?:\[[^\]]*\])?\s*(?:=|\{)")
OWN_FUNCTION = re.compile(
    r"(?!using|template|return|namespace|static_assert|#|//|\s)[\w:<>,&*\s\[\]]*?\b(\w+)\(([^;{]*)")

# Names without meaning. Functions may have them, as std::vector::at.
WORDLESS = {"of", "at"}
CPP_NAME = re.compile(r"(?<!::)(?<!namespace )\b([A-Za-z_]\w*)\b(?!\s*(?:::|[(<]))")

Layer = collections.namedtuple("Layer", "imports torch")


def read_layers(cmake):
    """{name: layer} of CMakeLists.txt."""
    layers = {}
    text = re.sub(r"#.*", "", cmake)
    for kind, name, rest in re.findall(r"attend_(layer|program)\s*\(\s*(\w+)([^)]*)\)", text):
        words = rest.split()
        imports = words[words.index("IMPORTS") + 1 :] if "IMPORTS" in words else []
        if "PACKAGES" in imports:
            imports = imports[: imports.index("PACKAGES")]
        torch = kind == "program" or "TENSORS" in words or "TORCH" in words
        layers[name] = Layer(set(imports), torch)
    return layers


def row_names(root):
    """{table: names of its rows} of the tables with sources."""
    names = collections.defaultdict(set)
    for kind, files in TABLES.items():
        for file in files:
            if (root / file).is_file():
                text = (root / file).read_text(encoding="utf-8")
                names[kind].update(ROW_NAME.findall(text) or FIRST_NAME.findall(text))
    return names


def setting_names(root):
    """The keys of all settings, without the prefix of their table."""
    return {key or of_prefix for path in (root / "attend").rglob("*.cpp")
            for key, of_prefix in SETTING_KEY.findall(path.read_text(encoding="utf-8"))}


def format_suffixes(root):
    return {suffix for file in FORMATS if (root / file).is_file()
            for suffix in SUFFIX_ROW.findall((root / file).read_text(encoding="utf-8"))}


def compares_setting(operand, literal, names):
    """Whether a comparison is between an operand with the name of a setting and a literal that is not empty."""
    return literal != "" and re.findall(r"\w+", operand)[-1].rstrip("_") in names


def compares_row(operand, literal, is_part, names):
    """Whether a comparison reads text of a row: a text member compared with any literal, or a variable named after a
    table (or `name`) compared with a row's name, or with its beginning if `is_part`."""
    words = re.findall(r"\w+", operand)
    last = words[-1]
    if last in ROW_TEXT and re.search(r"(?:\.|->)\w+$", operand):
        return True
    called = last.lower().rstrip("_")
    kinds = names if called == "name" else [kind for kind in names if kind in called]
    first = re.match(r"\w*", literal).group()
    return any(name == first or (is_part and name.startswith(literal))
               for kind in kinds for name in names[kind])


def own_names(code):
    """(line, name, parameters) of the declarations in unnamed namespaces; parameters are None except for functions."""
    inside = False
    for number, line in enumerate(code.splitlines(), 1):
        if re.match(r"namespace\s*\{|\}  ", line):
            inside = line.startswith("namespace")
        elif inside:
            for pattern in (OWN_TYPE, OWN_CONSTANT, OWN_FUNCTION):
                match = pattern.match(line)
                if match:
                    yield number, match[1], match[2] if pattern is OWN_FUNCTION else None
                    break


def cpp_names(code):
    """(line, name) of possible variables, and of every name with _a_."""
    for match in CPP_NAME.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, match[1]
    for match in re.finditer(r"\b\w+_a_\w+(?=\s*[(<])", code):
        yield code.count("\n", 0, match.start()) + 1, match.group()


def python_names(text):
    """(line, name) of all names except tests, and except called functions without _a_."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token, following in zip(tokens, tokens[1:]):
        if token.type == tokenize.NAME and not token.string.startswith("test_") and (
                following.string != "(" or "_a_" in token.string):
            yield token.start[0], token.string


def find_cycle(graph):
    """The nodes of a cycle, with the first repeated at the end, or []."""
    done = set()

    def visit(node, path):
        if node in path:
            return path[path.index(node) :] + [node]
        if node in done:
            return []
        for following in sorted(graph.get(node, ())):
            cycle = visit(following, path + [node])
            if cycle:
                return cycle
        done.add(node)
        return []

    for node in sorted(graph):
        cycle = visit(node, [])
        if cycle:
            return cycle
    return []


def blank(text):
    """Spaces in place of the text, with the same line ends."""
    return re.sub(r"[^\n]+", " ", text)


LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![\w'])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def without_comments(text):
    return LITERAL.sub(
        lambda match: blank(match.group()) if match.group().startswith("/") else match.group(), text)


def without_literals(text):
    """The code without comments and without the contents of literals."""

    def replacement(match):
        found = match.group()
        return blank(found) if found.startswith("/") else '""' + "\n" * found.count("\n")

    return LITERAL.sub(replacement, text)


def without_directives(code):
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: blank(m.group()), code, flags=re.MULTILINE)


def opens(head):
    """Kind of the brace after `head`: "scope" (namespace or class), "function" or "other"."""
    head = re.sub(r"\balignas\s*\([^()]*\)|\[\[.*?\]\]", "", head, flags=re.DOTALL)
    plain = None
    while plain != head:  # template arguments, innermost first
        plain, head = head, re.sub(r"<[^<>;{}]*>", "", head)
    if re.search(r"=\s*$", head):
        return "other"
    if "(" in head:
        return "function"
    return "scope" if re.search(r'\b(namespace|class|struct|union|extern)\b', head) else "other"


def functions(code):
    """(first line, last line, head) of each outermost function."""
    depth = line = 0  # depth of braces; namespaces and classes do not count
    start = None  # start of the text before the next brace
    for position, character in enumerate(code):
        line += character == "\n"
        if start is None and not character.isspace():
            start, first = position, line
        if depth:
            depth += (character == "{") - (character == "}")
            # Member initialisers precede the body of a constructor.
            if depth or kind == "other" or re.match(r"\s*[,{]", code[position + 1 :]):
                continue
            yield first + 1, line + 1, head
            start = None
        elif character == "{":
            head = code[start:position]
            kind = opens(head)
            if kind == "scope":
                start = None
            else:
                depth = 1
        elif character in ";}" or re.search(r"\b(public|private|protected):$", code[start : position + 1]):
            start = None


class Checker:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.findings = []
        self.layers = read_layers((self.root / "CMakeLists.txt").read_text())
        self.files = sorted(
            path.relative_to(self.root)
            for folder in CODE_FOLDERS
            for path in (self.root / folder).rglob("*")
            if path.suffix in (".h", ".cpp")
        )
        self.scripts = sorted(
            path.relative_to(self.root)
            for folder in (*CODE_FOLDERS, "tools")
            for path in (self.root / folder).rglob("*.py")
        )
        self.row_names = row_names(self.root)
        self.setting_names = setting_names(self.root)
        self.format_suffixes = format_suffixes(self.root)

    def report(self, path, line, message):
        self.findings.append(f"{path}:{line}: {message}")

    def run(self):
        graph = {name: layer.imports for name, layer in self.layers.items()}
        cycle = find_cycle(graph)
        if cycle:
            self.report("CMakeLists.txt", 1, "layers import each other: " + " -> ".join(cycle))
        includes = {}
        own = []  # declarations in unnamed namespaces
        for path in self.files:
            text = (self.root / path).read_text(encoding="utf-8")
            code = without_literals(text)
            if path.parts[0] == "attend" and path.suffix == ".cpp" and path.parts[1] != "kernels":
                own += [(path, *found) for found in own_names(code)]
            includes[str(path)] = self.check_includes(path, text)
            self.check_sizes(path, text, code)
            self.check_printing(path, code)
            self.check_rows(path, text)
            self.check_words(path, cpp_names(code))
        for path in self.scripts:
            self.check_words(path, python_names((self.root / path).read_text(encoding="utf-8")))
        self.check_imports_are_used(includes)
        self.check_own_names(own)
        cycle = find_cycle(includes)
        if cycle:
            self.report(cycle[0], 1, "headers include each other: " + " -> ".join(cycle))
        return self.findings

    def check_includes(self, path, text):
        """Reports forbidden includes; returns the included headers of attend."""
        folder, own = path.parts[0], path.parts[1]
        found = set()
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(2)) + 1
            target = match.group(2)
            if TORCH_HEADER.match(target) and own in self.layers and not self.layers[own].torch:
                self.report(path, line, f"{own} is free of LibTorch, but includes {target}")
            if not target.startswith("attend/"):
                continue
            found.add(target)
            other = target.split("/")[1]
            if not (self.root / target).is_file():
                self.report(path, line, f"no file {target}")
            elif target.endswith("-inl.h") and other != own:
                self.report(path, line, f"{target} is private to {other}")
            # attend/attend.h belongs to no layer: programs include it.
            elif folder == "attend" and other != own and len(path.parts) > 2:
                self.check_import(path, line, own, other)
        return found

    def check_import(self, path, line, own, other):
        if own not in self.layers:
            self.report(path, line, f"layer {own} has no attend_layer line in CMakeLists.txt")
        elif other not in self.layers[own].imports:
            allowed = ", ".join(sorted(self.layers[own].imports)) or "no layer"
            self.report(path, line, f"{own} may not include {other}; it imports {allowed}")

    def check_imports_are_used(self, includes):
        used = collections.defaultdict(set)
        for path, targets in includes.items():
            folder, own = pathlib.Path(path).parts[:2]
            if folder == "attend":
                used[own] |= {target.split("/")[1] for target in targets}
        cmake = (self.root / "CMakeLists.txt").read_text()
        for name, layer in self.layers.items():
            declared = re.search(rf"attend_(?:layer|program)\s*\(\s*{name}\b", cmake)
            for unused in sorted(layer.imports - used[name]):
                self.report("CMakeLists.txt", cmake.count("\n", 0, declared.start()) + 1,
                            f"{name} imports {unused} and includes nothing of it; leave it out")

    def check_rows(self, path, text):
        """Reports comparisons of rows and settings with literals, and tests for suffixes outside their table."""
        if path.parts[0] != "attend" or path.as_posix() in TABLE_FILES:
            return
        code = without_comments(text)
        for match in COMPARISON.finditer(code):
            operand = match["left"] or match["right"] or match["searched"]
            literal = next(match[key] for key in ("right_text", "left_text", "part")
                           if match[key] is not None)
            if compares_row(operand, literal, match["part"] is not None, self.row_names):
                self.report(path, code.count("\n", 0, match.start()) + 1,
                            f'{operand} is compared with "{literal}"; ask a field of the row')
            elif match["part"] is None and compares_setting(operand, literal, self.setting_names):
                self.report(path, code.count("\n", 0, match.start()) + 1,
                            f'setting {operand} is compared with "{literal}"; bind it to an enum, or name '
                            "the word")
        if path.parts[1] == "cli" and path.as_posix() not in FORMATS:
            for match in SUFFIX_ASKED.finditer(code):
                if match[1] in self.format_suffixes:
                    self.report(path, code.count("\n", 0, match.start()) + 1,
                                f'suffix {match[1]} is asked for outside of its table; take format_of')

    def check_own_names(self, names):
        first = {}
        for path, line, name, parameters in names:
            for other, there in first.setdefault(name, []):
                overloads = None not in (parameters, there) and parameters != there
                if other != path and not overloads:
                    self.report(path, line, f"{name} is also declared in {other}, and the two may be "
                                "compiled as one; share it or give it another name")
                    break
            first[name].append((path, parameters))

    def check_words(self, path, names):
        for line, name in sorted(set(names)):
            if name in WORDLESS:
                self.report(path, line, f"{name} says nothing of what it names; call it what it is")
            elif re.search(r"\w_a_\w", name):
                self.report(path, line, f"{name}: write _per_ for _a_, or another name")

    def check_sizes(self, path, text, code):
        lines = text.count("\n")
        if lines > MAXIMUM_FILE:
            self.report(path, lines, f"{lines} lines; split the file, at most {MAXIMUM_FILE}")
        for first, last, head in functions(without_directives(code)):
            if last - first + 1 > MAXIMUM_FUNCTION:
                name = re.search(r"([\w~:]+)\s*\(", head)
                self.report(
                    path, first, f"{name.group(1) if name else 'function'} has {last - first + 1} "
                    f"lines; split it, at most {MAXIMUM_FUNCTION}")

    def check_printing(self, path, code):
        if path.parts[0] != "attend" or path.parts[1] == "cli":
            return
        for match in PRINTING.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            self.report(path, line, f"{match.group().rstrip('( ')}: the library neither prints nor "
                        "ends the program; throw with attend::fail")


def main(arguments):
    root = arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent
    findings = Checker(root).run()
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
