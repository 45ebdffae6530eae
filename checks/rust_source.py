"""Rust sources as the checks see them: the modules of a crate, without comments and without tests."""

import re

IDENTIFIER = r"[A-Za-z_][A-Za-z0-9_]*"
COMMENT = r"//[^\n]*|/\*.*?\*/"
# A lifetime is not a character literal.
TEXT = r'b?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\\\'])\''
LITERAL = re.compile(f"{COMMENT}|{TEXT}", re.DOTALL)


def blank(match):
    """Spaces in place of a match; lines stay where they are."""
    return re.sub(r"[^\n]", " ", match.group())


def blank_comment(match):
    return blank(match) if match.group().startswith("/") else match.group()


def closing(text, at):
    """The index after the brace that closes the one at `at`."""
    depth = 0
    for index in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    return len(text)


def test_items(code):
    """Where the items behind `#[cfg(test)]` and the like are, and the names of the test modules declared there."""
    spans, names = [], set()
    for match in re.finditer(r"#\[cfg\((?:all\()?(?:doc)?test\b[^\]]*\]\s*", code):
        item = re.compile(r"(?:#\[[^\]]*\]\s*)*[^{;]*[{;]").match(code, match.end())
        if not item:
            continue
        end = closing(code, item.end() - 1) if code[item.end() - 1] == "{" else item.end()
        declared = re.search(rf"\bmod\s+({IDENTIFIER})\s*;", code[match.start() : end])
        if declared:
            names.add(declared.group(1))
        spans.append((match.start(), end))
    return spans, names


class Module:
    """A file: `code` is its text without comments, literals and tests; `text` is the same with the literals."""

    def __init__(self, path, file):
        self.path, self.file = path, file
        source = file.read_text(encoding="utf8")
        code, text = LITERAL.sub(blank, source), LITERAL.sub(blank_comment, source)
        spans, self.tests = test_items(code)
        for start, end in spans:
            code = code[:start] + re.sub(r"[^\n]", " ", code[start:end]) + code[end:]
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        self.code, self.text = code, text

    def line(self, index):
        """The number of the line that a place in `code` or `text` is in."""
        return self.code.count("\n", 0, index) + 1


def modules_of(source):
    """All modules of a crate that are not for tests, by path. A binary beside a library is left out: a crate of its own."""
    found = {}
    for file in sorted(source.rglob("*.rs")):
        path = list(file.relative_to(source).with_suffix("").parts)
        if path[-1] in ("mod", "lib", "main") and (path[-1] == "mod" or len(path) == 1):
            path.pop()
        if file.name == "main.rs" and (source / "lib.rs").exists() or path[:1] == ["bin"]:
            continue
        found[tuple(path)] = Module(tuple(path), file)
    tests = {module.path + (name,) for module in found.values() for name in module.tests}
    return {path: module for path, module in found.items() if not any(path[: len(test)] == test for test in tests)}


def leaves(tree):
    """The paths of a use tree, each with the name it gets: `a::{b, c as d}` → (a::b, b), (a::c, d)."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        segments = [segment.strip() for segment in path.split("::") if segment.strip()]
        if segments and segments[-1] == "self":
            segments.pop()
        if segments:
            yield segments, name.strip() or segments[-1]
        return
    head = [segment.strip() for segment in tree[:brace].split("::") if segment.strip()]
    depth, start = 0, brace + 1
    for index in range(brace, len(tree)):
        depth += {"{": 1, "}": -1}.get(tree[index], 0)
        if (tree[index] == "," and depth == 1) or (tree[index] == "}" and depth == 0):
            for segments, name in leaves(tree[start:index]):
                yield head + segments, name
            if re.fullmatch(r"\s*self\s*", tree[start:index]):
                yield head, head[-1]
            start = index + 1


def imports(code):
    """Every path of every `use`, with its name and its place in the text."""
    for match in re.finditer(rf"\buse\s+((?:{IDENTIFIER}|::)[^;]*);", code):
        for segments, name in leaves(match.group(1)):
            yield segments, name, match.start()
