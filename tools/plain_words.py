"""`python tools/plain_words.py [PATH ...]`: find words that the project does not use, in text and in identifiers.

`make lint` runs it over everything that people read. Each entry names what to write instead. A line that has to quote
such a word (a partner's text, a fixture) ends with the comment `plain: quoted`.
"""

import re
import subprocess
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
}
#: "is no catalog" is "is not a catalog"; "there is no feed" and "is no longer" are ordinary.
IS_NO = re.compile(r"(?<!there )(?<!there_)\b(?:is|are|was|were) no (?!longer\b|one\b|more\b)", re.IGNORECASE)
WORDS = {re.compile(rf"(?<![A-Za-z])(?:{word})(?![a-z])", re.IGNORECASE): instead for word, instead in INSTEAD.items()}
READ = {".py", ".md", ".html", ".sql", ".js", ".css", ".toml", ".txt", ".yml", ".yaml", ".service"}
#: The list itself.
UNREAD = {"tools/plain_words.py"}
QUOTED = "plain: quoted"


def findings(path: Path) -> list[str]:
    found = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        if QUOTED in line:
            continue
        for pattern, instead in {**WORDS, IS_NO: "is not a"}.items():
            found += [f"{path}:{number}: {match[0].strip()!r} ({instead})" for match in pattern.finditer(line)]
    return found


def main() -> int:
    listed = subprocess.run(["git", "ls-files", *sys.argv[1:]], capture_output=True, text=True, check=True).stdout  # noqa: S607 - git
    paths = [Path(name) for name in listed.splitlines() if name not in UNREAD]
    found = [line for path in paths if path.suffix in READ or path.name == "Makefile" for line in findings(path)]
    print("\n".join(found) or "No words to replace.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
