"""Programs that show, count, sort and compare text. Options: GNU coreutils 9.1, diffutils 3.8, util-linux 2.38, jq 1.6,
by their manuals; those that write, run or read names from a file are left out."""

import re
from collections.abc import Mapping

from amanu.shell import paths
from amanu.shell.call import NotHarmless, ProgramCall
from amanu.shell.options import ParsedOptions
from amanu.shell.spec import Judge, Use

_ONE, _FILES = ("file",), ("file*",)


def _trees_if_recursive(parsed: ParsedOptions, call: ProgramCall) -> None:
    """Raises `NotHarmless` when diff would compare folders that may not be read: it follows links in them."""
    for word in parsed.operands:
        if word.value is not None and (call.context.folder / word.value).is_dir():
            paths.tree(word.value, call.context, follows=not parsed.has("--no-dereference"))


def _jq(parsed: ParsedOptions, call: ProgramCall) -> None:
    if not parsed.operands:
        raise NotHarmless("jq has no filter.")
    program = parsed.operands[0].value
    if program is None:
        raise NotHarmless("The jq filter is only known when it runs.")
    # `env` and `$ENV` are the environment, which may contain tokens; modules are files. `.env` is an ordinary field.
    # There may be blanks and comments between `$` and the name.
    if re.search(
        r"(?<![.\w])(env|import|include|modulemeta|get_search_list|input_filename|\$__loc__)\b|\$(?=[\s#])|\$ENV",
        program,
    ):
        raise NotHarmless("The jq filter can read the environment or other files.")


PROGRAMS: Mapping[str, Judge] = {
    "cat": Use(
        "Shows files.",
        "-A -b -e -E -n -s -t -T -u -v --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs "
        "--show-nonprinting",
        _FILES,
    ),
    "head": Use(
        "Shows the beginning of files.",
        "-c= -n= -q -v -z --bytes= --lines= --quiet --silent --verbose --zero-terminated",
        _FILES,
        digits=True,
    ),
    "tail": Use(  # not -f, -F, --follow, --retry: they never end
        "Shows the end of files.",
        "-c= -n= -q -v -z --bytes= --lines= --quiet --silent --verbose --zero-terminated",
        _FILES,
        digits=True,
    ),
    "wc": Use(
        "Counts lines, words and characters.",
        "-c -m -l -L -w --bytes --chars --lines --max-line-length --words --total=",
        _FILES,
    ),
    "sort": Use(  # not -o, -T, --compress-program, --files0-from, --random-source; nor -S: a small one writes to disk
        "Sorts lines.",
        "-b -d -f -g -i -M -h -n -R -r -V -c -C -k= -m -s -t= -u -z --ignore-leading-blanks --dictionary-order "
        "--ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort "
        "--random-sort --reverse --sort= --version-sort --check?= --debug --key= --merge --stable --field-separator= "
        "--unique --zero-terminated --parallel=",
        _FILES,
    ),
    "uniq": Use(  # a second operand is a file it writes
        "Filters out repeated lines.",
        "-c -d -D -i -u -z -f= -s= -w= --count --repeated --all-repeated?= --skip-fields= --group?= --ignore-case "
        "--skip-chars= --unique --zero-terminated --check-chars=",
        _ONE,
    ),
    "cut": Use(
        "Shows parts of lines.",
        "-b= -c= -d= -f= -n -s -z --bytes= --characters= --delimiter= --fields= --complement --only-delimited "
        "--output-delimiter= --zero-terminated",
        _FILES,
    ),
    "tr": Use(
        "Replaces characters.",
        "-c -C -d -s -t --complement --delete --squeeze-repeats --truncate-set1",
        ("text", "text"),
    ),
    "nl": Use(
        "Numbers lines.",
        "-b= -d= -f= -h= -i= -l= -n= -p -s= -v= -w= --body-numbering= --section-delimiter= --footer-numbering= "
        "--header-numbering= --line-increment= --join-blank-lines= --number-format= --no-renumber "
        "--number-separator= --starting-line-number= --number-width=",
        _FILES,
    ),
    "tac": Use("Shows lines in reverse.", "-b -r -s= --before --regex --separator=", _FILES),
    "rev": Use("Reverses lines.", "", _FILES),
    "paste": Use("Joins lines side by side.", "-d= -s -z --delimiters= --serial --zero-terminated", _FILES),
    "join": Use(
        "Joins lines of two files.",
        "-a= -e= -i -j= -o= -t= -v= -1= -2= -z --ignore-case --check-order --nocheck-order --header --zero-terminated",
        ("file", "file"),
    ),
    "comm": Use(
        "Compares sorted files.",
        "-1 -2 -3 -z --check-order --nocheck-order --output-delimiter= --total --zero-terminated",
        ("file", "file"),
    ),
    "diff": Use(  # not -l (runs pr), -X, --to-file, --from-file, --starting-file
        "Compares files.",
        "-q -s -c -u -e -n -y -r -N -a -b -B -w -i -E -Z -d -t -T -p -C= -U= -W= -L= -x= -I= -F= --brief "
        "--report-identical-files --context?= --unified?= --ed --rcs --side-by-side --width= --left-column "
        "--suppress-common-lines --show-c-function --show-function-line= --label= --expand-tabs --initial-tab "
        "--tabsize= --recursive --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case "
        "--exclude= --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change "
        "--ignore-all-space --ignore-blank-lines --ignore-matching-lines= --text --strip-trailing-cr --minimal "
        "--speed-large-files --color?= --horizon-lines=",
        ("file", "file"),
        digits=True,
        check=_trees_if_recursive,
    ),
    "cmp": Use(
        "Compares files byte by byte.",
        "-b -i= -l -n= -s --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent",
        ("file", "file"),
    ),
    "column": Use(
        "Formats text in columns.",
        "-t -s= -o= -c= -x -d -e -J -N= -H= -R= -T= --table --separator= --output-separator= --output-width= "
        "--fillrows --json --table-columns= --table-hide= --table-right= --table-truncate= --table-noheadings",
        _FILES,
    ),
    "fold": Use("Breaks long lines.", "-b -s -w= --bytes --spaces --width=", _FILES, digits=True),
    "fmt": Use(
        "Reflows paragraphs.",
        "-c -s -t -u -w= -p= -g= --crown-margin --split-only --tagged-paragraph --uniform-spacing --width= --prefix= "
        "--goal=",
        _FILES,
        digits=True,
    ),
    "expand": Use("Converts tabs to spaces.", "-i -t= --initial --tabs=", _FILES, digits=True),
    "unexpand": Use("Converts spaces to tabs.", "-a -t= --all --first-only --tabs=", _FILES),
    "tsort": Use("Sorts by dependency order.", "", _ONE),
    "iconv": Use(  # not -o
        "Changes the encoding of text.",
        "-f= -t= -l -c -s --from-code= --to-code= --list --silent",
        _FILES,
    ),
    "jq": Use(  # not -f, -L, --slurpfile of files elsewhere
        "Filters JSON.",
        "-r -c -n -e -s -S -a -j -R -C -M --raw-output --compact-output --null-input --exit-status --slurp --sort-keys "
        "--ascii-output --join-output --raw-input --color-output --monochrome-output --tab --indent= --seq --stream "
        "--unbuffered",
        ("text", "file*"),
        check=_jq,
    ),
}
