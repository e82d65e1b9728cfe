//! The keys of ten million lines, in a few bytes each.
//!
//! That no line is done twice is exact: a filter that is wrong now and then would leave URLs out,
//! and nobody would notice. So the keys themselves are held, as compactly as that can be done. Of
//! the 128 bits of a key, mixed so that ids somebody made up spread as well as digests do, 80 stand
//! in a slot and the others tell where the slot is. Two different lines that are taken for the same
//! need 80 equal bits and neighbouring places: with ten million lines the probability that this
//! happens anywhere in the run is below 10⁻¹³.
//!
//! A table that is full is never copied into a larger one, which would need both at the same time:
//! a further one is added, half as large as all before it together, and a search looks into each.
//! Tables are filled to seven eighths, so a key costs between 11.4 and 17.2 bytes, and the places of
//! keys never change.

use super::Key;

/// Of a key, in a slot.
const BYTES: usize = 10;
/// Of the first table; 40 KiB.
const FIRST: usize = 4096;

/// A set of keys that only grows.
#[derive(Debug, Default)]
pub(super) struct KeySet {
    tables: Vec<Table>,
    slots: usize,
    count: usize,
}

impl KeySet {
    /// Adds a key; whether it is new.
    pub(super) fn insert(&mut self, key: Key) -> bool {
        let mixed = Mixed::of(key);
        let Some((last, older)) = self.tables.split_last_mut() else {
            self.grow(mixed);
            return true;
        };
        if older.iter().any(|table| table.find(mixed).is_ok()) {
            return false;
        }
        match last.find(mixed) {
            Ok(_) => return false,
            Err(free) if !last.is_full() => last.put(free, mixed),
            Err(_) => {
                self.grow(mixed);
                return true;
            }
        }
        self.count += 1;
        true
    }

    /// The place of a key: a number below [`slots`](Self::slots) that stays the same.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        let mixed = Mixed::of(key);
        let mut before = 0;
        for table in &self.tables {
            if let Ok(slot) = table.find(mixed) {
                return Some(before + slot);
            }
            before += table.slots;
        }
        None
    }

    /// How many places there are, free ones included.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Adds a table, and to it the key that needs it.
    fn grow(&mut self, first: Mixed) {
        let mut table = Table::new(FIRST.max(self.slots / 2));
        if let Err(free) = table.find(first) {
            table.put(free, first);
        }
        self.slots += table.slots;
        self.count += 1;
        self.tables.push(table);
    }
}

/// A key whose bits all depend on each other.
#[derive(Clone, Copy)]
struct Mixed {
    kept: [u8; BYTES],
    /// 48 bits.
    place: u64,
}

impl Mixed {
    /// Each step can be undone, so different keys stay different.
    fn of(key: Key) -> Self {
        // Odd, and without a pattern: the digits of π and of e.
        const PI: u128 = 0x243f_6a88_85a3_08d3_1319_8a2e_0370_7345;
        const E: u128 = 0xb7e1_5162_8aed_2a6a_bf71_5880_9cf4_f3c7;
        let mut bits = key.bits();
        bits = (bits ^ (bits >> 67)).wrapping_mul(PI);
        bits = (bits ^ (bits >> 71)).wrapping_mul(E);
        bits ^= bits >> 65;
        let [a, b, c, d, e, f, g, h, i, j, place @ ..] = bits.to_be_bytes();
        let mut kept = [a, b, c, d, e, f, g, h, i, j];
        if kept == [0; BYTES] {
            // That is what a free slot looks like.
            kept = [0xff; BYTES];
        }
        let place = place.into_iter().fold(0, |sum, byte| sum << 8 | u64::from(byte));
        Self { kept, place }
    }
}

/// Slots of which the free ones are zero; a key stands in the first free one from its place on.
#[derive(Debug)]
struct Table {
    bytes: Vec<u8>,
    slots: usize,
    used: usize,
}

impl Table {
    fn new(slots: usize) -> Self {
        Self { bytes: vec![0; slots * BYTES], slots, used: 0 }
    }

    fn is_full(&self) -> bool {
        self.used >= self.slots / 8 * 7
    }

    /// The slot of a key, or the one where it would have to be put.
    fn find(&self, mixed: Mixed) -> Result<usize, usize> {
        let from = (u128::from(mixed.place) * self.slots as u128) >> 48;
        let from = usize::try_from(from).unwrap_or_default();
        for slot in (from..self.slots).chain(0..from) {
            let at = slot * BYTES;
            match self.bytes.get(at..at + BYTES) {
                Some(kept) if kept == mixed.kept => return Ok(slot),
                Some(kept) if kept.iter().any(|byte| *byte != 0) => {}
                _ => return Err(slot),
            }
        }
        // Never: an eighth is always free.
        Err(from)
    }

    fn put(&mut self, slot: usize, mixed: Mixed) {
        let at = slot * BYTES;
        if let Some(place) = self.bytes.get_mut(at..at + BYTES) {
            place.copy_from_slice(&mixed.kept);
            self.used += 1;
        }
    }
}

/// Which keys of a set that does not grow any more were met.
#[derive(Debug, Clone, Default)]
pub(super) struct Met(Vec<u64>);

impl Met {
    /// None of them yet.
    pub(super) fn none_of(keys: &KeySet) -> Self {
        Self(vec![0; keys.slots().div_ceil(64)])
    }

    /// Notes the key at this place; whether that is the first time.
    pub(super) fn is_first(&mut self, place: usize) -> bool {
        let Some(bits) = self.0.get_mut(place / 64) else { return true };
        let bit = 1 << (place % 64);
        let is_first = *bits & bit == 0;
        *bits |= bit;
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn numbered(number: u128) -> Key {
        Key::of_id(&format!("{number:032x}"))
    }

    #[test]
    fn each_key_once_however_many_tables_there_are() {
        let mut keys = KeySet::default();
        for number in 0..100_000 {
            assert!(keys.insert(numbered(number)), "{number}");
        }
        assert!((0..100_000).all(|number| !keys.insert(numbered(number))));
        assert_eq!(keys.len(), 100_000);
        assert!(keys.tables.len() > 5, "{}", keys.tables.len());
    }

    #[test]
    fn ids_with_a_pattern_spread_as_digests_do() {
        // As counters, clocks and half-used identifiers are made: low bits, high bits, every 64th.
        for shift in [0, 6, 32, 64, 96, 108] {
            let mut keys = KeySet::default();
            let all: Vec<_> = (0..20_000_u128).map(|number| numbered(number << shift)).collect();
            assert!(all.iter().all(|key| keys.insert(*key)), "{shift}");
            for table in &keys.tables {
                let longest = (0..table.slots)
                    .map(|slot| table.bytes[slot * BYTES..(slot + 1) * BYTES] != [0; BYTES])
                    .fold((0, 0), |(longest, now), used| {
                        let now = if used { now + 1 } else { 0 };
                        (now.max(longest), now)
                    });
                assert!(longest.0 < 1000, "{shift}: {longest:?} of {}", table.slots);
            }
        }
    }

    #[test]
    fn a_key_costs_at_most_what_is_said() {
        let mut keys = KeySet::default();
        for number in 0..300_000_u32 {
            keys.insert(numbered(number.into()));
            let bytes = keys.tables.iter().map(|table| table.bytes.len()).sum::<usize>();
            let bound = f64::from(number + 1) * 17.2;
            assert!(number < 8192 || bytes as f64 <= bound, "{number}: {bytes}");
        }
    }

    #[test]
    fn places_stay_and_are_met_once() {
        let mut keys = KeySet::default();
        for number in 0..5_000 {
            keys.insert(numbered(number));
        }
        let places: Vec<_> =
            (0..5_000).map(|number| keys.find(numbered(number)).unwrap()).collect();
        assert_eq!(places.iter().collect::<HashSet<_>>().len(), 5_000);
        assert!(places.iter().all(|place| *place < keys.slots()));
        assert_eq!(keys.find(numbered(5_000)), None);
        let mut met = Met::none_of(&keys);
        assert!(places.iter().all(|place| met.is_first(*place)));
        assert!(places.iter().all(|place| !met.is_first(*place)));
        keys.insert(numbered(5_000));
        assert_eq!(keys.find(numbered(17)), Some(places[17]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn it_is_the_set_of_the_library(numbers in prop::collection::vec(0..3000_u128, 0..6000)) {
            let (mut keys, mut wanted) = (KeySet::default(), HashSet::new());
            for number in numbers {
                prop_assert_eq!(keys.insert(numbered(number)), wanted.insert(number));
            }
            prop_assert_eq!(keys.len(), wanted.len());
            for number in 0..3000 {
                prop_assert_eq!(keys.find(numbered(number)).is_some(), wanted.contains(&number));
            }
        }
    }
}
