"""`python tools/plain_words.py [PATH ...]`: find words that the project does not use, in text and in identifiers.

`make lint` runs it over `CHECKED`: code, tests, SQL, templates, style sheets, scripts and documents, without the files
in `UNREAD`. Each entry names what to write instead. A line that has to quote such a word (a partner's text, a fixture)
ends with the comment `plain: quoted`.
"""

import re
import sys
from pathlib import Path

#: What is not written -> what is. Identifiers count: `tell_header` contains the word "tell".
INSTEAD = {
    r"tells?|telling|told": "report, log, show, return, say",
    r"whoever": "anyone who, who",
    r"anew": "again",
    r"beside": "next to, alongside, in addition to",
    r"reckon(?:s|ed|ing)?": "compute",
    r"mend(?:s|ed|ing|er)?": "fix, repair",
    r"dwells?|dwelling|behold": "stay, see",
    r"doings": "activity",
    r"dearer": "more expensive",
    r"unheeded|unanswered": "in doubt, not handled",
    r"go(?:es)? dark": "disappear",
    r"so be it": "I accept this risk",
    r"nothing of it": "none of it",
    r"lest|hence|thereof|whereby|wherein|thereby|hither": "a plain conjunction",
    r"have somebody|had somebody": "ask for",
    r"knock(?:s|ed)?": "attempt, request",
    r"at work": "in progress, running",
    r"stands? still|stood still": "stop",
    r"(?:became|becomes) of": "the outcome",
    r"of one's own": "separate, private",
    r"grows? old": "expire",
}
#: "is no catalog" is "is not a catalog"; "there is no feed" and "is no longer" are ordinary.
IS_NO = re.compile(r"(?<!there )(?<!there_)\b(?:is|are|was|were) no (?!longer\b|one\b|more\b)", re.IGNORECASE)
ANY = re.compile(f"(?<![A-Za-z])(?:{'|'.join(INSTEAD)})(?![a-z])|{IS_NO.pattern}", re.IGNORECASE)
WORDS = {re.compile(rf"(?<![A-Za-z])(?:{word})(?![a-z])", re.IGNORECASE): instead for word, instead in INSTEAD.items()}
READ = {".py", ".md", ".html", ".sql", ".js", ".css", ".toml", ".txt", ".yml", ".yaml", ".service"}
#: What is checked without arguments.
CHECKED = (
    *("src", "tests", "docs", "tools", "deploy"),
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml"),
)
#: The list itself.
UNREAD = ("tools/plain_words.py",)
QUOTED = "plain: quoted"


def findings(path: Path) -> list[str]:
    found = []
    text = path.read_text(errors="replace")
    # Most files have none of the words; one search is faster than one for each word and line.
    lines = text.splitlines() if ANY.search(text) else []
    for number, line in enumerate(lines, 1):
        if QUOTED in line:
            continue
        for pattern, instead in {**WORDS, IS_NO: "is not a"}.items():
            found += [f"{path}:{number}: {match[0].strip()!r} ({instead})" for match in pattern.finditer(line)]
    return found


def files_in(path: Path) -> list[Path]:
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in found if file.suffix in READ or file.name == "Makefile"]


def main() -> int:
    paths = [file for name in sys.argv[1:] or CHECKED for file in files_in(Path(name))]
    found = [line for path in paths if not str(path).startswith(UNREAD) for line in findings(path)]
    print("\n".join(found) or f"No words to replace in {len(paths)} files.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
