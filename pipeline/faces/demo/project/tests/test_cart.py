from shop.cart import Cart


def test_an_empty_cart_costs_nothing():
    assert Cart().total() == 0


def test_the_total_is_the_sum_of_the_lines():
    cart = Cart()
    cart.add("tea", 450)
    cart.add("pot", 1550)
    assert cart.total() == 2000
