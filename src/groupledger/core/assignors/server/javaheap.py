"""Emulate a `java.util.PriorityQueue`: of equal elements, the order in which they leave it depends on its array.

Worked example: a, b and c of load 0 leave in the order a, c, b: the last element of the array replaces a removed head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class JavaHeap(Generic[T]):
    """A queue of elements, least `key` first; a key may change only while its element is not queued."""

    def __init__(self, key: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        """Add the elements one by one, as `addAll` does."""
        self._key = key
        self._array: list[T] = []
        for each in elements:
            self.add(each)

    def __len__(self) -> int:
        return len(self._array)

    def add(self, element: T) -> None:
        """Append the element and move it up past parents that are greater."""
        array, key = self._array, self._key(element)
        array.append(element)
        place = len(array) - 1
        while place and key < self._key(array[(place - 1) // 2]):
            array[place] = array[(place - 1) // 2]
            place = (place - 1) // 2
        array[place] = element

    def poll(self) -> T:
        """Remove the head; the last element takes its place and moves down past children that are less."""
        array = self._array
        head, last = array[0], array.pop()
        if array:
            self._sink(last)
        return head

    def _sink(self, element: T) -> None:
        array, key, place = self._array, self._key(element), 0
        while 2 * place + 1 < len(array):
            child = 2 * place + 1
            if child + 1 < len(array) and self._key(array[child + 1]) < self._key(array[child]):
                child += 1
            if key <= self._key(array[child]):
                break
            array[place] = array[child]
            place = child
        array[place] = element
