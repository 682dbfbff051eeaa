from slugs import slug


def test_a_space_becomes_a_hyphen() -> None:
    assert slug("Hello World") == "hello-world"
