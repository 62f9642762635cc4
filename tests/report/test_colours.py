from attakit.report.colours import colour_places


def test_a_method_keeps_its_colour_whatever_is_shown_with_it():
    demo = colour_places(["source only", "batch norm", "tent", "anchor head", "simatta"])
    suite = colour_places(["SimATTA (B ≤ 300)", "BN", "Source only", "Tent (steps=1)", "mine"])
    alone = colour_places(["simatta"])
    assert demo["simatta"] == suite["SimATTA (B ≤ 300)"] == alone["simatta"]
    assert demo["batch norm"] == suite["BN"]
    assert demo["source only"] == suite["Source only"]


def test_no_two_methods_have_the_same_place():
    labels = [f"variant {number}" for number in range(30)] + ["tent", "Tent (steps=10)"]
    places = colour_places(labels)
    assert sorted(places.values()) == list(range(32))
    assert list(places) == labels
