//! Hosts by the number of their place, so that a list can run through them without pointers.
//!
//! That a request looks at a few of them, however many there are, is what the pool above exists for.
//! So in tests each look is counted; a scan cannot hide behind a fast machine.

#[cfg(test)]
use std::cell::Cell;

/// Values that stay where they were put.
#[derive(Debug)]
pub(super) struct Slab<T> {
    places: Vec<T>,
    #[cfg(test)]
    steps: Cell<usize>,
}

impl<T> Slab<T> {
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.count(1);
        self.places.get(place)
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        self.count(1);
        self.places.get_mut(place)
    }

    /// Puts it behind the others; gives its place.
    pub(super) fn push(&mut self, value: T) -> usize {
        self.count(1);
        self.places.push(value);
        self.places.len() - 1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.count(self.places.len());
        self.places.iter()
    }

    #[cfg(test)]
    fn count(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps);
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "as in tests")]
    const fn count(&self, _: usize) {}

    /// How many values were looked at so far.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps.get()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            #[cfg(test)]
            steps: Cell::default(),
        }
    }
}
