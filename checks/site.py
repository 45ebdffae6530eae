"""Makes one HTML site of the Markdown files, with the index of docs/README.md beside every page.

checks/site runs it. A link that leads nowhere in the site is an error.
"""

import html
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import markdown
from markdown.extensions.toc import TocExtension

ROOT = Path(__file__).resolve().parent.parent
INDEX = "docs/README.md"
STYLE = """
:root { color-scheme: light dark; --text: #1e293b; --page: #ffffff; --soft: #f1f5f9; --line: #cbd5e1; --link: #1d4ed8; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e2e8f0; --page: #0f172a; --soft: #1e293b; --line: #475569; --link: #93c5fd; }
}
body { margin: 0; color: var(--text); background: var(--page); font: 16px/1.6 system-ui, sans-serif; }
a { color: var(--link); }
.page { display: flex; gap: 2rem; max-width: 80rem; margin: 0 auto; padding: 1rem; }
nav { flex: 0 0 15rem; font-size: 0.9rem; }
nav ul { list-style: none; padding: 0; margin: 0 0 1rem; }
nav a { text-decoration: none; }
nav [aria-current] { font-weight: 700; color: inherit; }
main { flex: 1; min-width: 0; }
pre, code { background: var(--soft); border-radius: 4px; font-size: 0.9em; }
pre { padding: 0.8rem; overflow-x: auto; }
code { padding: 0.1em 0.3em; }
pre code { padding: 0; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; text-align: left; vertical-align: top; }
img { max-width: 100%; background: #ffffff; }
@media (max-width: 50rem) { .page { flex-direction: column; } nav { flex: none; } }
"""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Uptack</title>
<link rel="stylesheet" href="{root}style.css">
<div class="page">
<nav>{navigation}</nav>
<main>
{body}
</main>
</div>
</html>
"""


def slug(title, _separator):
    """An anchor as GitHub makes it."""
    kept = "".join(c for c in html.unescape(title).strip().lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def place(source):
    """Where the page of a Markdown file goes: the README of a folder is its index."""
    path = Path(source)
    return str(path.with_name("index.html") if path.name == "README.md" else path.with_suffix(".html"))


def way(source, target):
    """From the page of one file to that of another."""
    return "../" * (len(Path(source).parts) - 1) + target


def sources():
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("bench/**/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def navigation(source, index):
    """The index of the documentation, seen from one page."""
    parts = [f'<ul><li><a href="{way(source, "index.html")}">Uptack</a></li></ul>']
    for heading, entries in index:
        parts.append(f"<strong>{html.escape(heading)}</strong><ul>")
        for name, target in entries:
            here = ' aria-current="page"' if target == source else ""
            parts.append(f'<li><a{here} href="{way(source, place(target))}">{html.escape(name)}</a></li>')
        parts.append("</ul>")
    return "\n".join(parts)


def read_index():
    """Headings of docs/README.md with the pages that are listed below each."""
    index = [("Start", [("Tutorial", "docs/tutorial.md"), ("FAQ", "docs/faq.md"), ("Glossary", "docs/glossary.md")])]
    for line in (ROOT / INDEX).read_text().splitlines():
        if line.startswith("## "):
            index.append((line[3:], []))
        elif line.startswith("- "):
            for name, target in re.findall(r"\[([^\]]+)\]\(([^)]+\.md)\)", line):
                path = (ROOT / "docs" / target).resolve().relative_to(ROOT)
                index[-1][1].append((name[0].upper() + name[1:], str(path)))
    return index


def with_site_links(body, source, known):
    """Links between Markdown files, as links between pages."""

    def link(match):
        target, hash_sign, anchor = html.unescape(match[2]).partition("#")
        if not target.endswith(".md") or "://" in target:
            return match[0]
        path = (ROOT / source).parent / target
        path = str(path.resolve().relative_to(ROOT))
        return f'{match[1]}"{way(source, place(path))}{hash_sign}{anchor}"' if path in known else match[0]

    return re.sub(r'(href=)"([^"]+)"', link, body)


def make(folder):
    known, index = sources(), read_index()
    for source in known:
        # `checks/site` reads what GitHub reads: a list needs no blank line before it.
        converter = markdown.Markdown(
            extensions=["tables", "fenced_code", "sane_lists", TocExtension(slugify=slug)], tab_length=2
        )
        text = (ROOT / source).read_text()
        title = text.splitlines()[0].lstrip("# ")
        body = with_site_links(converter.convert(text), source, known)
        page = folder / place(source)
        page.parent.mkdir(parents=True, exist_ok=True)
        root = way(source, "")
        page.write_text(PAGE.format(title=html.escape(title), root=root, navigation=navigation(source, index), body=body))
    shutil.copytree(ROOT / "docs/figures", folder / "docs/figures")
    (folder / "style.css").write_text(STYLE)
    copy_linked_files(folder)
    return known


def copy_linked_files(folder):
    """Files of the repository that pages lead to and that are not pages: schemas, vectors, notebooks, licences."""
    for page in list(folder.rglob("*.html")):
        for target in Links(page).targets:
            path = unquote(target).partition("#")[0]
            reached = (page.parent / path).resolve()
            if "://" in target or reached.exists() or not reached.is_relative_to(folder):
                continue
            name = reached.relative_to(folder)
            if (ROOT / name).is_file():
                reached.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, reached)


class Links(HTMLParser):
    """Where a page leads, and the anchors that it has."""

    def __init__(self, page):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        self.targets += [attributes[name] for name in ("href", "src") if name in attributes]


def dead_links(folder):
    pages = {page: Links(page) for page in folder.rglob("*.html")}
    for page, links in pages.items():
        for target in links.targets:
            if "://" in target or target.startswith("mailto:"):
                continue
            path, _, anchor = unquote(target).partition("#")
            reached = (page.parent / path).resolve() if path else page
            if not reached.exists() or (anchor and anchor not in pages[reached].anchors):
                yield f"{page.relative_to(folder)}: {target}"


def main():
    folder = Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    made = make(folder)
    dead = list(dead_links(folder))
    print(*dead, sep="\n", end="\n" if dead else "")
    print(f"{len(made)} pages in {folder / 'index.html'}, {len(dead)} dead links")
    sys.exit(1 if dead else 0)


main()
