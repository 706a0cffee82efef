"""Programs that show the content of binary files and archives: GNU binutils 2.40, util-linux 2.38, xxd 2022, file 5.44,
tar 1.34, unzip 6.0. Binutils read options from `@file`, so no operand may begin with `@`."""

import re
from collections.abc import Mapping

from amanu.shell import paths
from amanu.shell.call import Harmless, NotHarmless, ProgramCall
from amanu.shell.options import ParsedOptions
from amanu.shell.spec import Judge, Use

_ONE, _FILES = ("file",), ("file*",)
_SUM = Use(  # not -c: it reads what files a file names
    "Computes checksums.",
    "-b -t -z --binary --text --tag --zero --length= --algorithm= --untagged --raw --base64",
    _FILES,
)


def _no_response_files(parsed: ParsedOptions, call: ProgramCall) -> None:
    if any(word.value is None or word.value.startswith("@") for word in parsed.operands):
        raise NotHarmless(f"{call.program} reads options from files named with @.")


def _xxd(call: ProgramCall) -> Harmless:
    """xxd parses options its own way and writes to its second operand, so only unambiguous calls are accepted."""
    arguments = list(call.values)
    operands: list[str] = []
    while arguments:
        word = arguments.pop(0)
        if word is None:
            raise NotHarmless("The arguments of xxd are only known when it runs.")
        if operands:
            operands.append(word)  # also what looks like an option
            continue
        if word in ("-a", "-b", "-e", "-E", "-i", "-p", "-ps", "-u", "-h", "-v"):
            continue
        if (
            word in ("-c", "-g", "-l", "-s", "-o")
            and arguments
            and re.fullmatch(r"[+-]?(0x)?[0-9a-f]+", arguments[0] or "")
        ):
            arguments.pop(0)
        elif re.fullmatch(r"-[cgls]\d+", word):
            continue
        elif word.startswith("-") and word != "-":
            raise NotHarmless(f"xxd {word} is not known to be read-only.")
        else:
            operands.append(word)
    if len(operands) > 1:
        raise NotHarmless(f"xxd writes the file {operands[1]}.")
    return Harmless(
        "Shows bytes.",
        tuple(str(paths.readable(operand, call.context)) for operand in operands if operand not in ("", "-")),
    )


def _tar(call: ProgramCall) -> Harmless:
    """Accepts only listing, of an archive named by a plain path (`host:file` starts a program)."""
    arguments = call.values
    if not arguments or arguments[0] is None or not re.fullmatch(r"-?[tvzjJ]*t[vzjJ]*f|--list", arguments[0]):
        raise NotHarmless("tar is known to be read-only only when it lists an archive: tar tf, tar tzf, tar tvf.")
    operands = list(arguments[1:])
    if arguments[0] == "--list" and (not operands or operands.pop(0) not in ("-f", "-zf", "-vf", "-zvf")):
        raise NotHarmless("tar is known to be read-only only when it lists an archive: tar tf, tar tzf, tar tvf.")
    if not operands or any(word is None or word.startswith("-") for word in operands) or ":" in (operands[0] or ""):
        raise NotHarmless("Which archive tar would list is not certain.")
    if "TAR_OPTIONS" in call.context.environment:
        raise NotHarmless("TAR_OPTIONS changes what tar does.")
    return Harmless("Lists an archive.", (str(paths.readable(operands[0] or "", call.context)),))


PROGRAMS: Mapping[str, Judge] = {
    "od": Use(
        "Shows bytes.",
        "-A= -j= -N= -S= -t= -v -w?= -a -b -c -d -f -i -l -o -s -x --address-radix= --skip-bytes= --read-bytes= "
        "--strings?= --format= --output-duplicates --width?= --endian=",
        _FILES,
    ),
    "hexdump": Use(
        "Shows bytes.", "-b -c -C -d -o -x -v -e= -n= -s= --canonical --length= --skip= --no-squeezing", _FILES
    ),
    "hd": Use("Shows bytes.", "-b -c -C -d -o -x -v -e= -n= -s=", _FILES),
    "xxd": _xxd,
    "strings": Use(  # not -T
        "Shows text in binary files.",
        "-a -d -f -w -e= -n= -t= -o -s= --all --data --print-file-name --bytes= --radix= --encoding= "
        "--include-all-whitespace --output-separator=",
        _FILES,
        digits=True,
        check=_no_response_files,
    ),
    "nm": Use(
        "Lists the symbols of binary files.",
        "-a -A -C -D -g -l -n -o -p -P -r -S -u -U --defined-only --demangle?= --dynamic --extern-only --numeric-sort "
        "--print-size --size-sort --undefined-only --no-sort --reverse-sort",
        _FILES,
        check=_no_response_files,
    ),
    "readelf": Use(
        "Shows the structure of ELF files.",
        "-a -h -l -S -g -t -e -s -n -r -u -d -V -A -I -W --all --file-header --program-headers --segments "
        "--section-headers --sections --headers --syms --symbols --dyn-syms --notes --relocs --dynamic "
        "--version-info --wide",
        _FILES,
        check=_no_response_files,
    ),
    "size": Use(
        "Shows the sizes of binary files.",
        "-A -B -G -d -o -x -t --format= --radix= --totals",
        _FILES,
        check=_no_response_files,
    ),
    "base64": Use("Encodes or decodes.", "-d -w= --decode --wrap=", _ONE),  # BSD: -i and -o name files
    "base32": Use("Encodes or decodes.", "-d -w= --decode --wrap=", _ONE),
    **{
        name: _SUM
        for name in ("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum")
    },
    "sum": Use("Computes checksums.", "-r -s --sysv", _FILES),
    "file": Use(  # not -C, -f, -m, -p, -s, -z
        "Shows the types of files.",
        "-b -i -k -L -h -N -r -0 -F= -e= --brief --mime --mime-type --mime-encoding --extension --keep-going "
        "--dereference --no-dereference --separator= --raw --print0",
        _FILES,
    ),
    "unzip": Use("Lists an archive.", "-l -v -Z1", _ONE, clusters=False, check=lambda parsed, call: _lists(parsed)),
    "zipinfo": Use(
        "Lists an archive.",
        "-1 -2 -s -m -l -v -h -t",
        ("file", "text*"),
        clusters=False,
        check=lambda parsed, call: _one_archive(parsed),
    ),
    "tar": _tar,
}


def _one_archive(parsed: ParsedOptions) -> None:
    if any(re.search(r"[*?\[\\]", word.value or "") for word in parsed.operands[:1]):
        raise NotHarmless("unzip expands this pattern itself, possibly through links.")


def _lists(parsed: ParsedOptions) -> None:
    _one_archive(parsed)
    if not parsed.has("-l", "-v", "-Z1"):
        raise NotHarmless("unzip extracts the archive's files.")
