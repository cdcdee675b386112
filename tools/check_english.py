#!/usr/bin/env python3
"""Checks that comments, texts of the program and documents are in plain English: check_english.py [--list] [--write] [ROOM]...

PATTERNS lists words and forms that slow readers, and what to write instead. tools/english.json has a budget per room and
pattern. A room over its budget fails, and the places are printed. --list prints the places of all rooms or of the named
ones. --write lowers budgets to the present counts and never raises one.
"""

import argparse
import ast
import collections
import io
import json
import pathlib
import re
import subprocess
import sys
import tokenize
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUDGETS = "tools/english.json"
LONGEST_SENTENCE = 30  # words
DATA = ("tests/old_folders/", "tests/fuzz/", "tools/check_english.py")  # not prose, or the patterns themselves


@dataclass(frozen=True)
class Pattern:
    name: str
    expression: re.Pattern
    instead: str


def pattern(name, expression, instead):
    return Pattern(name, re.compile(expression, re.IGNORECASE), instead)


BEGINS = r"(?:^|[.;:]\s+)"  # of a sentence
PATTERNS = (
    pattern("where", r"\bwhere\b", "if, when; a place may keep it"),
    pattern("behind", r"\bbehind\b|\bin front of\b", "after, before; on top of, for a layer"),
    pattern("those", r"\bthose\b|\bthat of\b|\bof which\b|\bthe same of\b", "the noun again"),
    pattern("no subject", BEGINS + r"(?:What|Of|Whom|Whose|To whom|That|So many)\b", "a noun and a verb"),
    pattern("person", r"\b(?:nobody|who|whom|whose|untold|tells?|(?:is|are|was|were|be) told)\b",
            "is called with, returns, reports"),
    pattern("alone", r"\balone\b", "only, by itself"),
    pattern("none", r"\b(?:has|have|had) none\b|\b(?:is|are|was|were) no\b(?! (?:more|longer|less)\b)",
            "lacks, is not, does not support"),
    pattern("beside", r"\bbeside\b", "with, next to"),
    pattern("goes on", r"\b(?:go|goes|went|going) on\b|\b(?:come|comes|came) of\b|\bstands?\b",
            "continues, results from, is"),
    pattern("so many", r"\b(?:so|thus|as) (?:many|much)\b", "a number, a name or a formula"),
)
SENTENCE = Pattern(f"over {LONGEST_SENTENCE} words", re.compile(""), "several sentences")
CPP_TOKEN = re.compile(r'R"([^()\s]*)\((?:.|\n)*?\)\1"|"(?:\\.| \n|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*'
                       r"|/\*(?:.|\n)*?\*/")
JS_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|`(?:\\.|[^`\\])*`|//[^\n]*|/\*(?:.|\n)*?\*/')
CONTINUED_TEXT = re.compile(r'(?<=[^\\\n(])"\n\s*"(?=[^\n])')  # between two literals of one text
MARKUP = re.compile(r"<[^>]*>|\{[^{}]*[; ][^{}]*\}")  # tags, JSON, CSS
LIST_LINE = re.compile(r"\\n\s*(?=\\n|  )")  # such as a command of --help: ends a sentence
TOOL_COMMENT = re.compile(r"NOLINT|clang-format|namespace|IWYU")


@dataclass(frozen=True)
class Prose:
    """A paragraph: a comment, a text of the program or a part of a document."""

    file: str
    line: int
    text: str


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def kept_lines(instead):
    """A replacement that keeps line breaks, so that numbers of lines stay right."""
    return lambda match: instead + "\n" * match.group().count("\n")


def cpp_prose(file, text):
    """Comments, of which whole lines that follow each other are one, and texts of three words or more."""
    return code_prose(file, CONTINUED_TEXT.sub(" \n", text), CPP_TOKEN, '"')


def js_prose(file, text):
    return code_prose(file, text, JS_TOKEN, "\"'`")


def code_prose(file, text, tokens, quotes):
    found = []
    for match in tokens.finditer(text):
        token, line = match.group(), line_of(text, match.start())
        if token.startswith(("//", "/*")):
            content = token.strip("/* \n")
            if TOOL_COMMENT.search(content):
                continue
            whole = not text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
            last = found[-1] if found else None
            if whole and last and last[2] and last[1] + last[3].count("\n") + 1 == line:
                last[3] += "\n" + content
            else:
                found.append([file, line, whole, content])
        elif token[0] in quotes + "R" and len(token.replace(" \n", "").split()) >= 3:
            prose = LIST_LINE.sub(kept_lines("; "), MARKUP.sub(kept_lines("{}"), token.strip(quotes)))
            found.append([file, line, False, re.sub(r"\\n|\\\"", " ", prose)])
    return [Prose(name, line, content) for name, line, _, content in found]


def text_of(node):
    """The text of a literal, with x for the values in an f-string; empty for other nodes."""
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "x" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def python_texts(tree):
    """The literals of three words or more, except docstrings and lists of words, such as "a b c".split()."""
    others = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    others |= {id(node.value) for node in ast.walk(tree) if isinstance(node, (ast.Expr, ast.Attribute))}
    for node in ast.walk(tree):
        if id(node) not in others and len(text_of(node).split()) >= 3:
            yield node


def python_prose(file, text):
    """Comments, docstrings without their commands and, except in tests, whose texts are data, other texts."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            found.append(Prose(file, token.start[0], token.string.lstrip("# ")))
    tree = ast.parse(text)
    if "tests/" not in file:
        found += [Prose(file, node.lineno, text_of(node)) for node in python_texts(tree)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (words := ast.get_docstring(node)):
            found += [Prose(file, node.body[0].lineno, part) for part in re.split(r"\n\s*\n", words)
                      if not part.startswith("    ")]
    return found


def hash_prose(file, text):
    """Comments that begin with # in shell, TOML and CMake."""
    return [Prose(file, number, line.split("# ", 1)[1]) for number, line in enumerate(text.splitlines(), 1)
            if re.match(r"\s*# ", line)]


def markdown_prose(file, text):
    """Paragraphs, items and rows of tables, without code."""
    blank = re.sub(r"(?ms)^ *```.*?^ *```$|^(?: {4}|\t).*?$|^<!--.*?-->$",
                   lambda match: "\n" * match.group().count("\n"), text)
    found, place = [], 0
    for part in re.split(r"(\n\s*\n|\n(?=\s*[-*|#]|\s*\d+\. ))", blank):
        if part.strip():
            found.append(Prose(file, line_of(blank, place), re.sub(r"`[^`]*`", "code", part.strip())))
        place += len(part)
    return found


READERS = {".h": cpp_prose, ".cpp": cpp_prose, ".js": js_prose, ".py": python_prose, ".md": markdown_prose,
           ".sh": hash_prose, ".bash": hash_prose, ".toml": hash_prose, ".cmake": hash_prose}
NAMED_READERS = {"dev": hash_prose, "run": hash_prose, "CMakeLists.txt": hash_prose}


def room(file):
    """The folder that a budget is for; each document has its own."""
    parts = pathlib.PurePath(file).parts
    if file.endswith(".md"):
        return file
    if len(parts) == 1:
        return "."
    return "/".join(parts[:2]) if parts[0] in ("attend", "tests") and len(parts) > 2 else parts[0]


def places(paragraph):
    """(pattern, line) of each finding in a paragraph."""
    for one in PATTERNS:
        for match in one.expression.finditer(paragraph.text):
            yield one, paragraph.line + paragraph.text.count("\n", 0, match.start())
    if paragraph.text.lstrip().startswith("|"):
        return  # a row of a table has cells, not sentences
    for sentence in re.finditer(r"(?:[^.;:!?]|[.;:!?](?!\s|$))+", paragraph.text):
        if len(re.findall(r"[A-Za-z]\w*", sentence.group())) > LONGEST_SENTENCE:
            yield SENTENCE, paragraph.line + paragraph.text.count("\n", 0, sentence.start())


def sources(root):
    """Files that git keeps, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def findings(root, files):
    """{room: {name of a pattern: [(file, line)]}}"""
    result = collections.defaultdict(lambda: collections.defaultdict(list))
    for file in sorted(set(files)):
        path = root / file
        reader = READERS.get(path.suffix) or NAMED_READERS.get(path.name)
        if not reader or file.startswith(DATA) or not path.is_file():
            continue
        for paragraph in reader(file, path.read_text(encoding="utf-8", errors="replace")):
            for one, line in places(paragraph):
                result[room(file)][one.name].append((file, line))
    return result


def over_budget(found, budgets):
    """Prints the rooms that have more of a pattern than their budget; returns whether there are any."""
    over = False
    instead = {one.name: one.instead for one in (*PATTERNS, SENTENCE)}
    for name, patterns in sorted(found.items()):
        for one, where in patterns.items():
            limit = budgets.get(name, {}).get(one, 0)
            if len(where) > limit:
                over = True
                print(f'{name}: "{one}" {len(where)} times, at most {limit}; write {instead[one]}:')
                print("\n".join(f"    {file}:{line}" for file, line in where))
    return over


def lowered(found, budgets):
    """The present counts, unless a budget is lower. The first budgets are the present counts."""
    result = {}
    for name, patterns in sorted(found.items()):
        for one, where in sorted(patterns.items()):
            count = min(len(where), budgets.get(name, {}).get(one, 0) if budgets else len(where))
            if count:
                result.setdefault(name, {})[one] = count
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rooms", nargs="*", metavar="ROOM")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    options = parser.parse_args()
    file = options.root / BUDGETS
    budgets = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    found = findings(options.root, sources(options.root))
    if options.list:
        for name in options.rooms or sorted(found):
            for one, where in found[name].items():
                print("\n".join(f'{file}:{line}: "{one}"' for file, line in where))
        return 0
    if options.write:
        file.write_text(json.dumps(lowered(found, budgets), indent=1) + "\n", encoding="utf-8")
        return 0
    return 1 if over_budget(found, budgets) else 0


if __name__ == "__main__":
    sys.exit(main())
