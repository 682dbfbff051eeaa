from shop.money import price_tag


def test_a_price_tag_has_two_decimals():
    assert price_tag(1950) == "19.50"
    assert price_tag(5) == "0.05"
