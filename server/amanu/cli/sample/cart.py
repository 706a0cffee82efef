"""The till of a small shop. All amounts are in cents."""

from dataclasses import dataclass

SHIPPING = 490
FREE_SHIPPING_FROM = 5_000


@dataclass(frozen=True)
class Item:
    name: str
    price: int
    quantity: int = 1


def subtotal(items: list[Item]) -> int:
    """What all the items cost."""
    return sum(item.price for item in items)


def shipping(amount: int) -> int:
    """What sending costs; nothing from FREE_SHIPPING_FROM on."""
    return 0 if amount > FREE_SHIPPING_FROM else SHIPPING


def total(items: list[Item]) -> int:
    """What the customer pays."""
    amount = subtotal(items)
    return amount + shipping(amount)
