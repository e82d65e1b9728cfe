//! Which exit an identity leaves by, as far as that is known.
//!
//! An endpoint that echoes addresses tells by which exit *its* connection came, and the record of a
//! URL is about another connection. The two are the same exit only where the identity does not
//! rotate. So an address counts as known once two connections of an identity have shown it, and as
//! unknowable once two have shown different ones; what was seen a single time proves nothing.

use super::Identity;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// Identities that are remembered; the oldest goes first.
const MOST: usize = 10_000;

/// What was seen of one identity.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Once(IpAddr),
    Known(Arc<str>, IpAddr),
    Varies,
}

/// The exits of identities, learnt from observations on separate connections.
#[derive(Debug, Clone, Default)]
pub struct ExitBook {
    seen: HashMap<Identity, Seen>,
    order: VecDeque<Identity>,
}

impl ExitBook {
    /// Notes that a connection of `identity` was seen to come from `exit`.
    ///
    /// Each connection is to be noted once: what a kept-alive one shows twice is no second proof.
    pub fn note(&mut self, identity: Identity, exit: IpAddr) {
        if let Some(seen) = self.seen.get_mut(&identity) {
            *seen = match &*seen {
                Seen::Once(first) | Seen::Known(_, first) if *first != exit => Seen::Varies,
                Seen::Once(_) => Seen::Known(Arc::from(exit.to_string()), exit),
                as_before => as_before.clone(),
            };
            return;
        }
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        self.order.push_back(identity);
        self.seen.insert(identity, Seen::Once(exit));
    }

    /// The exit of `identity`, where it is known.
    pub fn of(&self, identity: Identity) -> Option<Arc<str>> {
        match self.seen.get(&identity) {
            Some(Seen::Known(exit, _)) => Some(Arc::clone(exit)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(n: usize) -> Identity {
        Identity::of(&format!("h:1:u{n}:p").parse().unwrap())
    }

    fn exit(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn two_observations_make_it_known_and_a_contradiction_unknowable() {
        let mut book = ExitBook::default();
        let (one, two) = (exit("192.0.2.1"), exit("192.0.2.2"));
        for (seen, wanted) in [
            (&[][..], None),
            (&[one], None),
            (&[one, one], Some("192.0.2.1")),
            (&[one, one, one], Some("192.0.2.1")),
            (&[one, two], None),
            (&[one, two, two, two], None),
            (&[one, one, two], None),
            (&[one, one, two, one, one], None),
        ] {
            book = ExitBook::default();
            seen.iter().for_each(|exit| book.note(identity(1), *exit));
            assert_eq!(book.of(identity(1)).as_deref(), wanted, "{seen:?}");
        }
        assert_eq!(book.of(identity(2)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let mut book = ExitBook::default();
        for n in 0..MOST + 5 {
            book.note(identity(n), exit("192.0.2.1"));
        }
        assert_eq!((book.seen.len(), book.order.len()), (MOST, MOST));
        book.note(identity(4), exit("192.0.2.1"));
        assert_eq!(book.of(identity(4)), None);
        book.note(identity(MOST), exit("192.0.2.1"));
        assert_eq!(book.of(identity(MOST)).as_deref(), Some("192.0.2.1"));
    }
}
