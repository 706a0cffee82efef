"""Tests over vendors. `make test` takes one vendor of each column of the table, another one for each test, and of what
is a product (vendors × faults, one vendor × another) a sample in which each is; `make soak` takes all."""

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from support.sweeps import WHOLE, sample_pairs
from support.vendors import VENDORS, Need, Vendor

Test = TypeVar("Test", bound=Callable[..., Any])


def over_vendors(*needs: Need) -> Callable[[Test], Test]:
    """Run the test over the vendors that have what is named. Its name is a line of the table (`vendor_matrix.py`)."""

    def mark(test: Test) -> Test:
        at = zlib.crc32(test.__name__.encode())
        columns = _by(able(*needs), lambda vendor: vendor.column).values()
        taken = able(*needs) if WHOLE else [column[at % len(column)] for column in columns]
        over = pytest.mark.parametrize("vendor", taken, ids=[vendor.name for vendor in taken])
        return pytest.mark.behaviour(*needs)(over(test))

    return mark


def over_cases(names: str, cases: Mapping[str, Any], *needs: Need) -> Callable[[Test], Test]:
    """Run the test over vendors and cases: values of the names, by what the case is called. In a sample each wire has
    each case, and each vendor has some."""
    pairs = vendor_pairs(able(*needs), cases)
    values = [(vendor, *(cases[case] if "," in names else (cases[case],))) for vendor, case in pairs]
    called = [f"{case}-{vendor.name}" for vendor, case in pairs]

    def mark(test: Test) -> Test:
        over = pytest.mark.parametrize(("vendor", *names.split(", ")), values, ids=called)
        return pytest.mark.behaviour(*needs)(over(test))

    return mark


def over_handovers() -> Callable[[Test], Test]:
    """Run the test over ways to go on with another vendor: from `first` to `vendor`. In a sample each vendor is on both
    sides, and each service before each other."""

    def mark(test: Test) -> Test:
        pairs = [(one, other) for one in VENDORS for other in VENDORS if one.service is not other.service]
        if not WHOLE:
            at = zlib.crc32(test.__name__.encode())
            kinds = list(_by(VENDORS, lambda vendor: vendor.service).values())
            pairs = [
                (one[(at + row + column) % len(one)], other[(at + row) % len(other)])
                for row, one in enumerate(kinds)
                for column, other in enumerate(kinds)
                if one is not other
            ]
        called = [f"{first.name}-{vendor.name}" for first, vendor in pairs]
        return pytest.mark.behaviour()(pytest.mark.parametrize(("first", "vendor"), pairs, ids=called)(test))

    return mark


def able(*needs: Need) -> list[Vendor]:
    return [vendor for vendor in VENDORS if not vendor.lacks.keys() & set(needs)]


def of_each_wire(vendors: Sequence[Vendor], at: int) -> Sequence[Vendor]:
    """One vendor of each wire, in turn from case to case; or all."""
    return vendors if WHOLE else [wire[at % len(wire)] for wire in _by(vendors, _wire).values()]


def vendor_pairs(vendors: Sequence[Vendor], cases: Iterable[str]) -> list[tuple[Vendor, str]]:
    """Each case with a vendor of each wire, and each vendor with a case; or all pairs."""
    return [pair for wire in _by(vendors, _wire).values() for pair in sample_pairs(wire, list(cases))]


def _wire(vendor: Vendor) -> Any:
    """The wire that its service speaks, whatever the service is told besides."""
    return getattr(vendor.service, "func", vendor.service)


def _by(vendors: Iterable[Vendor], key: Callable[[Vendor], Any]) -> dict[Any, list[Vendor]]:
    found: dict[Any, list[Vendor]] = {}
    for vendor in vendors:
        found.setdefault(key(vendor), []).append(vendor)
    return found
