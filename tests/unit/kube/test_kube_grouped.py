"""What is asked for again and again costs no look at all that there is."""

from __future__ import annotations

from storm_operator.kube.grouped import ALL, Grouped

Key = tuple[str, str]


class Scene:
    """A thousand words in ten groups; `ordered` are the keys that were sorted."""

    def __init__(self) -> None:
        self.ordered: list[Key] = []
        self.words: Grouped[Key, str] = Grouped(lambda word: (word[-1],), self.order)
        for number in range(1000):
            self.words.put(key(number), f"word-{number}")

    def order(self, key: Key) -> Key:
        self.ordered.append(key)
        return key


def key(number: int) -> Key:
    return "words", f"{number:03}"


def test_group_is_sorted_without_the_others_and_once() -> None:
    played = Scene()
    expected = tuple(f"word-{number}" for number in range(7, 1000, 10))
    assert [played.words.of("7") for _ in range(3)] == [expected] * 3
    assert len(played.ordered) == 100


def test_change_is_seen_in_its_groups_and_leaves_the_others() -> None:
    played = Scene()
    for group in ("7", "8", "9"):
        played.words.of(group)
    played.ordered.clear()
    played.words.put(key(7), "word-8")
    assert len(played.words.of("7")) == 99
    assert played.words.of("8")[:2] == ("word-8", "word-8")
    assert len(played.words.of("9")) == 100
    assert len(played.ordered) == 99 + 101


def test_what_is_removed_is_in_no_group() -> None:
    played = Scene()
    assert len(played.words.of(ALL)) == 1000
    for number in range(7, 1000, 10):
        played.words.remove(key(number))
        played.words.remove(key(number))
    assert played.words.of("7") == ()
    assert len(played.words.of(ALL)) == 900
    assert played.words.get(key(7)) is None
    assert played.words.get(key(8)) == "word-8"
