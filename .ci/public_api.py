"""Lists the public items of a crate with their signatures, as rustdoc's pages show them, and compares the list with a
file. Arguments: the folder of the crate's pages, the file, the compiler, and perhaps `--update`."""

import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser

# Lists of what follows from other lines: what all types have, and the types that have a trait.
SKIPPED = {"blanket-implementations-list", "implementors-list", "synthetic-implementors-list", "foreign-impls"}
# Other automatic traits come and go with compilers.
AUTOMATIC = {"Send", "Sync", "Unpin", "UnwindSafe", "RefUnwindSafe"}
VOID = {"meta", "link", "br", "img", "input", "hr", "wbr"}
BREAKING, INCOMPARABLE = 1, 77


class Page(HTMLParser):
    """What one page says: its items' signatures, and the pages of a module's items."""

    def __init__(self):
        super().__init__()
        self.open = []  # of each open element: its tag, whether its text is left out, whether it is a signature
        self.section = ""  # the last section's id and class
        self.source = ""  # where the item stands
        self.links = []
        self.lines = []
        self.text = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        if tag == "section":
            self.section = f"{attributes.get('id')} {attributes.get('class')}"
        if tag == "a" and any(name == "dt" for name, _, _ in self.open) and attributes.get("href"):
            self.links.append(attributes["href"])
        left_out = attributes.get("id") in SKIPPED or "tooltip" in classes or tag in {"script", "style", "summary"} and self.text is not None
        signature = self.text is None and ("item-decl" in classes or "code-header" in classes)
        if "src" in classes and not self.source:
            self.source = attributes.get("href", "").replace("../", "")
        if "where" in classes and self.text is not None:
            self.text += " "
        if tag in VOID:
            return
        self.open.append((tag, left_out, signature))
        if signature:
            self.text = ""

    def handle_endtag(self, tag):
        while self.open:
            name, _, signature = self.open.pop()
            if signature:
                self.end_signature()
            if name == tag:
                return

    def handle_data(self, data):
        if self.text is not None and not any(left_out for _, left_out, _ in self.open):
            self.text += data

    def end_signature(self):
        text = " ".join(self.text.split())
        text = re.sub(r"([(\[<]) ", r"\1", text)
        text = re.sub(r",? ([)\]])", r"\1", text)
        skipped = any(left_out for _, left_out, _ in self.open)
        # What a trait already asks for is no news at each of its implementations, and an enum shows its variants itself.
        identity, *classes = self.section.split()
        repeated = "method" in classes and "trait-impl" in classes or "variant" in classes and not self.lines == []
        self.text = None
        if text and not skipped and not repeated:
            self.lines += parts(text)


def parts(text):
    """The lines that a signature is shown in. An enum has one line for each variant, and a trait shows its items apart."""
    text = re.sub(r"(#\[[^\]]*\])(?=\S)", r"\1 ", text)
    found = re.fullmatch(r"((?:#\[.*\] )?pub (?:unsafe )?(?:enum|trait) .*?) ?\{ (.*) \}", text)
    if not found:
        return [text]
    head, body = found.groups()
    if re.search(r"\btrait\b", head):
        return [head]
    lines, depth, variant = [head], 0, ""
    for character in body:
        depth += (character in "([{<") - (character in ")]}>")
        if character == "," and depth == 0:
            lines.append(f"variant {variant.strip()}")
            variant = ""
        else:
            variant += character
    return lines + ([f"variant {variant.strip()}"] if variant.strip() else [])


def gathered(lines):
    """The lines of one item, with its automatic traits in one line, where they hold without a condition."""
    automatic, others = [], []
    for line in lines:
        found = re.fullmatch(r"impl(?:<.*?>)? (!?)(Freeze|UnsafeUnpin|Send|Sync|Unpin|UnwindSafe|RefUnwindSafe) for (.*)", line)
        if line.startswith("impl StructuralPartialEq for "):
            continue  # the compiler's own, for patterns
        if not found:
            others.append(line)
        elif found[2] not in AUTOMATIC:
            continue
        elif " where " in line:
            others.append(line)
        else:
            automatic.append(found[1] + found[2])
    return sorted(others) + ([f"automatic: {' '.join(sorted(automatic))}"] if automatic else [])


def listed(folder):
    """All lines, sorted: the path of the item, and one signature. An item with several paths is shown at the shortest."""
    items, pages, seen = {}, [pathlib.Path("index.html")], set()
    while pages:
        path = pages.pop()
        if path in seen or path.parts[0] == "guide" or not (folder / path).is_file():
            continue
        seen.add(path)
        page = Page()
        page.feed((folder / path).read_text())
        if path.name == "index.html":
            for link in page.links:
                if "#" not in link and ":" not in link and not link.startswith(".."):
                    pages.append(path.parent / link)
            continue
        kind, name, _ = path.name.split(".")
        item = "::".join(("pointsman", *path.parent.parts, name))
        paths, _ = items.setdefault((kind, name, page.source), ([], gathered(page.lines)))
        paths.append(item)
    lines = []
    for paths, signatures in items.values():
        paths.sort(key=lambda path: (path.count("::"), path))
        lines += [f"{paths[0]} | {signature}" for signature in signatures]
        lines += [f"{path} = {paths[0]}" for path in paths[1:]]
    return sorted(set(lines))


def parsed(text):
    """A list as written: its header's facts, and its lines."""
    facts = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# ") and ": " in line)
    return facts, [line for line in text.splitlines() if line and not line.startswith("#")]


def show(title, lines):
    if lines:
        print(f"{title}:")
        print("\n".join(f"  {line}" for line in lines[:60]))
        if len(lines) > 60:
            print(f"  and {len(lines) - 60} more")


def numbers(version):
    return [int(part) for part in version.split("-")[0].split(".")]


def compatible(old, new):
    """Whether semver lets a program that asks for the old version take the new one."""
    old, new = numbers(old), numbers(new)
    first = next((place for place, number in enumerate(old) if number), 2)
    return old[: first + 1] == new[: first + 1] and new >= old


def released(file):
    """The list and version of the last release that this commit descends from, if there is one."""
    tag = subprocess.run(["git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"], capture_output=True, text=True)
    if tag.returncode != 0:
        return None
    tag = tag.stdout.strip()
    text = subprocess.run(["git", "show", f"{tag}:{file}"], capture_output=True, text=True)
    return (tag, *parsed(text.stdout)) if text.returncode == 0 else None


def main(folder, file, compiler, *options):
    version = re.search(r'\[workspace.package\]\s+version = "([^"]+)"', pathlib.Path("Cargo.toml").read_text())[1]
    lines = listed(pathlib.Path(folder))
    if len(lines) < 1000:
        sys.exit(f"only {len(lines)} signatures were found: rustdoc's pages are others than they were")
    facts, before = parsed(pathlib.Path(file).read_text()) if pathlib.Path(file).exists() else ({}, [])
    gone, new = sorted(set(before) - set(lines)), sorted(set(lines) - set(before))
    show("gone or changed", gone)
    show("new", new)
    status = 0

    release = released(file)
    if release is None:
        print("no version has been released with a list: there is none to be compatible with")
    else:
        tag, its_facts, its_lines = release
        broken = sorted(set(its_lines) - set(lines))
        if its_facts.get("compiler") != compiler:
            print(f"the list of {tag} is by {its_facts.get('compiler')}: not compared")
        elif broken and compatible(tag[1:], version):
            show(f"gone or changed since {tag}, with which version {version} claims to be compatible", broken)
            status = BREAKING

    if "--update" in options:
        header = (
            "# The public items of the library with all features, and their signatures. `bash .ci/public-api --update`\n"
            f"# writes this file, and a change of it shows what users of the library meet.\n# compiler: {compiler}\n"
        )
        pathlib.Path(file).write_text(header + "\n".join(lines) + "\n")
        return status
    print(f"{len(lines)} signatures; gone or changed {len(gone)}, new {len(new)}")
    if gone or new:
        if facts.get("compiler") not in (None, compiler):
            print(f"the list is by {facts['compiler']}, and this is {compiler}")
            return status or INCOMPARABLE
        print("`bash .ci/public-api --update` writes the list; the commit that does says why")
        status = BREAKING
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
