# pyright: basic, reportMissingImports=false
import unittest

from cart import FREE_SHIPPING_FROM, SHIPPING, Item, shipping, subtotal, total


class CartTest(unittest.TestCase):
    def test_quantities_count(self) -> None:
        self.assertEqual(subtotal([Item("tea", 350, 3), Item("pot", 1_200)]), 2_250)

    def test_shipping_is_free_from_the_limit_on(self) -> None:
        self.assertEqual(shipping(FREE_SHIPPING_FROM - 1), SHIPPING)
        self.assertEqual(shipping(FREE_SHIPPING_FROM), 0)

    def test_the_customer_pays_items_and_shipping(self) -> None:
        self.assertEqual(total([Item("tea", 350, 2)]), 700 + SHIPPING)


if __name__ == "__main__":
    unittest.main()
