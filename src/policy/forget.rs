//! Maps that stay bounded however long a run is.
//!
//! What a run remembers of hosts must not grow with the hosts it meets. Looking for the one entry to
//! drop at every insertion would make insertion slow, so a full map drops a quarter at once.

use std::collections::HashMap;

/// Where the map has `most` entries or more: drops the quarter whose `keep` is the least.
pub(super) fn make_room<K, V, O: Ord + Copy>(
    map: &mut HashMap<K, V>,
    most: usize,
    keep: impl Fn(&V) -> O,
) {
    if map.len() < most {
        return;
    }
    let mut order: Vec<O> = map.values().map(&keep).collect();
    order.sort_unstable();
    let Some(last_to_go) = order.get(most / 4).copied() else { return };
    let mut to_go = (most / 4).max(1);
    map.retain(|_, value| {
        let goes = to_go > 0 && keep(value) <= last_to_go;
        to_go -= usize::from(goes);
        !goes
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_quarter_goes_at_once() {
        let mut map: HashMap<u32, u32> = (0..99).map(|n| (n, n)).collect();
        make_room(&mut map, 100, |value| *value);
        assert_eq!(map.len(), 99);
        map.insert(99, 99);
        make_room(&mut map, 100, |value| *value);
        assert_eq!(map.len(), 75);
        assert!((26..100).all(|n| map.contains_key(&n)));
        let mut equal: HashMap<u32, u32> = (0..100).map(|n| (n, 0)).collect();
        make_room(&mut equal, 100, |value| *value);
        assert_eq!(equal.len(), 75);
    }
}
